//! Faults around telemetry, in short form: nothing is lost, and every count adds up.
//!
//! The benchmark runs the same in long form. Some faults mount their own disk; without root they are skipped by name.

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

use bench::telemetry::faults::{self, Ground};

/// Defines one test for each fault; the list must be complete, or the last test fails.
macro_rules! faults {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                well($name).await;
            }
        )*

        #[test]
        fn every_fault_has_a_test() {
            assert_eq!(faults::NAMES, [$($name),*]);
        }
    };
}

faults! {
    a_destination_that_asks_for_time_gets_it: "later",
    a_refused_span_becomes_a_dead_letter_alone: "refused",
    a_missing_authorization_holds_and_is_said_once: "unauthorized",
    a_partial_success_is_kept_and_marked: "partial",
    a_connection_that_ends_in_the_middle_loses_nothing: "reset",
    a_peer_is_believed_by_its_issuer_alone: "tls",
    a_wall_clock_may_be_set: "clock",
    a_program_may_run_in_anything: "runtimes",
    a_shutdown_may_come_at_any_moment: "ends",
    a_held_producer_is_let_go_by_whatever_makes_room: "held",
    a_buffer_that_is_resized_in_an_outage_keeps_its_backlog: "resized",
    a_dead_exporter_does_not_touch_the_living: "one-dead",
    a_directory_that_may_not_be_written_is_told: "read-only",
    a_directory_may_vanish: "removed",
    a_full_disk_holds_or_drops_and_recovers: "full-disk",
    a_torn_tail_costs_what_stood_there: "torn",
    programs_may_share_a_directory: "shared",
    a_backlog_passes_the_limits_of_a_collector: "limits",
    a_killed_collector_costs_nothing: "collector-killed",
    a_hung_collector_costs_nothing: "collector-hung",
    a_collector_may_come_and_go: "collector-restarted",
    a_storm_of_reloads_costs_nothing: "reloads",
    a_killed_program_loses_its_last_milliseconds: "killed",
    a_killed_program_that_writes_through_loses_nothing: "killed-write-through",
    bounds_hold_and_producers_are_held: "ceiling",
    bounds_hold_and_drops_are_counted: "ceiling-lossy",
}

#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
async fn well(name: &str) {
    let is_root = fs::metadata("/proc/self").expect("this process").uid() == 0;
    if faults::OF_ROOT.contains(&name) && !is_root {
        println!("skipped: `{name}` mounts a disk of its own, which needs root");
        return;
    }
    let ground = Ground { program: PathBuf::from(env!("CARGO_BIN_EXE_bench")), short: true };
    let fault = faults::run(name, &ground).await.expect("the fault can be done");
    assert!(fault.is_well(), "{fault:#?}");
}

//! In any order of arrival, the verdict on a complete trace is that of all its spans.
//!
//! The test generates a system: a tree of services that call each other, each with internal spans. Its spans arrive in any
//! order, in any batches, some of them twice, each within the quiet period of its process. The trace must then be complete, and
//! not before its last span has arrived.

use std::time::Duration;

use model::Verdict;
use proptest::{prelude::*, test_runner::Config};
use tokio::runtime::Builder;

use crate::stage::{Line, Stage, shown};

/// The declared quiet period. A span within it of any other arrival is in time.
const FLUSH_MS: u64 = 1000;

/// A called service: the index of its caller among the earlier ones, and the number of its internal spans.
#[derive(Clone, Debug)]
struct Called {
    by: prop::sample::Index,
    inside: u8,
    is_message: bool,
}

fn called() -> impl Strategy<Value = Called> {
    (any::<prop::sample::Index>(), 0..3_u8, any::<bool>())
        .prop_map(|(by, inside, is_message)| Called { by, inside, is_message })
}

/// Returns the spans of a system as lines without their arrival times.
fn spans(system: &[Called]) -> Vec<String> {
    let mut next = 10_u8;
    let mut id = || {
        next += 1;
        next
    };
    let mut entries = vec![id()];
    let mut spans = vec![format!("s0 server {}<t 0..9", entries[0])];
    for (number, called) in system.iter().enumerate() {
        let caller = called.by.index(entries.len());
        let (call, entry) = (id(), id());
        let (out, inn) = match called.is_message {
            true => ("producer", "consumer"),
            false => ("client", "server"),
        };
        let callee = number + 1;
        spans.push(format!("s{caller} {out} {call}<{} 1..8 to=s{callee}", entries[caller]));
        spans.push(format!("s{callee} {inn} {entry}<{call} 2..7"));
        for _ in 0..called.inside {
            spans.push(format!("s{callee} inner {}<{entry} 3..4", id()));
        }
        entries.push(entry);
    }
    spans
}

/// Generates when each span arrives, and whether it arrives again.
fn moments(spans: usize) -> impl Strategy<Value = Vec<(u64, Option<u64>)>> {
    let moment = 1..FLUSH_MS / 2;
    let again = prop::option::weighted(0.2, 1..FLUSH_MS * 3);
    prop::collection::vec((moment, again), spans)
}

fn drawn() -> impl Strategy<Value = (Vec<String>, Vec<(u64, Option<u64>)>)> {
    prop::collection::vec(called(), 0..8).prop_flat_map(|system| {
        let spans = spans(&system);
        let moments = moments(spans.len());
        (Just(spans), moments)
    })
}

fn stage(spans: &[String], moments: &[(u64, Option<u64>)], claim: &str) -> Stage {
    let mut stage = Stage::new("");
    stage.test = format!("settle: {{flush: {FLUSH_MS}ms, timeout: 20s}}\n  trace: ['{claim}']");
    for (text, (at, again)) in spans.iter().zip(moments) {
        for at in [Some(*at), *again].into_iter().flatten() {
            stage.arrivals.push(Line { at: Duration::from_millis(at), text: text.clone() });
        }
    }
    stage
}

fn run(stage: &Stage) -> runner::FinishedRun {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(stage.run())
}

proptest! {
    #![proptest_config(Config { cases: 40, ..Config::default() })]

    #[test]
    fn order_and_repetition_change_no_verdict((spans, moments) in drawn()) {
        // The claim is decided by absence: correct only if all spans have arrived.
        let claim = format!("count(span[name=\"work\"]) = {}", spans.len());
        let finished = run(&stage(&spans, &moments, &claim));
        prop_assert_eq!(finished.outcome.verdict, Verdict::Passed, "{}", shown(&finished));
        let settlement = finished.outcome.settlement.expect("a trace was asked for");
        prop_assert!(settlement.is_whole(), "{settlement:?}");
        let first = |(at, again): &(u64, Option<u64>)| again.unwrap_or(*at).min(*at);
        let last = moments.iter().map(first).max().unwrap_or(0);
        let waited = settlement.waited_ns / 1_000_000;
        prop_assert!(waited >= last + FLUSH_MS, "{waited} after {last}");
        prop_assert!(waited <= last + FLUSH_MS + 2, "{waited} after {last}: nobody waits for more");
    }

    #[test]
    fn what_is_announced_and_withheld_leaves_the_trace_open(
        (spans, moments) in drawn(),
        withheld in any::<prop::sample::Index>(),
    ) {
        // Withholds the parent of another span, or the other side of a call to a peer that is known to send spans.
        let withheld = withheld.index(spans.len());
        let id = |span: &String| span.split_whitespace().nth(2).map(|ids| ids.split('<').next().unwrap_or_default().to_owned());
        let gone = id(&spans[withheld]).unwrap_or_default();
        let is_named = spans.iter().any(|span| span.contains(&format!("<{gone} ")));
        prop_assume!(is_named);
        let mut stage = stage(&spans, &moments, "no span[name=\"never\"]");
        stage.arrivals.retain(|line| line.text != spans[withheld]);
        let finished = run(&stage);
        prop_assert_eq!(finished.outcome.verdict, Verdict::Inconclusive, "{}", shown(&finished));
    }

    #[test]
    fn what_presence_decides_is_what_the_whole_trace_says((spans, moments) in drawn(), least in 1..20_usize) {
        let claim = format!("count(span[name=\"work\"]) >= {least}");
        let finished = run(&stage(&spans, &moments, &claim));
        let expected = if spans.len() >= least { Verdict::Passed } else { Verdict::Failed };
        prop_assert_eq!(finished.outcome.verdict, expected, "{}", shown(&finished));
    }
}

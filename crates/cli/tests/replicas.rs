//! The short form of `cargo xtask bench replicas`: what it measures is right. How long it takes is for the long form to judge.

use std::path::Path;

use bench::{
    replicas::{self, ReplicaExtent},
    table::{Goal, Row},
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

async fn measured(group: &str) -> Vec<Row> {
    replicas::measure_group(Path::new(BINARY), group, ReplicaExtent::Test).await.expect("measured")
}

fn find<'r>(rows: &'r [Row], name: &str) -> &'r Row {
    rows.iter().find(|row| row.name == name).expect(name)
}

fn value(rows: &[Row], name: &str) -> f64 {
    find(rows, name).value
}

/// The goal of the row is met; the row has to exist, with an upper bound.
fn is_met(rows: &[Row], name: &str) {
    let row = find(rows, name);
    let most = match row.goal {
        Some(Goal::AtMost(most)) => most,
        _ => f64::NAN,
    };
    assert!(row.value <= most, "{row:?} of {rows:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_fires_what_another_process_accepted() {
    let rows = measured("fire").await;
    assert_eq!(value(&rows, "fire: runs"), 10.0);
    assert!(value(&rows, "fire: accepted to fired, median") > 0.0, "{rows:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_that_another_server_receives_decide_a_run() {
    let rows = measured("verdict").await;
    is_met(&rows, "verdict: verdicts that are not right");
}

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_are_right_with_any_number_of_workers() {
    let rows = measured("workers").await;
    for workers in ["1 worker", "2 workers", "4 workers"] {
        is_met(&rows, &format!("workers: {workers}: verdicts that are not right"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_accepts_and_judges_every_run_of_a_steady_load() {
    let rows = measured("one").await;
    is_met(&rows, "one: verdicts that are not right");
    is_met(&rows, "one: starts that were refused");
    // Acceptance is one statement; its transaction needs no further one.
    assert!(value(&rows, "one: statements for each") < 1.5, "{rows:#?}");
}

/// What no run waits for stays at the door.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_spans_cause_neither_messages_nor_statements() {
    let rows = measured("door").await;
    assert!(value(&rows, "door: requests of them") >= 2000.0, "{rows:#?}");
    is_met(&rows, "door: messages more than idle");
    is_met(&rows, "door: statements more than idle");
}

/// Every request is accepted, every span of a run is read, and the page has all figures.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_every_figure() {
    let page = replicas::figures(Path::new(BINARY), ReplicaExtent::Test).await.expect("measured");
    for part in ["gRPC, TLS", "HTTP/1.1, gzip", "the server that judges", "Postgres", "1,000,000"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
}

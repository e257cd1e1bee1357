//! No verdict is wrong, in short form: some thousand runs on a virtual clock, and some hundred of real processes in real time.
//! `cargo xtask prove settle` runs a million of the former.

use std::path::Path;

use bench::{
    settle::{self, real},
    table,
};

#[test]
fn no_verdict_is_wrong_on_a_virtual_clock() {
    let tally = settle::short().expect("they run");
    assert!(tally.is_right(), "{}", table::render("settle", &tally.rows()));
}

#[test]
fn no_verdict_is_wrong_through_a_trace_store() {
    let tally = settle::queried::short().expect("they run");
    assert!(tally.is_right(), "{}", table::render("settle", &tally.rows()));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_verdict_is_wrong_in_real_time() {
    let program = Path::new(env!("CARGO_BIN_EXE_bench"));
    let tally = real::runs(program).await.expect("they run");
    assert!(tally.is_right(), "{}", table::render("settle in real time", &tally.rows()));
}

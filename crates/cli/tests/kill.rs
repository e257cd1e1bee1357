//! The short forms of `cargo xtask prove kill`.

use std::path::Path;

use bench::{
    kill::{self, KillMode},
    table,
};

const KILLS: usize = 5;
/// Over NATS a kill waits until the runs before it have ended.
const NATS_KILLS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn every_run_ends_once_though_its_server_is_killed() {
    let binary = Path::new(env!("CARGO_BIN_EXE_qualitytrace"));
    let killed = kill::run(binary, KILLS, KillMode::Local).await.expect("it runs");
    assert!(killed.is_right(), "{}", table::render("kill", &killed.rows()));
    assert!(killed.resumed > 0, "{killed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_killed_server_are_decided_over_nats() {
    let binary = Path::new(env!("CARGO_BIN_EXE_qualitytrace"));
    let killed = kill::run(binary, NATS_KILLS, KillMode::Nats).await.expect("it runs");
    assert!(killed.is_right(), "{}", table::render("kill", &killed.rows()));
    assert!(killed.resumed_answered[0] > 0, "{killed:?}");
}

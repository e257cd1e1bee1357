//! The short form of `cargo xtask chaos`.

use std::path::Path;

use bench::chaos::{self, ChaosOptions, schedule::ScheduleForm};

#[tokio::test(flavor = "multi_thread")]
async fn faults_lose_nothing_fire_nothing_twice_and_make_no_verdict_wrong() {
    let binary = Path::new(env!("CARGO_BIN_EXE_qualitytrace"));
    let folder = tempfile::tempdir().expect("a folder");
    let history = folder.path().join("history.jsonl");
    let form = ScheduleForm::Short;
    let options = ChaosOptions { seed: 1, form, rate: 4.0, history, logs: None, plant: None };
    let result = chaos::play(binary, &options).await.expect("it runs");
    let table = result.report().unwrap_or_else(|violations| panic!("{violations}"));
    let found = &result.findings;
    assert_eq!(found.faults.values().sum::<u64>(), 5, "{table}");
    // Otherwise nothing was proved: runs that absence decided, runs that another worker continued, readers that reconnected.
    assert!(found.by_absence > 0 && found.resumed > 0 && found.reconnects > 0, "{table}");
    assert!(found.accepted >= 60 && found.accepted == found.recorded, "{table}");
}

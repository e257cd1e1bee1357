//! The short form of `cargo xtask prove ingest`.

use std::path::Path;

use bench::{ingest::prove, table::Goal};

#[tokio::test(flavor = "multi_thread")]
async fn broken_requests_are_answered_and_cost_nothing_that_stays() {
    let binary = Path::new(env!("CARGO_BIN_EXE_bench"));
    let rows = prove::measure(binary, &["--short".to_owned()]).await.expect("measured");
    for row in rows {
        if let Some(Goal::AtMost(most)) = row.goal {
            assert!(row.value <= most, "{}: {} {}", row.name, row.value, row.unit);
        }
    }
}

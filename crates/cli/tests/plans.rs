//! The short form of the history in `cargo xtask bench server`.

use std::path::Path;

use bench::server;

#[tokio::test]
async fn every_statement_goes_by_an_index_however_long_the_history_is() {
    let binary = Path::new(env!("CARGO_BIN_EXE_qualitytrace"));
    let explained = server::plans(binary).await.expect("good plans");
    assert!(!explained.is_empty());
}

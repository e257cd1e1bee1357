//! A server with a Collector that sends everything back to it: received spans cause no exported spans.

use std::{path::Path, time::Duration};

use anyhow::Result;
use bench::parts::{Collector, Database, Server, free_port};
use tokio::time::sleep;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// How long a span may take to reach the Collector's file.
const WRITTEN_MAX: Duration = Duration::from_secs(10);
/// How long no further span may arrive.
const SILENCE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn ingest_adds_no_span_of_its_own() -> Result<()> {
    let database = Database::create("no_loop").await?;
    let (collector_port, own_port) = (free_port()?, free_port()?);
    let collector = Collector::start(collector_port, Some(own_port)).await?;
    let own = format!("127.0.0.1:{own_port}");
    let server = Server::start_on(Path::new(BINARY), &database, collector_port, &own).await?;
    let client = reqwest::Client::new();
    for _ in 0..3 {
        client.get(format!("{}/api/v1/nothing", server.api)).send().await?;
    }
    let first = collector.wait_for(WRITTEN_MAX, |collected| collected.spans.len() >= 3).await?;
    assert_eq!(first.spans.len(), 3, "a span for each request: {first:?}");

    // That nothing more arrives takes time. Meanwhile those spans, and every metric, go back to the server.
    sleep(SILENCE).await;
    let later = collector.collected()?;
    assert_eq!(later.spans.len(), 3, "{later:?}");
    assert_eq!(server.terminate().await?, Some(0));
    assert_eq!(collector.collected()?.spans.len(), 3);
    collector.kill().await?;
    database.remove().await
}

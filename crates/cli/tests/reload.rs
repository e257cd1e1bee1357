//! A server with a configuration file that changes while it runs.

use std::{fs, path::Path, time::Duration};

use anyhow::{Result, ensure};
use bench::parts::{Collector, Database, Server, free_port};
use reqwest::Client;
use tokio::time::{Instant, sleep};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// How long a span may take to reach a file: the file's poll interval, the throttle, the Collector's flush.
const WRITTEN_MAX: Duration = Duration::from_secs(15);

/// Waits until the log of the server contains this text.
async fn until_said(server: &Server, words: &str) -> Result<()> {
    let began = Instant::now();
    while !server.log()?.contains(words) {
        ensure!(began.elapsed() < WRITTEN_MAX, "`{words}` is not said: {}", server.log()?);
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

fn configuration(database: &Database, port: u16, key: &str) -> Result<String> {
    Ok(format!(
        "{}
telemetry:
  exporters:
    collector: {{{key}: renamed, exporter: {{type: collector, collector: {{endpoint: '127.0.0.1:{port}'}}}}}}
server: {{telemetry: {{exporter: collector}}}}
",
        database.section()?
    ))
}

#[tokio::test]
async fn another_endpoint_is_taken_over_and_a_mistake_is_not() -> Result<()> {
    let database = Database::create("reload").await?;
    let (first_port, second_port) = (free_port()?, free_port()?);
    let first = Collector::start(first_port, None).await?;
    let second = Collector::start(second_port, None).await?;
    let config = configuration(&database, first_port, "serviceName")?;
    let server = Server::start_with(Path::new(BINARY), &config, "127.0.0.1:0").await?;
    let client = Client::new();
    let ask = async |path: &str| client.get(format!("{}/{path}", server.api)).send().await;

    ask("api/v1/first").await?;
    let named = |path: &str| {
        let path = format!("/{path}");
        move |collected: &bench::parts::CollectedData| {
            collected.spans.iter().any(|span| span.json.to_string().contains(&path))
        }
    };
    let collected = first.wait_for(WRITTEN_MAX, named("api/v1/first")).await?;
    assert!(named("api/v1/first")(&collected), "{collected:?}");

    // An invalid configuration changes nothing.
    fs::write(&server.config, configuration(&database, second_port, "servicename")?)?;
    until_said(&server, "the configuration is not taken over").await?;
    ask("api/v1/still").await?;
    let collected = first.wait_for(WRITTEN_MAX, named("api/v1/still")).await?;
    assert!(named("api/v1/still")(&collected), "{collected:?}");

    // The corrected file.
    fs::write(&server.config, configuration(&database, second_port, "serviceName")?)?;
    until_said(&server, "the configuration was taken over").await?;
    ask("api/v1/second").await?;
    let collected = second.wait_for(WRITTEN_MAX, named("api/v1/second")).await?;
    assert!(named("api/v1/second")(&collected), "{collected:?}");
    assert!(!named("api/v1/second")(&first.collected()?));
    assert_eq!(server.terminate().await?, Some(0));
    first.kill().await?;
    second.kill().await?;
    database.remove().await
}

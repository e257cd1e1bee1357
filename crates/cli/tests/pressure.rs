//! A server with an unreachable telemetry destination: it refuses new runs, stays live, and loses nothing.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bench::parts::{Collector, Database, Server, free_port, qualitytrace};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// A path that only creates a span.
const NOTHING: &str = "api/v1/nothing-but-a-span";
const HELD: &str = "telemetry_exporter_held_seconds_total";
/// The timeout for the buffer to fill, and for blocked requests to continue.
const WAIT_MAX: Duration = Duration::from_secs(40);

/// Starts a server with an exporter that has a small buffer and no reachable destination.
async fn start(database: &Database, port: u16) -> Result<Server> {
    let config = format!(
        "{}
telemetry:
  exporters:
    collector:
      buffer: {{memory: 1MiB, disk: 1MiB}}
      exporter: {{type: collector, collector: {{endpoint: '127.0.0.1:{port}'}}}}
server: {{telemetry: {{exporter: collector}}}}
",
        database.section()?
    );
    Server::start_with(Path::new(BINARY), &config, "127.0.0.1:0").await
}

/// Sends requests, each a span that cannot be exported, until new runs are refused; returns that refusal.
async fn until_refused(client: &Client, api: &str) -> Result<Response> {
    let began = Instant::now();
    loop {
        for _ in 0..50 {
            client.get(format!("{api}/{NOTHING}")).send().await?;
        }
        let response = client.post(format!("{api}/api/v1/tests/some/runs")).send().await?;
        if response.status() != StatusCode::NOT_FOUND {
            return Ok(response);
        }
        ensure!(began.elapsed() < WAIT_MAX, "new runs are still taken");
    }
}

/// Sends requests until some are blocked, more of them than the server has threads.
async fn until_held(client: &Client, api: &str) -> Result<JoinSet<reqwest::Result<StatusCode>>> {
    let mut held = JoinSet::new();
    let began = Instant::now();
    while seconds_held(client, api).await? == 0.0 {
        held.spawn(status(client.get(format!("{api}/{NOTHING}"))));
        while let Some(answered) = held.try_join_next() {
            assert_eq!(answered??, StatusCode::NOT_FOUND);
        }
        ensure!(began.elapsed() < WAIT_MAX, "nobody is held by a full buffer");
    }
    for _ in 0..16 {
        held.spawn(status(client.get(format!("{api}/{NOTHING}"))));
    }
    // Requests that wait for a free thread of the server cannot be observed.
    sleep(Duration::from_millis(300)).await;
    Ok(held)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_buffer_refuses_runs_before_it_holds_and_health_answers_throughout() -> Result<()> {
    let database = Database::create("pressure").await?;
    let port = free_port()?;
    let server = start(&database, port).await?;
    let client = Client::new();
    let refused = until_refused(&client, &server.api).await?;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"), "{refused:?}");
    assert!(refused.text().await?.contains("buffer is nearly full"));

    let mut held = until_held(&client, &server.api).await?;
    probes_answer(&client, &server.api).await?;

    // The Collector starts: all requests continue, and all accepted spans arrive.
    let collector = Collector::start(port, None).await?;
    let answered = timeout(WAIT_MAX, async {
        let mut answered = 0;
        while let Some(status) = held.join_next().await {
            assert_eq!(status??, StatusCode::NOT_FOUND);
            answered += 1;
        }
        anyhow::Ok(answered)
    });
    assert!(answered.await?? >= 16, "those who were held are answered");
    let metrics = client.get(format!("{}/metrics", server.api)).send().await?.text().await?;
    assert!(value(&metrics, HELD)? > 0.0, "{metrics}");
    assert_eq!(value(&metrics, "telemetry_exporter_dropped_total")?, 0.0, "{metrics}");
    assert_eq!(server.terminate().await?, Some(0));
    let accepted = value(&metrics, "otel_sdk_processor_span_processed_total")? as usize;
    let collected =
        collector.wait_for(WAIT_MAX, |collected| collected.spans.len() >= accepted).await?;
    assert!(collected.spans.len() >= accepted, "{} of {accepted}", collected.spans.len());
    collector.kill().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_held_can_be_told_to_stop() -> Result<()> {
    let database = Database::create("held_stop").await?;
    let server = start(&database, free_port()?).await?;
    let client = Client::new();
    until_refused(&client, &server.api).await?;
    let _held = until_held(&client, &server.api).await?;
    assert_eq!(server.terminate().await?, Some(0), "it ends in order, within its time");
    database.remove().await
}

/// A full buffer with an active run: the server reports that telemetry blocks it, and does not blame the database.
#[tokio::test(flavor = "multi_thread")]
async fn what_holds_a_server_is_said() -> Result<()> {
    let database = Database::create("held_said").await?;
    let port = free_port()?;
    let server = start(&database, port).await?;
    let client = Client::new();
    // A system that does not respond: the run keeps its lease.
    let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    let test = format!(
        "type: Test\nspec: {{id: silent, name: silent, trigger: {{type: http, httpRequest: {{method: GET, url: 'http://{}/'}}}}, \
         trace: ['response.status = 200']}}",
        silent.local_addr()?
    );
    let put = client.put(format!("{}/api/v1/tests", server.api)).body(test).send().await?;
    put.error_for_status()?;
    let run = client.post(format!("{}/api/v1/tests/silent/runs", server.api)).send().await?;
    assert_eq!(run.status(), StatusCode::ACCEPTED);

    until_refused(&client, &server.api).await?;
    let mut held = until_held(&client, &server.api).await?;
    // The server is blocked for longer than a third of a lease, and than a slow statement.
    sleep(Duration::from_secs(5)).await;
    until_said(&server, "has delivered no spans for 5").await?;
    until_said(&server, "refused the connection: is it running?").await?;
    until_said(&server, "% full (").await?;
    until_said(&server, "threads wait for room in it").await?;
    let status = ["telemetry", "status", "--server", &server.api];
    let told = qualitytrace(Path::new(BINARY), &status).await?;
    assert_eq!(told.code, Some(1), "{told:?}");
    for words in
        ["telemetry.exporters.collector to http://127.0.0.1", ": failing for ", "threads held"]
    {
        assert!(told.out.contains(words), "{words}: {told:?}");
    }
    let ready = client.get(format!("{}/readyz", server.api)).send().await?;
    assert_eq!(ready.status(), StatusCode::OK);
    assert!(ready.text().await?.contains(r#""state":"failing""#));

    let collector = Collector::start(port, None).await?;
    while let Some(status) = held.join_next().await {
        assert_eq!(status??, StatusCode::NOT_FOUND);
    }
    until_said(&server, "delivers spans again, after ").await?;
    until_said(&server, "no thread waits for it any more").await?;
    until_said(&server, "has room in its buffer again").await?;
    // This Collector accepts only spans, and the server logs that too.
    until_said(&server, "has delivered no metrics for ").await?;
    until_said(&server, "answered UNIMPLEMENTED").await?;
    let log = server.log()?;
    let lines = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    for words in [
        " no spans ",
        " delivers spans again",
        "; when it is full",
        "threads wait for room in it",
        "no thread waits",
        "has room in its buffer again",
    ] {
        assert_eq!(lines(words), 1, "once each: {words}: {log}");
    }
    for words in ["database", "lease", "statement", "sqlx", "SELECT"] {
        assert_eq!(lines(words), 0, "{words}: {log}");
    }
    drop(silent);
    server.kill().await?;
    collector.kill().await?;
    database.remove().await
}

/// Waits until the log of the server contains this text.
async fn until_said(server: &Server, words: &str) -> Result<()> {
    let began = Instant::now();
    while !server.log()?.contains(words) {
        ensure!(began.elapsed() < WAIT_MAX, "`{words}` is not said: {}", server.log()?);
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn probes_answer(client: &Client, api: &str) -> Result<()> {
    for probe in ["livez", "readyz", "metrics"] {
        let answered = status(client.get(format!("{api}/{probe}")));
        let answered =
            timeout(Duration::from_secs(5), answered).await.context("a probe is held")?;
        assert_eq!(answered?, StatusCode::OK, "{probe}");
    }
    Ok(())
}

async fn status(request: RequestBuilder) -> reqwest::Result<StatusCode> {
    request.send().await.map(|response| response.status())
}

/// Returns how long producers have been blocked so far.
async fn seconds_held(client: &Client, api: &str) -> Result<f64> {
    let metrics = client.get(format!("{api}/metrics")).send().await?.text().await?;
    value(&metrics, HELD)
}

/// Returns the value of the only series of this family.
fn value(metrics: &str, family: &str) -> Result<f64> {
    let line = metrics.lines().find(|line| line.starts_with(family));
    let line = line.with_context(|| format!("there is `{family}` in:\n{metrics}"))?;
    Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
}

//! A server whose telemetry has nowhere to go: it refuses new runs, stays alive, and loses nothing.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bench::parts::{Collector, Database, Server, free_port};
use reqwest::{Client, RequestBuilder, StatusCode};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// How long the buffer may take to fill, and what was held to go on.
const WAIT_MAX: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread")]
async fn a_full_buffer_refuses_runs_before_it_holds_and_health_answers_throughout() -> Result<()> {
    let database = Database::create("pressure").await?;
    let port = free_port()?;
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
    let server = Server::start_with(Path::new(BINARY), &config, "127.0.0.1:0").await?;
    let client = Client::new();
    let nothing = format!("{}/api/v1/nothing-but-a-span", server.api);
    let runs = format!("{}/api/v1/tests/some/runs", server.api);

    // Every request is a span that cannot leave, until new runs are refused.
    let began = Instant::now();
    let refused = loop {
        for _ in 0..50 {
            client.get(&nothing).send().await?;
        }
        let response = client.post(&runs).send().await?;
        if response.status() != StatusCode::NOT_FOUND {
            break response;
        }
        ensure!(began.elapsed() < WAIT_MAX, "new runs are still taken");
    };
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"), "{refused:?}");
    assert!(refused.text().await?.contains("buffer is nearly full"));

    // Then on, until requests are held: more of them than the server has threads.
    let mut held = JoinSet::new();
    let began = Instant::now();
    loop {
        held.spawn(status(client.get(&nothing)));
        while let Some(answered) = held.try_join_next() {
            assert_eq!(answered??, StatusCode::NOT_FOUND);
        }
        if holding(&client, &server.api).await? > 0.0 {
            break;
        }
        ensure!(began.elapsed() < WAIT_MAX, "nobody is held by a full buffer");
    }
    for _ in 0..16 {
        held.spawn(status(client.get(&nothing)));
    }
    sleep(Duration::from_millis(300)).await;
    probes_answer(&client, &server.api).await?;

    // The Collector comes: everyone goes on, and what was accepted arrives.
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
    assert!(value(&metrics, "telemetry_exporter_held_seconds_total")? > 0.0, "{metrics}");
    assert_eq!(value(&metrics, "telemetry_exporter_dropped_total")?, 0.0, "{metrics}");
    assert_eq!(server.terminate().await?, Some(0));
    let accepted = value(&metrics, "otel_sdk_processor_span_processed_total")? as usize;
    let collected =
        collector.wait_for(WAIT_MAX, |collected| collected.spans.len() >= accepted).await?;
    assert!(collected.spans.len() >= accepted, "{} of {accepted}", collected.spans.len());
    collector.kill().await?;
    database.remove().await
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

/// How long producers have been held so far.
async fn holding(client: &Client, api: &str) -> Result<f64> {
    let metrics = client.get(format!("{api}/metrics")).send().await?.text().await?;
    value(&metrics, "telemetry_exporter_held_seconds_total")
}

/// The value of the one series of this family.
fn value(metrics: &str, family: &str) -> Result<f64> {
    let line = metrics.lines().find(|line| line.starts_with(family));
    let line = line.with_context(|| format!("there is `{family}` in:\n{metrics}"))?;
    Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
}

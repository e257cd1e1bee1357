//! The resource of spans, logs and metrics, received by a real Collector.
//!
//! Two servers share a database and a data directory. Each has an id of its own in all signals, and the same id after a
//! restart. In the application's store a trigger span names the test that fired it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result};
use bench::parts::{
    Api, Collector, Database, Server, TEST_THAT_FIRES_NOTHING, Target, answer, free_port,
    qualitytrace,
};
use reqwest::Method;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const WAIT_MAX: Duration = Duration::from_secs(30);
const INSTANCE: &str = "service.instance.id";
const SIGNALS: [&str; 3] = ["resourceSpans", "resourceLogs", "resourceMetrics"];

fn configuration(database: &Database, data: &Path, port: u16) -> Result<String> {
    Ok(format!(
        "{}
tracer: {{all: {{type: open-telemetry, endpoint: 'http://127.0.0.1:{port}', throttle: 50ms, enable: {{log-exporter: true}}}}}}
metrics: {{open-telemetry: {{endpoint: 'http://127.0.0.1:{port}', interval: 1s}}}}
server: {{dataDirectory: '{}'}}
",
        database.section()?,
        data.display()
    ))
}

/// Returns the resources of a signal that the Collector has received, each as its attributes.
fn resources(written: &str, signal: &str) -> Vec<BTreeMap<String, String>> {
    let requests = written.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let resources = requests
        .flat_map(|request| request[signal].as_array().cloned().unwrap_or_default().into_iter());
    let attributes = resources.map(|it| it["resource"]["attributes"].as_array().cloned());
    attributes
        .map(|attributes| {
            let text = |key: &Value| key.as_str().unwrap_or_default().to_owned();
            let pairs = attributes.unwrap_or_default();
            pairs.iter().map(|it| (text(&it["key"]), text(&it["value"]["stringValue"]))).collect()
        })
        .collect()
}

/// Returns the instance ids of a signal.
fn ids(written: &str, signal: &str) -> BTreeSet<String> {
    resources(written, signal).iter().filter_map(|it| it.get(INSTANCE).cloned()).collect()
}

/// Starts two servers and stops them, once each signal of both is written; returns the written data.
async fn both(text: &str, collector: &Collector) -> Result<String> {
    let one = Server::start_with(Path::new(BINARY), text, "127.0.0.1:0").await?;
    let other = Server::start_with(Path::new(BINARY), text, "127.0.0.1:0").await?;
    let began = Instant::now();
    loop {
        for server in [&one, &other] {
            let api = Api::new(&server.api)?;
            let (status, body) =
                answer(api.request(Method::PUT, "/api/v1/tests").body(TEST_THAT_FIRES_NOTHING))
                    .await?;
            assert_eq!(status, 200, "{body}");
        }
        let written = collector.written()?;
        let has_both = SIGNALS.iter().all(|signal| ids(&written, signal).len() == 2);
        if has_both || began.elapsed() > WAIT_MAX {
            assert_eq!((one.terminate().await?, other.terminate().await?), (Some(0), Some(0)));
            return Ok(written);
        }
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_are_two_instances_in_all_signals_and_stay_so() -> Result<()> {
    let database = Database::create("instances").await?;
    let folder = TempDir::new()?;
    let port = free_port()?;
    let collector = Collector::start_for_all(port).await?;
    let text = configuration(&database, folder.path(), port)?;
    let first = both(&text, &collector).await?;
    let spans = ids(&first, SIGNALS[0]);
    assert_eq!(spans.len(), 2, "{spans:?}");
    for signal in SIGNALS {
        assert_eq!(ids(&first, signal), spans, "{signal}");
        for resource in resources(&first, signal) {
            let text = |key: &str| resource.get(key).map(String::as_str);
            assert_eq!(text("service.name"), Some("quality-trace"), "{resource:?}");
            assert_eq!(text("service.version"), Some(env!("CARGO_PKG_VERSION")), "{resource:?}");
            assert_eq!(text("telemetry.sdk.name"), Some("opentelemetry"), "{resource:?}");
            assert_eq!(text("telemetry.sdk.language"), Some("rust"), "{resource:?}");
            assert!(text("telemetry.sdk.version").is_some(), "{resource:?}");
        }
    }
    // A new Collector, to which none of the data arrives that was in transit when they stopped.
    collector.kill().await?;
    let collector = Collector::start_for_all(port).await?;
    let second = both(&text, &collector).await?;
    for signal in SIGNALS {
        assert_eq!(ids(&second, signal), spans, "the same after a restart: {signal}");
    }
    collector.kill().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_application_s_store_a_trigger_says_which_test_fired() -> Result<()> {
    let database = Database::create("fired").await?;
    let folder = TempDir::new()?;
    let port = free_port()?;
    let collector = Collector::start(port, None).await?;
    let text = format!(
        "{}
telemetry: {{exporters: {{application: {{throttle: 50ms, exporter: {{type: collector, collector: {{endpoint: '127.0.0.1:{port}'}}}}}}}}}}
server: {{dataDirectory: '{}', telemetry: {{applicationExporter: application}}}}
",
        database.section()?,
        folder.path().display()
    );
    let server = Server::start_with(Path::new(BINARY), &text, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let file = folder.path().join("cart.yaml");
    fs::write(&file, target.test(Duration::from_millis(100)))?;
    let file = file.to_str().context("a path that is text")?;
    let ran = qualitytrace(Path::new(BINARY), &["run", file, "--server", &server.api]).await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let collected = collector.wait_for(WAIT_MAX, |it| !it.spans.is_empty()).await?;
    let [trigger] = &collected.spans[..] else { anyhow::bail!("one trigger: {collected:?}") };
    assert_eq!(trigger.name, "Qualitytrace trigger");
    let value = |key: &str| {
        let mut attributes = trigger.json["attributes"].as_array().into_iter().flatten();
        attributes.find(|it| it["key"] == key).and_then(|it| it["value"]["stringValue"].as_str())
    };
    assert_eq!(value("qualitytrace.test.id"), Some("cart"), "{}", trigger.json);
    assert_eq!(value("test.case.name"), Some("the cart answers"), "{}", trigger.json);
    let run = value("qualitytrace.run.id").context("the run")?;
    let (status, run) =
        answer(Api::new(&server.api)?.request(Method::GET, &format!("/api/v1/runs/{run}"))).await?;
    assert_eq!((status, &run["traceId"]), (200, &Value::String(trigger.trace_id.clone())), "{run}");
    assert_eq!(server.terminate().await?, Some(0));
    collector.kill().await?;
    database.remove().await
}

//! A real OpenTelemetry Collector that writes the received telemetry to a file.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use super::setting;

/// The configuration file in a Collector's folder.
pub(super) const CONFIGURATION: &str = "collector.yaml";
/// The timeout for a Collector to listen.
const READY_MAX: Duration = Duration::from_secs(20);
/// The timeout for a Collector to shut down.
const END_MAX: Duration = Duration::from_secs(20);

/// A Collector that runs until it is dropped.
#[derive(Debug)]
pub struct Collector {
    child: Child,
    folder: TempDir,
}

/// The telemetry that a Collector has written.
#[derive(Debug, Default)]
pub struct CollectedData {
    /// Every span, in the order written.
    pub spans: Vec<CollectedSpan>,
    /// Every log record, in the order written.
    pub logs: Vec<CollectedLog>,
}

/// One log record as the Collector wrote it.
#[derive(Clone, Debug)]
pub struct CollectedLog {
    /// The name of its scope: for logs of `tracing`, the target.
    pub scope: String,
    /// The record as JSON.
    pub json: Value,
}

/// One span as the Collector wrote it.
#[derive(Clone, Debug)]
pub struct CollectedSpan {
    /// `service.name` of its resource.
    pub service: String,
    /// Its name.
    pub name: String,
    /// Its trace, in hex.
    pub trace_id: String,
    /// Its id, in hex.
    pub span_id: String,
    /// Its parent, in hex; empty for none.
    pub parent_id: String,
    /// Nanoseconds since the epoch.
    pub start: u64,
    /// The span as JSON.
    pub json: Value,
}

impl Collector {
    /// Starts a Collector that receives OTLP by gRPC on `port` and also forwards everything to `forward`.
    pub async fn start(port: u16, forward: Option<u16>) -> Result<Self> {
        Self::start_with(port, forward, &[]).await
    }

    /// Starts a Collector that receives spans, logs and metrics; that of [`Self::start`] receives spans only.
    pub async fn start_for_all(port: u16) -> Result<Self> {
        Self::start_with(port, None, &["logs", "metrics"]).await
    }

    /// Starts a Collector that receives these signals beside spans.
    async fn start_with(port: u16, forward: Option<u16>, signals: &[&str]) -> Result<Self> {
        let folder = TempDir::new()?;
        let mut text = configuration(port, forward, &folder.path().join("spans.json"));
        for signal in signals {
            text += &format!("    {signal}: {{receivers: [otlp], exporters: [file]}}\n");
        }
        fs::write(folder.path().join(CONFIGURATION), text)?;
        let child = start(folder.path(), &[port]).await?;
        Ok(Self { child, folder })
    }

    /// Returns the telemetry written so far.
    pub fn collected(&self) -> Result<CollectedData> {
        let text = fs::read_to_string(self.file()).unwrap_or_default();
        let mut collected = CollectedData::default();
        for line in text.lines() {
            // The last line may be incomplete.
            let Ok(request) = serde_json::from_str::<Value>(line) else { continue };
            for resource in list(&request, "resourceLogs") {
                for scope in list(resource, "scopeLogs") {
                    let name = scope["scope"]["name"].as_str().unwrap_or_default();
                    let read =
                        |log: &Value| CollectedLog { scope: name.to_owned(), json: log.clone() };
                    collected.logs.extend(list(scope, "logRecords").map(read));
                }
            }
            for resource in list(&request, "resourceSpans") {
                let service = service_name(resource);
                for scope in list(resource, "scopeSpans") {
                    collected.spans.extend(list(scope, "spans").map(|span| read(&service, span)));
                }
            }
        }
        Ok(collected)
    }

    /// Returns the unparsed content of the file so far.
    pub fn written(&self) -> Result<String> {
        Ok(fs::read_to_string(self.file())?)
    }

    /// Waits until the written telemetry satisfies `enough`, or returns its state after `max`.
    pub async fn wait_for(
        &self,
        max: Duration,
        enough: impl Fn(&CollectedData) -> bool,
    ) -> Result<CollectedData> {
        let began = Instant::now();
        loop {
            let collected = self.collected()?;
            if enough(&collected) || began.elapsed() > max {
                return Ok(collected);
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Requests the Collector to shut down, and returns all telemetry that it has received: it writes the rest at its end.
    pub async fn terminate(mut self) -> Result<CollectedData> {
        let id = self.child.id().context("the Collector runs")?;
        Command::new("kill").arg(id.to_string()).status().await?;
        timeout(END_MAX, self.child.wait()).await??;
        self.collected()
    }

    /// Kills the Collector.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("spans.json")
    }
}

impl CollectedData {
    /// Returns the spans of this name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a CollectedSpan> {
        self.spans.iter().filter(move |span| span.name == name)
    }

    /// Returns the children of a span, by start.
    pub fn children(&self, parent: &CollectedSpan) -> Vec<&CollectedSpan> {
        let is_child = |span: &&CollectedSpan| {
            span.parent_id == parent.span_id && span.trace_id == parent.trace_id
        };
        let mut children: Vec<_> = self.spans.iter().filter(is_child).collect();
        children.sort_by_key(|span| span.start);
        children
    }
}

impl CollectedLog {
    /// Returns the name of the event; empty for none.
    pub fn event(&self) -> &str {
        self.json["eventName"].as_str().unwrap_or_default()
    }

    /// Returns its severity number, as in OpenTelemetry.
    pub fn severity(&self) -> u64 {
        self.json["severityNumber"].as_u64().unwrap_or_default()
    }

    /// Returns the keys of its attributes.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        list(&self.json, "attributes").filter_map(|attribute| attribute["key"].as_str())
    }

    /// Returns a text attribute.
    pub fn text(&self, key: &str) -> Option<&str> {
        let attribute = list(&self.json, "attributes").find(|attribute| attribute["key"] == key)?;
        attribute["value"]["stringValue"].as_str()
    }
}

/// Starts a Collector in its folder, and waits until it listens on these ports.
pub(super) async fn start(folder: &Path, ports: &[u16]) -> Result<Child> {
    let binary = setting("QUALITYTRACE_TEST_COLLECTOR_BIN")?;
    let log = folder.join("log");
    let child = Command::new(&binary)
        .arg("--config")
        .arg(folder.join(CONFIGURATION))
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log)?)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start `{binary}`"))?;
    let began = Instant::now();
    for port in ports {
        while TcpStream::connect(("127.0.0.1", *port)).await.is_err() {
            if began.elapsed() > READY_MAX {
                let log = fs::read_to_string(log).unwrap_or_default();
                bail!("the Collector does not listen on port {port}:\n{log}");
            }
            sleep(Duration::from_millis(5)).await;
        }
    }
    Ok(child)
}

fn configuration(port: u16, forward: Option<u16>, file: &Path) -> String {
    let (forwarder, exporters) = match forward {
        None => (String::new(), "[file]"),
        Some(port) => (
            format!("  otlp: {{endpoint: '127.0.0.1:{port}', tls: {{insecure: true}}}}\n"),
            "[file, otlp]",
        ),
    };
    format!(
        "receivers:\n  otlp: {{protocols: {{grpc: {{endpoint: '127.0.0.1:{port}'}}}}}}\n\
         exporters:\n  file: {{path: '{}', flush_interval: 50ms}}\n{forwarder}\
         service:\n  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}\n  \
         pipelines:\n    traces: {{receivers: [otlp], exporters: {exporters}}}\n",
        file.display()
    )
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn service_name(resource: &Value) -> String {
    list(&resource["resource"], "attributes")
        .find(|attribute| attribute["key"] == "service.name")
        .and_then(|attribute| attribute["value"]["stringValue"].as_str())
        .unwrap_or_default()
        .to_owned()
}

fn read(service: &str, span: &Value) -> CollectedSpan {
    let text = |key: &str| span[key].as_str().unwrap_or_default().to_owned();
    CollectedSpan {
        service: service.to_owned(),
        name: text("name"),
        trace_id: text("traceId"),
        span_id: text("spanId"),
        parent_id: text("parentSpanId"),
        start: text("startTimeUnixNano").parse().unwrap_or_default(),
        json: span.clone(),
    }
}

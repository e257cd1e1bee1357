//! A real Collector that writes received data to a file, until it is dropped.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

/// How long a Collector may take to listen, and to write received data.
const WAIT_MAX: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// A running Collector.
pub(crate) struct Collector {
    child: Child,
    folder: tempfile::TempDir,
    /// The address for OTLP over gRPC: `host:port`.
    pub(crate) grpc: String,
    /// The address for OTLP over HTTP.
    pub(crate) http: String,
}

/// The data that a Collector wrote.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// `service: name` of every span, in order.
    pub(crate) spans: Vec<String>,
    /// `service: body` of every log.
    pub(crate) logs: Vec<String>,
    /// `service: name` of every metric.
    pub(crate) metrics: Vec<String>,
    /// The id of every span, in order.
    pub(crate) span_ids: Vec<String>,
}

impl Collector {
    /// Starts a Collector on free ports.
    #[expect(clippy::disallowed_methods, reason = "where the binary lies is told to tests so")]
    pub(crate) fn start() -> Self {
        // With any prefix of the project that contains this library.
        let named = std::env::vars().find(|(name, _)| name.ends_with("TEST_COLLECTOR_BIN"));
        let (_, binary) = named.expect(
            "`TEST_COLLECTOR_BIN` names an `otelcol`: set it, or run through `cargo xtask ci`",
        );
        let folder = tempfile::tempdir().expect("a folder");
        let [grpc, http] = [free_address(), free_address()];
        let config = folder.path().join("collector.yaml");
        let file = folder.path().join("written.json");
        let text = format!(
            "receivers:\n  otlp: {{protocols: {{grpc: {{endpoint: '{grpc}'}}, http: {{endpoint: '{http}'}}}}}}\n\
             exporters:\n  file: {{path: '{}', flush_interval: 50ms}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}\n  pipelines:\n    \
             traces: {{receivers: [otlp], exporters: [file]}}\n    \
             logs: {{receivers: [otlp], exporters: [file]}}\n    \
             metrics: {{receivers: [otlp], exporters: [file]}}\n",
            file.display()
        );
        fs::write(&config, text).expect("written");
        let log = fs::File::create(folder.path().join("log")).expect("a file");
        let child = Command::new(&binary)
            .arg("--config")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the Collector's binary starts");
        let collector = Self { child, folder, grpc, http };
        collector.wait("it listens", || {
            TcpStream::connect(&collector.grpc).is_ok()
                && TcpStream::connect(&collector.http).is_ok()
        });
        collector
    }

    /// Returns the data that it has written so far.
    pub(crate) fn written(&self) -> Written {
        let file = fs::read_to_string(self.folder.path().join("written.json")).unwrap_or_default();
        let mut written = Written::default();
        // The last line may be incomplete.
        for request in file.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let Written { spans, logs, metrics, span_ids } = &mut written;
            each(&request, ["resourceSpans", "scopeSpans", "spans"], |service, span| {
                spans.push(format!("{service}: {}", text(&span["name"])));
                span_ids.push(text(&span["spanId"]).to_owned());
            });
            each(&request, ["resourceLogs", "scopeLogs", "logRecords"], |service, log| {
                logs.push(format!("{service}: {}", text(&log["body"]["stringValue"])));
            });
            each(&request, ["resourceMetrics", "scopeMetrics", "metrics"], |service, metric| {
                metrics.push(format!("{service}: {}", text(&metric["name"])));
            });
        }
        written
    }

    /// Waits until it has written the expected data.
    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&Written) -> bool) {
        self.wait(what, || is_so(&self.written()));
    }

    #[expect(clippy::disallowed_methods, reason = "another process is waited for")]
    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = std::time::Instant::now();
        while !is_so() {
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(
                began.elapsed() < WAIT_MAX,
                "waited for: {what}\n{:?}\n{}",
                self.written(),
                log()
            );
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // A process that has already ended is fine.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Calls `with` for every item of a request and its service.
fn each(request: &Value, path: [&str; 3], mut with: impl FnMut(&str, &Value)) {
    for resource in list(request, path[0]) {
        let service = list(&resource["resource"], "attributes")
            .find(|attribute| attribute["key"] == "service.name")
            .map(|attribute| text(&attribute["value"]["stringValue"]))
            .unwrap_or_default();
        for item in list(resource, path[1]).flat_map(|scope| list(scope, path[2])) {
            with(service, item);
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn free_address() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("bound").to_string()
}

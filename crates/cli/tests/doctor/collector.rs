//! A Collector between a system and the receiver: it forwards, drops or delays.

use anyhow::Result;
use bench::parts::{collector_of, free_port};
use tempfile::TempDir;

use super::{begins, doctor, is_sound, request::open};

/// Keeps traces with errors only, after this time.
const ERRORS_ONLY: &str = "{decision_wait: 200ms, policies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]}";
/// Keeps every trace, after a time that is longer than a test waits here.
const ALL_LATE: &str = "{decision_wait: 4s, policies: [{name: all, type: always_sample}]}";
const ALL: &str = "{decision_wait: 50ms, policies: [{name: all, type: always_sample}]}";

/// Returns a Collector that receives OTLP by HTTP on one port, samples traces and sends what it keeps to the other port.
fn configuration(port: u16, forward: u16, sampling: &str) -> String {
    format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}}}
processors: {{tail_sampling: {sampling}}}
exporters: {{otlp: {{endpoint: '127.0.0.1:{forward}', tls: {{insecure: true}}}}}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}
  pipelines: {{traces: {{receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}}}}
"
    )
}

/// Runs `doctor` on a shop that exports through a Collector.
async fn look(sampling: &str, timeout: &str) -> Result<(Option<i32>, String)> {
    let folder = TempDir::new()?;
    let (port, between, otlp) = (free_port()?, free_port()?, free_port()?);
    let (_collector, _configured) =
        collector_of(&configuration(between, otlp, sampling), &[between]).await?;
    let _shop = open(port, between, &[("OTEL_BSP_SCHEDULE_DELAY", "100")])?;
    let (url, address) = (format!("http://127.0.0.1:{port}/cart"), format!("127.0.0.1:{otlp}"));
    let arguments = [&*url, "--otlp", &address, "--timeout", timeout];
    doctor(folder.path(), &arguments, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_drops_or_delays_comes_first() -> Result<()> {
    let (code, printed) = look(ALL, "15s").await?;
    is_sound(code, &printed);
    let (code, printed) = look(ERRORS_ONLY, "2s").await?;
    begins(&printed, "✘ export", &["1 connection to the receiver, and no request over them"]);
    let advice = printed.lines().nth(1).unwrap_or_default();
    assert!(advice.contains("Collector") && advice.contains("filter processor"), "{printed}");
    assert_eq!(code, Some(1), "{printed}");
    let (code, printed) = look(ALL_LATE, "2s").await?;
    begins(&printed, "✘ batch delay", &["`shop`", "too late"]);
    assert!(printed.contains("a Collector in between"), "{printed}");
    assert_eq!(code, Some(1), "{printed}");
    Ok(())
}

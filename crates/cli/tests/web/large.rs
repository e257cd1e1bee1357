//! A trace of 100,000 spans: an import of 200 pages, each of 499 short calls, one of which waited for a lock.

use std::time::Duration;

use anyhow::{Result, ensure};
use bench::parts::Server;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// The id of the test.
pub(crate) const TEST: &str = "large-import";
const TRACE: &str = "6b8efff798038103d269b633813fc60c";
/// The root is the hundred-thousandth span; the first page has one call less.
const PAGES: u64 = 200;
const SPANS_OF_PAGE: u64 = 500;
/// The call that waited for a lock: its page, and its place in it.
const SLOW: (u64, u64) = (137, 311);
const BEGAN: u64 = 1_800_000_000_000_000_000;
const CALL: u64 = 400_000;
const PAGE: u64 = SPANS_OF_PAGE * 2 * CALL;
const WAITED: u64 = 2_700_000_000;
/// How long the server may take to record that nothing is fired.
const RECORDED_MAX: Duration = Duration::from_secs(20);

pub(crate) fn document() -> String {
    format!(
        "type: Test
spec:
  id: {TEST}
  name: a large import
  trigger: {{type: traceid, traceid: {{id: {TRACE}}}}}
  settle: {{flush: 2s, timeout: 2m}}
  trace:
    - count(span[name=\"import page\"]) = {PAGES}
"
    )
}

/// Sends the trace once the run waits for it, a page in an export.
pub(crate) async fn send(server: &Server, run: &str) -> Result<()> {
    let client = reqwest::Client::new();
    let began = Instant::now();
    let events = format!("{}/api/v1/runs/{run}/events", server.api);
    while !client.get(&events).send().await?.text().await?.contains("notFired") {
        ensure!(began.elapsed() < RECORDED_MAX, "no `notFired` among the events");
        sleep(Duration::from_millis(20)).await;
    }
    // Every address accepts every protocol.
    let url = format!("http://127.0.0.1:{}/v1/traces", server.otlp_grpc);
    for page in 0..PAGES {
        let answer = client.post(&url).json(&export(page)).send().await?;
        ensure!(answer.status().is_success(), "{}", answer.text().await?);
    }
    Ok(())
}

/// Returns the spans of a page; with those of the first one, the root.
fn export(page: u64) -> Value {
    let root = 1;
    let id = 2 + page * SPANS_OF_PAGE;
    let starts = BEGAN + page * PAGE + if page > SLOW.0 { WAITED } else { 0 };
    let waited = if page == SLOW.0 { WAITED } else { 0 };
    let mut importer = vec![span(id, root, "import page", (starts, starts + PAGE + waited))];
    if page == 0 {
        importer.push(span(root, 0, "import", (BEGAN, BEGAN + PAGES * PAGE + WAITED)));
    }
    let (mut catalog, mut inventory) = (Vec::new(), Vec::new());
    let mut at = starts;
    // The root takes the place of one call.
    for call in 1..SPANS_OF_PAGE - u64::from(page == 0) {
        let is_slow = (page, call) == SLOW;
        let length = if is_slow { WAITED } else { CALL + (page * 31 + call * 17) % CALL };
        let times = (at, at + length);
        match call % 5 {
            1 if is_slow || call % 50 == 1 => {
                let mut reserved = span(id + call, id, "RESERVE stock", times);
                let statement = if is_slow { "SELECT … FOR UPDATE" } else { "SELECT …" };
                reserved["attributes"] =
                    json!([{"key": "db.query.text", "value": {"stringValue": statement}}]);
                inventory.push(reserved);
            }
            0 | 1 => catalog.push(span(id + call, id, "GET /products", times)),
            2 => catalog.push(span(id + call, id, "GET /prices", times)),
            _ => inventory.push(span(id + call, id, "SELECT stock", times)),
        }
        at += length;
    }
    json!({"resourceSpans": [
        resource("importer", &importer),
        resource("catalog", &catalog),
        resource("inventory", &inventory),
    ]})
}

fn resource(service: &str, spans: &[Value]) -> Value {
    json!({
        "resource": {"attributes": [
            {"key": "service.name", "value": {"stringValue": service}},
        ]},
        "scopeSpans": [{"spans": spans}],
    })
}

fn span(id: u64, parent: u64, name: &str, (start, end): (u64, u64)) -> Value {
    let parent = if parent == 0 { String::new() } else { format!("{parent:016x}") };
    json!({
        "traceId": TRACE, "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": name, "kind": 2,
        "startTimeUnixNano": start.to_string(), "endTimeUnixNano": end.to_string(),
    })
}

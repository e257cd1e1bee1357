//! The system under test: five services in a chain of calls, of which the last is called in half of the requests only.
//!
//! Each service has an exporter of its own. All run in this process and write what they did to the history; the services of the demo
//! report no such truth.A call is a CLIENT
//! span that names its peer, so that a run knows of each service whose spans it lacks. Only the last service is not announced in half of
//! its requests: it flushes before the response instead, so that a server has accepted its span before any run may conclude anything.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use axum::{
    Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    routing::get,
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    exporter::{ExportLimits, OrderExporter, ServiceSpans},
    history::{ChaosTest, CountClaim, HistoryFile, HistoryLine, now},
};

/// The services, in the order of their calls.
const SERVICES: [&str; 5] = ["front", "cart", "stock", "prices", "ledger"];
/// The span of each service.
const SPANS: [&str; 5] =
    ["GET /order", "GET /cart", "GET /stock", "GET /prices", "delete customer"];
/// How long each service works.
const WORK: Duration = Duration::from_millis(15);
/// How long the last service works if no call announces it.
const LAST_WORK: Duration = Duration::from_millis(200);
/// How long a service flushes before the response.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// The system, until it is dropped.
#[derive(Debug)]
pub(super) struct OrderSystem {
    pub(super) url: String,
    exporters: Arc<Vec<OrderExporter>>,
    _tasks: JoinSet<()>,
}

#[derive(Clone, Debug)]
struct OrderState {
    exporters: Arc<Vec<OrderExporter>>,
    history: Arc<HistoryFile>,
    spans: Arc<AtomicU64>,
}

#[derive(serde::Deserialize)]
struct OrderQuery {
    run: String,
    deleted: bool,
}

impl OrderSystem {
    /// Starts the system. Its exporters send to this port.
    pub(super) async fn start(
        otlp: u16,
        limits: ExportLimits,
        history: Arc<HistoryFile>,
    ) -> Result<Self> {
        let exporters = SERVICES
            .iter()
            .map(|service| OrderExporter::start(service, otlp, limits, Arc::clone(&history)));
        let exporters = Arc::new(exporters.collect::<Result<Vec<_>>>()?);
        let state =
            OrderState { exporters: Arc::clone(&exporters), history, spans: Arc::default() };
        let router = Router::new().route("/order", get(order)).with_state(state);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // It ends with the system.
            let _ended = axum::serve(listener, router).await;
        });
        Ok(Self { url, exporters, _tasks: tasks })
    }

    /// Waits until every export is acknowledged or given up.
    pub(super) async fn flushed(&self) {
        for exporter in self.exporters.iter() {
            exporter.flushed().await;
        }
    }

    /// Returns the documents of the tests.
    pub(super) fn documents(&self, timeout_s: u64) -> Vec<String> {
        let url = &self.url;
        let document = |test: ChaosTest| {
            let claims = test.claims.iter().enumerate().map(|(at, claim)| {
                let sign = if claim.most.is_some() { "=" } else { ">=" };
                let claim = format!("count(span[name=\"{}\"]) {sign} {}", claim.span, claim.least);
                format!("    - {{name: claim {at}, claim: '{claim}'}}\n")
            });
            format!(
                "type: Test
spec:
  id: {id}
  name: {id}
  trigger:
    type: http
    httpRequest: {{method: GET, url: '{url}/order?run=${{var:run}}&deleted=${{var:deleted}}'}}
  settle: {{timeout: {timeout_s}s, flush: 800ms, expect: [front, cart, stock, prices]}}
  trace:
{claims}",
                id = test.id,
                claims = claims.collect::<String>()
            )
        };
        tests().into_iter().map(document).collect()
    }
}

/// The tests. Of the statements about deletions absence decides three of four, and presence decides the last.
pub(super) fn tests() -> Vec<ChaosTest> {
    let deleted =
        |number| CountClaim { span: SPANS[4].to_owned(), least: number, most: Some(number) };
    let order = CountClaim { span: SPANS[0].to_owned(), least: 1, most: None };
    vec![
        ChaosTest { id: "kept".to_owned(), claims: vec![deleted(0)] },
        ChaosTest { id: "deleted".to_owned(), claims: vec![deleted(1), order] },
    ]
}

async fn order(
    State(state): State<OrderState>,
    Query(query): Query<OrderQuery>,
    headers: HeaderMap,
) -> StatusCode {
    let parent = headers.get("traceparent").and_then(|it| it.to_str().ok()).unwrap_or_default();
    let ids: Vec<&str> = parent.split('-').collect();
    let [_, trace, parent, _] = ids[..] else { return StatusCode::BAD_REQUEST };
    let trace = trace.to_owned();
    state.history.write(HistoryLine::Trigger { at: now(), key: query.run, trace: trace.clone() });
    let services = if query.deleted { 5 } else { 4 };
    // The ids of the SERVER and the CLIENT span of each service.
    let number = state.spans.fetch_add(2 * SERVICES.len() as u64, Ordering::Relaxed);
    let id = |offset: u64| format!("{:016x}", number + offset + 1);
    // Every second request announces its deletion by a call.
    let is_announced = (number / (2 * SERVICES.len() as u64)).is_multiple_of(2);
    let mut began = Vec::new();
    for _ in 0..services {
        began.push(crate::parts::unix_nanos());
        sleep(WORK).await;
    }
    let mut exports = Vec::new();
    for at in (0..services).rev() {
        let offset = 2 * at as u64;
        let is_called = at < 4 || is_announced;
        let caller = match at {
            0 => parent.to_owned(),
            _ if is_called => id(offset - 1),
            _ => id(offset - 2),
        };
        let mut spans = vec![span(&trace, (id(offset), caller), (SPANS[at], 2), began[at])];
        if at + 1 < services && (at + 1 < 4 || is_announced) {
            let mut call = span(&trace, (id(offset + 1), id(offset)), ("call", 3), began[at]);
            call["attributes"] =
                json!([{"key": "peer.service", "value": {"stringValue": SERVICES[at + 1]}}]);
            spans.push(call);
        }
        exports.push((at, spans, is_called));
    }
    // A span that no call announces comes last, when a run has all others already.
    exports.sort_by_key(|(at, _, is_called)| (!is_called, services - at));
    let mut unfinished = Vec::new();
    for (at, spans, is_called) in exports {
        if !is_called {
            flush(&mut unfinished).await;
            sleep(LAST_WORK).await;
        }
        unfinished.push(state.emit(at, &trace, spans, is_called));
    }
    if query.deleted && !is_announced {
        flush(&mut unfinished).await;
    }
    state.history.write(HistoryLine::Response { at: now(), trace });
    StatusCode::OK
}

/// Waits until exports are acknowledged or given up, but not for ever: the response must not take too long.
async fn flush(exports: &mut Vec<oneshot::Receiver<()>>) {
    let all = async {
        for export in exports.drain(..) {
            // The exporter ends after the system does.
            let _finished = export.await;
        }
    };
    let _late = timeout(FLUSH_MAX, all).await;
}

impl OrderState {
    /// Exports the spans of a service. The receiver gets a message when they are acknowledged or given up.
    fn emit(
        &self,
        at: usize,
        trace: &str,
        spans: Vec<Value>,
        is_announced: bool,
    ) -> oneshot::Receiver<()> {
        self.history.write(HistoryLine::Emission {
            at: now(),
            trace: trace.to_owned(),
            service: SERVICES[at].to_owned(),
            spans: vec![SPANS[at].to_owned()],
            is_announced,
        });
        let (finished, is_finished) = oneshot::channel();
        let finished = Some(finished);
        self.exporters[at].export(ServiceSpans { trace: trace.to_owned(), spans, finished });
        is_finished
    }
}

fn span(
    trace: &str,
    (id, parent): (String, String),
    (name, kind): (&str, u8),
    began: u64,
) -> Value {
    json!({
        "traceId": trace, "spanId": id, "parentSpanId": parent, "name": name, "kind": kind,
        "startTimeUnixNano": began.to_string(),
        "endTimeUnixNano": crate::parts::unix_nanos().to_string(),
    })
}

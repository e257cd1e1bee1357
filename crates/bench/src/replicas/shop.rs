//! The system under test: it exports at intervals as the batch processor of an SDK does, and records when it was called and when it
//! exported.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::Result;
use axum::{
    Router,
    extract::{Path, State},
    http::HeaderMap,
    routing::get,
};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet, time::sleep};

use crate::{
    parts::{Api, unix_nanos},
    run::system::{Connection, context, id, request, span},
};

/// Spans that may wait for the exporter.
const WAITING_MAX: usize = 65_536;
/// The mean number of spans that a run of one of [`SHOP_TESTS`] gets.
pub(super) const RUN_SPANS: f64 = 1.25;

/// The tests: a name, the path that it calls, the claim, and the right verdict. Absence decides the second and the third.
pub(super) const SHOP_TESTS: [(&str, &str, &str, &str); 4] = [
    ("present", "kept", "some span[name=\"GET /cart\"]", "passed"),
    ("absent", "kept", "count(span[name=\"delete customer\"]) = 0", "passed"),
    ("missing", "kept", "count(span[name=\"delete customer\"]) = 1", "failed"),
    ("deleted", "deleted", "count(span[name=\"delete customer\"]) = 0", "failed"),
];
/// Counts runs of [`SHOP_TESTS`] without their right verdict.
pub(super) const WRONG: &str = "select count(*) from runs where verdict is distinct from
    case when test_id in ('present', 'absent') then 'passed' else 'failed' end";

/// A system under test, until it is dropped.
pub(super) struct ReplicaShop {
    pub(super) url: String,
    times: TraceTimes,
    _tasks: JoinSet<()>,
}

/// When something happened to a trace, in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShopTimes {
    pub(super) requested: u64,
    /// Zero until spans were exported.
    pub(super) exported: u64,
}

type TraceTimes = Arc<Mutex<HashMap<Vec<u8>, ShopTimes>>>;

#[derive(Clone)]
struct ReplicaShopState {
    times: TraceTimes,
    spans: mpsc::Sender<Span>,
}

impl ReplicaShop {
    /// Starts a system that exports to this port, this long after a span ended.
    pub(super) async fn start(otlp: u16, delay: Duration) -> Result<Self> {
        let times = TraceTimes::default();
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let state = ReplicaShopState { times: Arc::clone(&times), spans: sender };
        let router = Router::new().route("/{path}", get(serve)).with_state(state);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // It ends with the shop; until then an error shows as runs without a response.
            let _ended = axum::serve(listener, router).await;
        });
        tasks.spawn(export(otlp, delay, receiver, Arc::clone(&times)));
        Ok(Self { url, times, _tasks: tasks })
    }

    /// Applies all tests of it, with these settings of `settle`.
    pub(super) async fn apply(&self, api: &Api, settle: &str) -> Result<()> {
        for (id, path, claim, _) in SHOP_TESTS {
            api.apply(&self.document(id, path, claim, settle)).await?;
        }
        Ok(())
    }

    pub(super) fn document(&self, id: &str, path: &str, claim: &str, settle: &str) -> String {
        format!(
            "type: Test
spec:
  id: {id}
  name: {id}
  trigger: {{type: http, httpRequest: {{method: GET, url: '{}/{path}'}}}}
  settle: {{{settle}}}
  trace:
    - {{name: the claim, claim: '{claim}'}}
",
            self.url
        )
    }

    /// Returns the times of a trace.
    pub(super) fn times(&self, trace: &[u8]) -> Option<ShopTimes> {
        locked(&self.times).get(trace).copied()
    }
}

async fn serve(
    State(state): State<ReplicaShopState>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> &'static str {
    let now = unix_nanos();
    let Some((trace, parent)) = context(&headers) else { return "no trace" };
    locked(&state.times).insert(trace.clone(), ShopTimes { requested: now, exported: 0 });
    let (server, work) = (id(now as usize), id(now as usize + 1));
    let names = match path.as_str() {
        "kept" => &["GET /cart"][..],
        "deleted" => &["GET /cart", "delete customer"],
        _ => &[],
    };
    let parents = [(server.clone(), parent), (work, server)];
    for (name, ids) in names.iter().zip(parents) {
        let kind = if *name == "GET /cart" { SpanKind::Server } else { SpanKind::Internal };
        if state.spans.send(span(&trace, ids, name, kind, now)).await.is_err() {
            return "the exporter has ended";
        }
    }
    "{}"
}

/// Exports all spans that ended within the delay in one request; one that fails is sent again.
async fn export(otlp: u16, delay: Duration, mut spans: mpsc::Receiver<Span>, times: TraceTimes) {
    let mut connection = None;
    while let Some(first) = spans.recv().await {
        sleep(delay).await;
        let mut batch = vec![first];
        while let Ok(span) = spans.try_recv() {
            batch.push(span);
        }
        let now = unix_nanos();
        for span in &batch {
            if let Some(times) = locked(&times).get_mut(&span.trace_id) {
                times.exported = now;
            }
        }
        let message = request("shop", batch);
        loop {
            if connection.is_none() {
                connection = Connection::open(otlp).await.ok();
            }
            if let Some(open) = &mut connection
                && open.export(&message).await.is_ok()
            {
                break;
            }
            connection = None;
            sleep(Duration::from_millis(20)).await;
        }
    }
}

fn locked(times: &TraceTimes) -> MutexGuard<'_, HashMap<Vec<u8>, ShopTimes>> {
    times.lock().unwrap_or_else(PoisonError::into_inner)
}

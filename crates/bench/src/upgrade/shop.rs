//! The system under test: each request has one span, and half of them a second one, which is sent later and to the other process.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    extract::{Query, State},
    http::HeaderMap,
    routing::get,
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, sleep},
};

use super::fleet::{BalancerCounts, RetryBalancer};

/// The time after the response within which the second span is sent; the tests wait for longer.
pub(super) const LATE_MS: u64 = 400;

/// How long an export is tried, as a sender would, after it has failed on both processes.
const EXPORT_MAX: Duration = Duration::from_secs(10);

/// The system. Clones share their state.
#[derive(Clone)]
pub(super) struct BalancedShop {
    ingest: RetryBalancer,
    spans: Arc<AtomicU64>,
    requests: Arc<Mutex<BTreeMap<String, u64>>>,
    exports: Arc<Mutex<JoinSet<Result<()>>>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct BalancedCartRequest {
    deleted: bool,
    run: String,
}

impl BalancedShop {
    pub(super) fn new(ingest: RetryBalancer) -> Self {
        let (spans, requests, exports) = Default::default();
        Self { ingest, spans, requests, exports }
    }

    /// Serves until the returned set is dropped.
    pub(super) async fn serve(self) -> Result<(String, JoinSet<()>)> {
        let router = Router::new().route("/cart", get(cart)).with_state(self);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            // It ends with the proof.
            let _ended = axum::serve(listener, router).await;
        });
        Ok((url, serving))
    }

    /// Returns the number of requests of each run.
    pub(super) fn requests(&self) -> BTreeMap<String, u64> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until everything is exported.
    pub(super) async fn exported(&self) -> Result<()> {
        let mut exports =
            std::mem::take(&mut *self.exports.lock().unwrap_or_else(PoisonError::into_inner));
        while let Some(export) = exports.join_next().await {
            export??;
        }
        Ok(())
    }

    /// Returns how the exports ended.
    pub(super) fn exports(&self) -> BalancerCounts {
        self.ingest.counts()
    }

    async fn export(&self, span: Value) -> Result<()> {
        let resource = json!({"attributes": [
            {"key": "service.name", "value": {"stringValue": "shop"}},
        ]});
        let scopes = json!([{"spans": [span]}]);
        let body =
            json!({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}).to_string();
        let began = Instant::now();
        loop {
            let export = self.ingest.send(|client, to| {
                let export = client.post(format!("{to}/v1/traces"));
                export.header("content-type", "application/json").body(body.clone())
            });
            match export.await {
                Some((200, _)) => return Ok(()),
                // The sender is requested to come again.
                None | Some((429, _)) => {
                    ensure!(began.elapsed() < EXPORT_MAX, "no process accepts a span");
                    sleep(Duration::from_millis(100)).await;
                }
                Some((status, body)) => anyhow::bail!("a span is refused: {status} {body}"),
            }
        }
    }
}

async fn cart(
    State(shop): State<BalancedShop>,
    Query(request): Query<BalancedCartRequest>,
    headers: HeaderMap,
) -> &'static str {
    *shop
        .requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(request.run)
        .or_default() += 1;
    let parent = headers.get("traceparent").and_then(|it| it.to_str().ok()).unwrap_or_default();
    let ids: Vec<String> = parent.split('-').map(str::to_owned).collect();
    let [_, trace, parent, _] = ids.as_slice() else { return "no trace" };
    let number = shop.spans.fetch_add(2, Ordering::Relaxed);
    let span = |id: u64, parent: &str, name: &str| {
        let nanos = crate::parts::unix_nanos();
        json!({
            "traceId": trace, "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": name,
            "kind": 1, "startTimeUnixNano": nanos.to_string(), "endTimeUnixNano": (nanos + 1).to_string(),
        })
    };
    let first = span(number + 1, parent, "GET /cart");
    let parent = format!("{:016x}", number + 1);
    let second = request.deleted.then(|| span(number + 2, &parent, "delete customer"));
    let exporter = shop.clone();
    let export = async move {
        exporter.export(first).await?;
        if let Some(second) = second {
            sleep(Duration::from_millis(number * 37 % LATE_MS)).await;
            exporter.export(second).await.context("the second span")?;
        }
        Ok(())
    };
    let mut exports = shop.exports.lock().unwrap_or_else(PoisonError::into_inner);
    exports.spawn(export);
    "{}"
}

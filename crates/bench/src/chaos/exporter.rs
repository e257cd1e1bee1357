//! The exporter of one service: it sends batches, one at a time, and retries retryable errors with growing waits, as SDKs do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep},
};

use super::history::{HistoryFile, HistoryLine, now};

/// How long spans wait for others of their batch.
const BATCH_DELAY: Duration = Duration::from_millis(100);
/// The traces of a batch.
const BATCH_MAX: usize = 256;
/// The traces that wait; further ones are dropped, and counted as exports that were given up.
const QUEUE_MAX: usize = 16_384;
/// The first and the longest wait between two tries.
const WAIT: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// The limits of an exporter.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExportLimits {
    /// The timeout of one try.
    pub(super) try_max: Duration,
    /// How long a batch is tried.
    pub(super) batch_max: Duration,
}

/// The spans of a service in one trace.
#[derive(Debug)]
pub(super) struct ServiceSpans {
    pub(super) trace: String,
    pub(super) spans: Vec<Value>,
    /// Gets a message when the export is acknowledged or given up.
    pub(super) finished: Option<oneshot::Sender<()>>,
}

/// An exporter, until it is dropped.
#[derive(Debug)]
pub(super) struct OrderExporter {
    queue: mpsc::Sender<ServiceSpans>,
    pending: Arc<AtomicU64>,
    batches: Batches,
    _task: JoinSet<()>,
}

#[derive(Clone, Debug)]
struct Batches {
    service: &'static str,
    url: String,
    limits: ExportLimits,
    client: reqwest::Client,
    history: Arc<HistoryFile>,
}

impl OrderExporter {
    /// Starts the exporter of a service.
    pub(super) fn start(
        service: &'static str,
        otlp: u16,
        limits: ExportLimits,
        history: Arc<HistoryFile>,
    ) -> Result<Self> {
        let client = reqwest::Client::builder().no_proxy().timeout(limits.try_max).build()?;
        let url = format!("http://127.0.0.1:{otlp}/v1/traces");
        let batches = Batches { service, url, limits, client, history };
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let pending = Arc::new(AtomicU64::new(0));
        let mut task = JoinSet::new();
        task.spawn(batches.clone().run(waiting, Arc::clone(&pending)));
        Ok(Self { queue, pending, batches, _task: task })
    }

    /// Queues the spans of a trace.
    pub(super) fn export(&self, spans: ServiceSpans) {
        self.pending.fetch_add(1, Ordering::SeqCst);
        if let Err(error) = self.queue.try_send(spans) {
            self.pending.fetch_sub(1, Ordering::SeqCst);
            self.batches.finish(vec![error.into_inner()], 0, false);
        }
    }

    /// Waits until every export is acknowledged or given up.
    pub(super) async fn flushed(&self) {
        while self.pending.load(Ordering::SeqCst) > 0 {
            sleep(BATCH_DELAY).await;
        }
    }
}

impl Batches {
    async fn run(self, mut queue: mpsc::Receiver<ServiceSpans>, pending: Arc<AtomicU64>) {
        while let Some(first) = queue.recv().await {
            sleep(BATCH_DELAY).await;
            let mut batch = vec![first];
            while batch.len() < BATCH_MAX
                && let Ok(next) = queue.try_recv()
            {
                batch.push(next);
            }
            let (tries, is_acknowledged) = self.send(&batch).await;
            let traces = batch.len() as u64;
            self.finish(batch, tries, is_acknowledged);
            pending.fetch_sub(traces, Ordering::SeqCst);
        }
    }

    /// Sends a batch until it is acknowledged, refused for good, or too old.
    async fn send(&self, batch: &[ServiceSpans]) -> (u32, bool) {
        let spans: Vec<&Value> = batch.iter().flat_map(|of_trace| &of_trace.spans).collect();
        let name = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let resource = json!({"attributes": [
            name("service.name", self.service), name("service.instance.id", self.service),
        ]});
        let body = json!({"resourceSpans": [
            {"resource": resource, "scopeSpans": [{"spans": spans}]},
        ]});
        let (body, began) = (body.to_string(), Instant::now());
        let (mut tries, mut wait) = (0, WAIT.0);
        loop {
            tries += 1;
            let request = self.client.post(&self.url).header("content-type", "application/json");
            let status = request.body(body.clone()).send().await.map(|it| it.status().as_u16());
            match status {
                Ok(200) => return (tries, true),
                Ok(429 | 502 | 503 | 504) | Err(_) if began.elapsed() < self.limits.batch_max => {}
                _ => return (tries, false),
            }
            sleep(wait).await;
            wait = (wait * 3 / 2).min(WAIT.1);
        }
    }

    fn finish(&self, batch: Vec<ServiceSpans>, tries: u32, is_acknowledged: bool) {
        for ServiceSpans { trace, finished, .. } in batch {
            let (at, service) = (now(), self.service.to_owned());
            self.history.write(HistoryLine::Export { at, trace, service, tries, is_acknowledged });
            if let Some(finished) = finished {
                // The system may have responded without waiting any longer.
                let _gone = finished.send(());
            }
        }
    }
}

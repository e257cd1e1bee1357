//! Snapshots of active runs, for people who look on while spans arrive: from the worker of this process, or over the bus from that
//! of another one. A run without a reader costs nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use model::{Project, RunId, Settlement, Trace};
use runner::{Share, SnapshotRequest, TraceSnapshot};
use serde::{Deserialize, Serialize};
use tokio::{sync::mpsc, time::timeout};

use crate::{database::announcements::PeerMessage, span_bus::SpanBus};

/// The maximum number of requests that wait for a run.
const REQUESTS_MAX: usize = 8;
/// How long a run, or another server, may take to answer.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// The maximum size of the compressed spans in an answer of another server: a message of NATS has a bound.
const SPANS_BYTES_MAX: usize = 512 << 10;
/// The maximum size of these spans when they are decompressed.
const PLAIN_BYTES_MAX: usize = 64 << 20;
/// The compression level of these spans.
const LEVEL: i32 = 3;

/// The active runs of this process. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshots(Arc<Mutex<HashMap<RunId, ActiveView>>>);

/// How an active run is reached.
#[derive(Clone, Debug)]
struct ActiveView {
    project: Project,
    requests: mpsc::Sender<SnapshotRequest>,
}

/// The requests for snapshots of one run, until it is dropped.
#[derive(Debug)]
pub(crate) struct SnapshotQueue {
    run: RunId,
    of: Snapshots,
    requests: tokio::sync::Mutex<mpsc::Receiver<SnapshotRequest>>,
}

/// A snapshot as other servers send it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PeerSnapshot {
    settlement: Settlement,
    /// OTLP, compressed, in Base64; none if it was not requested, or is too large.
    spans: Option<String>,
}

/// The spans of a run that has not ended.
#[derive(Debug)]
pub(crate) enum ActiveTrace {
    /// This process executes the run.
    Own(TraceSnapshot),
    /// Another process does: OTLP, compressed.
    OfPeer(Vec<u8>),
    /// Another process does, and the spans are larger than a message between servers.
    TooLarge,
}

impl Snapshots {
    /// Adds an active run, until the result is dropped.
    pub(crate) fn register(&self, run: RunId, project: Project) -> SnapshotQueue {
        let (requests, queue) = mpsc::channel(REQUESTS_MAX);
        self.lock().insert(run, ActiveView { project, requests });
        SnapshotQueue { run, of: self.clone(), requests: tokio::sync::Mutex::new(queue) }
    }

    /// Returns the settlement of a run as it is now; none if no worker collects its spans.
    pub(crate) async fn settlement(
        &self,
        bus: &SpanBus,
        project: &Project,
        run: RunId,
    ) -> Option<Settlement> {
        if let Some(own) = self.own((project, run), false).await {
            return Some(own.settlement().clone());
        }
        Some(from_peers(bus, (project, run), false).await?.settlement)
    }

    /// Returns the spans that a run has now; none if no worker collects them.
    pub(crate) async fn trace(
        &self,
        bus: &SpanBus,
        project: &Project,
        run: RunId,
    ) -> Option<ActiveTrace> {
        if let Some(own) = self.own((project, run), true).await {
            return Some(ActiveTrace::Own(own));
        }
        Some(match from_peers(bus, (project, run), true).await?.spans {
            Some(spans) => ActiveTrace::OfPeer(BASE64_STANDARD.decode(spans).ok()?),
            None => ActiveTrace::TooLarge,
        })
    }

    /// Returns the answer to another server; none if this process does not execute the run.
    pub(crate) async fn answer(
        &self,
        (project, run): (&Project, RunId),
        needs_spans: bool,
        share: &Share,
    ) -> Option<PeerSnapshot> {
        let own = self.own((project, run), needs_spans).await?;
        share.run(move || PeerSnapshot::new(own)).await
    }

    /// Returns a snapshot of a run that this process executes.
    async fn own(
        &self,
        (project, run): (&Project, RunId),
        needs_spans: bool,
    ) -> Option<TraceSnapshot> {
        let view = self.lock().get(&run).filter(|it| it.project == *project).cloned()?;
        let (request, answered) = SnapshotRequest::new(needs_spans);
        view.requests.try_send(request).ok()?;
        timeout(ANSWER_MAX, answered).await.ok()?.ok()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, ActiveView>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerSnapshot {
    fn new(own: TraceSnapshot) -> Option<Self> {
        let settlement = own.settlement().clone();
        let trace = own.into_trace().ok()?;
        let zstd = trace.and_then(|it| zstd::bulk::compress(&otlp::encode(&it), LEVEL).ok());
        let spans = zstd.filter(|it| it.len() <= SPANS_BYTES_MAX);
        Some(Self { settlement, spans: spans.map(|it| BASE64_STANDARD.encode(it)) })
    }
}

impl ActiveTrace {
    /// Returns the spans; none if they are too large, or damaged. It takes time for a large trace.
    pub(crate) fn into_trace(self) -> Option<Arc<Trace>> {
        match self {
            Self::Own(own) => own.into_trace().ok()?,
            Self::OfPeer(zstd) => {
                let otlp = zstd::bulk::decompress(&zstd, PLAIN_BYTES_MAX).ok()?;
                otlp::read(&otlp).ok()?.into_iter().next().map(Arc::new)
            }
            Self::TooLarge => None,
        }
    }
}

impl SnapshotQueue {
    /// Waits for the next request.
    pub(crate) async fn next(&self) -> SnapshotRequest {
        match self.requests.lock().await.recv().await {
            Some(request) => request,
            // The sender is in the table until this is dropped, unless a later lease replaced it.
            None => std::future::pending().await,
        }
    }
}

impl Drop for SnapshotQueue {
    fn drop(&mut self) {
        // Another lease of the run in this process may have replaced the sender.
        self.requests.get_mut().close();
        let mut views = self.of.lock();
        if views.get(&self.run).is_some_and(|view| view.requests.is_closed()) {
            views.remove(&self.run);
        }
    }
}

/// Returns the answer of the server that executes a run.
async fn from_peers(
    bus: &SpanBus,
    (project, run): (&Project, RunId),
    needs_spans: bool,
) -> Option<PeerSnapshot> {
    let project = project.clone();
    let request = PeerMessage::Snapshot { project, run, needs_spans };
    let request = serde_json::to_vec(&request).ok()?;
    let read = |answer: &Vec<u8>| serde_json::from_slice::<PeerSnapshot>(answer).ok();
    let answers = bus.gather(&request, ANSWER_MAX, |all| all.iter().any(|it| read(it).is_some()));
    answers.await.iter().find_map(read)
}

#[cfg(test)]
mod tests {
    use model::{Project, RunId, Timestamp};

    use super::Snapshots;

    fn run(random: u8) -> RunId {
        RunId::new(Timestamp::from_nanos(0), [random; 10])
    }

    #[tokio::test]
    async fn only_the_project_of_a_run_reaches_it_and_only_while_it_is_active() {
        let snapshots = Snapshots::default();
        let [alpha, beta]: [Project; 2] =
            ["alpha", "beta"].map(|name| name.parse().expect("a name"));
        let queue = snapshots.register(run(1), alpha.clone());
        let refused = [(&beta, run(1)), (&alpha, run(2))];
        for other in refused {
            assert!(snapshots.own(other, true).await.is_none(), "{other:?}");
        }
        let (answered, ()) = tokio::join!(snapshots.own((&alpha, run(1)), false), async {
            // Dropped without an answer.
            drop(queue.next().await);
        });
        assert!(answered.is_none());
        drop(queue);
        assert!(snapshots.lock().is_empty());
    }

    #[tokio::test]
    async fn a_second_lease_of_a_run_replaces_the_first() {
        let snapshots = Snapshots::default();
        let project = Project::default();
        let first = snapshots.register(run(1), project.clone());
        let second = snapshots.register(run(1), project.clone());
        drop(first);
        assert_eq!(snapshots.lock().len(), 1, "the second is still reached");
        drop(second);
        assert!(snapshots.lock().is_empty());
    }
}

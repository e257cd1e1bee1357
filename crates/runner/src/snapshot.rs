//! What a run has of its trace while spans arrive, for people who look on. Nothing is decided by it.

use std::sync::Arc;

use lang::Secrets;
use model::{Settlement, Trace, trace::TraceFull};
use tokio::sync::oneshot;

/// The trace of a run, before it is known to be complete.
#[derive(Clone, Debug)]
pub struct TraceSnapshot {
    settlement: Settlement,
    trace: Option<Arc<Trace>>,
    secrets: Secrets,
}

/// A request for a snapshot.
#[derive(Debug)]
pub struct SnapshotRequest {
    needs_spans: bool,
    answer: oneshot::Sender<TraceSnapshot>,
}

impl TraceSnapshot {
    pub(crate) fn new(
        mut settlement: Settlement,
        trace: Option<Arc<Trace>>,
        secrets: &Secrets,
    ) -> Self {
        secrets.hide_all(settlement.texts_mut());
        Self { settlement, trace, secrets: secrets.clone() }
    }

    /// The settlement of the trace if the run ended now.
    pub fn settlement(&self) -> &Settlement {
        &self.settlement
    }

    /// Returns the spans, with secrets masked; none if they were not requested. It takes time for a large trace.
    pub fn into_trace(self) -> Result<Option<Arc<Trace>>, TraceFull> {
        let Some(trace) = self.trace else { return Ok(None) };
        Ok(Some(self.secrets.masked_trace(&trace)?.map_or(trace, Arc::new)))
    }
}

impl SnapshotRequest {
    /// Returns a request, and what receives its answer. With spans the run may have to copy its trace once.
    pub fn new(needs_spans: bool) -> (Self, oneshot::Receiver<TraceSnapshot>) {
        let (answer, answered) = oneshot::channel();
        (Self { needs_spans, answer }, answered)
    }

    pub(crate) fn answer(self, snapshot: impl FnOnce(bool) -> TraceSnapshot) {
        // The one who requested it may have gone.
        let _gone = self.answer.send(snapshot(self.needs_spans));
    }
}

//! Judging, away from where others wait: a large trace takes a thread of its own.

use std::sync::Arc;

use lang::{Evidence, Resolved};
use model::{Analysis, Answer, Judgement, Settlement, SpanId, Trace};

/// From how many spans on a trace is large.
const LARGE_SPANS: usize = 2_000;

/// All that is judged by, but the trace and what is known of its wholeness.
#[derive(Clone, Debug)]
pub(crate) struct Judging {
    pub(crate) resolved: Arc<Resolved>,
    /// The trigger's own span; none where nothing was fired.
    pub(crate) trigger: Option<SpanId>,
    pub(crate) answer: Arc<Answer>,
}

impl Judging {
    /// Judges a trace, or the answer alone where none was asked for.
    pub(crate) async fn judge(
        &self,
        trace: Option<&Arc<Trace>>,
        settlement: Option<&Settlement>,
    ) -> Judgement {
        let (judging, trace, settlement) = (self.clone(), trace.cloned(), settlement.cloned());
        let spans = trace.as_ref().map_or(0, |trace| trace.len());
        apart(spans, move || {
            lang::judge(&judging.resolved, &judging.evidence(trace.as_deref(), settlement.as_ref()))
        })
        .await
    }

    /// What the analyzer says of a trace, where one is asked.
    pub(crate) async fn analysis(
        &self,
        trace: Option<&Arc<Trace>>,
        settlement: Option<&Settlement>,
    ) -> Option<Analysis> {
        let (judging, trace, settlement) = (self.clone(), trace.cloned(), settlement.cloned());
        let spans = trace.as_ref().map_or(0, |trace| trace.len());
        apart(spans, move || {
            lang::analysis(
                &judging.resolved,
                &judging.evidence(trace.as_deref(), settlement.as_ref()),
            )
        })
        .await
    }

    fn evidence<'a>(
        &'a self,
        trace: Option<&'a Trace>,
        settlement: Option<&'a Settlement>,
    ) -> Evidence<'a> {
        Evidence { trace, trigger: self.trigger, answer: Some(&self.answer), settlement }
    }

    /// What the test expects and what is not there, as written.
    pub(crate) async fn expected_missing(&self, trace: &Arc<Trace>) -> Vec<String> {
        let (resolved, trace) = (Arc::clone(&self.resolved), Arc::clone(trace));
        apart(trace.len(), move || resolved.expected_missing(&trace)).await
    }
}

/// Does work on so many spans, on a thread of its own if they are many.
async fn apart<T: Send + 'static>(spans: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if spans < LARGE_SPANS { work() } else { on_a_thread(work).await }
}

/// Does work on a thread of its own.
pub(crate) async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being shut down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

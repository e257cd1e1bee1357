//! Judging on compute threads, away from the threads that serve requests.

use std::sync::Arc;

use lang::{Evidence, ResolvedPlan};
use model::{Analysis, Answer, Judgement, Settlement, SpanId, Trace};

use crate::pool::Share;

/// All inputs of a judgement, except the trace and its settlement.
#[derive(Clone, Debug)]
pub(crate) struct JudgementContext {
    pub(crate) resolved: Arc<ResolvedPlan>,
    /// The trigger's own span; none if nothing was fired.
    pub(crate) trigger: Option<SpanId>,
    pub(crate) answer: Arc<Answer>,
    /// The pool share that computes it: the evaluation of a test may take long, however small the trace is.
    pub(crate) share: Share,
}

impl JudgementContext {
    /// Judges a trace, or the response alone if the test collects no trace.
    pub(crate) async fn judge(
        &self,
        trace: Option<&Arc<Trace>>,
        settlement: Option<&Settlement>,
    ) -> Judgement {
        let (judging, trace, settlement) = (self.clone(), trace.cloned(), settlement.cloned());
        let work = move || {
            lang::judge(&judging.resolved, &judging.evidence(trace.as_deref(), settlement.as_ref()))
        };
        self.share.run(work).await
    }

    /// Returns the analyzer's result for a trace, if the test has an analyzer.
    pub(crate) async fn analysis(
        &self,
        trace: Option<&Arc<Trace>>,
        settlement: Option<&Settlement>,
    ) -> Option<Analysis> {
        let (judging, trace, settlement) = (self.clone(), trace.cloned(), settlement.cloned());
        let work = move || {
            lang::analysis(
                &judging.resolved,
                &judging.evidence(trace.as_deref(), settlement.as_ref()),
            )
        };
        self.share.run(work).await
    }

    fn evidence<'a>(
        &'a self,
        trace: Option<&'a Trace>,
        settlement: Option<&'a Settlement>,
    ) -> Evidence<'a> {
        Evidence { trace, trigger: self.trigger, answer: Some(&self.answer), settlement }
    }

    /// Returns the services and selectors that the test expects and that are missing in the trace, as written.
    pub(crate) async fn expected_missing(&self, trace: &Arc<Trace>) -> Vec<String> {
        let (resolved, trace) = (Arc::clone(&self.resolved), Arc::clone(trace));
        self.share.run(move || resolved.expected_missing(&trace)).await
    }
}

//! Judging, away from where others wait.

use std::sync::Arc;

use lang::{Evidence, ResolvedPlan};
use model::{Analysis, Answer, Judgement, Settlement, SpanId, Trace};

use crate::pool::Share;

/// All that is judged by, but the trace and what is known of its wholeness.
#[derive(Clone, Debug)]
pub(crate) struct JudgementContext {
    pub(crate) resolved: Arc<ResolvedPlan>,
    /// The trigger's own span; none where nothing was fired.
    pub(crate) trigger: Option<SpanId>,
    pub(crate) answer: Arc<Answer>,
    /// Where it is done: what a test asks may take long, however small the trace is.
    pub(crate) share: Share,
}

impl JudgementContext {
    /// Judges a trace, or the answer alone where none was asked for.
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

    /// What the analyzer says of a trace, where one is asked.
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

    /// What the test expects and what is not there, as written.
    pub(crate) async fn expected_missing(&self, trace: &Arc<Trace>) -> Vec<String> {
        let (resolved, trace) = (Arc::clone(&self.resolved), Arc::clone(trace));
        self.share.run(move || resolved.expected_missing(&trace)).await
    }
}

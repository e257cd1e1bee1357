//! The subject of a run, and its outcome, which is built once for the provisional verdict and once for the final one.

use std::{borrow::Cow, sync::Arc, time::Duration};

use lang::Secrets;
use model::{
    Analysis, Answer, Attempt, Judgement, LearnedProfile, Outcome, RecordedRequest, Request, RunId,
    Settlement, SpanId, StepTime, Timestamp, Trace, UnsettledReason, Verdict,
};
use tokio::time::Instant;

use crate::{
    diagnosis::{self, FiredTrigger, Observations},
    judging::JudgementContext,
    plant::{Plant, is_planted},
    ports::{LeaseLost, Ports},
    reasons::{out_of_time, reasons},
    sampled::sampled,
    settle::TraceBuffer,
    started::StartedProcesses,
};

/// The subject of a run: all inputs of its outcome, except the trace.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) run_id: RunId,
    /// The test's name.
    pub(crate) test: String,
    pub(crate) attempt: Attempt,
    pub(crate) request: Request,
    /// The answer without secrets.
    pub(crate) told: Arc<Answer>,
    pub(crate) judging: JudgementContext,
    pub(crate) started: Option<StartedProcesses>,
    /// The instant right before the trigger was fired.
    pub(crate) began: Instant,
    /// The deadline of the complete run.
    pub(crate) ends: Option<Instant>,
}

/// A judged trace.
#[derive(Debug)]
pub(crate) struct JudgedTrace {
    pub(crate) judgement: Judgement,
    pub(crate) trace: Option<Arc<Trace>>,
    pub(crate) settlement: Option<Settlement>,
    /// The result of the analyzer, if one applies.
    pub(crate) analysis: Option<Analysis>,
}

/// How far the clocks of a system may be behind ours where a store is queried for spans since the trigger.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(3600);

impl Subject {
    /// Returns a time before which no span of the trace began, if one is known.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.request.is_fired().then(|| self.attempt.at.minus(CLOCKS_DIFFER_MAX))
    }

    /// Adds the evidence against a trace that looks complete: spans that were lost or refused, a trace that the system does not
    /// sample, and calls for which the other side started a new trace.
    pub(crate) async fn add_doubts<P: Ports>(
        self: &Arc<Self>,
        ports: &P,
        gathering: &TraceBuffer,
        settlement: &mut Settlement,
    ) -> Result<(), LeaseLost> {
        use UnsettledReason::{
            ContextLost, EdgesOpen, NoTelemetry, NotSampled, NotWaited, OtherServers, Sampled,
            SpansLost,
        };
        let trace = &gathering.trace;
        settlement.logs = ports.logs(trace.id());
        let add = |settlement: &mut Settlement, doubt: UnsettledReason| {
            if !settlement.unsettled.contains(&doubt) {
                settlement.unsettled.push(doubt);
            }
        };
        // A trace that only a store shows does not depend on the spans that are pushed here.
        let is_pushed = gathering.is_pushed();
        if is_pushed && ports.has_lost_spans(trace.id()) {
            add(settlement, SpansLost);
        }
        // A verdict that the present spans decided depends on nothing else.
        if settlement.unsettled.contains(&NotWaited) {
            return Ok(());
        }
        let others = if is_pushed { ports.other_servers(trace.id()).await? } else { Vec::new() };
        if !others.is_empty() {
            add(settlement, OtherServers(others));
        }
        if settlement.unsettled.contains(&NoTelemetry) {
            return Ok(());
        }
        let is_dropped = diagnosis::is_not_sampled(&Observations::nothing(ports).case(
            self.fired(),
            Verdict::Inconclusive,
            (trace, settlement),
        ));
        let calls = gathering.engine.unanswered_calls();
        let lost = match calls.is_empty() || is_planted(Plant::DoubtsOff) {
            true => Vec::new(),
            false => self.lost_contexts(ports, trace, settlement, calls).await,
        };
        let unverifiable = gathering.engine.unverifiable_calls();
        let has_open = settlement.unsettled.iter().any(|it| matches!(it, EdgesOpen(_)));
        if !unverifiable.is_empty() && !has_open {
            add(settlement, EdgesOpen(unverifiable));
        }
        if is_dropped {
            add(settlement, NotSampled);
        }
        if let Some(span) = sampled(trace) {
            add(settlement, Sampled(span));
        }
        if !lost.is_empty() {
            add(settlement, ContextLost(lost));
        }
        Ok(())
    }

    /// Returns those of these calls for which the other side started a new trace. It searches all foreign exports.
    async fn lost_contexts<P: Ports>(
        self: &Arc<Self>,
        ports: &P,
        trace: &Arc<Trace>,
        settlement: &Settlement,
        calls: Vec<SpanId>,
    ) -> Vec<SpanId> {
        let (subject, trace, settlement) =
            (Arc::clone(self), Arc::clone(trace), settlement.clone());
        let observed = Observations::by_receiver(ports).await;
        let look = move || {
            let gathered = (&*trace, &settlement);
            let case = observed.case(subject.fired(), Verdict::Inconclusive, gathered);
            diagnosis::lost_contexts(&case, &calls)
        };
        self.judging.share.run(look).await
    }

    /// Returns the outcome of a judged trace. If the run's timeout ended it, that is the reason for an inconclusive verdict.
    pub(crate) async fn outcome<P: Ports>(
        self: &Arc<Self>,
        ports: &P,
        judged: &Arc<JudgedTrace>,
        (steps, is_cut): (Vec<StepTime>, bool),
    ) -> Outcome {
        let observed = Observations::of_verdict(ports, judged.judgement.verdict).await;
        let (subject, judged) = (Arc::clone(self), Arc::clone(judged));
        self.judging.share.run(move || subject.explained(&observed, &judged, steps, is_cut)).await
    }

    fn explained(
        &self,
        observed: &Observations,
        judged: &JudgedTrace,
        steps: Vec<StepTime>,
        is_cut: bool,
    ) -> Outcome {
        let verdict = judged.judgement.verdict;
        let (resolved, answer) = (&self.judging.resolved, &self.judging.answer);
        let gathered = judged.trace.as_deref().zip(judged.settlement.as_ref());
        let mut diagnoses = gathered.map_or_else(Vec::new, |gathered| {
            diagnosis::diagnose(&observed.case(self.fired(), verdict, gathered))
        });
        let reasons = match is_cut {
            true => out_of_time(resolved, answer, &mut diagnoses),
            false => reasons(resolved, answer, judged.settlement.as_ref(), &diagnoses),
        };
        let mut outcome = Outcome {
            run_id: Some(self.run_id),
            test: self.test.clone(),
            verdict,
            provisional: self.is_provisional(judged),
            superseded: None,
            reasons,
            trace_id: Some(self.attempt.trace_id),
            request: RecordedRequest::of(&self.request),
            answer: None,
            settlement: judged.settlement.clone(),
            diagnoses,
            overtaken: None,
            earlier: Vec::new(),
            judgement: judged.judgement.clone(),
            analysis: judged.analysis.clone(),
            steps,
        };
        resolved.secrets().hide_all(outcome.texts_mut());
        if let Some(request) = &mut outcome.request {
            request.cut();
        }
        // The answer was masked when it arrived.
        outcome.answer = Some((*self.told).clone());
        outcome
    }

    /// Whether further spans can change the verdict, and it has not lingered: the present spans decided neither that all
    /// assertions hold nor that one is broken.
    fn is_provisional(&self, judged: &JudgedTrace) -> bool {
        let is_complete = judged.settlement.as_ref().is_some_and(Settlement::is_whole);
        is_complete && !self.judging.resolved.is_final(&judged.judgement)
    }

    /// Whether the timeout of the complete run expired.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.ends.is_some_and(|ends| ends <= Instant::now())
    }

    fn fired(&self) -> (FiredTrigger<'_>, Option<&StartedProcesses>) {
        let fired = FiredTrigger {
            attempt: &self.attempt,
            request: &self.request,
            answer: &self.judging.answer,
            began: self.began,
        };
        (fired, self.started.as_ref())
    }
}

/// Removes from the learned profile each service that has a secret in its name or in the name of a peer.
pub(crate) fn tellable(mut seen: LearnedProfile, secrets: &Secrets) -> LearnedProfile {
    let is_told = |name: &String| matches!(secrets.hide(name), Cow::Borrowed(_));
    seen.services.retain(|name, service| {
        let peers =
            service.instrumented.iter().chain(&service.unannounced).chain(service.leaves.keys());
        [name].into_iter().chain(peers).all(is_told)
    });
    seen
}

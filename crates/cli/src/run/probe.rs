//! One request without a test, for `doctor`: its response, its trace, and everything that the receiver saw meanwhile.
//!
//! Beside the diagnoses of a run it has those that a run reports only for a verdict that they explain, and it listens longer than
//! a run for spans that come late. Deliberately absent: what is wrong about all of that, which `doctor` decides.

use std::{sync::Arc, time::Duration};

use drivers::receiver::ReceiverSnapshot;
use lang::{Plan, Seed, Vars};
use model::{Answer, Attempt, Cause, Outcome, Settlement, Trace, Verdict};
use runner::{
    FinishedRun, LateSpanMonitor,
    diagnosis::{self, Case, FiredTrigger},
};
use tokio::time::{Instant, sleep};

use super::{
    ports::{LocalPorts, Stage},
    progress::Line,
    session::{Session, SessionError},
    system::RunningSystem,
};
use crate::files;

/// The polling interval for the first late span.
const LOOK: Duration = Duration::from_millis(50);
/// How long to wait for further spans after the first late one.
const REST: Duration = Duration::from_secs(1);

/// The observed run of one request.
#[derive(Debug)]
pub(crate) struct ProbedRun {
    pub(crate) outcome: Outcome,
    pub(crate) answer: Arc<Answer>,
    /// The trace, with the trigger's own span.
    pub(crate) trace: Option<Arc<Trace>>,
    pub(crate) seen: ReceiverSnapshot,
    /// If no span came in time: how long after the request the first one came.
    pub(crate) late: Option<Duration>,
}

impl Session {
    /// Runs a plan once. If no span comes, it listens until this time after the request.
    pub(crate) async fn probe(
        &self,
        plan: &Plan,
        line: &Line,
        listen_max: Duration,
    ) -> Result<ProbedRun, SessionError> {
        let began = Instant::now();
        let (mut finished, running) = self.run(plan, &Vars::default(), line, None).await?;
        let mut late = None;
        if is_silent(&finished)
            && let Some(watch) = finished.watch.take()
        {
            line.say("no span came in time; listening for late ones");
            let until = (began, began + listen_max);
            late = self.listen(&mut finished, (watch, running.as_deref()), (line, until)).await;
        }
        if finished.outcome.settlement.as_ref().is_some_and(Settlement::is_whole) {
            self.add_diagnoses(&mut finished, plan, began);
        }
        let FinishedRun { outcome, answer, trace, .. } = finished;
        Ok(ProbedRun { outcome, answer, trace, seen: self.receiver.seen(), late })
    }

    /// Waits for a first span and those right behind it, and judges the run again by them. Returns how late the first one was.
    async fn listen(
        &self,
        finished: &mut FinishedRun,
        (watch, running): (LateSpanMonitor, Option<&RunningSystem>),
        (line, (began, until)): (&Line, (Instant, Instant)),
    ) -> Option<Duration> {
        let mut late = None;
        let end = async {
            while late.is_none() && Instant::now() < until {
                sleep(LOOK).await;
                let has_come = self.receiver.counts().kept > 0;
                late = has_come.then(|| began.elapsed());
            }
            if late.is_some() {
                sleep(REST).await;
            }
        };
        let mut watch = watch.linger(|| {}, end).await;
        late?;
        let ports = LocalPorts::new(self, running, line, Stage::Running);
        // A local run cannot lose its lease.
        if let Ok(concluded) = watch.conclude(finished.outcome.clone(), &ports).await {
            finished.outcome = concluded.outcome;
            finished.trace = concluded.trace.or(finished.trace.take());
        }
        late
    }

    /// Adds what a complete trace shows beside its verdict: clocks that differ, and what SDKs dropped.
    fn add_diagnoses(&self, finished: &mut FinishedRun, plan: &Plan, began: Instant) {
        let FinishedRun { outcome, trace, trigger, answer, .. } = finished;
        let (Some(settlement), Some(trace), Some(trigger)) =
            (&outcome.settlement, trace.as_deref(), trigger.as_ref())
        else {
            return;
        };
        let seed = Seed { now: self.world.now(), random: [0; 32] };
        let request = files::read(plan)
            .ok()
            .and_then(|files| lang::request(plan, &Vars::default(), &seed, &files).ok());
        let Some(request) = request.map(|it| it.request) else { return };
        let attempt = Attempt { trace_id: trace.id(), span_id: trigger.id, at: trigger.start };
        let seen = self.receiver.seen();
        let fired = FiredTrigger { attempt: &attempt, request: &request, answer, began };
        outcome.diagnoses = diagnosis::diagnose(&Case {
            fired,
            verdict: Verdict::Inconclusive,
            settlement,
            trace,
            keys: &self.keys,
            seen: Some(&seen),
            started: self.started.as_ref(),
            processes: &[],
        });
    }
}

/// Whether no span came, and nothing shows why.
fn is_silent(finished: &FinishedRun) -> bool {
    let outcome = &finished.outcome;
    let is_answered = matches!(*finished.answer, Answer::Response(_));
    let is_open = |it: &model::Diagnosis| {
        matches!(it.cause, Cause::NothingConnected | Cause::NoSpans | Cause::VariablesIgnored)
    };
    let has_spans = finished.trace.as_ref().is_some_and(|trace| trace.spans().count() > 1);
    is_answered && !has_spans && outcome.diagnoses.iter().all(is_open)
}

//! The observations of a run that did not pass.

use drivers::receiver::ReceiverSnapshot;
use model::{
    Answer, Attempt, Cause, Diagnosis, KeyRing, Request, Settlement, SpanId, Trace, Verdict,
};
use tokio::time::Instant;

use crate::{
    ports::Ports,
    started::{Process, StartedProcesses},
};

/// The upper bound of spans, services or refusals that one diagnosis names.
pub(super) const NAMED_MAX: usize = 3;

/// The fired trigger, and when it was fired.
#[derive(Clone, Copy, Debug)]
pub struct FiredTrigger<'a> {
    /// The attempt.
    pub attempt: &'a Attempt,
    /// The request that was fired.
    pub request: &'a Request,
    /// How the trigger ended.
    pub answer: &'a Answer,
    /// The instant right before it was fired, by the receiver's clock.
    pub began: Instant,
}

/// The observations of a run that did not pass.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The fired trigger.
    pub fired: FiredTrigger<'a>,
    /// The verdict of the run.
    pub verdict: Verdict,
    /// Why the trace counts as complete, or why it does not.
    pub settlement: &'a Settlement,
    /// The spans of the trace that arrived. The trigger's own span may be among them.
    pub trace: &'a Trace,
    /// The keys that mint trace ids, to distinguish traces of other runs from foreign traces.
    pub keys: &'a KeyRing,
    /// The observations of the receiver, if there is one.
    pub seen: Option<&'a ReceiverSnapshot>,
    /// The settings of the processes that we started.
    pub started: Option<&'a StartedProcesses>,
    /// Those processes, as far as they can be inspected.
    pub processes: &'a [Process],
}

/// Observations beside a run's trace. They are owned, since they may be large and a compute thread searches them.
#[derive(Debug)]
pub(crate) struct Observations {
    keys: KeyRing,
    seen: Option<ReceiverSnapshot>,
    processes: Vec<Process>,
}

impl Observations {
    /// Collects the observations that can explain a verdict. The settlement of a passed run contains all that it reports.
    pub(crate) async fn of_verdict<P: Ports>(ports: &P, verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Self::nothing(ports),
            _ => Self {
                seen: ports.seen().await,
                processes: ports.processes(),
                ..Self::nothing(ports)
            },
        }
    }

    /// Collects the observations of the receiver.
    pub(crate) async fn by_receiver<P: Ports>(ports: &P) -> Self {
        Self { seen: ports.seen().await, ..Self::nothing(ports) }
    }

    pub(crate) fn nothing<P: Ports>(ports: &P) -> Self {
        Self { keys: ports.keys().clone(), seen: None, processes: Vec::new() }
    }

    /// Creates a case with this evidence.
    pub(crate) fn case<'a>(
        &'a self,
        (fired, started): (FiredTrigger<'a>, Option<&'a StartedProcesses>),
        verdict: Verdict,
        (trace, settlement): (&'a Trace, &'a Settlement),
    ) -> Case<'a> {
        let Self { keys, seen, processes } = self;
        Case { fired, verdict, settlement, trace, keys, seen: seen.as_ref(), started, processes }
    }
}

/// Creates a diagnosis, with a bounded number of spans.
pub(super) fn diagnosis(
    cause: Cause,
    says: String,
    spans: impl IntoIterator<Item = SpanId>,
    advice: impl Into<String>,
) -> Diagnosis {
    let spans = spans.into_iter().take(NAMED_MAX).collect();
    Diagnosis { cause, says, spans, advice: advice.into() }
}

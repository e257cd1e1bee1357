//! Why telemetry is missing: turns observations into an ordered list of causes, the likeliest first.
//!
//! Each diagnosis states the observation, the spans that prove it, and the fix. A cause that a process or a response states
//! itself comes before one that follows from the receiver's observations, and that before one that only remains by elimination.
//! The ring of foreign exports is decoded once, and only here.
//!
//! Deliberately absent: a guess without evidence; why a trigger has no response (the run's reasons state it); a store that
//! lags, since no run queries one yet; and the sampled bit of a span's flags, since several SDKs leave it unset in spans that
//! they do send.

mod answer;
mod clocks;
mod foreign;
mod hops;
mod losses;
mod parts;
mod quiet;
mod silence;
mod variables;
mod words;

use drivers::receiver::ReceiverSnapshot;
use model::{
    Answer, Attempt, Cause, Diagnosis, KeyRing, Request, Settlement, SpanId, Trace,
    UnsettledReason, Verdict,
};
use tokio::time::Instant;

use crate::{Ports, StartedProcesses};
use foreign::Foreign;

pub use variables::Process;

/// The upper bound of reported causes.
const DIAGNOSES_MAX: usize = 6;

/// The upper bound of spans, services or refusals that one diagnosis names.
const NAMED_MAX: usize = 3;

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
    pub(crate) fn of_verdict<P: Ports>(ports: &P, verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Self::nothing(ports),
            _ => Self { seen: ports.seen(), processes: ports.processes(), ..Self::nothing(ports) },
        }
    }

    /// Collects the observations of the receiver.
    pub(crate) fn by_receiver<P: Ports>(ports: &P) -> Self {
        Self { seen: ports.seen(), ..Self::nothing(ports) }
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

/// Whether the response states that the system has our trace and does not sample it.
pub(crate) fn is_not_sampled(case: &Case<'_>) -> bool {
    answer::not_sampled(case).is_some()
}

/// Returns those of these calls without another side for which the other side started a new trace.
pub(crate) fn lost_contexts(case: &Case<'_>, calls: &[SpanId]) -> Vec<SpanId> {
    let mut edges: Vec<_> = calls.iter().filter_map(|id| case.trace.find(*id)).collect();
    edges.truncate(hops::EDGES_MAX);
    let mut lost = Vec::new();
    foreign::each_root(case, |root| {
        let answered = edges.extract_if(.., |edge| hops::is_answered_elsewhere(*edge, root));
        lost.extend(answered.map(|edge| edge.id()));
    });
    lost
}

/// Returns why telemetry is missing, the likeliest cause first. For a complete trace the list is empty, except for three cases:
/// a context that was lost at a hop in a failed test, the cause of an inconclusive verdict (dropped parts of spans, clock
/// skew), and, with any verdict, peers that were called and sent no span.
pub fn diagnose(case: &Case<'_>) -> Vec<Diagnosis> {
    let unsettled = &case.settlement.unsettled;
    let mut found = match case.verdict {
        Verdict::Passed => Vec::new(),
        // If the spans that arrived decided the verdict, nothing is missing.
        _ if unsettled.contains(&UnsettledReason::NotWaited) => Vec::new(),
        Verdict::Failed if unsettled.is_empty() => parts::lost_though_whole(case),
        Verdict::Inconclusive if unsettled.is_empty() => {
            losses::dropped(case).into_iter().chain(clocks::causes(clocks::skews(case))).collect()
        }
        // If the trigger got no response, missing spans need no further explanation.
        _ if unsettled.contains(&UnsettledReason::NoTelemetry) => match is_answered(case) {
            true => silence::causes(case, &Foreign::decode(case)),
            false => Vec::new(),
        },
        _ => parts::causes(case, &Foreign::decode(case)),
    };
    found.truncate(DIAGNOSES_MAX);
    found.extend(parts::silent_peers(case, &found));
    found
}

/// Whether the diagnoses already explain this reason for an incomplete trace, in more detail.
pub(crate) fn is_explained(unsettled: &UnsettledReason, by: &[Diagnosis]) -> bool {
    use Cause::{
        ClockSkew, ContextLost, Linked, NotQuiet, NotSampled, OtherSideAbsent, ParentLocal,
        ParentRemote, VariablesIgnored,
    };
    let causes: &[Cause] = match unsettled {
        UnsettledReason::NoTelemetry => return !by.is_empty(),
        UnsettledReason::ParentsAbsent(_) => &[ParentRemote, ParentLocal],
        // If parents are absent, the trigger's call may be the only open one.
        UnsettledReason::EdgesOpen(_) => {
            &[ContextLost, Linked, OtherSideAbsent, ParentRemote, ParentLocal]
        }
        UnsettledReason::ContextLost(_) => &[ContextLost],
        UnsettledReason::NotSampled => &[NotSampled],
        UnsettledReason::NotQuiet => &[NotQuiet, VariablesIgnored, ClockSkew],
        _ => &[],
    };
    by.iter().any(|diagnosis| causes.contains(&diagnosis.cause))
}

/// Whether a longer wait alone may resolve the diagnosis.
pub(crate) fn is_for_want_of_time(diagnosis: &Diagnosis) -> bool {
    use Cause::{NotQuiet, OtherSideAbsent, ParentLocal, ParentRemote};
    matches!(diagnosis.cause, NotQuiet | OtherSideAbsent | ParentLocal | ParentRemote)
}

fn is_answered(case: &Case<'_>) -> bool {
    !case.settlement.unsettled.contains(&UnsettledReason::NotAnswered)
}

fn diagnosis(
    cause: Cause,
    says: String,
    spans: impl IntoIterator<Item = SpanId>,
    advice: impl Into<String>,
) -> Diagnosis {
    let spans = spans.into_iter().take(NAMED_MAX).collect();
    Diagnosis { cause, says, spans, advice: advice.into() }
}

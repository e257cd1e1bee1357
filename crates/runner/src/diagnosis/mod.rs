//! Why telemetry is missing: from what was seen to an ordered list of causes, the likeliest first.
//!
//! Each is stated as what was seen, with the spans that it rests on, and what to do. A cause that a process or an
//! answer states of itself comes before one that follows from what the receiver met, and that before one that is only
//! left over. The ring of foreign exports is decoded once, and only here.
//!
//! Deliberately absent: a guess without evidence, why a trigger has no answer (the run's reasons say it), a store that
//! lags, since no run asks one yet, and the sampled bit of a span's flags: several SDKs leave it unset in spans that they
//! do send.

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

/// How many causes are told.
const DIAGNOSES_MAX: usize = 6;

/// How many spans, services or refusals one of them names.
const NAMED_MAX: usize = 3;

/// What was fired, and when.
#[derive(Clone, Copy, Debug)]
pub struct FiredTrigger<'a> {
    /// The attempt.
    pub attempt: &'a Attempt,
    /// What was fired.
    pub request: &'a Request,
    /// How it ended.
    pub answer: &'a Answer,
    /// When it was about to be fired, by the clock that the receiver knows.
    pub began: Instant,
}

/// What was seen of a run that did not pass.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What was fired.
    pub fired: FiredTrigger<'a>,
    /// What the judges said.
    pub verdict: Verdict,
    /// Why the trace was taken as whole, or not.
    pub settlement: &'a Settlement,
    /// What came of the trace; the trigger's own span may be in it.
    pub trace: &'a Trace,
    /// The keys under which trace ids are minted, to tell other runs' traces from strangers'.
    pub keys: &'a KeyRing,
    /// What the receiver met; none where nobody knows.
    pub seen: Option<&'a ReceiverSnapshot>,
    /// What is known of processes because we started them.
    pub started: Option<&'a StartedProcesses>,
    /// Those processes, as far as they can be looked at.
    pub processes: &'a [Process],
}

/// What the world has seen beside a run's trace. It is owned, since it may be much: it is looked through where things are computed.
#[derive(Debug)]
pub(crate) struct Observations {
    keys: KeyRing,
    seen: Option<ReceiverSnapshot>,
    processes: Vec<Process>,
}

impl Observations {
    /// What there is to explain a verdict with. What a run that passed has to tell is in its settlement.
    pub(crate) fn of_verdict<P: Ports>(ports: &P, verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Self::nothing(ports),
            _ => Self { seen: ports.seen(), processes: ports.processes(), ..Self::nothing(ports) },
        }
    }

    /// What the receiver has met.
    pub(crate) fn by_receiver<P: Ports>(ports: &P) -> Self {
        Self { seen: ports.seen(), ..Self::nothing(ports) }
    }

    pub(crate) fn nothing<P: Ports>(ports: &P) -> Self {
        Self { keys: ports.keys().clone(), seen: None, processes: Vec::new() }
    }

    /// A case with this as its evidence.
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

/// Whether the answer says that the system has our trace and does not keep it.
pub(crate) fn is_not_sampled(case: &Case<'_>) -> bool {
    answer::not_sampled(case).is_some()
}

/// Of these calls without another side, those whose other side began a trace of its own.
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

/// Why telemetry is missing, the likeliest cause first. Nothing where the trace is whole, but for a context that was
/// seen to be lost on the way of a test that failed, what left a test inconclusive (parts of spans that were dropped, clocks),
/// and, whatever the verdict, peers that were called and sent nothing.
pub fn diagnose(case: &Case<'_>) -> Vec<Diagnosis> {
    let unsettled = &case.settlement.unsettled;
    let mut found = match case.verdict {
        Verdict::Passed => Vec::new(),
        // Whoever decided by what was there missed nothing.
        _ if unsettled.contains(&UnsettledReason::NotWaited) => Vec::new(),
        Verdict::Failed if unsettled.is_empty() => parts::lost_though_whole(case),
        Verdict::Inconclusive if unsettled.is_empty() => {
            losses::dropped(case).into_iter().chain(clocks::causes(clocks::skews(case))).collect()
        }
        // Without an answer, that no span came is no further riddle.
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

/// Whether these say already why a trace is not whole for this reason, and better.
pub(crate) fn is_explained(unsettled: &UnsettledReason, by: &[Diagnosis]) -> bool {
    use Cause::{
        ClockSkew, ContextLost, Linked, NotQuiet, NotSampled, OtherSideAbsent, ParentLocal,
        ParentRemote, VariablesIgnored,
    };
    let causes: &[Cause] = match unsettled {
        UnsettledReason::NoTelemetry => return !by.is_empty(),
        UnsettledReason::ParentsAbsent(_) => &[ParentRemote, ParentLocal],
        // Where parents are absent, the trigger's call may be the only one that is open.
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

/// Whether more time may be all that it takes.
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

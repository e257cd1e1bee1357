//! Why telemetry is missing: turns observations into an ordered list of causes, the likeliest first.
//!
//! Each diagnosis states the observation, the spans that prove it, and the fix. A cause that a process or a response states
//! itself comes before one that follows from the receiver's observations, and that before one that only remains by elimination.
//! The ring of foreign exports is decoded once, and only here.
//!
//! Deliberately absent: a guess without evidence; why a trigger has no response (the run's reasons state it); a store that
//! lags (the run's reasons state what it did not say); and the sampled bit of a span's flags, since several SDKs leave it unset in spans that
//! they do send.

mod answer;
mod case;
mod clocks;
mod foreign;
mod hops;
mod losses;
mod parts;
mod quiet;
mod silence;
mod variables;
mod words;

use model::{Cause, Diagnosis, Settlement, SpanId, UnsettledReason, Verdict};

use foreign::Foreign;

pub use crate::started::Process;
pub(crate) use case::Observations;
pub use case::{Case, FiredTrigger};

/// The upper bound of reported causes.
const DIAGNOSES_MAX: usize = 6;

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
        // What a store did not say may be there: the run's reasons state it. What the receiver saw explains nothing.
        _ if is_unread_source(case.settlement) || !case.settlement.stores.is_empty() => Vec::new(),
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

/// Whether a trace store gave no complete answer that was late enough, or the bus of the servers no proof.
pub(crate) fn is_unread_source(settlement: &Settlement) -> bool {
    use UnsettledReason::{StorePartial, StoreUnread, Unproved};
    let is_unread =
        |it: &UnsettledReason| matches!(it, StoreUnread(_) | StorePartial(_) | Unproved(_));
    settlement.unsettled.iter().any(is_unread)
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

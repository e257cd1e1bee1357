//! What decides a statement: spans that are there, spans that are not, or the answer.
//!
//! | statement | decided by presence | decided by absence |
//! | --- | --- | --- |
//! | something of every span | broken by one span | held by all; no span matches |
//! | `count >= n`, `count > n`, `some` | held | not reached |
//! | `count <= n`, `count < n`, `no` | exceeded | held |
//! | `count = n`, `count != n` | more than `n` | `n` or fewer |
//! | whatever else further spans can change | never | always |
//!
//! A comparison that was not made, because of the clocks or because the values are too large, neither holds nor breaks
//! anything.

use model::{DecisionBasis, Verdict};

use crate::eval::{
    future::{Evaluation, Truth},
    world::EvalContext,
};

/// How much of the trace is known.
#[derive(Clone, Debug)]
pub(super) enum TraceKnowledge {
    Whole,
    /// Further spans may exist, and why.
    Part(String),
    /// Not one span of the system.
    NoTelemetry,
    /// The test asks for no trace.
    NotAsked,
    /// The test asks for no trace, and the trigger has no answer: nothing is known at all.
    Nothing,
}

/// What a statement speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// The trigger's answer, and nothing else.
    Response,
    /// The answer as well as spans.
    Both,
    Spans,
}

#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    pub(super) decided: DecisionBasis,
    pub(super) reason: Option<String>,
}

impl TraceKnowledge {
    /// Whether there is a trace to look at.
    pub(super) fn is_known(&self) -> bool {
        matches!(self, Self::Whole | Self::Part(_))
    }
}

pub(super) fn decide(
    found: &Evaluation,
    about: About,
    seen: &TraceKnowledge,
    world: &EvalContext<'_>,
/// The verdict, given how much of the trace is known.
) -> Decision {
    let reason = found.reason.as_deref().map(super::words::named);
    match seen {
        TraceKnowledge::Nothing => open(DecisionBasis::Response, "the trigger has no answer"),
        _ if about == About::Response => by_response(found, world),
        TraceKnowledge::NotAsked => open(
            DecisionBasis::Response,
            "the test requires no trace, so that nothing is known beyond the trigger span",
        ),
        TraceKnowledge::NoTelemetry => open(DecisionBasis::Absence, "no span of the system came"),
        _ if found.truth == Truth::Open && about == About::Both && !world.is_answered() => {
            by_response(found, world)
        }
        // Not by presence: a span that is still to come may decide it.
        _ if found.truth == Truth::Open => {
            Decision { verdict: Verdict::Inconclusive, decided: DecisionBasis::Absence, reason }
        }
        _ if found.is_final() => {
            Decision { verdict: found.truth.verdict(), decided: DecisionBasis::Presence, reason }
        }
        TraceKnowledge::Whole => {
            Decision { verdict: found.truth.verdict(), decided: DecisionBasis::Absence, reason }
        }
        TraceKnowledge::Part(why) => {
            open(DecisionBasis::Absence, &format!("the trace is not known to be complete: {why}"))
        }
    }
}

/// The verdict of what the trigger's answer decides.
pub(super) fn by_response(found: &Evaluation, world: &EvalContext<'_>) -> Decision {
    let reason = match found.truth {
        Truth::Open if !world.is_answered() => Some(world.why_unknown().to_owned()),
        _ => found.reason.as_deref().map(super::words::named),
    };
    Decision { verdict: found.truth.verdict(), decided: DecisionBasis::Response, reason }
}

fn open(decided: DecisionBasis, reason: &str) -> Decision {
    Decision { verdict: Verdict::Inconclusive, decided, reason: Some(reason.to_owned()) }
}

//! Decides a statement: by spans that are present, by spans that are absent, or by the response.
//!
//! | statement | decided by presence | decided by absence |
//! | --- | --- | --- |
//! | a condition on every span | broken by one span | held by all; no span matches |
//! | `count >= n`, `count > n`, `some` | held | not reached |
//! | `count <= n`, `count < n`, `no` | exceeded | held |
//! | `count = n`, `count != n` | more than `n` | `n` or fewer |
//! | any other statement that further spans can change | never | always |
//!
//! A comparison that was not evaluated, because of the clocks or because the values are too large, neither holds nor
//! breaks a statement.

use model::{DecisionBasis, Verdict};

use crate::eval::{
    future::{Evaluation, Truth},
    world::EvalContext,
};

/// The extent to which the trace is known.
#[derive(Clone, Debug)]
pub(super) enum TraceKnowledge {
    Whole,
    /// Further spans may exist; holds the reason.
    Part(String),
    /// No span of the system was received.
    NoTelemetry,
    /// The test requests no trace.
    NotAsked,
    /// The test requests no trace, and the trigger has no response: nothing is known.
    Nothing,
}

/// The subject of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Only the response of the trigger.
    Response,
    /// The response and spans.
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
    /// Whether there is a trace to evaluate.
    pub(super) fn is_known(&self) -> bool {
        matches!(self, Self::Whole | Self::Part(_))
    }
}

/// Returns the verdict on a statement, for the known extent of the trace.
pub(super) fn decide(
    found: &Evaluation,
    about: About,
    seen: &TraceKnowledge,
    world: &EvalContext<'_>,
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
        // Not decided by presence: a later span may decide it.
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

/// Returns the verdict on a statement that the response of the trigger decides.
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

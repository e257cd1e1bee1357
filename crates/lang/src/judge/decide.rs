//! What decides an assertion: spans that are there, spans that are not, or the answer.
//!
//! | assertion | decided by presence | decided by absence |
//! | --- | --- | --- |
//! | something of every span | broken by one span | held by all; no span matches |
//! | `count >= n`, `count > n` | held | not reached |
//! | `count <= n`, `count < n` | exceeded | held |
//! | `count = n`, `count != n` | more than `n` | `n` or fewer |
//! | the count in any other way | never | always |
//!
//! A comparison that was not made, because the values are too large, neither holds an assertion nor breaks it.
//!
//! A selector with a position (`:first` and its kin) may select other spans when further ones come, so that nothing about
//! it is decided by presence.

use std::cmp::Ordering;

use model::{Decided, SpanEvidence, Verdict};

use crate::{
    compare::Comparator,
    expr::{Assertion, Doubt},
    numeral::Number,
    selector::Selector,
};

/// How much of the trace is known.
#[derive(Clone, Debug)]
pub(super) enum Seen {
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

/// What looking at the selected spans brought.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) count: u64,
    /// As if these were all the spans there will ever be.
    pub(super) verdict: Verdict,
    /// Why the first of the spans that leave it open does so.
    pub(super) doubt: Option<Doubt>,
    pub(super) spans: Vec<SpanEvidence>,
    pub(super) more_spans: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    pub(super) decided: Decided,
    pub(super) reason: Option<String>,
}

/// The verdict, given how much of the trace is known.
pub(super) fn decide(
    assertion: &Assertion,
    selector: &Selector,
    found: &Found,
    seen: &Seen,
) -> Decision {
    let is_missed = found.count == 0 && !assertion.speaks_of_count_alone();
    let verdict = if is_missed { Verdict::Failed } else { found.verdict };
    match seen {
        Seen::NotAsked if found.count == 0 => open(
            Decided::Response,
            "the test asks for no trace, so that nothing is known beyond the trigger span",
        ),
        Seen::NotAsked => by_response(found),
        Seen::Nothing => open(Decided::Response, "the trigger has no answer"),
        Seen::NoTelemetry => open(Decided::Absence, "no span of the system came"),
        _ if verdict == Verdict::Inconclusive => match found.doubt {
            // Not by presence: a span that is still to come may break the assertion.
            Some(doubt @ Doubt::TooLarge) => open(Decided::Absence, doubt.as_str()),
            Some(Doubt::NoAnswer) | None => by_response(found),
        },
        _ if selector.is_lasting() && is_final(assertion, found) => {
            Decision { verdict, decided: Decided::Presence, reason: None }
        }
        Seen::Whole => {
            let reason = is_missed.then(|| "no span matches the selector".to_owned());
            Decision { verdict, decided: Decided::Absence, reason }
        }
        Seen::Part(why) => {
            open(Decided::Absence, &format!("the trace is not known to be whole: {why}"))
        }
    }
}

/// The verdict of what the trigger's answer decides.
pub(super) fn by_response(found: &Found) -> Decision {
    let doubt = found.doubt.filter(|_| found.verdict == Verdict::Inconclusive);
    let reason = doubt.map(|doubt| doubt.as_str().to_owned());
    Decision { verdict: found.verdict, decided: Decided::Response, reason }
}

/// Whether further spans can change nothing.
fn is_final(assertion: &Assertion, found: &Found) -> bool {
    if !assertion.speaks_of_count() {
        return found.count > 0 && found.verdict == Verdict::Failed;
    }
    let Some((comparator, bound)) = assertion.count_bound() else { return false };
    let count = Number::Int(found.count.into());
    match comparator {
        Comparator::Greater | Comparator::AtLeast => found.verdict == Verdict::Passed,
        Comparator::Less | Comparator::AtMost => found.verdict == Verdict::Failed,
        Comparator::Equal | Comparator::NotEqual => count.compare(bound) == Some(Ordering::Greater),
        Comparator::Contains | Comparator::NotContains => false,
    }
}

fn open(decided: Decided, reason: &str) -> Decision {
    Decision { verdict: Verdict::Inconclusive, decided, reason: Some(reason.to_owned()) }
}

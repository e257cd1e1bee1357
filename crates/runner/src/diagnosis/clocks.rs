//! Clock skew, detected by causality alone: no span starts before the trigger was fired or before its parent started, and no
//! span ends after it arrived.

use std::{
    collections::{HashMap, hash_map::Entry},
    time::Duration,
};

use model::{
    Answer, Cause, Diagnosis, Timestamp,
    trace::{Kind, ResourceIx, Span, StatusCode, Tree},
};

use super::{
    case::{Case, NAMED_MAX, diagnosis},
    words,
};

/// The lower bound of a reported skew. Smaller differences are normal and explain nothing.
const SKEW_MIN: Duration = Duration::from_millis(100);

/// The minimum by which the clock of a process differs, and the evidence.
pub(super) struct Skew<'a> {
    pub(super) span: Span<'a>,
    by: Duration,
    /// `behind` or `ahead of`.
    way: &'static str,
    /// The clock that it is compared with.
    whose: String,
    shows: String,
}

/// Returns the diagnoses of clock skew.
pub(super) fn causes(skews: Vec<Skew<'_>>) -> Vec<Diagnosis> {
    skews.into_iter().take(NAMED_MAX).map(diagnosis_of).collect()
}

/// Returns the processes with a skewed clock, the largest skew first.
pub(super) fn skews<'a>(case: &Case<'a>) -> Vec<Skew<'a>> {
    let tree = Tree::of(case.trace);
    let mut worst: HashMap<ResourceIx, Skew<'_>> = HashMap::new();
    let is_timed = |span: &Span<'_>| span.start() != Timestamp::default();
    let spans = case.trace.spans().filter(|span| span.id() != case.fired.attempt.span_id);
    for span in spans.filter(is_timed) {
        let parent = tree.parent(span.ix()).map(|parent| case.trace.span(parent));
        let of_parent = parent
            .filter(|parent| parent.id() != case.fired.attempt.span_id)
            .and_then(|parent| against_parent(span, parent));
        for skew in [against_us(case, span), of_parent].into_iter().flatten() {
            match worst.entry(skew.span.resource_ix()) {
                Entry::Occupied(known) if known.get().by >= skew.by => {}
                Entry::Occupied(mut known) => drop(known.insert(skew)),
                Entry::Vacant(new) => drop(new.insert(skew)),
            }
        }
    }
    let mut worst: Vec<_> = worst.into_values().collect();
    worst.sort_by_key(|skew| (std::cmp::Reverse(skew.by), skew.span.ix().number()));
    worst
}

fn diagnosis_of(skew: Skew<'_>) -> Diagnosis {
    let Skew { span, by, way, whose, shows } = skew;
    diagnosis(
        Cause::ClockSkew,
        format!(
            "the clock of {} is at least {} {way} {whose}: {} {shows}",
            words::quoted(words::service(span)),
            words::duration(by),
            words::quoted(span.name()),
        ),
        [span.id()],
        "set the clocks of the machines by NTP; until then, say nothing of times across services in the test",
    )
}

fn against_us<'a>(case: &Case<'_>, span: Span<'a>) -> Option<Skew<'a>> {
    let skew = |by, way, shows: &str| Skew {
        span,
        by,
        way,
        whose: "ours".to_owned(),
        shows: shows.to_owned(),
    };
    // A run that only waits for a trace id may get spans of work that happened long ago.
    let is_fired = *case.fired.answer != Answer::NotFired;
    if is_fired && let Some(by) = exceeds(case.fired.attempt.at, span.start()) {
        return Some(skew(by, "behind", "started before the trigger was fired"));
    }
    let by = exceeds(span.end(), case.settlement.last_at?)?;
    Some(skew(by, "ahead of", "ended after it came here"))
}

/// A child in another process starts after its parent. A child that its parent waits for starts before its parent ends.
fn against_parent<'a>(span: Span<'a>, parent: Span<'a>) -> Option<Skew<'a>> {
    if span.resource_ix() == parent.resource_ix() {
        return None;
    }
    let (by, way, when) = if let Some(by) = exceeds(parent.start(), span.start()) {
        (by, "behind", "started before")
    } else if parent.kind() == Kind::Client && parent.status() != StatusCode::Error {
        (exceeds(span.start(), parent.end())?, "ahead of", "started after the end of")
    } else {
        return None;
    };
    let whose = format!("that of {}", words::quoted(words::service(parent)));
    let shows = format!("{when} {}, which called it", words::span(parent));
    Some(Skew { span, by, way, whose, shows })
}

/// Returns by how much a time is after another, if that exceeds the normal difference of clocks.
fn exceeds(later: Timestamp, earlier: Timestamp) -> Option<Duration> {
    Some(later.since(earlier)).filter(|by| *by >= SKEW_MIN)
}

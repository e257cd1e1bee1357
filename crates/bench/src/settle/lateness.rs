//! The lateness of a run's spans: each after the response and after the last arrival before it.

use super::{
    stage::Script,
    statement::There,
    system::{MS, SECOND},
};

/// The minimum linger of a run without a learned profile of the system.
pub(super) const FRESH: u64 = SECOND;
/// Fewer runs than this are not enough to know a system.
pub(super) const FRESH_RUNS: usize = 3;
/// Timers have a granularity, and a span that arrives at the very end of the linger may miss it.
const GRAIN: u64 = 2 * MS;

/// Spans that arrived together and for the first time, and the gap before them.
pub(super) struct Arrival<'a> {
    pub(super) at: u64,
    /// The time since the response or the last arrival before, whichever was later; zero before the response.
    pub(super) gap: u64,
    pub(super) spans: &'a [usize],
}

/// Returns the arrivals of the run's own trace, in their order.
pub(super) fn arrivals<'a>(script: &'a Script<'_>) -> impl Iterator<Item = Arrival<'a>> {
    let is_own = |number: &usize| script.played.spans[*number].trace == 0;
    let is_new = |number: &usize, at: u64| script.travel.fates[*number].at == Some(at);
    let pieces = script.travel.pieces.iter().filter(move |piece| {
        piece.spans.iter().any(|number| is_own(number) && is_new(number, piece.at))
    });
    let mut last = script.played.answer_at;
    pieces.map(move |piece| {
        let gap = piece.at.saturating_sub(last);
        last = last.max(piece.at);
        Arrival { at: piece.at, gap, spans: &piece.spans }
    })
}

/// Returns the longest gap before an arrival until this time.
pub(super) fn longest_gap(script: &Script<'_>, until: u64) -> u64 {
    arrivals(script).take_while(|it| it.at < until).map(|it| it.gap).max().unwrap_or_default()
}

/// Returns until when a run receives spans that lingers this long after each arrival.
pub(super) fn listened_until(script: &Script<'_>, linger: u64) -> u64 {
    let heard = arrivals(script).take_while(|it| it.gap + GRAIN <= linger);
    let last = heard.map(|it| it.at).max().unwrap_or_default();
    last.max(script.played.answer_at)
}

/// The lateness of the work that the right verdict depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lateness {
    /// A verdict at any time after the response is right.
    None,
    /// The longest gap such that a verdict before its end is wrong, in nanoseconds.
    After(u64),
    /// A verdict based on all spans that ever arrived is wrong.
    Never,
}

/// Returns the lateness of the work that decides whether the test truly passes.
pub(super) fn lateness(script: &Script<'_>, truth: bool) -> Lateness {
    let all = There::all(script.system, &script.played);
    let passes = |there: &There<'_, '_>| script.test.statements.iter().all(|it| it.holds(there));
    let is_there = vec![false; all.is_there.len()];
    let mut now = There { is_there, has_dropped: false, ..all };
    let mut longest = Lateness::None;
    for arrival in arrivals(script) {
        if arrival.gap > 0 && Lateness::After(arrival.gap) > longest && passes(&now) != truth {
            longest = Lateness::After(arrival.gap);
        }
        for number in arrival.spans.iter().filter(|it| script.played.spans[**it].trace == 0) {
            now.is_there[*number] = true;
        }
    }
    if passes(&now) == truth { longest } else { Lateness::Never }
}

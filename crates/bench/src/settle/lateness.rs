//! How late the spans of a run came: each after the response and after what came last before it.

use super::{
    stage::Script,
    statement::There,
    system::{MS, SECOND},
};

/// What a run that knows nothing of the system has to linger for.
pub(super) const FRESH: u64 = SECOND;
/// So many runs are not enough to know a system.
pub(super) const FRESH_RUNS: usize = 3;
/// Timers have a grain, and a span that comes at the very end of the linger may miss it.
const GRAIN: u64 = 2 * MS;

/// Spans that came together and for the first time, and after how long a gap.
pub(super) struct Arrival<'a> {
    pub(super) at: u64,
    /// From the response or from the last arrival before, whichever was later; none before the response.
    pub(super) gap: u64,
    pub(super) spans: &'a [usize],
}

/// The arrivals of the run's own trace, in their order.
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

/// The longest gap before an arrival until this moment.
pub(super) fn longest_gap(script: &Script<'_>, until: u64) -> u64 {
    arrivals(script).take_while(|it| it.at < until).map(|it| it.gap).max().unwrap_or_default()
}

/// Until when a run hears spans that lingers for so long after each arrival.
pub(super) fn heard_until(script: &Script<'_>, linger: u64) -> u64 {
    let heard = arrivals(script).take_while(|it| it.gap + GRAIN <= linger);
    let last = heard.map(|it| it.at).max().unwrap_or_default();
    last.max(script.played.answer_at)
}

/// How late the work came on which the right verdict depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lateness {
    /// Whoever judges at any moment after the response is right.
    None,
    /// The longest gap before which who judges is wrong, in nanoseconds.
    After(u64),
    /// Who judges by all that ever came is wrong.
    Never,
}

/// How late the work comes on which it depends whether the test truly passes.
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

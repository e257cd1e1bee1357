//! Finds the spans of a group with the best or the worst time relation to one span: from the group's extremes, not all spans.

use super::{
    clocks::Offset,
    future::Truth,
    span_time::{end_of, start_of},
    world::EvalContext,
};
use crate::syntax::ast::Relation;

/// The maximum number of spans of another host that are searched for one that is long enough.
const SEARCHED_MAX: usize = 64;

/// Marks no span: a trace has fewer than 2^32 spans.
const NONE: u32 = u32::MAX;

/// The times of a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) place: u32,
    pub(super) start: i128,
    pub(super) end: i128,
    /// Whether the span has a start, and an end.
    has: (bool, bool),
}

/// The side of a relation that a span is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// The right spans of one host: those that have the compared times, or those that do not.
#[derive(Debug)]
pub(super) struct HostSpans {
    pub(super) host: u32,
    pub(super) is_timed: bool,
    /// Sorted by start.
    spans: Vec<Times>,
    /// For each prefix of `spans`: the span that ends last, and the one of the others that ends last.
    last_ends: Vec<[u32; 2]>,
    earliest_end: [Option<Times>; 2],
    shortest: [Option<Times>; 2],
}

/// Returns whether a relation of two spans holds for all offsets, for none, or for some.
fn pair(relation: Relation, left: Times, right: Times, offset: Offset) -> Truth {
    let Offset { low, high } = offset;
    // The range of offsets of the right span's clock for which the relation holds.
    let (from, to) = match relation {
        Relation::Before => (left.end - right.start, i128::MAX),
        Relation::After => (i128::MIN, left.start - right.end),
        Relation::Inside => (left.end - right.end, left.start - right.start),
        // Neither is before the other.
        Relation::Overlaps => (left.start - right.end + 1, left.end - right.start - 1),
        Relation::Calls => return Truth::Undefined,
    };
    if from <= low && high <= to {
        Truth::True
    } else if from.max(low) > to.min(high) {
        Truth::False
    } else {
        Truth::Open
    }
}

/// Returns whether the relation holds with every other span of a group, and a span with the worst result.
pub(super) fn every(
    relation: Relation,
    left: Times,
    group: &HostSpans,
    offset: Offset,
) -> (Truth, u32) {
    let worst = match relation {
        Relation::Before => [group.first_start(left.place), None, None],
        Relation::After => [group.last_end(left.place), None, None],
        Relation::Inside | Relation::Overlaps => [
            group.last_start(left.place),
            other(group.earliest_end, left.place),
            other(group.shortest, left.place),
        ],
        Relation::Calls => [None; 3],
    };
    let mut all: Option<(Truth, u32)> = None;
    for one in worst.into_iter().flatten() {
        let truth = pair(relation, left, one, offset);
        if all.is_none_or(|(all, _)| all.and(truth) != all) {
            all = Some((truth, one.place));
        }
    }
    all.unwrap_or((Truth::True, left.place))
}

/// Returns whether the relation holds with some other span of a group, and a span with the best result.
pub(super) fn some(
    relation: Relation,
    left: Times,
    group: &HostSpans,
    offset: Offset,
) -> (Truth, u32) {
    let best = match relation {
        Relation::Before => group.last_start(left.place),
        Relation::After => other(group.earliest_end, left.place),
        Relation::Inside | Relation::Overlaps => {
            return some_around(relation, left, group, offset);
        }
        Relation::Calls => None,
    };
    best.map_or((Truth::False, left.place), |best| (pair(relation, left, best, offset), best.place))
}

/// Of the spans that start early enough for the relation, the one that ends last has the best result.
fn some_around(relation: Relation, left: Times, group: &HostSpans, offset: Offset) -> (Truth, u32) {
    let best = |shift: i128| {
        let early = match relation {
            Relation::Inside => left.start - shift,
            _ => left.end - shift - 1,
        };
        let count = group.spans.partition_point(|span| span.start <= early);
        group.last_end_of(count, left.place)
    };
    let judged = |span: Times| (pair(relation, left, span, offset), span.place);
    // First with the least favorable offset, then with the most favorable one.
    let hardest = best(offset.high).map(judged);
    if let Some(found @ (Truth::True, _)) = hardest {
        return found;
    }
    match best(offset.low).map(judged).or(hardest) {
        Some((Truth::True | Truth::Open, place)) => (Truth::Open, place),
        Some((_, place)) if is_possible(relation, left, group, offset) => (Truth::Open, place),
        Some(found) => found,
        None => (Truth::False, group.first_start(left.place).map_or(left.place, |one| one.place)),
    }
}

/// Whether some span of a group may satisfy the relation, although the one that ends last does not. On one host that
/// one decides for all. On another host a longer span may satisfy it; in a large group this counts as possible.
fn is_possible(relation: Relation, left: Times, group: &HostSpans, offset: Offset) -> bool {
    let is_possible = |span: &Times| {
        span.place != left.place && pair(relation, left, *span, offset) != Truth::False
    };
    !offset.is_none() && (group.spans.len() > SEARCHED_MAX || group.spans.iter().any(is_possible))
}

impl HostSpans {
    /// Whether there is a span other than this one.
    pub(super) fn has_other(&self, place: u32) -> bool {
        self.first_start(place).is_some()
    }

    pub(super) fn first_start(&self, but: u32) -> Option<Times> {
        self.spans.iter().copied().find(|span| span.place != but)
    }

    fn last_start(&self, but: u32) -> Option<Times> {
        self.spans.iter().rev().copied().find(|span| span.place != but)
    }

    fn last_end(&self, but: u32) -> Option<Times> {
        self.last_end_of(self.spans.len(), but)
    }

    /// Returns the span that ends last among the first `count`.
    fn last_end_of(&self, count: usize, but: u32) -> Option<Times> {
        let last = self.last_ends[..count].last()?;
        other(last.map(|number| self.spans.get(number as usize).copied()), but)
    }
}

/// Returns the first of two spans that is not at this position.
fn other(two: [Option<Times>; 2], place: u32) -> Option<Times> {
    two.into_iter().flatten().find(|span| span.place != place)
}

/// Returns the two spans with the least keys; the first of equal ones comes first.
fn least_two(spans: &[Times], key: impl Fn(&Times) -> i128) -> [Option<Times>; 2] {
    let mut two: [Option<Times>; 2] = [None; 2];
    for span in spans {
        let is_less = |than: Option<Times>| than.is_none_or(|than| key(span) < key(&than));
        two = match two {
            [first, _] if is_less(first) => [Some(*span), first],
            [first, second] if is_less(second) => [first, Some(*span)],
            same => same,
        };
    }
    two
}

pub(super) fn groups(
    places: &[u32],
    relation: Relation,
    world: &EvalContext<'_>,
) -> Vec<HostSpans> {
    let times = |place: &u32| {
        let times = times(*place, world);
        ((host_at(world, *place), times.has(Side::Right, relation)), times)
    };
    let mut spans: Vec<_> = places.iter().map(times).collect();
    spans.sort_by_key(|(group, span)| (*group, span.start, span.place));
    let group = |group: &[((u32, bool), Times)]| {
        let spans: Vec<_> = group.iter().map(|(_, span)| *span).collect();
        let mut last = [NONE; 2];
        let last_ends = (0..).zip(&spans).map(|(number, span)| {
            let is_later = |than: u32| spans.get(than as usize).is_none_or(|it| span.end > it.end);
            last = match last {
                [first, _] if is_later(first) => [number, first],
                [first, second] if is_later(second) => [first, number],
                same => same,
            };
            last
        });
        let (host, is_timed) = group[0].0;
        HostSpans {
            host,
            is_timed,
            last_ends: last_ends.collect(),
            earliest_end: least_two(&spans, |span| span.end),
            shortest: least_two(&spans, |span| span.end - span.start),
            spans,
        }
    };
    spans.chunk_by(|a, b| a.0 == b.0).map(group).collect()
}

pub(super) fn host_at(world: &EvalContext<'_>, place: u32) -> u32 {
    world.clocks().host_of(world.tree.order()[place as usize])
}

pub(super) fn times(place: u32, world: &EvalContext<'_>) -> Times {
    let span = world.span_at(place as usize);
    let (start, end) = (start_of(span), end_of(span));
    let nanos = |moment: Option<u64>| i128::from(moment.unwrap_or_default());
    let has = (start.is_some(), end.is_some());
    Times { place, start: nanos(start), end: nanos(end), has }
}

impl Times {
    /// Whether the span has the times that a relation compares on its side.
    pub(super) fn has(&self, side: Side, relation: Relation) -> bool {
        let (has_start, has_end) = self.has;
        match (relation, side) {
            (Relation::Before, Side::Left) | (Relation::After, Side::Right) => has_end,
            (Relation::Before, Side::Right) | (Relation::After, Side::Left) => has_start,
            (Relation::Inside | Relation::Overlaps, _) => has_start && has_end,
            (Relation::Calls, _) => true,
        }
    }
}

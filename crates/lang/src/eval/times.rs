//! Computes the times of a trace: the self time of each span, and the time that the trace waited for it.
//!
//! *Self time* is the duration of a span without the time in which one of its children was active. *Critical time* is
//! computed by walking back from the end: of the children that ended by then, the parent waited for the one that ended
//! last; its time counts as its own, recursively, and the walk continues from its start. A child counts only within its
//! parent. Time in which the parent waited for no child is the parent's. Roots are side by side in the trace; with a
//! trigger span, the other roots are below it.
//!
//! A child on another host is shifted by an offset that is known to lie in an interval (`clocks.rs`), and so is the
//! result: both times are known between two bounds, which are equal if the offset does not matter. A child without an
//! end may have been active until the end of its parent, or not at all.

use std::ops::Range;

use super::{
    clocks::Offset,
    span_time::{duration, end_of, start_of},
    world::EvalContext,
};

/// The bounds of a time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeBounds {
    pub(crate) low: i128,
    pub(crate) high: i128,
}

/// The critical time of each span, by position.
#[derive(Debug)]
pub(crate) struct CriticalTimes {
    bounds: Vec<TimeBounds>,
    /// The positions with times that are not known exactly, as sorted and disjoint ranges, and the causes.
    causes: Vec<(Range<usize>, Cause)>,
}

/// A span (`unsure`) with times that leave the critical time open, and the span (`above`) with the clock to convert
/// them to. Both are positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause {
    pub(super) above: usize,
    pub(super) unsure: usize,
}

/// An interval from start to end, in nanoseconds.
type Stretch = (i128, i128);

/// Later than any timestamp, on any clock.
const NEVER: i128 = 1 << 100;

/// A child of a span, on the clock of that span.
#[derive(Clone, Copy, Debug)]
struct Child {
    place: usize,
    host: u32,
    offset: Offset,
    /// On its own clock. Without a start or an end, the interval in which it may have been active.
    stretch: Stretch,
    is_timed: bool,
}

impl TimeBounds {
    const ZERO: Self = Self { low: 0, high: 0 };

    fn exactly(nanos: i128) -> Self {
        Self { low: nanos, high: nanos }
    }
}

impl CriticalTimes {
    pub(super) fn at(&self, place: usize) -> TimeBounds {
        self.bounds[place]
    }

    pub(super) fn cause_at(&self, place: usize) -> Option<Cause> {
        let before = self.causes.partition_point(|(places, _)| places.start <= place);
        let (places, cause) = self.causes.get(before.checked_sub(1)?)?;
        places.contains(&place).then_some(*cause)
    }

    /// Sets the times of a span and its descendants to the bounds that follow from their durations alone.
    fn spread(&mut self, place: usize, cause: Cause, world: &EvalContext<'_>) {
        let subtree = place..world.tree.end_at(place);
        for place in subtree.clone() {
            let most = duration(world.span_at(place)).unwrap_or(NEVER);
            self.bounds[place] = TimeBounds { low: 0, high: most };
        }
        self.causes.push((subtree, cause));
    }
}

impl Child {
    fn of(place: usize, host: u32, world: &EvalContext<'_>) -> Self {
        let span = world.span_at(place);
        let own = world.clocks().host_of(span.ix());
        let (start, end) = (start_of(span), end_of(span));
        Self {
            place,
            host: own,
            offset: world.clocks().offset(host, own),
            stretch: (start.map_or(-NEVER, i128::from), end.map_or(NEVER, i128::from)),
            is_timed: start.is_some() && end.is_some(),
        }
    }

    /// Returns the interval in which it may have been active.
    fn possible(&self) -> Stretch {
        (self.stretch.0 + self.offset.low, self.stretch.1 + self.offset.high)
    }

    /// Returns the interval in which it was active for every offset.
    fn sure(&self) -> Option<Stretch> {
        let stretch = (self.stretch.0 + self.offset.high, self.stretch.1 + self.offset.low);
        (self.is_timed && stretch.0 < stretch.1).then_some(stretch)
    }

    /// Returns its interval if its clock is as far behind as possible.
    fn earliest(&self) -> Stretch {
        (self.stretch.0 + self.offset.low, self.stretch.1 + self.offset.low)
    }

    fn is_exact(&self) -> bool {
        self.is_timed && self.offset.is_none()
    }
}

/// Returns the self time of each span, by position. The value for a span without a duration has no meaning.
pub(super) fn own(world: &EvalContext<'_>) -> Vec<TimeBounds> {
    let own = |place: usize| {
        let span = world.span_at(place);
        let (Some(start), Some(end)) = (start_of(span), end_of(span)) else {
            return TimeBounds::ZERO;
        };
        let host = world.clocks().host_of(span.ix());
        let window = (i128::from(start), i128::from(end));
        let children: Vec<_> =
            world.tree.children_at(place).map(|child| Child::of(child, host, world)).collect();
        let (lasted, busy) = (window.1 - window.0, busy(window, &children));
        TimeBounds { low: lasted - busy.high, high: lasted - busy.low }
    };
    (0..world.len()).map(own).collect()
}

/// Returns for how long of a window some child was active.
fn busy(window: Stretch, children: &[Child]) -> TimeBounds {
    let covered = |stretches: &mut dyn Iterator<Item = Stretch>| {
        Cover::of(stretches.map(|(from, to)| (from.max(window.0), to.min(window.1)))).total()
    };
    if children.iter().all(Child::is_exact) {
        return TimeBounds::exactly(covered(&mut children.iter().map(|child| child.stretch)));
    }
    let mut low = covered(&mut children.iter().filter_map(Child::sure));
    let high = covered(&mut children.iter().map(Child::possible));
    // The children of one host shift together, so those that stay inside cover the same time for every offset.
    let mut hosts: Vec<_> = children.iter().filter(|child| child.is_timed).copied().collect();
    hosts.sort_by_key(|child| child.host);
    let others = children.iter().filter(|child| !child.is_timed);
    let mut most = covered(&mut others.map(Child::possible));
    for group in hosts.chunk_by(|a, b| a.host == b.host) {
        let cover = Cover::of(group.iter().map(|child| child.stretch));
        let bounds = cover.within(window, group[0].offset);
        low = low.max(bounds.low);
        most += bounds.high;
    }
    TimeBounds { low, high: high.min(most) }
}

/// Disjoint intervals, sorted, and the time that those before each cover.
struct Cover {
    stretches: Vec<Stretch>,
    before: Vec<i128>,
}

impl Cover {
    fn of(stretches: impl Iterator<Item = Stretch>) -> Self {
        let mut all: Vec<_> = stretches.filter(|(from, to)| from < to).collect();
        all.sort_unstable();
        let mut cover = Self { stretches: Vec::new(), before: Vec::new() };
        let mut total = 0;
        for (from, to) in all {
            match cover.stretches.last_mut() {
                Some(last) if from <= last.1 => {
                    total += (to - last.1).max(0);
                    last.1 = last.1.max(to);
                }
                _ => {
                    cover.stretches.push((from, to));
                    cover.before.push(total);
                    total += to - from;
                }
            }
        }
        cover.before.push(total);
        cover
    }

    fn total(&self) -> i128 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Returns how much of it lies before a time.
    fn until(&self, moment: i128) -> i128 {
        let count = self.stretches.partition_point(|(from, _)| *from < moment);
        let cut = count.checked_sub(1).map_or(0, |last| (self.stretches[last].1 - moment).max(0));
        self.before[count] - cut
    }

    /// Returns the minimum and the maximum that lies within a window, if it is shifted by any offset of an interval.
    fn within(&self, window: Stretch, offset: Offset) -> TimeBounds {
        let at = |moved: i128| self.until(window.1 - moved) - self.until(window.0 - moved);
        // The covered time changes linearly between the offsets at which an edge of an interval meets an edge of the window.
        let edges = self.stretches.iter().flat_map(|(from, to)| [*from, *to]);
        let turns = edges.flat_map(|edge| [window.0 - edge, window.1 - edge]);
        let inside = turns.filter(|moved| (offset.low..=offset.high).contains(moved));
        let mut bounds = TimeBounds::exactly(at(offset.low));
        for moved in inside.chain([offset.high]) {
            let covered = at(moved);
            bounds.low = bounds.low.min(covered);
            bounds.high = bounds.high.max(covered);
        }
        bounds
    }
}

/// Returns the critical time of each span.
pub(super) fn critical(world: &EvalContext<'_>) -> CriticalTimes {
    let tree = &world.tree;
    let mut critical =
        CriticalTimes { bounds: vec![TimeBounds::ZERO; world.len()], causes: Vec::new() };
    let roots: Vec<usize> = tree.tops().collect();
    let top = match world.trigger() {
        Some(trigger) if tree.parent_at(trigger).is_none() => vec![trigger],
        _ => roots.clone(),
    };
    let mut waited = Vec::new();
    if let Some(first) = top.first() {
        let host = world.clocks().host_of(tree.order()[*first]);
        let children: Vec<_> = top.iter().map(|place| Child::of(*place, host, world)).collect();
        match waited_for((-NEVER, NEVER), children) {
            Ok((windows, _)) => waited = windows,
            Err(unsure) => {
                let cause = Cause { above: *first, unsure };
                top.iter().for_each(|place| critical.spread(*place, cause, world));
            }
        }
    }
    while let Some((place, window)) = waited.pop() {
        let is_trigger = world.trigger() == Some(place) && tree.parent_at(place).is_none();
        let others = roots.iter().copied().filter(|root| is_trigger && *root != place);
        let host = world.clocks().host_of(tree.order()[place]);
        let below: Vec<_> = tree.children_at(place).chain(others).collect();
        let children = below.iter().map(|child| Child::of(*child, host, world)).collect();
        match waited_for(window, children) {
            Ok((windows, own)) => {
                critical.bounds[place] = TimeBounds::exactly(own);
                waited.extend(windows);
            }
            Err(unsure) => {
                let cause = Cause { above: place, unsure };
                below.iter().for_each(|child| critical.spread(*child, cause, world));
                critical.bounds[place] = TimeBounds { low: 0, high: window.1 - window.0 };
                critical.causes.push((place..place + 1, cause));
            }
        }
    }
    critical.causes.sort_unstable_by_key(|(places, _)| places.start);
    critical
}

/// Returns the children that the time of a window was spent waiting for, each with the interval on its own clock; and the time
/// that is left. If that depends on an unknown offset or time, the error is the child with that offset or time.
fn waited_for(
    window: Stretch,
    mut children: Vec<Child>,
) -> Result<(Vec<(usize, Stretch)>, i128), usize> {
    let (start, end) = window;
    children.retain(|child| {
        let (from, to) = child.possible();
        from.max(start) < to.min(end)
    });
    let untimed = children.iter().find(|child| !child.is_timed);
    let unsure = untimed.or_else(|| children.iter().find(|child| !child.is_exact()));
    if let Some(unsure) = unsure.map(|child| child.place)
        && !is_steady(window, &mut children)
    {
        return Err(unsure);
    }
    // For every offset of the children of another host: inside the window, the wait is in the same order for the same time.
    let clip = |child: &Child| {
        let (from, to) = child.earliest();
        (child.place, child.offset.low, (from.max(start), to.min(end)))
    };
    let mut within: Vec<_> = children.iter().map(clip).collect();
    within.retain(|(.., (from, to))| from < to);
    within.sort_by_key(|(.., (_, to))| std::cmp::Reverse(*to));
    let (mut until, mut own) = (end, 0);
    let mut windows = Vec::new();
    for (place, moved, (from, to)) in within {
        if to <= until {
            own += until - to;
            until = from;
            windows.push((place, (from - moved, to - moved)));
        }
    }
    own += (until - start).max(0);
    Ok((windows, own))
}

/// Whether each child of another host stays inside the window, and apart from the children of all other hosts.
fn is_steady((start, end): Stretch, children: &mut [Child]) -> bool {
    let is_inside = |child: &Child| {
        let (from, to) = child.possible();
        child.is_timed && (child.offset.is_none() || start <= from && to <= end)
    };
    if !children.iter().all(is_inside) {
        return false;
    }
    children.sort_by_key(|child| child.possible().0);
    // The end of the last one so far, and of the last one of another host.
    let mut last: Option<(u32, i128)> = None;
    let mut other: Option<i128> = None;
    for child in children.iter() {
        let (from, to) = child.possible();
        let before = match last {
            Some((host, _)) if host == child.host => other,
            last => last.map(|(_, to)| to),
        };
        if before.is_some_and(|before| before > from) {
            return false;
        }
        match last {
            Some((host, until)) if host == child.host => last = Some((host, until.max(to))),
            _ => {
                other = last.map(|(_, until)| until).max(other);
                last = Some((child.host, to));
            }
        }
    }
    true
}

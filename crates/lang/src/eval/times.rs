//! Where the time of a trace went: each span's own, and what the whole waited for.
//!
//! *Self time* is a span's duration without the time in which one of its children was at work. *Critical time* is found
//! by walking back from the end: of the children that ended by then, the one that ended last was waited for; its time
//! counts as its own, recursively, and the walk goes on from its start. A child counts as far as it lies within its
//! parent, on whichever host. What no child was waited for is the parent's. Roots stand side by side in the trace; with a
//! trigger span, the others stand below it.

use super::world::World;

/// From start to end, in nanoseconds.
type Stretch = (u64, u64);

fn stretches(world: &World<'_>) -> Vec<Stretch> {
    let stretch = |place| {
        let span = world.span_at(place);
        (span.start().as_nanos(), span.end().as_nanos())
    };
    (0..world.len()).map(stretch).collect()
}

/// The self time of each span, by place, in nanoseconds.
pub(super) fn own(world: &World<'_>) -> Vec<i128> {
    let stretches = stretches(world);
    let own = |place: usize| {
        let (start, end) = stretches[place];
        // Children come by their starts, so that what they cover grows from the left.
        let (mut covered, mut busy) = (start, 0);
        for child in world.tree.children_at(place) {
            let (from, to) = stretches[child];
            let (from, to) = (from.max(covered), to.min(end));
            if to > from {
                busy += i128::from(to - from);
                covered = to;
            }
        }
        (i128::from(end) - i128::from(start)).max(0) - busy
    };
    (0..stretches.len()).map(own).collect()
}

/// The critical time of each span, by place, in nanoseconds.
pub(super) fn critical(world: &World<'_>) -> Vec<i128> {
    let stretches = &stretches(world);
    let tree = &world.tree;
    let mut critical = vec![0; stretches.len()];
    let roots: Vec<usize> = tree.tops().collect();
    let whole = (0, u64::MAX);
    let mut waited = match world.trigger() {
        Some(trigger) if tree.parent_at(trigger).is_none() => vec![(trigger, stretches[trigger])],
        _ => waited_for(whole, roots.iter().copied(), stretches, &mut 0),
    };
    while let Some((place, window)) = waited.pop() {
        let is_trigger = world.trigger() == Some(place) && tree.parent_at(place).is_none();
        let others = roots.iter().copied().filter(|root| is_trigger && *root != place);
        let children = tree.children_at(place).chain(others);
        waited.extend(waited_for(window, children, stretches, &mut critical[place]));
    }
    critical
}

/// Which of these the time of a window was spent waiting for, and when; the rest is added to `own`.
fn waited_for(
    (start, end): Stretch,
    children: impl Iterator<Item = usize>,
    stretches: &[Stretch],
    own: &mut i128,
) -> Vec<(usize, Stretch)> {
    let clip = |place: usize| {
        let (from, to) = stretches[place];
        (place, (from.max(start), to.min(end)))
    };
    let mut within: Vec<_> = children.map(clip).filter(|(_, (from, to))| from < to).collect();
    within.sort_by_key(|(_, (_, to))| std::cmp::Reverse(*to));
    let mut until = end;
    within.retain(|(_, (from, to))| {
        let is_waited_for = *to <= until;
        if is_waited_for {
            *own += i128::from(until - to);
            until = *from;
        }
        is_waited_for
    });
    *own += i128::from(until.saturating_sub(start));
    within
}

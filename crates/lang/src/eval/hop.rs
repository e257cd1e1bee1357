//! Evaluates one hop of a selector: from the reached spans to the spans that a combinator leads to, and back.

use std::{cmp::Ordering, collections::HashSet};

use super::{
    bits::Bits,
    select::{pick, pick_index},
    world::EvalContext,
};
use crate::{
    budget,
    syntax::ast::{Combinator, Position},
};

/// Marks no span: a trace has fewer than 2^32 spans.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Returns the spans among `found` that a combinator leads to from `from`, both sorted. With a `position`, returns the
/// spans that it picks from each of them.
pub(super) fn reach(
    from: &[u32],
    combinator: Combinator,
    found: &Bits,
    position: Option<Position>,
    world: &EvalContext<'_>,
) -> Vec<u32> {
    let mut places = match (combinator, position) {
        (_, Some(position)) => {
            budget::spend(found.len() as u64 / 2 + 16 * from.len() as u64);
            let mut picked = Vec::new();
            pick_each(
                from,
                combinator,
                found,
                position,
                (world, &mut |_, place| picked.push(place)),
            );
            picked
        }
        (Combinator::Descendant, None) => return below(from, found, world),
        (Combinator::Sibling, None) => {
            let siblings = later_siblings(from, found, world);
            budget::spend(8 * (from.len() + siblings.len()) as u64);
            siblings
        }
        (Combinator::Ancestor, None) => above(from, found, world),
        (Combinator::Child | Combinator::Adjacent | Combinator::Parent | Combinator::Linked, _) => {
            let near = from.iter().flat_map(|place| near(*place, combinator, world));
            near.filter(|place| found.has(*place as usize)).collect()
        }
    };
    places.sort_unstable();
    places.dedup();
    places
}

/// Returns, for each span, the span that a position picks from there, or [`NOWHERE`]. One walk computes this for all
/// spans, so a lookup for each of them costs no more than one for all.
pub(super) fn picks(
    combinator: Combinator,
    found: &Bits,
    position: Position,
    world: &EvalContext<'_>,
) -> Vec<u32> {
    let all: Vec<_> = (0..world.len() as u32).collect();
    let mut picks = vec![NOWHERE; all.len()];
    let mut put = |from: u32, place: u32| picks[from as usize] = place;
    pick_each(&all, combinator, found, position, (world, &mut put));
    picks
}

/// Reports, for each of these spans (sorted), the span that a position picks from there, if there is one.
fn pick_each(
    from: &[u32],
    combinator: Combinator,
    found: &Bits,
    position: Position,
    (world, told): (&EvalContext<'_>, PickFn<'_>),
) {
    match combinator {
        Combinator::Descendant => pick_below(from, found, position, world, told),
        Combinator::Sibling => pick_siblings(from, found, position, world, told),
        Combinator::Ancestor => pick_above(from, found, position, world, told),
        Combinator::Child | Combinator::Adjacent | Combinator::Parent | Combinator::Linked => {
            for place in from {
                let near = near(*place, combinator, world).filter(|to| found.has(*to as usize));
                if let Some(picked) = pick(&near.collect::<Vec<_>>(), position) {
                    told(*place, picked);
                }
            }
        }
    }
}

/// A callback that receives a span and the span that was picked from there.
type PickFn<'t> = &'t mut dyn FnMut(u32, u32);

/// Returns the spans one step away, in document order. All spans together have as many steps as the trace has edges.
fn near<'w>(
    place: u32,
    combinator: Combinator,
    world: &'w EvalContext<'_>,
) -> Box<dyn Iterator<Item = u32> + 'w> {
    let (tree, at) = (&world.tree, place as usize);
    budget::spend(8);
    match combinator {
        Combinator::Child => Box::new(tree.children_at(at).map(|place| place as u32)),
        Combinator::Adjacent => {
            Box::new(tree.later_siblings_at(at).take(1).map(|place| place as u32))
        }
        Combinator::Parent => Box::new(tree.parent_at(at).map(|place| place as u32).into_iter()),
        Combinator::Linked => Box::new(world.links().to(place)),
        Combinator::Descendant | Combinator::Sibling | Combinator::Ancestor => {
            Box::new(std::iter::empty())
        }
    }
}

fn is_trigger(place: u32, world: &EvalContext<'_>) -> bool {
    world.trigger() == Some(place as usize)
}

fn below(from: &[u32], found: &Bits, world: &EvalContext<'_>) -> Vec<u32> {
    if let Some(trigger) = from.iter().find(|place| is_trigger(**place, world)) {
        // The trigger span is not below itself, but may name a parent.
        let holds =
            |place: &u32| (*place..world.tree.end_at(*place as usize) as u32).contains(trigger);
        let is_below = from.iter().any(|place| place != trigger && holds(place));
        let places = found.ones().map(|place| place as u32);
        return places.filter(|place| place != trigger || is_below).collect();
    }
    // A subtree is a contiguous range, so a range that an earlier subtree covers is not visited again.
    let mut covered = 0;
    let mut places = Vec::new();
    for place in from {
        let (start, end) = (*place as usize + 1, world.tree.end_at(*place as usize));
        if end > covered {
            budget::spend(1 + (end - start.max(covered)) as u64 / 64);
            places.extend(found.ones_in(start.max(covered)..end).map(|place| place as u32));
            covered = end;
        }
    }
    places
}

fn pick_below(
    from: &[u32],
    found: &Bits,
    position: Position,
    world: &EvalContext<'_>,
    told: PickFn<'_>,
) {
    let found: Vec<_> = found.ones().map(|place| place as u32).collect();
    for place in from {
        let picked = if is_trigger(*place, world) {
            let others: Vec<_> = found.iter().copied().filter(|other| other != place).collect();
            pick(&others, position)
        } else {
            let end = world.tree.end_at(*place as usize) as u32;
            let start = found.partition_point(|other| other <= place);
            let end = start + found[start..].partition_point(|other| *other < end);
            pick(&found[start..end], position)
        };
        if let Some(picked) = picked {
            told(*place, picked);
        }
    }
}

/// Of several siblings, the first reaches all spans that the others reach.
fn later_siblings(from: &[u32], found: &Bits, world: &EvalContext<'_>) -> Vec<u32> {
    let tree = &world.tree;
    let mut seen = HashSet::new();
    from.iter()
        .filter(|place| tree.parent_at(**place as usize).is_some_and(|parent| seen.insert(parent)))
        .flat_map(|place| tree.later_siblings_at(*place as usize))
        .filter(|place| found.has(*place))
        .map(|place| place as u32)
        .collect()
}

fn pick_siblings(
    from: &[u32],
    found: &Bits,
    position: Position,
    world: &EvalContext<'_>,
    told: PickFn<'_>,
) {
    let tree = &world.tree;
    let mut by_parent: Vec<_> =
        from.iter().filter_map(|place| Some((tree.parent_at(*place as usize)?, *place))).collect();
    by_parent.sort_unstable();
    for family in by_parent.chunk_by(|a, b| a.0 == b.0) {
        let siblings: Vec<_> = tree
            .children_at(family[0].0)
            .filter(|place| found.has(*place))
            .map(|place| place as u32)
            .collect();
        for (_, place) in family {
            let later = siblings.partition_point(|sibling| sibling <= place);
            if let Some(picked) = pick(&siblings[later..], position) {
                told(*place, picked);
            }
        }
    }
}

fn above(from: &[u32], found: &Bits, world: &EvalContext<'_>) -> Vec<u32> {
    let mut seen = HashSet::new();
    for place in from {
        let mut at = *place as usize;
        while let Some(parent) = world.tree.parent_at(at).filter(|parent| seen.insert(*parent)) {
            at = parent;
        }
    }
    if let Some(trigger) = world.trigger()
        && from.iter().any(|place| *place as usize != trigger)
    {
        seen.insert(trigger);
    }
    budget::spend(8 * seen.len() as u64);
    seen.into_iter().filter(|place| found.has(*place)).map(|place| place as u32).collect()
}

/// Walks the tree once, with a stack of the ancestors that are in `found`.
fn pick_above(
    from: &[u32],
    found: &Bits,
    position: Position,
    world: &EvalContext<'_>,
    told: PickFn<'_>,
) {
    let tree = &world.tree;
    let trigger = world.trigger().filter(|trigger| found.has(*trigger));
    let last = from.last().map_or(0, |last| *last as usize + 1);
    let mut from = from.iter().peekable();
    let mut open = Vec::new();
    for at in 0..last {
        while open.last().is_some_and(|above| tree.end_at(*above as usize) <= at) {
            open.pop();
        }
        if from.next_if(|place| **place as usize == at).is_some() {
            let is_elsewhere = |trigger: &usize| !(*trigger..tree.end_at(*trigger)).contains(&at);
            let picked = match trigger.filter(is_elsewhere) {
                None => pick(&open, position),
                Some(trigger) => {
                    let trigger = trigger as u32;
                    let before = open.partition_point(|place| *place < trigger);
                    pick_index(open.len() + 1, position).map(|index| match index.cmp(&before) {
                        Ordering::Less => open[index],
                        Ordering::Equal => trigger,
                        Ordering::Greater => open[index - 1],
                    })
                }
            };
            if let Some(picked) = picked {
                told(at as u32, picked);
            }
        }
        if found.has(at) {
            open.push(at as u32);
        }
    }
}

/// Returns, for each span, the number of its ancestors that are in `found`.
pub(super) fn counts_above(found: &Bits, world: &EvalContext<'_>) -> Vec<u32> {
    let tree = &world.tree;
    let mut counts: Vec<u32> = Vec::with_capacity(found.len());
    for place in 0..found.len() {
        let count =
            tree.parent_at(place).map_or(0, |parent| counts[parent] + u32::from(found.has(parent)));
        counts.push(count);
    }
    if let Some(trigger) = world.trigger().filter(|trigger| found.has(*trigger)) {
        let below = trigger..tree.end_at(trigger);
        let elsewhere = counts.iter_mut().enumerate().filter(|(place, _)| !below.contains(place));
        elsewhere.for_each(|(_, count)| *count += 1);
    }
    counts
}

/// Returns the spans from which a combinator leads to one of these.
pub(super) fn reach_back(to: &Bits, combinator: Combinator, world: &EvalContext<'_>) -> Bits {
    let tree = &world.tree;
    let mut from = Bits::none(to.len());
    match combinator {
        Combinator::Descendant => {
            // The next of them after a span is below it, or none is.
            let mut next = to.len();
            for place in (0..to.len()).rev() {
                from.put(place, next < tree.end_at(place));
                if to.has(place) {
                    next = place;
                }
            }
            if let Some(trigger) = world.trigger() {
                from.put(trigger, to.ones().any(|place| place != trigger));
            }
        }
        Combinator::Child => {
            to.ones().filter_map(|place| tree.parent_at(place)).for_each(|place| from.set(place));
        }
        Combinator::Adjacent | Combinator::Sibling => {
            let parents: HashSet<_> = to.ones().filter_map(|place| tree.parent_at(place)).collect();
            for parent in parents {
                let siblings: Vec<_> = tree.children_at(parent).collect();
                let mut is_before = false;
                for pair in siblings.windows(2).rev() {
                    is_before = to.has(pair[1]) || (is_before && combinator == Combinator::Sibling);
                    from.put(pair[0], is_before);
                }
            }
        }
        Combinator::Parent => {
            to.ones().flat_map(|place| tree.children_at(place)).for_each(|place| from.set(place));
        }
        Combinator::Ancestor => {
            let all: Vec<_> = to.ones().map(|place| place as u32).collect();
            below(&all, &Bits::all(to.len()), world).iter().for_each(|at| from.set(*at as usize));
        }
        Combinator::Linked => {
            let links = world.links().pairs().iter();
            links.filter(|(_, by)| to.has(*by as usize)).for_each(|(at, _)| from.set(*at as usize));
        }
    }
    from
}

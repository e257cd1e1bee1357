//! One hop of a selector: from spans that were reached to those that a combinator leads to, and back.

use std::{cmp::Ordering, collections::HashSet};

use super::{
    bits::Bits,
    select::{pick, pick_index},
    world::World,
};
use crate::syntax::ast::{Combinator, Position};

/// The places among `found` that a combinator leads to from `from`, both sorted. With a position, what it picks from
/// each of them.
pub(super) fn reach(
    from: &[u32],
    combinator: Combinator,
    found: &Bits,
    position: Option<Position>,
    world: &World<'_>,
) -> Vec<u32> {
    let mut places = match (combinator, position) {
        (Combinator::Descendant, None) => return below(from, found, world),
        (Combinator::Descendant, Some(position)) => picked_below(from, found, position, world),
        (Combinator::Sibling, None) => later_siblings(from, found, world),
        (Combinator::Sibling, Some(position)) => picked_siblings(from, found, position, world),
        (Combinator::Ancestor, None) => above(from, found, world),
        (Combinator::Ancestor, Some(position)) => picked_above(from, found, position, world),
        (Combinator::Child | Combinator::Adjacent | Combinator::Parent | Combinator::Linked, _) => {
            let mut reached = Vec::new();
            for place in from {
                let near = near(*place, combinator, world).filter(|to| found.has(*to as usize));
                match position {
                    None => reached.extend(near),
                    Some(position) => reached.extend(pick(&near.collect::<Vec<_>>(), position)),
                }
            }
            reached
        }
    };
    places.sort_unstable();
    places.dedup();
    places
}

/// What is one step away, in document order. The steps of all spans together are as many as the trace has edges.
fn near<'w>(
    place: u32,
    combinator: Combinator,
    world: &'w World<'_>,
) -> Box<dyn Iterator<Item = u32> + 'w> {
    let (tree, at) = (&world.tree, place as usize);
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

fn is_trigger(place: u32, world: &World<'_>) -> bool {
    world.trigger() == Some(place as usize)
}

fn below(from: &[u32], found: &Bits, world: &World<'_>) -> Vec<u32> {
    if let Some(trigger) = from.iter().find(|place| is_trigger(**place, world)) {
        // It is not below itself, but may name a parent.
        let holds =
            |place: &u32| (*place..world.tree.end_at(*place as usize) as u32).contains(trigger);
        let is_below = from.iter().any(|place| place != trigger && holds(place));
        let places = found.ones().map(|place| place as u32);
        return places.filter(|place| place != trigger || is_below).collect();
    }
    // A subtree is a stretch of places, so what an earlier one covers is not looked at again.
    let mut covered = 0;
    let mut places = Vec::new();
    for place in from {
        let (start, end) = (*place as usize + 1, world.tree.end_at(*place as usize));
        if end > covered {
            places.extend(found.ones_in(start.max(covered)..end).map(|place| place as u32));
            covered = end;
        }
    }
    places
}

fn picked_below(from: &[u32], found: &Bits, position: Position, world: &World<'_>) -> Vec<u32> {
    let found: Vec<_> = found.ones().map(|place| place as u32).collect();
    let picked = |place: &u32| {
        if is_trigger(*place, world) {
            let others: Vec<_> = found.iter().copied().filter(|other| other != place).collect();
            return pick(&others, position);
        }
        let end = world.tree.end_at(*place as usize) as u32;
        let start = found.partition_point(|other| other <= place);
        let end = found.partition_point(|other| *other < end);
        pick(&found[start..end.max(start)], position)
    };
    from.iter().filter_map(picked).collect()
}

/// Of several siblings the first reaches all that the others do.
fn later_siblings(from: &[u32], found: &Bits, world: &World<'_>) -> Vec<u32> {
    let tree = &world.tree;
    let mut seen = HashSet::new();
    from.iter()
        .filter(|place| tree.parent_at(**place as usize).is_some_and(|parent| seen.insert(parent)))
        .flat_map(|place| tree.later_siblings_at(*place as usize))
        .filter(|place| found.has(*place))
        .map(|place| place as u32)
        .collect()
}

fn picked_siblings(from: &[u32], found: &Bits, position: Position, world: &World<'_>) -> Vec<u32> {
    let tree = &world.tree;
    let mut by_parent: Vec<_> =
        from.iter().filter_map(|place| Some((tree.parent_at(*place as usize)?, *place))).collect();
    by_parent.sort_unstable();
    let mut places = Vec::new();
    for family in by_parent.chunk_by(|a, b| a.0 == b.0) {
        let siblings: Vec<_> = tree
            .children_at(family[0].0)
            .filter(|place| found.has(*place))
            .map(|place| place as u32)
            .collect();
        for (_, place) in family {
            let later = siblings.partition_point(|sibling| sibling <= place);
            places.extend(pick(&siblings[later..], position));
        }
    }
    places
}

fn above(from: &[u32], found: &Bits, world: &World<'_>) -> Vec<u32> {
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
    seen.into_iter().filter(|place| found.has(*place)).map(|place| place as u32).collect()
}

/// One walk through the tree that remembers which of the found are open above.
fn picked_above(from: &[u32], found: &Bits, position: Position, world: &World<'_>) -> Vec<u32> {
    let tree = &world.tree;
    let trigger = world.trigger().filter(|trigger| found.has(*trigger));
    let last = from.last().map_or(0, |last| *last as usize + 1);
    let mut from = from.iter().peekable();
    let (mut open, mut places) = (Vec::new(), Vec::new());
    for at in 0..last {
        while open.last().is_some_and(|above| tree.end_at(*above as usize) <= at) {
            open.pop();
        }
        if from.next_if(|place| **place as usize == at).is_some() {
            let is_elsewhere = |trigger: &usize| !(*trigger..tree.end_at(*trigger)).contains(&at);
            places.extend(match trigger.filter(is_elsewhere) {
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
            });
        }
        if found.has(at) {
            open.push(at as u32);
        }
    }
    places
}

/// The spans from which a combinator leads to one of these.
pub(super) fn reach_back(to: &Bits, combinator: Combinator, world: &World<'_>) -> Bits {
    let tree = &world.tree;
    let mut from = Bits::none(to.len());
    match combinator {
        Combinator::Descendant => {
            // The next of them behind a place is below it or not at all.
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

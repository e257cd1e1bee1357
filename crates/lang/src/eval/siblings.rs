//! The order of siblings with clocks that may differ.
//!
//! Siblings are ordered by start. On one host the starts are compared as they are; between hosts a sibling precedes another if it
//! started first for every possible offset of their clocks (`clocks.rs`), as with `before`. Most families are on one host, and
//! have the order of the tree. The others are stored here, unless every offset gives the order of the tree.

use std::collections::HashMap;

use super::{
    span_time::{start_of, time_lack},
    world::EvalContext,
};
use crate::{budget, syntax::ast::Combinator, value::shorten};

/// The families for which the order of the tree is uncertain.
#[derive(Debug, Default)]
pub(crate) struct Siblings {
    /// The positions of the children, in the order of the tree.
    families: Vec<Vec<u32>>,
    /// The family of a child, by position.
    family_of: HashMap<u32, usize>,
    reason: Option<String>,
}

/// The siblings to reach: only the next one or all later ones, and only the certain ones or all possible ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) is_next: bool,
    pub(super) is_sure: bool,
}

/// The maximum size of a family with a known order.
const FAMILY_MAX: usize = 256;

/// The budget steps to compare the order of two siblings.
const PAIR_STEPS: u64 = 8;

impl Siblings {
    pub(super) fn of(world: &EvalContext<'_>) -> Self {
        let mut siblings = Self::default();
        let is_timed = world.trace.spans().all(|span| start_of(span).is_some());
        if world.clocks().hosts() < 2 && is_timed {
            return siblings;
        }
        budget::spend(PAIR_STEPS * world.len() as u64);
        // Top-level spans are not siblings, but have an order.
        siblings.add(world.tree.tops().map(|place| place as u32).collect(), world);
        for place in 0..world.len() {
            siblings.add(world.tree.children_at(place).map(|child| child as u32).collect(), world);
        }
        siblings
    }

    fn add(&mut self, family: Vec<u32>, world: &EvalContext<'_>) {
        let unsure = family.windows(2).find(|pair| !is_before(pair[0], pair[1], world));
        let Some(unsure) = unsure else { return };
        self.reason.get_or_insert_with(|| why(unsure[0], unsure[1], world));
        let number = self.families.len();
        self.family_of.extend(family.iter().map(|place| (*place, number)));
        self.families.push(family);
    }

    /// Returns why the order of some siblings is unknown.
    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Splits the spans into those with uncertain next and later siblings, and the rest.
    pub(super) fn split(&self, from: &[u32], combinator: Combinator) -> (Vec<u32>, Vec<u32>) {
        let is_ordered = matches!(combinator, Combinator::Adjacent | Combinator::Sibling);
        from.iter().partition(|place| is_ordered && self.family_of.contains_key(place))
    }

    /// Whether sorted spans have the same order for all offsets: each precedes the next. All checks together climb each
    /// edge of the tree at most once.
    pub(super) fn is_order_sure(&self, places: &[u32], world: &EvalContext<'_>) -> bool {
        let tree = &world.tree;
        let is_sure = |first: u32, second: u32| {
            let mut below = second as usize;
            while let Some(above) = tree.parent_at(below) {
                if above == first as usize {
                    return true;
                }
                if (above..tree.end_at(above)).contains(&(first as usize)) {
                    break;
                }
                below = above;
            }
            let Some(number) = self.family_of.get(&(below as u32)) else { return true };
            let family = &self.families[*number];
            let before = family.partition_point(|child| *child <= first);
            before.checked_sub(1).is_none_or(|at| is_before(family[at], below as u32, world))
        };
        budget::spend(PAIR_STEPS * places.len() as u64);
        self.families.is_empty() || places.windows(2).all(|pair| is_sure(pair[0], pair[1]))
    }

    /// Returns the siblings that a combinator leads to from some of these, certainly or possibly. Top-level spans have none.
    pub(super) fn reach(&self, from: &[u32], way: Way, world: &EvalContext<'_>) -> Vec<u32> {
        let family_of = |place: &u32| Some((*self.family_of.get(place)?, *place));
        let mut members: Vec<_> = from.iter().filter_map(family_of).collect();
        members.sort_unstable();
        let mut reached = Vec::new();
        for members in members.chunk_by(|a, b| a.0 == b.0) {
            let family = &self.families[members[0].0];
            if world.tree.parent_at(family[0] as usize).is_none() {
                continue;
            }
            let is_known = family.len() <= FAMILY_MAX;
            let pairs = if is_known { family.len() * members.len() } else { family.len() };
            if !budget::spend(PAIR_STEPS * pairs as u64) {
                break;
            }
            match way {
                Way { is_sure: true, .. } if !is_known => {}
                _ if !is_known => {
                    let is_other = |place: &&u32| members.len() > 1 || **place != members[0].1;
                    reached.extend(family.iter().filter(is_other));
                }
                _ => {
                    let mut is_reached = vec![false; family.len()];
                    for (_, place) in members {
                        reach_from(*place, family, (way, &mut is_reached), world);
                    }
                    let places =
                        family.iter().zip(is_reached).filter(|(_, is_reached)| *is_reached);
                    reached.extend(places.map(|(place, _)| *place));
                }
            }
        }
        reached
    }
}

/// Marks the siblings that are reached from one span of a family.
fn reach_from(
    place: u32,
    family: &[u32],
    (way, reached): (Way, &mut [bool]),
    world: &EvalContext<'_>,
) {
    let others = || (0..family.len()).filter(|at| family[*at] != place);
    let is_later = |at: usize| is_before(place, family[at], world);
    let is_earlier = |at: usize| is_before(family[at], place, world);
    match way {
        Way { is_next: false, is_sure: true } => {
            others().filter(|at| is_later(*at)).for_each(|at| reached[at] = true);
        }
        Way { is_next: false, is_sure: false } => {
            others().filter(|at| !is_earlier(*at)).for_each(|at| reached[at] = true);
        }
        // The sibling that is later, and precedes all that are not earlier. If there is one, no other precedes it.
        Way { is_next: true, is_sure: true } => {
            let rest: Vec<_> = others().filter(|at| !is_earlier(*at)).collect();
            let is_ahead = |a: usize, b: usize| is_before(family[a], family[b], world);
            let first = rest.iter().copied().reduce(|a, b| if is_ahead(a, b) { a } else { b });
            let is_next = |next: usize| {
                is_later(next) && rest.iter().all(|at| *at == next || is_ahead(next, *at))
            };
            first.filter(|at| is_next(*at)).into_iter().for_each(|at| reached[at] = true);
        }
        // Those that may be later, and that no certainly later one certainly precedes. The first of each host is enough.
        Way { is_next: true, is_sure: false } => {
            let host = |at: usize| host_at(family[at], world);
            let mut firsts: Vec<usize> = Vec::new();
            for at in others().filter(|at| is_later(*at)) {
                match firsts.iter_mut().find(|first| host(**first) == host(at)) {
                    None => firsts.push(at),
                    Some(first) if is_before(family[at], family[*first], world) => *first = at,
                    Some(_) => {}
                }
            }
            let is_behind =
                |at: usize| firsts.iter().any(|first| is_before(family[*first], family[at], world));
            others()
                .filter(|at| !is_earlier(*at) && !is_behind(*at))
                .for_each(|at| reached[at] = true);
        }
    }
}

fn host_at(place: u32, world: &EvalContext<'_>) -> u32 {
    world.clocks().host_of(world.tree.order()[place as usize])
}

/// Whether a span certainly precedes another. On one host the tree decides for equal starts.
fn is_before(first: u32, second: u32, world: &EvalContext<'_>) -> bool {
    let spans = [first, second].map(|place| world.span_at(place as usize));
    let [Some(start), Some(other)] = spans.map(start_of) else { return false };
    let hosts = spans.map(|span| world.clocks().host_of(span.ix()));
    if hosts[0] == hosts[1] {
        return (start, first) < (other, second);
    }
    let offset = world.clocks().offset(hosts[0], hosts[1]);
    i128::from(start) < i128::from(other) + offset.low
}

/// Describes why the order of two spans is unknown.
fn why(first: u32, second: u32, world: &EvalContext<'_>) -> String {
    let spans = [first, second].map(|place| world.span_at(place as usize));
    if let Some(untimed) = spans.into_iter().find(|span| start_of(*span).is_none()) {
        let lack = time_lack(untimed).map_or("has no start", |lack| lack.words());
        return format!("`{}` ({}) {lack}", shorten(untimed.name()), untimed.id());
    }
    let [host, other] = spans.map(|span| world.clocks().host_of(span.ix()));
    world.clocks().doubt(host, other)
}

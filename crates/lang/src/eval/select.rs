//! Which spans a selector selects.
//!
//! A step is computed once as a set over all places of the tree (its condition and pseudo-classes). A part then goes from
//! hop to hop with the places reached so far, sorted. A position picks from what its own step matches, anew from each
//! span of the step before. Matches come part by part, each in document order: depth first, siblings by start; none
//! comes twice.
//!
//! Everything in a trace is the trigger's doing, so the trigger span counts as above every other span, also above those
//! whose parent is absent.

use std::{cell::OnceCell, collections::HashSet, rc::Rc};

use model::trace::Tree;

use super::{
    bits::{Bits, Ranks},
    future::Truth,
    hop::{reach, reach_back},
    index::extent,
    truth::truth,
    world::{Scene, World},
};
use crate::{
    syntax::{
        ast::{Anchor, Combinator, Expr, Hop, Part, Position, Pseudo, Selector, Step},
        print,
    },
    value::shorten,
};

/// The spans that match one step, however it is reached.
#[derive(Debug)]
pub(crate) struct Matches {
    pub(crate) bits: Bits,
    ranks: OnceCell<Ranks>,
}

/// Who links to whom, by places: sorted pairs of a span and one that links to it.
#[derive(Debug)]
pub(crate) struct Links {
    pairs: Vec<(u32, u32)>,
}

/// The places of the selected spans.
pub(crate) fn select<'a>(selector: &'a Selector, scene: &Scene<'_, 'a>) -> Rc<Vec<u32>> {
    let world = scene.world;
    if is_anchored(selector) {
        return world.selection(selector, || union(selector, scene));
    }
    Rc::new(union(selector, scene))
}

/// How many spans are selected. What is below one span is counted without looking at each.
pub(crate) fn count<'a>(selector: &'a Selector, scene: &Scene<'_, 'a>) -> usize {
    if let ([Part { anchor: Anchor::This, hops }], Some(place)) =
        (selector.parts.as_slice(), scene.place())
        && let [Hop { combinator: Combinator::Descendant, step }] = hops.as_slice()
        && step.position.is_none()
        && scene.world.trigger() != Some(place)
    {
        let matches = matches(step, scene);
        return matches.count_in(place + 1..scene.world.tree.end_at(place));
    }
    select(selector, scene).len()
}

/// Whether the same spans are selected whichever span is spoken of.
pub(crate) fn is_anchored(selector: &Selector) -> bool {
    let hops = || selector.parts.iter().flat_map(|part| &part.hops);
    selector.parts.iter().all(|part| part.anchor == Anchor::Trace)
        && hops().all(|hop| is_own(&hop.step))
}

/// Whether a step matches the same spans whichever span is spoken of: `self` inside `:not(…)` is that span.
fn is_own(step: &Step) -> bool {
    step.pseudos.iter().all(|pseudo| match pseudo {
        Pseudo::Root | Pseudo::Leaf | Pseudo::Orphan => true,
        Pseudo::Not(selector) => is_anchored(selector),
        Pseudo::Has(selector) => {
            selector.parts.iter().flat_map(|part| &part.hops).all(|hop| is_own(&hop.step))
        }
    })
}

fn union<'a>(selector: &'a Selector, scene: &Scene<'_, 'a>) -> Vec<u32> {
    match selector.parts.as_slice() {
        [] => (0..scene.world.len() as u32).collect(),
        [part] => select_part(part, &part.hops, scene),
        parts => {
            let mut seen = HashSet::new();
            let places = parts.iter().flat_map(|part| select_part(part, &part.hops, scene));
            places.filter(|place| seen.insert(*place)).collect()
        }
    }
}

/// The places that the first hops of a part lead to, in document order.
pub(super) fn select_part<'a>(part: &'a Part, hops: &'a [Hop], scene: &Scene<'_, 'a>) -> Vec<u32> {
    walk(part, hops, scene, |_, step| step.position)
}

/// As [`select_part`], with the positions that `position` gives.
pub(super) fn walk<'a>(
    part: &'a Part,
    hops: &'a [Hop],
    scene: &Scene<'_, 'a>,
    position: impl Fn(usize, &Step) -> Option<Position>,
) -> Vec<u32> {
    let world = scene.world;
    let mut at = match part.anchor {
        Anchor::Trace => None,
        Anchor::This => match scene.place() {
            Some(place) => Some(vec![place as u32]),
            None => return Vec::new(),
        },
    };
    for (number, Hop { combinator, step }) in hops.iter().enumerate() {
        let matches = matches(step, scene);
        let position = position(number, step);
        at = Some(match at {
            Some(from) => reach(&from, *combinator, &matches.bits, position, world),
            None => {
                let found = matches.bits.ones().map(|place| place as u32).collect();
                match position {
                    None => found,
                    Some(position) => pick(&found, position).into_iter().collect(),
                }
            }
        });
    }
    at.unwrap_or_default()
}

pub(super) fn pick(found: &[u32], position: Position) -> Option<u32> {
    pick_index(found.len(), position).map(|index| found[index])
}

/// Which of so many a position picks.
pub(super) fn pick_index(len: usize, position: Position) -> Option<usize> {
    let index = match position {
        Position::First => 0,
        Position::Last => len.checked_sub(1)?,
        Position::Nth(count) => usize::try_from(count.checked_sub(1)?).ok()?,
    };
    (index < len).then_some(index)
}

/// The spans that match a step.
pub(super) fn matches<'a>(step: &'a Step, scene: &Scene<'_, 'a>) -> Rc<Matches> {
    let make = || Matches { bits: match_step(step, scene), ranks: OnceCell::new() };
    if is_own(step) { scene.world.step(step, make) } else { Rc::new(make()) }
}

/// The spans for which the condition of a step holds.
pub(super) fn match_condition<'a>(step: &'a Step, world: &World<'a>) -> Bits {
    let all = Bits::all(world.len());
    match &step.condition {
        Some(condition) => world.places_of(&match_numbers(condition, &all, world)),
        None => all,
    }
}

/// The numbers of the spans for which a condition holds.
pub(super) fn match_numbers<'a>(condition: &'a Expr, all: &Bits, world: &World<'a>) -> Bits {
    let extent = extent(condition, all, &world.scene());
    let mut is_open = extent.open.ones().next().is_some();
    let mut bits = extent.yes;
    if let Some(trigger) = world.trigger() {
        let scene = Scene { is_selecting: true, ..world.scene_at(trigger) };
        let number = world.tree.order()[trigger].number();
        let found = truth(condition, &scene);
        is_open |= found.truth == Truth::Open;
        bits.put(number, found.is_true());
    }
    if is_open {
        world.doubt(condition);
    }
    bits
}

/// Why nobody can say which spans a selector selects, once it has been asked; nothing where that is known.
pub(crate) fn doubt(selector: &Selector, world: &World<'_>) -> Option<String> {
    if !world.has_doubts() {
        return None;
    }
    let mut hops = selector.parts.iter().flat_map(|part| &part.hops);
    let is_open = |hop: &Hop| {
        let condition = hop.step.condition.as_ref();
        condition.is_some_and(|condition| world.is_doubted(condition))
            || hop.step.pseudos.iter().any(|pseudo| match pseudo {
                Pseudo::Has(inner) | Pseudo::Not(inner) => doubt(inner, world).is_some(),
                Pseudo::Root | Pseudo::Leaf | Pseudo::Orphan => false,
            })
    };
    let written = || shorten(&print::selector(selector)).into_owned();
    hops.any(is_open).then(|| format!("it is not known which spans match `{}`", written()))
}

fn match_step<'a>(step: &'a Step, scene: &Scene<'_, 'a>) -> Bits {
    let mut bits = match_condition(step, scene.world);
    for pseudo in &step.pseudos {
        narrow(&mut bits, pseudo, scene);
    }
    bits
}

/// Keeps those for which a pseudo-class holds.
pub(super) fn narrow<'a>(bits: &mut Bits, pseudo: &'a Pseudo, scene: &Scene<'_, 'a>) {
    let world = scene.world;
    let keep = |bits: &mut Bits, holds: &dyn Fn(usize) -> bool| {
        let gone: Vec<_> = bits.ones().filter(|place| !holds(*place)).collect();
        gone.into_iter().for_each(|place| bits.put(place, false));
    };
    let tree = &world.tree;
    match pseudo {
        Pseudo::Root => keep(bits, &|place| world.span_at(place).parent().is_none()),
        Pseudo::Leaf => keep(bits, &|place| match world.trigger() {
            Some(trigger) if trigger == place => world.len() == 1,
            _ => tree.end_at(place) == place + 1,
        }),
        Pseudo::Orphan => {
            let mut orphans = Bits::none(world.len());
            tree.orphans().iter().for_each(|span| orphans.set(tree.place(*span)));
            bits.keep(&orphans);
        }
        Pseudo::Not(selector) => {
            for place in select(selector, scene).iter() {
                bits.put(*place as usize, false);
            }
        }
        Pseudo::Has(selector) => {
            let mut having = Bits::none(world.len());
            for part in &selector.parts {
                match spans_having(part, scene) {
                    Some(found) => having.add(&found),
                    // Positions pick anew from each span, so that each is looked at.
                    None => bits
                        .ones()
                        .filter(|place| {
                            !select_part(part, &part.hops, &world.scene_at(*place)).is_empty()
                        })
                        .for_each(|place| having.set(place)),
                }
            }
            bits.keep(&having);
        }
    }
}

/// The spans from which a part finds something, backwards from what its last step matches; none with positions.
fn spans_having<'a>(part: &'a Part, scene: &Scene<'_, 'a>) -> Option<Bits> {
    let world = scene.world;
    if part.hops.iter().any(|hop| hop.step.position.is_some()) {
        return None;
    }
    let mut having = Bits::all(world.len());
    for hop in part.hops.iter().rev() {
        having.keep(&matches(&hop.step, scene).bits);
        having = reach_back(&having, hop.combinator, world);
    }
    Some(having)
}

impl Matches {
    pub(super) fn count_in(&self, range: std::ops::Range<usize>) -> usize {
        self.ranks.get_or_init(|| self.bits.ranks()).count_in(&self.bits, range)
    }
}

impl Links {
    /// Links of the trace into itself. A link to an id that two spans bear is one to the first.
    pub(crate) fn of(world: &World<'_>) -> Self {
        let (trace, tree) = (world.trace, &world.tree);
        let place = |span: model::trace::SpanIx, tree: &Tree| tree.place(span) as u32;
        let mut pairs: Vec<_> = trace
            .spans()
            .flat_map(|span| span.links().map(move |link| (span, link)))
            .filter(|(_, link)| link.trace_id().is_none_or(|id| id == trace.id()))
            .filter_map(|(span, link)| Some((trace.find(link.span_id()?)?, span)))
            .map(|(to, from)| (place(to.ix(), tree), place(from.ix(), tree)))
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        Self { pairs }
    }

    /// The spans that link to one, in document order.
    pub(crate) fn to(&self, place: u32) -> impl Iterator<Item = u32> {
        let start = self.pairs.partition_point(|(to, _)| *to < place);
        self.pairs[start..].iter().take_while(move |(to, _)| *to == place).map(|(_, from)| *from)
    }

    /// Pairs of a span and one that links to it.
    pub(super) fn pairs(&self) -> &[(u32, u32)] {
        &self.pairs
    }
}

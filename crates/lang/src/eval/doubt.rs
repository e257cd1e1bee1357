//! Determines which spans a selector certainly selects, and which it possibly selects.
//!
//! Whether a span matches is open if a condition is open for it: an attribute may be among the dropped ones, or the
//! duration was never reported. It is also open if the selector depends on the order of siblings and the clocks of
//! their hosts do not determine it (`siblings.rs`), or if a link may be among the dropped ones. Conditions, combinators
//! and `:has` only add spans when their input grows, `:not` removes them: so the selection lies between two sets. The
//! span that a position (such as `:first`) picks from an uncertain set is uncertain too.

use std::{collections::HashSet, rc::Rc};

use super::{
    bits::Bits,
    hop::{reach, reach_back},
    select::{count, is_anchored, is_any, is_own, match_condition, narrow, select},
    siblings::Way,
    world::{EvalContext, EvalScope},
};
use crate::{
    budget,
    syntax::{
        ast::{Anchor, Combinator, CompoundSelector, Hop, Part, Pseudo, Selector},
        print,
    },
    value::shorten,
};

/// The positions of the spans that are certainly selected, and whether there may be more.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) sure: Rc<Vec<u32>>,
    pub(crate) doubt: Option<Rc<SelectionDoubt>>,
}

/// Why it is uncertain which spans a selector selects.
#[derive(Clone, Debug)]
pub(crate) struct SelectionDoubt {
    /// The maximum number of selected spans.
    pub(crate) possible: usize,
    pub(crate) reason: String,
}

/// Positions that are certainly reached, and all that are possibly reached; both sorted.
struct Bounds {
    sure: Vec<u32>,
    possible: Vec<u32>,
}

/// Returns the spans that a selector selects.
pub(crate) fn selection<'a>(selector: &'a Selector, scene: &EvalScope<'_, 'a>) -> Selection {
    let places = select(selector, scene);
    let Some(reason) = reason(selector, scene.world) else {
        return Selection { sure: places, doubt: None };
    };
    let make = || bounded(selector, &reason, scene);
    match is_anchored(selector) {
        true => (*scene.world.bounds(selector, make)).clone(),
        false => make(),
    }
}

/// Returns the number of spans that are certainly selected, and whether there may be more. Often needs no visit of each.
pub(crate) fn count_sure<'a>(
    selector: &'a Selector,
    scene: &EvalScope<'_, 'a>,
) -> (usize, Option<Rc<SelectionDoubt>>) {
    let count = count(selector, scene);
    if reason(selector, scene.world).is_none() {
        return (count, None);
    }
    let Selection { sure, doubt } = selection(selector, scene);
    (sure.len(), doubt)
}

/// Returns whether a selector selects any span. The error states why that is unknown.
pub(crate) fn is_any_sure<'a>(
    selector: &'a Selector,
    scene: &EvalScope<'_, 'a>,
) -> Result<bool, String> {
    let is_any = is_any(selector, scene);
    let Some(reason) = reason(selector, scene.world) else { return Ok(is_any) };
    // A selector that starts at the current span is evaluated for all spans at once.
    let is_from_here = |part: &Part| part.anchor == Anchor::This && is_plain(part, scene.world);
    if let Some(place) = scene.place()
        && selector.parts.iter().all(is_from_here)
        && selector.parts.iter().flat_map(|part| &part.hops).all(|hop| is_own(&hop.step))
    {
        let both = scene.world.having_bounds(selector, || having(selector, scene));
        return match [both[0].has(place), both[1].has(place)] {
            [false, true] => Err(words(selector, &reason)),
            [is_sure, _] => Ok(is_sure),
        };
    }
    match selection(selector, scene) {
        Selection { sure, doubt: Some(doubt) } if sure.is_empty() => Err(doubt.reason.clone()),
        Selection { sure, .. } => Ok(!sure.is_empty()),
    }
}

fn bounded<'a>(selector: &'a Selector, reason: &str, scene: &EvalScope<'_, 'a>) -> Selection {
    let (sure, possible) = match selector.parts.as_slice() {
        [part] => {
            let Bounds { sure, possible } = walk(part, scene);
            (sure, possible.len())
        }
        parts => {
            let (mut sure, mut seen, mut possible) = (Vec::new(), HashSet::new(), HashSet::new());
            for bounds in parts.iter().map(|part| walk(part, scene)) {
                possible.extend(bounds.possible);
                sure.extend(bounds.sure.into_iter().filter(|place| seen.insert(*place)));
            }
            (sure, possible.len())
        }
    };
    let doubt = (possible > sure.len()).then(|| {
        let reason = words(selector, reason);
        Rc::new(SelectionDoubt { possible, reason })
    });
    Selection { sure: Rc::new(sure), doubt }
}

fn words(selector: &Selector, reason: &str) -> String {
    let written = print::selector(selector);
    format!("it is not known which spans match `{}`: {reason}", shorten(&written))
}

/// Returns why it may be uncertain which spans match a selector that was evaluated.
fn reason(selector: &Selector, world: &EvalContext<'_>) -> Option<String> {
    let hops = || selector.parts.iter().flat_map(|part| &part.hops);
    let of_condition = |hop: &Hop| {
        let condition = hop.step.condition.as_ref()?;
        world.condition_doubt(condition).map(|doubt| doubt.reason.clone())
    };
    let of_pseudo = |hop: &Hop| {
        hop.step.pseudos.iter().find_map(|pseudo| match pseudo {
            Pseudo::Has(inner) | Pseudo::Not(inner) => reason(inner, world),
            Pseudo::Root | Pseudo::Leaf | Pseudo::Orphan => None,
        })
    };
    let of_order = |hop: &Hop| {
        let is_ordered = matches!(hop.combinator, Combinator::Adjacent | Combinator::Sibling)
            || hop.step.position.is_some();
        is_ordered.then(|| world.siblings().reason().map(str::to_owned)).flatten()
    };
    let of_link = |hop: &Hop| match hop.combinator {
        Combinator::Linked => world.dropped_links().map(|(_, reason)| reason.clone()),
        _ => None,
    };
    hops()
        .find_map(of_condition)
        .or_else(|| hops().find_map(of_pseudo))
        .or_else(|| hops().find_map(of_order))
        .or_else(|| hops().find_map(of_link))
}

fn walk<'a>(part: &'a Part, scene: &EvalScope<'_, 'a>) -> Bounds {
    let mut at = match part.anchor {
        Anchor::Trace => None,
        Anchor::This => {
            let own: Vec<_> = scene.place().map(|place| place as u32).into_iter().collect();
            Some(Bounds { sure: own.clone(), possible: own })
        }
    };
    for Hop { combinator, step } in &part.hops {
        let both = matched(step, scene);
        let reached = hop(at.as_ref(), (*combinator, step), [&both[0], &both[1]], scene.world);
        budget::spend(8 + 4 * (reached.sure.len() + reached.possible.len()) as u64);
        at = Some(reached);
    }
    at.unwrap_or(Bounds { sure: Vec::new(), possible: Vec::new() })
}

/// Follows one hop from the spans that were reached so far.
fn hop(
    from: Option<&Bounds>,
    (combinator, step): (Combinator, &CompoundSelector),
    [sure, possible]: [&Bits; 2],
    world: &EvalContext<'_>,
) -> Bounds {
    let places = |bits: &Bits| bits.ones().map(|place| place as u32).collect::<Vec<_>>();
    let all = match from {
        None => Bounds { sure: places(sure), possible: places(possible) },
        Some(from) => Bounds {
            sure: reach_surely(&from.sure, combinator, sure, world),
            possible: reach_possibly(&from.possible, combinator, possible, world),
        },
    };
    let Some(position) = step.position else { return all };
    // A position picks by the order of the tree, which is not that of an uncertain family, even if its order is known.
    let is_in_order = |from: &[u32]| world.siblings().split(from, combinator).0.is_empty();
    let is_known = all.sure == all.possible
        && from.is_none_or(|from| from.sure == from.possible && is_in_order(&from.sure))
        && world.siblings().is_order_sure(&all.possible, world);
    if !is_known {
        return Bounds { sure: Vec::new(), ..all };
    }
    let picked = match from {
        None => super::select::pick(&all.sure, position).into_iter().collect(),
        Some(from) => reach(&from.sure, combinator, sure, Some(position), world),
    };
    Bounds { sure: picked.clone(), possible: picked }
}

fn reach_surely(
    from: &[u32],
    combinator: Combinator,
    found: &Bits,
    world: &EvalContext<'_>,
) -> Vec<u32> {
    let (ordered, rest) = world.siblings().split(from, combinator);
    let mut reached = reach(&rest, combinator, found, None, world);
    let way = Way { is_next: combinator == Combinator::Adjacent, is_sure: true };
    let siblings = world.siblings().reach(&ordered, way, world);
    reached.extend(siblings.into_iter().filter(|place| found.has(*place as usize)));
    sorted(reached)
}

fn reach_possibly(
    from: &[u32],
    combinator: Combinator,
    found: &Bits,
    world: &EvalContext<'_>,
) -> Vec<u32> {
    let (ordered, rest) = world.siblings().split(from, combinator);
    let mut reached = reach(&rest, combinator, found, None, world);
    let way = Way { is_next: combinator == Combinator::Adjacent, is_sure: false };
    let siblings = world.siblings().reach(&ordered, way, world);
    reached.extend(siblings.into_iter().filter(|place| found.has(*place as usize)));
    if combinator == Combinator::Linked
        && !from.is_empty()
        && let Some((dropped, _)) = world.dropped_links()
    {
        budget::spend(world.len() as u64 / 16);
        let mut dropped = dropped.clone();
        dropped.keep(found);
        reached.extend(dropped.ones().map(|place| place as u32));
    }
    sorted(reached)
}

fn sorted(mut places: Vec<u32>) -> Vec<u32> {
    places.sort_unstable();
    places.dedup();
    places
}

/// Returns the spans that certainly match a step, and those that possibly match. Memoizes steps independent of the scope.
fn matched<'a>(step: &'a CompoundSelector, scene: &EvalScope<'_, 'a>) -> Rc<[Bits; 2]> {
    let make = || match_step(step, scene);
    if is_own(step) { scene.world.step_bounds(step, make) } else { Rc::new(make()) }
}

fn match_step<'a>(step: &'a CompoundSelector, scene: &EvalScope<'_, 'a>) -> [Bits; 2] {
    let world = scene.world;
    budget::spend(world.len() as u64 / 2);
    let sure = match_condition(step, world);
    let mut possible = sure.clone();
    let doubt = step.condition.as_ref().and_then(|condition| world.condition_doubt(condition));
    if let Some(doubt) = doubt {
        possible.add(&doubt.places);
    }
    let mut both = [sure, possible];
    for pseudo in &step.pseudos {
        match pseudo {
            Pseudo::Not(selector) if reason(selector, world).is_some() => {
                let (sure, possible) = of_selector(selector, scene);
                both[0].remove(&possible);
                both[1].remove(&sure);
            }
            Pseudo::Has(selector) if reason(selector, world).is_some() => {
                let [sure, possible] = having(selector, scene);
                both[0].keep(&sure);
                both[1].keep(&possible);
            }
            pseudo => both.iter_mut().for_each(|bits| narrow(bits, pseudo, scene)),
        }
    }
    both
}

/// Returns all spans that a selector certainly selects, and all that it possibly selects.
fn of_selector<'a>(selector: &'a Selector, scene: &EvalScope<'_, 'a>) -> (Bits, Bits) {
    let len = scene.world.len();
    let (mut sure, mut possible) = (Bits::none(len), Bits::none(len));
    for part in &selector.parts {
        let bounds = walk(part, scene);
        bounds.sure.iter().for_each(|place| sure.set(*place as usize));
        bounds.possible.iter().for_each(|place| possible.set(*place as usize));
    }
    (sure, possible)
}

/// Whether no hop of a part depends on an uncertain order or on uncertain links.
fn is_plain(part: &Part, world: &EvalContext<'_>) -> bool {
    part.hops.iter().all(|hop| {
        let is_ordered = matches!(hop.combinator, Combinator::Adjacent | Combinator::Sibling)
            && world.siblings().reason().is_some();
        hop.step.position.is_none() && !is_ordered && hop.combinator != Combinator::Linked
    })
}

/// Returns the spans from which a selector certainly finds a span, and those from which it possibly does.
fn having<'a>(selector: &'a Selector, scene: &EvalScope<'_, 'a>) -> [Bits; 2] {
    let world = scene.world;
    let mut both = [Bits::none(world.len()), Bits::none(world.len())];
    for part in &selector.parts {
        if !is_plain(part, world) {
            // This is rare: every span counts as one from which it possibly finds a span.
            both[1] = Bits::all(world.len());
            continue;
        }
        let mut reached = [Bits::all(world.len()), Bits::all(world.len())];
        for Hop { combinator, step } in part.hops.iter().rev() {
            budget::spend(4 * world.len() as u64);
            let matched = matched(step, scene);
            for (reached, matched) in reached.iter_mut().zip(&*matched) {
                reached.keep(matched);
                *reached = reach_back(reached, *combinator, world);
            }
        }
        both.iter_mut().zip(&reached).for_each(|(all, one)| all.add(one));
    }
    both
}

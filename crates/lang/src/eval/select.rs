//! Evaluates which spans a selector selects.
//!
//! The matches of a step (its condition and pseudo-classes) are computed once, as a set over all positions of the tree.
//! A part then goes from hop to hop with the spans reached so far, sorted. A position picks from the matches of its own
//! step, separately for each span of the step before. Matches are ordered part by part, each in document order: depth
//! first, siblings by start (`tree`); no span occurs twice.
//!
//! The trigger causes everything in a trace, so the trigger span counts as an ancestor of every other span, also of
//! spans with an absent parent.

use std::{cell::OnceCell, collections::HashSet, rc::Rc};

use model::trace::Tree;

use super::{
    bits::{Bits, Ranks},
    future::Truth,
    hop::{NOWHERE, counts_above, picks, reach, reach_back},
    index::{Extent, extent},
    truth::truth,
    world::{ConditionDoubt, EvalContext, EvalScope},
};
use crate::{
    budget,
    syntax::ast::{
        Anchor, Combinator, CompoundSelector, Expr, Hop, Part, Position, Pseudo, Selector,
    },
};

/// The spans that match one step, on any path to it.
#[derive(Debug)]
pub(crate) struct Matches {
    pub(crate) bits: Bits,
    ranks: OnceCell<Ranks>,
    /// By position: the number of ancestors that match.
    above: OnceCell<Vec<u32>>,
}

/// The links between spans, as sorted pairs of the position of a span and the position of one that links to it.
#[derive(Debug)]
pub(crate) struct Links {
    pairs: Vec<(u32, u32)>,
}

/// Returns the positions of the selected spans.
pub(crate) fn select<'a>(selector: &'a Selector, scene: &EvalScope<'_, 'a>) -> Rc<Vec<u32>> {
    let world = scene.world;
    if is_anchored(selector) {
        return world.selection(selector, || union(selector, scene));
    }
    Rc::new(union(selector, scene))
}

/// Returns the number of selected spans. Descendants and ancestors of one span are counted without visiting each.
pub(crate) fn count<'a>(selector: &'a Selector, scene: &EvalScope<'_, 'a>) -> usize {
    if let ([Part { anchor: Anchor::This, hops }], Some(place)) =
        (selector.parts.as_slice(), scene.place())
        && let [Hop { combinator, step }] = hops.as_slice()
        && step.position.is_none()
    {
        match combinator {
            Combinator::Descendant if scene.world.trigger() != Some(place) => {
                let matches = matches(step, scene);
                return matches.count_in(place + 1..scene.world.tree.end_at(place));
            }
            Combinator::Ancestor => return matches(step, scene).above(scene.world)[place] as usize,
            _ => {}
        }
    }
    select(selector, scene).len()
}

/// Whether any span is selected. A selector that starts at the current span is evaluated for all spans at once.
pub(crate) fn is_any<'a>(selector: &'a Selector, scene: &EvalScope<'_, 'a>) -> bool {
    let is_from_here = |part: &Part| {
        let is_plain = |hop: &Hop| hop.step.position.is_none() && is_own(&hop.step);
        part.anchor == Anchor::This && part.hops.iter().all(is_plain)
    };
    match scene.place() {
        Some(place) if selector.parts.iter().all(is_from_here) && !selector.parts.is_empty() => {
            let having = || {
                budget::spend(scene.world.len() as u64);
                let mut having = Bits::none(scene.world.len());
                let parts = selector.parts.iter().filter_map(|part| spans_having(part, scene));
                parts.for_each(|found| having.add(&found));
                having
            };
            scene.world.having(selector, having).has(place)
        }
        _ => !select(selector, scene).is_empty(),
    }
}

/// Whether the selection does not depend on the current span.
pub(crate) fn is_anchored(selector: &Selector) -> bool {
    let hops = || selector.parts.iter().flat_map(|part| &part.hops);
    selector.parts.iter().all(|part| part.anchor == Anchor::Trace)
        && hops().all(|hop| is_own(&hop.step))
}

/// Whether the matches of a step do not depend on the current span: `self` inside `:not(…)` is that span.
pub(super) fn is_own(step: &CompoundSelector) -> bool {
    step.pseudos.iter().all(|pseudo| match pseudo {
        Pseudo::Root | Pseudo::Leaf | Pseudo::Orphan => true,
        Pseudo::Not(selector) => is_anchored(selector),
        Pseudo::Has(selector) => {
            selector.parts.iter().flat_map(|part| &part.hops).all(|hop| is_own(&hop.step))
        }
    })
}

fn union<'a>(selector: &'a Selector, scene: &EvalScope<'_, 'a>) -> Vec<u32> {
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

/// Returns the positions that the first hops of a part lead to, in document order.
pub(super) fn select_part<'a>(
    part: &'a Part,
    hops: &'a [Hop],
    scene: &EvalScope<'_, 'a>,
) -> Vec<u32> {
    walk(part, hops, scene, |_, step| step.position)
}

/// Like [`select_part`], with the positions that `position` returns.
pub(super) fn walk<'a>(
    part: &'a Part,
    hops: &'a [Hop],
    scene: &EvalScope<'_, 'a>,
    position: impl Fn(usize, &CompoundSelector) -> Option<Position>,
) -> Vec<u32> {
    let world = scene.world;
    if !budget::spend(16) {
        return Vec::new();
    }
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
            // From the current span, the picks are computed for all spans at once.
            Some(from) if part.anchor == Anchor::This && may_pick_at_once(step, position) => {
                let make = |position| {
                    budget::spend(16 * world.len() as u64);
                    picks(*combinator, &matches.bits, position, world)
                };
                let picks = position.map(|position| world.picks(step, || make(position)));
                let picks = picks.unwrap_or_default();
                let mut places: Vec<_> = from.iter().map(|place| picks[*place as usize]).collect();
                places.sort_unstable();
                places.dedup();
                places.retain(|place| *place != NOWHERE);
                places
            }
            Some(from) => reach(&from, *combinator, &matches.bits, position, world),
            None => {
                let found = matches.bits.ones().map(|place| place as u32).collect();
                match position {
                    None => found,
                    Some(position) => pick(&found, position).into_iter().collect(),
                }
            }
        });
        budget::spend(8 + 4 * at.as_ref().map_or(0, Vec::len) as u64);
    }
    at.unwrap_or_default()
}

/// Whether the picks of a step do not depend on the scope, and the step has an id to memoize them by.
fn may_pick_at_once(step: &CompoundSelector, position: Option<Position>) -> bool {
    position.is_some() && position == step.position && is_own(step) && step.at.id().is_some()
}

pub(super) fn pick(found: &[u32], position: Position) -> Option<u32> {
    pick_index(found.len(), position).map(|index| found[index])
}

/// Returns the index that a position picks from this number of spans.
pub(super) fn pick_index(len: usize, position: Position) -> Option<usize> {
    let index = match position {
        Position::First => 0,
        Position::Last => len.checked_sub(1)?,
        Position::Nth(count) => usize::try_from(count.checked_sub(1)?).ok()?,
    };
    (index < len).then_some(index)
}

/// Returns the spans that match a step.
pub(super) fn matches<'a>(step: &'a CompoundSelector, scene: &EvalScope<'_, 'a>) -> Rc<Matches> {
    let spans = scene.world.len() as u64;
    let make = || Matches {
        bits: match_step(step, scene),
        ranks: OnceCell::new(),
        above: OnceCell::new(),
    };
    let make = || {
        budget::spend(spans / 4);
        make()
    };
    if is_own(step) { scene.world.step(step, make) } else { Rc::new(make()) }
}

/// Returns the spans for which the condition of a step holds.
pub(super) fn match_condition<'a>(step: &'a CompoundSelector, world: &EvalContext<'a>) -> Bits {
    let all = Bits::all(world.len());
    match &step.condition {
        Some(condition) => world.places_of(&match_numbers(condition, &all, world)),
        None => all,
    }
}

/// Returns the numbers of the spans for which a condition holds.
pub(super) fn match_numbers<'a>(condition: &'a Expr, all: &Bits, world: &EvalContext<'a>) -> Bits {
    let Extent { yes: mut bits, mut open, .. } = extent(condition, all, &world.scene());
    if let Some(trigger) = world.trigger() {
        let scene = EvalScope { is_selecting: true, ..world.scene_at(trigger) };
        let number = world.tree.order()[trigger].number();
        let found = truth(condition, &scene);
        open.put(number, found.truth == Truth::Open);
        bits.put(number, found.is_true());
    }
    if let Some(first) = open.ones().next() {
        let span = world.trace.numbered_span(first);
        let (scene, is_selecting) = (world.scene_of(span), world.is_trigger(span.ix()));
        let reason =
            truth(condition, &EvalScope { is_selecting, ..scene }).reason.unwrap_or_default();
        world.doubt(condition, ConditionDoubt { places: world.places_of(&open), reason });
    }
    bits
}

fn match_step<'a>(step: &'a CompoundSelector, scene: &EvalScope<'_, 'a>) -> Bits {
    let mut bits = match_condition(step, scene.world);
    for pseudo in &step.pseudos {
        narrow(&mut bits, pseudo, scene);
    }
    bits
}

/// Keeps the spans for which a pseudo-class holds.
pub(super) fn narrow<'a>(bits: &mut Bits, pseudo: &'a Pseudo, scene: &EvalScope<'_, 'a>) {
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
                    // Positions pick separately from each span, so that each is evaluated.
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

/// Returns the spans from which a part finds a span, backwards from the last step; `None` if it has positions.
fn spans_having<'a>(part: &'a Part, scene: &EvalScope<'_, 'a>) -> Option<Bits> {
    let world = scene.world;
    if part.hops.iter().any(|hop| hop.step.position.is_some()) {
        return None;
    }
    let mut having = Bits::all(world.len());
    for hop in part.hops.iter().rev() {
        budget::spend(2 * world.len() as u64);
        having.keep(&matches(&hop.step, scene).bits);
        having = reach_back(&having, hop.combinator, world);
    }
    Some(having)
}

impl Matches {
    pub(super) fn count_in(&self, range: std::ops::Range<usize>) -> usize {
        self.ranks.get_or_init(|| self.bits.ranks()).count_in(&self.bits, range)
    }

    fn above(&self, world: &EvalContext<'_>) -> &[u32] {
        self.above.get_or_init(|| {
            budget::spend(8 * world.len() as u64);
            world.hold(4 * world.len() as u64);
            counts_above(&self.bits, world)
        })
    }
}

impl Links {
    /// Collects the links within the trace. A link to an id that two spans have leads to the first.
    pub(crate) fn of(world: &EvalContext<'_>) -> Self {
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

    /// Returns the spans that link to one, in document order.
    pub(crate) fn to(&self, place: u32) -> impl Iterator<Item = u32> {
        let start = self.pairs.partition_point(|(to, _)| *to < place);
        self.pairs[start..].iter().take_while(move |(to, _)| *to == place).map(|(_, from)| *from)
    }

    /// Returns pairs of a span and one that links to it.
    pub(super) fn pairs(&self) -> &[(u32, u32)] {
        &self.pairs
    }
}

#[cfg(test)]
mod tests {
    use model::{
        SpanId, Timestamp, Trace, TraceId,
        trace::{ResourceData, ScopeData, SpanData},
    };
    use proptest::{
        collection::vec,
        option,
        prelude::{ProptestConfig, any, prop_assert_eq, proptest},
    };

    use super::{count, is_any, select};
    use crate::{
        eval::world::{EvalContext, TRIGGER_NAMES},
        syntax::{
            ast::{Expr, ExprKind, Selector},
            number::Numbers,
            parse,
        },
    };

    /// The number of the parent, which may be absent, and whether the span matches.
    type Drawn = (Option<usize>, bool);

    fn trace(spans: &[Drawn], has_trigger: bool) -> Trace {
        let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
        let resource = trace.resource(ResourceData::default()).expect("room");
        let scope = trace.scope(ScopeData::default()).expect("room");
        let id = |number: usize| {
            SpanId::from_bytes((number as u64 + 1).to_be_bytes()).expect("numbers start at 1")
        };
        for (number, (parent, is_found)) in spans.iter().enumerate() {
            let mut span =
                SpanData::new(id(number), parent.map(id), if *is_found { "a" } else { "b" });
            span.start = Timestamp::from_nanos((number as u64 * 7) % 5);
            trace.push(resource, scope, span).expect("room");
        }
        if has_trigger {
            let span = SpanData::new(id(spans.len()), None, TRIGGER_NAMES[0]);
            trace.push(resource, scope, span).expect("room");
        }
        trace
    }

    /// Returns the selector that the claim evaluates for each span.
    fn of_each(claim: &Expr) -> &Selector {
        let ExprKind::Quantified { predicate: Some(predicate), .. } = &claim.kind else {
            unreachable!("a claim about every span")
        };
        let ExprKind::Compare { left, .. } = &predicate.kind else { unreachable!("a comparison") };
        let ExprKind::Aggregate(aggregate) = &left.kind else { unreachable!("a count") };
        &aggregate.of
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

        /// The evaluation of all spans at once returns the same results as that of each span by itself: a tree without
        /// node ids is evaluated again for each span.
        #[test]
        fn all_at_once_is_each_alone(
            spans in vec((option::of(0usize..14), any::<bool>()), 1..12),
            has_trigger in any::<bool>(),
        ) {
            let trace = trace(&spans, has_trigger);
            for combinator in [">>", ">", "+", "~", "<", "<<", "=>"] {
                for position in ["", ":first", ":last", ":nth_child(2)"] {
                    for found in ["span[name=\"a\"]", "span[]"] {
                        let claim = format!("every span[] has count(self {combinator} {found}{position}) = 0");
                        let alone = parse::claim(&claim).tree.expect("a claim");
                        let mut numbered = alone.clone();
                        Numbers::default().expression(&mut numbered);
                        let (alone, numbered) = (of_each(&alone), of_each(&numbered));
                        let mut world = EvalContext::new(&trace, None, None);
                        world.prepare(&[], &[numbered]);
                        for place in 0..world.len() {
                            let scene = world.scene_at(place);
                            let expected = select(alone, &scene);
                            prop_assert_eq!(&select(numbered, &scene), &expected, "{} from {}", claim, place);
                            prop_assert_eq!(count(numbered, &scene), expected.len(), "{} from {}", claim, place);
                            prop_assert_eq!(is_any(numbered, &scene), !expected.is_empty(), "{} from {}", claim, place);
                        }
                    }
                }
            }
        }
    }
}

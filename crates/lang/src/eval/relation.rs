//! Evaluates relations of two selections: `before`, `after`, `inside`, `overlaps`, `calls`, and the gap between two spans.
//!
//! Spans of one host are compared as they are. Between hosts a relation is true if it holds for every possible offset
//! of their clocks (`clocks.rs`), false if it holds for none, and open otherwise. `every` and `some` of the right side
//! are decided from the extremes of each host, never from all pairs: for a left span, the best or worst right span of a
//! host is determined by one of its ends. Only `some … inside` and `some … overlaps` search the spans, in an order that
//! allows a binary search. A pair is two spans: a span in both selections is not compared with itself, so the second of
//! each extreme is stored as well.

use std::rc::Rc;

use super::{
    doubt::{Selection, selection},
    drop_count::DropCount,
    extreme::{HostSpans, Side, every, groups, host_at, some, times},
    future::{Evaluation, Future, Truth},
    lasting::is_lasting,
    select::{Links, is_anchored},
    span_time::time_lack,
    truth::{QuantifiedEvaluation, expect_spans, quantify},
    world::{EvalContext, EvalScope, TOO_MANY_LOOKS},
};
use crate::{
    budget,
    syntax::ast::{Quantifier, Relation, Subject},
    value::shorten,
};

/// The result of a relation, and the pair that shows it.
#[derive(Clone, Debug)]
pub(crate) struct RelationResult {
    pub(crate) found: Evaluation,
    pub(crate) pair: Option<(u32, u32)>,
}

/// The maximum number of comparisons of one span with one host.
const QUESTIONS_MAX: usize = 16_000_000;

/// The budget steps of such a comparison.
const QUESTION_STEPS: u64 = 32;

/// Why a relation to the only right span is undefined if that is also the left span.
pub(crate) const SAME_SPAN: &str = "no other span is there to compare it with";

/// Returns whether a relation of two selections holds.
pub(crate) fn relate<'a>(
    left: &'a Subject,
    relation: Relation,
    right: &'a Subject,
    scene: &EvalScope<'_, 'a>,
) -> Rc<RelationResult> {
    let make = || compute(left, relation, right, scene);
    match is_anchored(&left.selector) && is_anchored(&right.selector) {
        true => scene.world.relation(left, make),
        false => Rc::new(make()),
    }
}

fn compute<'a>(
    left: &'a Subject,
    relation: Relation,
    right: &'a Subject,
    scene: &EvalScope<'_, 'a>,
) -> RelationResult {
    let open = |reason: String| RelationResult {
        found: Evaluation::open(reason, Future::ANY),
        pair: None,
    };
    let sides = [left, right]
        .map(|subject| (selection(&subject.selector, scene), is_lasting(&subject.selector)));
    let looks = sides.iter().map(|(selection, _)| selection.sure.len()).sum();
    budget::spend(QUESTION_STEPS * looks as u64);
    if scene.span.is_some() && !scene.world.may_look(looks) {
        return open(TOO_MANY_LOOKS.to_owned());
    }
    let mut lacking: Option<Evaluation> = None;
    for (subject, (Selection { sure, doubt }, is_lasting)) in [left, right].into_iter().zip(&sides)
    {
        let expected = match doubt {
            Some(doubt) if sure.is_empty() => Err(Evaluation::open(&*doubt.reason, Future::ANY)),
            _ => expect_spans(subject.quantifier, sure.len(), *is_lasting, &subject.selector),
        };
        if let Err(found) = expected {
            // A permanent lack makes the result undefined, whatever the other side becomes.
            let is_for_good = found.future.is_only(Truth::Undefined);
            lacking = lacking.filter(|_| !is_for_good).or(Some(found));
        }
    }
    if let Some(found) = lacking {
        return RelationResult { found, pair: None };
    }
    let [(lefts, is_left_lasting), (rights, is_right_lasting)] = sides;
    let reason = [&lefts, &rights].into_iter().find_map(|side| side.doubt.as_ref());
    let reason = reason.map(|doubt| doubt.reason.clone());
    let (lefts, rights) = (&lefts.sure, &rights.sure);
    let asked = RelationQuery {
        relation,
        world: scene.world,
        quantifiers: (left.quantifier, right.quantifier),
        are_lasting: (is_left_lasting, is_right_lasting),
        is_frozen: false,
    };
    let Some(related) = asked.relate(lefts, rights) else {
        return open("too many spans on too many hosts to compare".to_owned());
    };
    let Some(reason) = reason else { return related };
    // Spans that are possibly selected count as spans that may still arrive, while everything else stays the same.
    let frozen = RelationQuery { are_lasting: (true, true), is_frozen: true, ..asked };
    let possible = frozen.relate(lefts, rights).map_or(Future::ANY, |frozen| frozen.found.future);
    RelationResult { found: related.found.doubted(possible, &reason), ..related }
}

/// A relation to evaluate on two selections.
#[derive(Clone, Copy)]
struct RelationQuery<'w, 'a> {
    relation: Relation,
    world: &'w EvalContext<'a>,
    quantifiers: (Quantifier, Quantifier),
    are_lasting: (bool, bool),
    /// Whether clocks and times stay as they are.
    is_frozen: bool,
}

/// The result for one left span, and the right span that shows it.
struct RelationAnswer {
    found: Evaluation,
    witness: u32,
}

impl RelationQuery<'_, '_> {
    /// Evaluates the relation on these spans; returns `None` if there are too many.
    fn relate(&self, lefts: &[u32], rights: &[u32]) -> Option<RelationResult> {
        let Self { relation, world, quantifiers: (quantifier, _), .. } = *self;
        let answers: Box<dyn Fn(u32) -> RelationAnswer> = match relation {
            Relation::Calls => {
                let rights = Callees::of(rights, world);
                Box::new(move |place| self.calls(place, &rights))
            }
            _ => {
                let groups = groups(rights, relation, world);
                if lefts.len().saturating_mul(groups.len()) > QUESTIONS_MAX {
                    return None;
                }
                Box::new(move |place| self.times(place, &groups))
            }
        };
        let mut joined = QuantifiedEvaluation::nothing();
        // The first pair of each kind.
        let (mut held, mut broken, mut open) = (None, None, None);
        for place in lefts {
            let answered = answers(*place);
            let kind = match answered.found.truth {
                Truth::True => &mut held,
                Truth::Open => &mut open,
                Truth::False | Truth::Undefined | Truth::Unmet => &mut broken,
            };
            kind.get_or_insert((*place, answered.witness));
            joined.add(answered.found);
            let is_decided = match quantifier {
                Quantifier::Every | Quantifier::The => joined.every.future.is_only(Truth::False),
                Quantifier::Some | Quantifier::No => joined.some.future.is_only(Truth::True),
            };
            if is_decided || budget::is_over() {
                break;
            }
        }
        let mut found = quantify(quantifier, &joined, self.are_lasting.0);
        // A pair that breaks `every`, or that `no` forbids; otherwise one that holds.
        let pair = match quantifier {
            Quantifier::Every | Quantifier::The => broken.or(open).or(held),
            Quantifier::Some | Quantifier::No => held.or(open).or(broken),
        };
        if let (Truth::Open, Some((left, right))) = (found.truth, pair) {
            found.reason = Some(why_open(relation, [left, right], world));
        }
        Some(RelationResult { found, pair })
    }

    fn times(&self, place: u32, groups: &[HostSpans]) -> RelationAnswer {
        budget::spend(QUESTION_STEPS * (1 + groups.len()) as u64);
        let clocks = self.world.clocks();
        let (left, host) = (times(place, self.world), host_at(self.world, place));
        let mut joined = QuantifiedEvaluation::nothing();
        let mut witness = None;
        let is_timed = left.has(Side::Left, self.relation);
        for group in groups.iter().filter(|group| group.has_other(place)) {
            let is_one_clock = host == group.host && group.is_timed;
            let found = |truth: Truth| match truth {
                _ if self.is_frozen => Evaluation::fixed(truth),
                Truth::Open => Evaluation::new(truth, Future::ANY),
                // Further spans may show that the clocks contradict each other.
                _ if !is_one_clock => {
                    Evaluation::new(truth, Future::only(truth).with(Future::only(Truth::Open)))
                }
                _ => Evaluation::fixed(truth),
            };
            let is_every = matches!(self.quantifiers.1, Quantifier::Every | Quantifier::The);
            let offset = clocks.offset(host, group.host);
            let (truth, place) = match (is_timed && group.is_timed, is_every) {
                (false, _) => {
                    (Truth::Open, group.first_start(place).map_or(place, |one| one.place))
                }
                (true, true) => every(self.relation, left, group, offset),
                (true, false) => some(self.relation, left, group, offset),
            };
            let before = (joined.every.truth, joined.some.truth);
            joined.add(found(truth));
            if witness.is_none() || before != (joined.every.truth, joined.some.truth) {
                witness = Some(place);
            }
        }
        RelationAnswer {
            found: self.quantified(&joined, witness),
            witness: witness.unwrap_or(place),
        }
    }

    /// Returns the result over the right spans, without the left span. `every` of no span is undefined.
    fn quantified(&self, joined: &QuantifiedEvaluation, witness: Option<u32>) -> Evaluation {
        let is_every = matches!(self.quantifiers.1, Quantifier::Every | Quantifier::The);
        match witness {
            None if is_every => Evaluation::undefined(SAME_SPAN, Future::ANY),
            _ => quantify(self.quantifiers.1, joined, self.are_lasting.1),
        }
    }

    /// Whether one span calls another depends on these two alone, unless the other dropped links.
    fn calls(&self, left: u32, rights: &Callees) -> RelationAnswer {
        let called = called_by(left, self.world, self.world.links());
        budget::spend(QUESTION_STEPS * (1 + called.len()) as u64);
        // Finds the first one that the span does not call: the search skips at most the spans that it calls, and itself.
        let is_other = |place: &u32| *place != left && called.binary_search(place).is_err();
        let no = rights.sure.iter().copied().find(is_other);
        let open = rights.open.iter().copied().find(is_other);
        let yes = called.iter().copied().find(|place| *place != left && rights.has(*place));
        let mut joined = QuantifiedEvaluation::nothing();
        let firsts = [(yes, Truth::True), (open, Truth::Open), (no, Truth::False)];
        for (_, truth) in firsts.into_iter().filter(|(first, _)| first.is_some()) {
            joined.add(Evaluation::fixed(truth));
        }
        let witness = match self.quantifiers.1 {
            Quantifier::Every | Quantifier::The => no.or(open).or(yes),
            Quantifier::Some | Quantifier::No => yes.or(open).or(no),
        };
        RelationAnswer {
            found: self.quantified(&joined, witness),
            witness: witness.unwrap_or(left),
        }
    }
}

/// The spans on the right of `calls`, sorted.
struct Callees {
    sure: Vec<u32>,
    /// Spans that dropped links: a span that does not visibly call them may still do so.
    open: Vec<u32>,
}

impl Callees {
    fn of(rights: &[u32], world: &EvalContext<'_>) -> Self {
        let dropped = world.dropped_links();
        let is_open = |place: &u32| dropped.is_some_and(|(places, _)| places.has(*place as usize));
        let (open, sure) = sorted(rights).into_iter().partition(is_open);
        Self { sure, open }
    }

    fn has(&self, place: u32) -> bool {
        [&self.sure, &self.open].into_iter().any(|places| places.binary_search(&place).is_ok())
    }
}

/// Describes why the relation of two spans is open.
pub(super) fn why_open(relation: Relation, places: [u32; 2], world: &EvalContext<'_>) -> String {
    let spans = places.map(|place| world.span_at(place as usize));
    if relation == Relation::Calls {
        return DropCount::links(spans[1]).map_or_else(String::new, |dropped| dropped.by(spans[1]));
    }
    for (side, place) in [Side::Left, Side::Right].into_iter().zip(places) {
        let span = world.span_at(place as usize);
        if let (false, Some(lack)) = (times(place, world).has(side, relation), time_lack(span)) {
            return format!("`{}` ({}) {}", shorten(span.name()), span.id(), lack.words());
        }
    }
    let [host, other] = places.map(|place| host_at(world, place));
    world.clocks().doubt(host, other)
}

/// Returns the spans directly below a span, and those that link to it; sorted.
fn called_by(place: u32, world: &EvalContext<'_>, links: &Links) -> Vec<u32> {
    let children = world.tree.children_at(place as usize).map(|child| child as u32);
    let mut called: Vec<_> = children.chain(links.to(place)).collect();
    called.sort_unstable();
    called.dedup();
    called
}

fn sorted(places: &[u32]) -> Vec<u32> {
    let mut places = places.to_vec();
    places.sort_unstable();
    places
}

//! How two selections stand to each other: `before`, `after`, `inside`, `overlaps`, `calls`, and the gap between two spans.
//!
//! Spans of one host are compared as they are. Between hosts a relation is true if it holds for every offset that their
//! clocks may have (`clocks.rs`), false if for none, and open otherwise. `every` and `some` of the right side are decided
//! from the extremes of each host, never from all pairs: for the span on the left, the right spans of one host are best
//! or worst by one of their ends. Only `some … inside` and `some … overlaps` search them, in an order that makes it a binary
//! search.

use std::rc::Rc;

use super::{
    clocks::Offset,
    expression::{Lack, Trend, Valued, Values},
    future::{Found, Future, Truth},
    lasting::is_lasting,
    select::{Links, doubt, is_anchored, select},
    summary::Missing,
    truth::{Joined, expect_spans, quantify},
    world::{Scene, TOO_MANY_LOOKS, World},
};
use crate::{
    syntax::ast::{Quantifier, Relation, Selector, Subject},
    value::Value,
};

/// What a relation came to, and the pair that shows it.
#[derive(Clone, Debug)]
pub(crate) struct Related {
    pub(crate) found: Found,
    pub(crate) pair: Option<(u32, u32)>,
}

/// The time from the end of one span to the start of another, within what their clocks allow.
#[derive(Clone, Debug)]
pub(crate) struct GapBounds {
    pub(crate) low: i128,
    pub(crate) high: i128,
    /// Whether both stand on one host.
    pub(crate) is_exact: bool,
    is_bounded: bool,
    pub(crate) doubt: Option<String>,
    pub(crate) pair: (u32, u32),
}

/// How many questions of one span to one host are asked at the most.
const QUESTIONS_MAX: usize = 16_000_000;

/// How many spans of another host are searched for one that is long enough.
const SEARCHED_MAX: usize = 64;

/// A span's times.
#[derive(Clone, Copy, Debug)]
struct Times {
    place: u32,
    start: i128,
    end: i128,
}

/// The right spans of one host.
#[derive(Debug)]
struct Group {
    host: u32,
    /// By their starts.
    spans: Vec<Times>,
    /// Up to each of them: which one ends last.
    last_end: Vec<u32>,
    earliest_end: Times,
    shortest: Times,
}

/// Whether a relation of two selections holds.
pub(crate) fn relate<'a>(
    left: &'a Subject,
    relation: Relation,
    right: &'a Subject,
    scene: &Scene<'_, 'a>,
) -> Rc<Related> {
    let make = || compute(left, relation, right, scene);
    match is_anchored(&left.selector) && is_anchored(&right.selector) {
        true => scene.world.relation(left, make),
        false => Rc::new(make()),
    }
}

/// Why it cannot be known how two selections relate.
fn doubt_of(sides: [&Subject; 2], looks: usize, scene: &Scene<'_, '_>) -> Option<String> {
    let doubt = sides.into_iter().find_map(|side| doubt(&side.selector, scene.world));
    doubt.or_else(|| {
        let is_too_much = scene.span.is_some() && !scene.world.may_look(looks);
        is_too_much.then(|| TOO_MANY_LOOKS.to_owned())
    })
}

fn compute<'a>(
    left: &'a Subject,
    relation: Relation,
    right: &'a Subject,
    scene: &Scene<'_, 'a>,
) -> Related {
    let sides = [left, right].map(|subject| {
        let places = select(&subject.selector, scene);
        (places, is_lasting(&subject.selector))
    });
    let looks = sides.iter().map(|(places, _)| places.len()).sum();
    if let Some(doubt) = doubt_of([left, right], looks, scene) {
        return Related { found: Found::open(doubt, Future::ANY), pair: None };
    }
    let mut lacking: Option<Found> = None;
    for (subject, (places, is_lasting)) in [left, right].into_iter().zip(&sides) {
        let expected =
            expect_spans(subject.quantifier, places.len(), *is_lasting, &subject.selector);
        if let Err(found) = expected {
            // What lacks for good leaves it undefined, whatever becomes of the other side.
            let is_for_good = found.future.is_only(Truth::Undefined);
            lacking = lacking.filter(|_| !is_for_good).or(Some(found));
        }
    }
    if let Some(found) = lacking {
        return Related { found, pair: None };
    }
    let [(lefts, is_left_lasting), (rights, is_right_lasting)] = sides;
    let world = scene.world;
    // `after` is `before` from the other side; the quantifiers stay where they are.
    let asked =
        Asked { relation, world, quantifier: right.quantifier, is_lasting: is_right_lasting };
    let answers: Box<dyn Fn(u32) -> Answered> = match relation {
        Relation::Calls => {
            let rights = sorted(&rights);
            Box::new(move |place| asked.calls(place, &rights))
        }
        _ => {
            let groups = groups(&rights, world);
            if lefts.len().saturating_mul(groups.len()) > QUESTIONS_MAX {
                let reason = "too many spans on too many hosts to compare";
                return Related { found: Found::open(reason, Future::ANY), pair: None };
            }
            Box::new(move |place| asked.times(times(place, world), &groups))
        }
    };
    let mut joined = Joined::nothing();
    // The first pair of each kind.
    let (mut held, mut broken, mut open) = (None, None, None);
    for place in lefts.iter() {
        let answered = answers(*place);
        let kind = match answered.found.truth {
            Truth::True => &mut held,
            Truth::Open => &mut open,
            Truth::False | Truth::Undefined => &mut broken,
        };
        kind.get_or_insert((*place, answered.witness));
        joined.add(answered.found);
        let is_decided = match left.quantifier {
            Quantifier::Every | Quantifier::The => joined.every.future.is_only(Truth::False),
            Quantifier::Some | Quantifier::No => joined.some.future.is_only(Truth::True),
        };
        if is_decided {
            break;
        }
    }
    let mut found = quantify(left.quantifier, &joined, is_left_lasting);
    // A pair that breaks `every`, or that `no` must not have; otherwise one that holds.
    let pair = match left.quantifier {
        Quantifier::Every | Quantifier::The => broken.or(open).or(held),
        Quantifier::Some | Quantifier::No => held.or(open).or(broken),
    };
    if found.truth == Truth::Open
        && let Some((left, right)) = pair
    {
        let clocks = world.clocks();
        let [host, other] = [left, right].map(|place| host_at(world, place));
        found.reason = Some(clocks.doubt(host, other));
    }
    Related { found, pair }
}

/// What is asked of each span on the left.
#[derive(Clone, Copy)]
struct Asked<'w, 'a> {
    relation: Relation,
    world: &'w World<'a>,
    quantifier: Quantifier,
    is_lasting: bool,
}

/// What holds of one span on the left, and the span on the right that shows it.
struct Answered {
    found: Found,
    witness: u32,
}

impl Asked<'_, '_> {
    fn times(&self, left: Times, groups: &[Group]) -> Answered {
        let clocks = self.world.clocks();
        let host = host_at(self.world, left.place);
        let mut joined = Joined::nothing();
        let mut witness = None;
        for group in groups {
            let offset = clocks.offset(host, group.host);
            let found = |truth: Truth| match truth {
                Truth::Open => Found::new(truth, Future::ANY),
                // Further spans may show that the clocks contradict each other.
                _ if host != group.host => {
                    Found::new(truth, Future::only(truth).with(Future::only(Truth::Open)))
                }
                _ => Found::fixed(truth),
            };
            let is_every = matches!(self.quantifier, Quantifier::Every | Quantifier::The);
            let (truth, place) = match is_every {
                true => every(self.relation, left, group, offset),
                false => some(self.relation, left, group, offset),
            };
            let before = (joined.every.truth, joined.some.truth);
            joined.add(found(truth));
            if witness.is_none() || before != (joined.every.truth, joined.some.truth) {
                witness = Some(place);
            }
        }
        let found = quantify(self.quantifier, &joined, self.is_lasting);
        Answered { found, witness: witness.unwrap_or(left.place) }
    }

    /// Whether the one calls the other is seen on the two alone.
    fn calls(&self, left: u32, rights: &[u32]) -> Answered {
        let called = called_by(left, self.world, self.world.links());
        let is_right = |place: &u32| rights.binary_search(place).is_ok();
        let count = called.iter().copied().filter(is_right).count();
        let mut joined = Joined::nothing();
        let (is_every, is_some) = (count == rights.len(), count > 0);
        joined.every = Found::fixed(is_every.into());
        joined.some = Found::fixed(is_some.into());
        let first = called.iter().copied().find(is_right);
        let other = rights.iter().copied().find(|place| called.binary_search(place).is_err());
        let witness = match self.quantifier {
            Quantifier::Every | Quantifier::The => other.or(first),
            Quantifier::Some | Quantifier::No => first.or(other),
        };
        let found = quantify(self.quantifier, &joined, self.is_lasting);
        Answered { found, witness: witness.unwrap_or(left) }
    }
}

/// What stands directly below a span, or links to it; sorted.
fn called_by(place: u32, world: &World<'_>, links: &Links) -> Vec<u32> {
    let children = world.tree.children_at(place as usize).map(|child| child as u32);
    let mut called: Vec<_> = children.chain(links.to(place)).collect();
    called.sort_unstable();
    called.dedup();
    called
}

/// Whether a relation of two spans holds for all offsets, for none, or for some.
fn pair(relation: Relation, left: Times, right: Times, offset: Offset) -> Truth {
    let Offset { low, high } = offset;
    // Between which offsets of the right span's clock the relation holds.
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

/// Whether it holds with every span of a group, and one of those with which it does worst.
fn every(relation: Relation, left: Times, group: &Group, offset: Offset) -> (Truth, u32) {
    let Some(first) = group.spans.first() else { return (Truth::True, left.place) };
    let latest_start = group.spans.last().unwrap_or(first);
    let latest_end = group.last_ending();
    let worst: &[Times] = match relation {
        Relation::Before => &[*first],
        Relation::After => &[latest_end],
        Relation::Inside | Relation::Overlaps => {
            &[*latest_start, group.earliest_end, group.shortest]
        }
        Relation::Calls => &[],
    };
    let mut all = (Truth::True, first.place);
    for one in worst {
        let truth = pair(relation, left, *one, offset);
        if all.0.and(truth) != all.0 {
            all = (truth, one.place);
        }
    }
    all
}

/// Whether it holds with some span of a group, and one of those with which it does best.
fn some(relation: Relation, left: Times, group: &Group, offset: Offset) -> (Truth, u32) {
    let Some(first) = group.spans.first() else { return (Truth::False, left.place) };
    let latest_start = group.spans.last().unwrap_or(first);
    let best = match relation {
        Relation::Before => *latest_start,
        Relation::After => group.earliest_end,
        Relation::Inside | Relation::Overlaps => {
            return some_around(relation, left, group, offset);
        }
        Relation::Calls => *first,
    };
    (pair(relation, left, best, offset), best.place)
}

/// Of those that start early enough for the relation, the one that ends last does best.
fn some_around(relation: Relation, left: Times, group: &Group, offset: Offset) -> (Truth, u32) {
    let best = |shift: i128| {
        let early = match relation {
            Relation::Inside => left.start - shift,
            _ => left.end - shift - 1,
        };
        let count = group.spans.partition_point(|span| span.start <= early);
        let last = group.last_end[..count].last()?;
        Some(group.spans[*last as usize])
    };
    let judged = |span: Times| (pair(relation, left, span, offset), span.place);
    // First for the offset that makes it hardest, then for the one that makes it easiest.
    let hardest = best(offset.high).map(judged);
    if let Some(found @ (Truth::True, _)) = hardest {
        return found;
    }
    match best(offset.low).map(judged).or(hardest) {
        Some((Truth::True | Truth::Open, place)) => (Truth::Open, place),
        Some((_, place)) if is_possible(relation, left, group, offset) => (Truth::Open, place),
        Some(found) => found,
        None => (Truth::False, group.spans.first().map_or(left.place, |span| span.place)),
    }
}

/// Whether some span of a group may stand in the relation, although the one that ends last does not. On one host it has
/// said it for all; elsewhere a longer one may, and of many that is taken as possible.
fn is_possible(relation: Relation, left: Times, group: &Group, offset: Offset) -> bool {
    let is_possible = |span: &Times| pair(relation, left, *span, offset) != Truth::False;
    !offset.is_none() && (group.spans.len() > SEARCHED_MAX || group.spans.iter().any(is_possible))
}

impl Group {
    fn last_ending(&self) -> Times {
        let last = self.last_end.last().copied().unwrap_or_default();
        self.spans[last as usize]
    }
}

fn groups(places: &[u32], world: &World<'_>) -> Vec<Group> {
    let mut spans: Vec<_> =
        places.iter().map(|place| (host_at(world, *place), times(*place, world))).collect();
    spans.sort_by_key(|(host, span)| (*host, span.start, span.place));
    let group = |group: &[(u32, Times)]| {
        let host = group[0].0;
        let spans: Vec<_> = group.iter().map(|(_, span)| *span).collect();
        let mut last_end = Vec::with_capacity(spans.len());
        let mut last = 0;
        for (number, span) in spans.iter().enumerate() {
            if span.end > spans[last].end {
                last = number;
            }
            last_end.push(last as u32);
        }
        let least = |key: fn(&Times) -> i128| spans.iter().copied().min_by_key(key);
        let first = spans[0];
        Group {
            host,
            last_end,
            earliest_end: least(|span| span.end).unwrap_or(first),
            shortest: least(|span| span.end - span.start).unwrap_or(first),
            spans,
        }
    };
    spans.chunk_by(|a, b| a.0 == b.0).map(group).collect()
}

fn host_at(world: &World<'_>, place: u32) -> u32 {
    world.clocks().host_of(world.tree.order()[place as usize])
}

fn times(place: u32, world: &World<'_>) -> Times {
    let span = world.span_at(place as usize);
    Times { place, start: span.start().as_nanos().into(), end: span.end().as_nanos().into() }
}

fn sorted(places: &[u32]) -> Vec<u32> {
    let mut places = places.to_vec();
    places.sort_unstable();
    places
}

/// `gap(from, to)` where both hosts' clocks are one, or are known to the nanosecond.
pub(crate) fn gap<'a>(
    from: &'a Selector,
    to: &'a Selector,
    scene: &Scene<'_, 'a>,
) -> Result<Valued<'a>, Lack> {
    let bounds = gap_bounds(from, to, scene).map_err(|missing| missing.lack)?;
    if bounds.low != bounds.high {
        return Err(Lack::Open(bounds.doubt.unwrap_or_default()));
    }
    let values = Values::One(Value::Duration(bounds.low));
    Ok(Valued { values, trend: Trend::Any, is_secret: false })
}

/// Between which values `gap(from, to)` lies.
pub(crate) fn gap_bounds<'a>(
    from: &'a Selector,
    to: &'a Selector,
    scene: &Scene<'_, 'a>,
) -> Result<GapBounds, Missing> {
    let world = scene.world;
    let only = |selector: &'a Selector| -> Result<Times, Missing> {
        let places = select(selector, scene);
        let expected = expect_spans(Quantifier::The, places.len(), is_lasting(selector), selector);
        expected.map_err(|found| Missing {
            is_for_good: found.future.is_only(Truth::Undefined),
            lack: Lack::Undefined(found.reason.unwrap_or_default()),
        })?;
        Ok(times(places[0], world))
    };
    let (from, to) = match (only(from), only(to)) {
        (Ok(from), Ok(to)) => (from, to),
        // What is for good decides.
        (Err(left), Err(right)) => return Err(if right.is_for_good { right } else { left }),
        (Err(missing), Ok(_)) | (Ok(_), Err(missing)) => return Err(missing),
    };
    let clocks = world.clocks();
    let hosts = (host_at(world, from.place), host_at(world, to.place));
    let offset = clocks.offset(hosts.0, hosts.1);
    let is_exact = hosts.0 == hosts.1;
    Ok(GapBounds {
        low: to.start + offset.low - from.end,
        high: to.start + offset.high - from.end,
        is_exact,
        is_bounded: offset.is_bounded(),
        doubt: (!is_exact).then(|| clocks.doubt(hosts.0, hosts.1)),
        pair: (from.place, to.place),
    })
}

impl GapBounds {
    pub(crate) fn ends(&self) -> [i128; 2] {
        [self.low, self.high]
    }

    /// Whether both ends are known.
    pub(crate) fn is_bounded(&self) -> bool {
        self.is_bounded
    }
}

//! Evaluates a statement for all spans at once.
//!
//! A predicate on a single span and a literal (`name = "GET"`, `http.route exists`) is an *atom*. One pass over the
//! spans (`pass.rs`) evaluates all atoms of a plan; `and`, `or` and `not` combine the results, 64 spans at a time.
//! Every other predicate is evaluated span by span, and only where the rest does not decide.

use std::{borrow::Cow, cell::Cell, collections::HashMap};

use super::{
    atom::Atom,
    bits::Bits,
    future::Truth,
    lasting::is_fixed,
    pass,
    truth::{QuantifiedEvaluation, truth},
    world::{EvalContext, EvalScope},
};
use crate::{
    budget,
    syntax::{
        ast::{Expr, ExprKind, Hop, Inner, NodeId, Property, Pseudo, Selector},
        print,
    },
};

/// The spans for which a statement holds, does not hold, is open or is unmet; for all others it is undefined. Spans are
/// in the order of arrival, which is the order of their rows in memory.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    pub(crate) yes: Bits,
    pub(crate) no: Bits,
    pub(crate) open: Bits,
    pub(crate) unmet: Bits,
}

/// The results of the atoms of a plan.
#[derive(Debug, Default)]
pub(crate) struct Index {
    extents: Vec<AtomAnswers>,
    numbers: HashMap<NodeId, usize>,
}

/// The results of an atom.
#[derive(Debug)]
struct AtomAnswers {
    extent: Extent,
    /// The budget steps of the evaluation.
    steps: u64,
    /// The statement that was charged for them last.
    payer: Cell<u32>,
}

/// The maximum number of atoms that one pass evaluates; further atoms are evaluated span by span.
const ATOMS_MAX: usize = 20_000;

/// The number of spans for which an atom costs one budget step, in addition to its evaluation.
const ATOM_SPANS: u64 = 4;

/// The maximum size of the results of one pass, in bytes.
const EXTENTS_BYTES_MAX: usize = 256 << 20;

impl Index {
    /// Evaluates all atoms in these expressions and selectors.
    pub(crate) fn of<'a>(
        expressions: &[&'a Expr],
        selectors: &[&'a Selector],
        world: &EvalContext<'a>,
    ) -> Self {
        let mut found = Vec::new();
        expressions.iter().for_each(|expression| atoms_of(expression, &mut found));
        selectors.iter().for_each(|selector| atoms_within(selector, &mut found));
        let atoms_max = ATOMS_MAX.min(EXTENTS_BYTES_MAX / Extent::bytes(world.len()));
        let mut atoms: Vec<Atom<'a>> = Vec::new();
        // Equal atoms are evaluated once. Atoms that are only printed the same may hold different secrets.
        let mut known: HashMap<String, Vec<(&'a Expr, usize)>> = HashMap::new();
        let mut numbers = HashMap::new();
        for expression in found {
            let Some(id) = expression.at.id() else { continue };
            let alike = known.entry(print::expression(expression)).or_default();
            if let Some((_, number)) = alike.iter().find(|(known, _)| *known == expression) {
                numbers.insert(id, *number);
                continue;
            }
            let Some(atom) = Atom::of(expression, world).filter(|_| atoms.len() < atoms_max) else {
                continue;
            };
            alike.push((expression, atoms.len()));
            numbers.insert(id, atoms.len());
            atoms.push(atom);
        }
        budget::hold(atoms.len() as u64 * Extent::bytes(world.len()) as u64);
        let extents = pass::answer(&atoms, world).into_iter().zip(&atoms);
        let answered = |(extent, atom): (Extent, &Atom<'_>)| {
            let steps = atom.steps() + world.len() as u64 / ATOM_SPANS;
            AtomAnswers { extent, steps, payer: Cell::new(0) }
        };
        Self { extents: extents.map(answered).collect(), numbers }
    }

    pub(crate) fn get(&self, expression: &Expr) -> Option<&Extent> {
        let id = expression.at.id()?;
        let answered = &self.extents[*self.numbers.get(&id)?];
        let statement = budget::current_statement();
        if answered.payer.replace(statement) != statement {
            budget::charge_again(answered.steps);
        }
        Some(&answered.extent)
    }
}

fn atoms_of<'a>(expression: &'a Expr, found: &mut Vec<&'a Expr>) {
    if Atom::is_one(expression) {
        found.push(expression);
    }
    match &expression.kind {
        ExprKind::Aggregate(aggregate) => {
            atoms_within(&aggregate.of, found);
            aggregate.value.iter().for_each(|value| atoms_of(value, found));
        }
        ExprKind::Gap { from, to } => {
            atoms_within(from, found);
            atoms_within(to, found);
        }
        ExprKind::Quantified { subject, predicate } => {
            atoms_within(&subject.selector, found);
            predicate.iter().for_each(|predicate| atoms_of(predicate, found));
        }
        ExprKind::Relation { left, right, .. } => {
            atoms_within(&left.selector, found);
            atoms_within(&right.selector, found);
        }
        _ => super::lasting::parts(expression).into_iter().for_each(|part| atoms_of(part, found)),
    }
}

fn atoms_within<'a>(selector: &'a Selector, found: &mut Vec<&'a Expr>) {
    for Hop { step, .. } in selector.parts.iter().flat_map(|part| &part.hops) {
        step.condition.iter().for_each(|condition| atoms_of(condition, found));
        for pseudo in &step.pseudos {
            if let Pseudo::Has(inner) | Pseudo::Not(inner) = pseudo {
                atoms_within(inner, found);
            }
        }
    }
}

/// Evaluates a statement for the spans in `mask`; the results for other spans are unspecified.
pub(crate) fn extent<'a>(expression: &'a Expr, mask: &Bits, scene: &EvalScope<'_, 'a>) -> Extent {
    budget::spend(16 + mask.len() as u64 / 16);
    if let Some(known) = scene.world.indexed(expression) {
        return known.clone();
    }
    match &expression.kind {
        ExprKind::Not(part) => extent(part, mask, scene).negated(),
        ExprKind::And(parts) => join(parts, mask, scene, Extent::and, |all| &all.no),
        ExprKind::Or(parts) => join(parts, mask, scene, Extent::or, |all| &all.yes),
        _ => {
            let mut asked = Extent::nowhere(mask.len());
            let mut mask = Cow::Borrowed(mask);
            if let Some((inner, without)) = of_inner(expression, scene.world) {
                // Most spans have no events or links, and all of these have the same result.
                let (events, links) = scene.world.inner();
                let having = if inner == Inner::Event { events } else { links };
                asked.fill(without);
                asked.clear(having);
                mask.to_mut().keep(having);
            }
            for number in mask.ones() {
                let span = Some(scene.world.trace.numbered_span(number));
                asked.set(number, truth(expression, &EvalScope { span, ..*scene }).truth);
            }
            asked
        }
    }
}

/// Returns whether a comparison queries events or links, and its result without any.
fn of_inner(expression: &Expr, world: &EvalContext<'_>) -> Option<(Inner, Truth)> {
    let (value, without) = match &expression.kind {
        ExprKind::Within { inner, .. } => return Some((*inner, Truth::False)),
        ExprKind::Compare { left, right, .. } if is_fixed(right) => (left, Truth::Undefined),
        ExprKind::Exists { value, is_negated } => (value, Truth::from(*is_negated)),
        _ => return None,
    };
    let ExprKind::Property(property) = &value.kind else { return None };
    let property = match property {
        // An attribute of that name takes precedence, if the trace has one.
        Property::Attribute { name, otherwise: Some(otherwise) }
            if world.trace.text_number(name).is_none() =>
        {
            otherwise
        }
        property => property,
    };
    match property {
        Property::Event(_) => Some((Inner::Event, without)),
        Property::Link(_) => Some((Inner::Link, without)),
        _ => None,
    }
}

/// Combines the indexed parts first; evaluates the other parts only where these do not decide.
fn join<'a>(
    parts: &'a [Expr],
    mask: &Bits,
    scene: &EvalScope<'_, 'a>,
    join: impl Fn(&mut Extent, &Extent),
    decided: impl Fn(&Extent) -> &Bits,
) -> Extent {
    let (known, asked): (Vec<_>, Vec<_>) =
        parts.iter().partition(|part| scene.world.indexed(part).is_some());
    let mut all: Option<Extent> = None;
    let mut mask = mask.clone();
    for part in known.into_iter().chain(asked) {
        match &mut all {
            None => all = Some(extent(part, &mask, scene)),
            Some(all) => match scene.world.indexed(part) {
                Some(known) => join(all, known),
                None => join(all, &extent(part, &mask, scene)),
            },
        }
        if let Some(all) = &all {
            mask.remove(decided(all));
        }
    }
    all.unwrap_or_else(|| Extent::nowhere(mask.len()))
}

impl Extent {
    /// Returns the size in bytes for this number of spans.
    fn bytes(spans: usize) -> usize {
        size_of::<Self>() + 4 * spans.div_ceil(64) * size_of::<u64>()
    }

    /// Creates an extent that is undefined for all spans.
    pub(super) fn nowhere(len: usize) -> Self {
        let [yes, no, open, unmet] = std::array::from_fn(|_| Bits::none(len));
        Self { yes, no, open, unmet }
    }

    /// Sets all spans to one value.
    pub(super) fn fill(&mut self, truth: Truth) {
        *self = Self::nowhere(self.yes.len());
        if let Some(bits) = self.bits_mut(truth) {
            *bits = Bits::all(bits.len());
        }
    }

    /// Sets a span that has no value yet.
    pub(super) fn set(&mut self, number: usize, truth: Truth) {
        if let Some(bits) = self.bits_mut(truth) {
            bits.set(number);
        }
    }

    /// Returns the spans with this value; `None` for undefined, which has no set.
    fn bits_mut(&mut self, truth: Truth) -> Option<&mut Bits> {
        match truth {
            Truth::True => Some(&mut self.yes),
            Truth::False => Some(&mut self.no),
            Truth::Open => Some(&mut self.open),
            Truth::Unmet => Some(&mut self.unmet),
            Truth::Undefined => None,
        }
    }

    /// Removes the values of these spans.
    fn clear(&mut self, numbers: &Bits) {
        [&mut self.yes, &mut self.no, &mut self.open, &mut self.unmet]
            .into_iter()
            .for_each(|bits| bits.remove(numbers));
    }

    pub(crate) fn at(&self, number: usize) -> Truth {
        let bits = [&self.yes, &self.no, &self.open, &self.unmet];
        let truths = [Truth::True, Truth::False, Truth::Open, Truth::Unmet];
        let mut pairs = bits.into_iter().zip(truths);
        pairs.find(|(bits, _)| bits.has(number)).map_or(Truth::Undefined, |(_, truth)| truth)
    }

    fn negated(mut self) -> Self {
        std::mem::swap(&mut self.yes, &mut self.no);
        let unmet = std::mem::replace(&mut self.unmet, Bits::none(self.yes.len()));
        self.open.add(&unmet);
        self
    }

    /// Combines like [`Truth::and`], for all spans at once.
    fn and(&mut self, other: &Self) {
        // The result is open where one operand is open and the other is open or true.
        let mut opened = other.yes.clone();
        opened.add(&other.open);
        opened.keep(&self.open);
        let mut more = self.yes.clone();
        more.keep(&other.open);
        opened.add(&more);
        // The result is unmet where one operand is otherwise open or unmet, unless the other is false.
        let mut unmet = self.unmet.clone();
        unmet.add(&other.unmet);
        unmet.add(&self.open);
        unmet.add(&other.open);
        unmet.remove(&opened);
        self.open = opened;
        self.yes.keep(&other.yes);
        self.no.add(&other.no);
        unmet.remove(&self.no);
        self.unmet = unmet;
    }

    /// Combines like [`Truth::or`], for all spans at once.
    fn or(&mut self, other: &Self) {
        // The result is unmet where one operand is unmet and the other is unmet or false.
        let mut unmet = other.no.clone();
        unmet.add(&other.unmet);
        unmet.keep(&self.unmet);
        let mut more = self.no.clone();
        more.keep(&other.unmet);
        unmet.add(&more);
        self.unmet = unmet;
        self.yes.add(&other.yes);
        self.no.keep(&other.no);
        self.open.add(&other.open);
        self.open.remove(&self.yes);
    }
}

/// The results of a statement on each of several spans, and on all of them.
#[derive(Debug)]
pub(crate) struct Tally {
    /// In the order of the spans.
    pub(crate) truths: Vec<Truth>,
    pub(crate) found: QuantifiedEvaluation,
}

/// Evaluates a statement on several spans.
pub(crate) fn tally<'a>(expression: &'a Expr, places: &[u32], scene: &EvalScope<'_, 'a>) -> Tally {
    let at = |place: u32| {
        let span = Some(scene.world.span_at(place as usize));
        truth(expression, &EvalScope { span, ..*scene })
    };
    // The cost of a set grows with the trace, the cost of a single span does not.
    let is_few = places.len() < scene.world.len() / 64;
    if !is_fixed(expression) || is_few {
        let mut tally = Tally {
            truths: Vec::with_capacity(places.len()),
            found: QuantifiedEvaluation::nothing(),
        };
        for place in places {
            let found = at(*place);
            tally.truths.push(found.truth);
            tally.found.add(found);
        }
        return tally;
    }
    budget::spend(4 * places.len() as u64);
    let order = scene.world.tree.order();
    let number = |place: &u32| order[*place as usize].number();
    let mut mask = Bits::none(scene.world.len());
    places.iter().for_each(|place| mask.set(number(place)));
    let extent = extent(expression, &mask, scene);
    let truths: Vec<_> = places.iter().map(|place| extent.at(number(place))).collect();
    let mut found = QuantifiedEvaluation::nothing();
    // One span of each kind represents all of them: their results are fixed.
    for kind in Truth::ALL {
        if let Some(first) = truths.iter().position(|truth| *truth == kind) {
            found.add(at(places[first]));
        }
    }
    Tally { truths, found }
}

#[cfg(test)]
mod tests;

//! For which spans a statement holds: found out for all of them at once.
//!
//! What is asked of a single span and a literal (`name = "GET"`, `http.route exists`) is an *atom*. All atoms of a plan
//! are answered in one pass over the spans (`pass.rs`), and the answers joined by `and`, `or` and `not` 64 spans at a time.
//! Everything else is asked span by span, and only where the rest does not decide.

use std::{borrow::Cow, cell::Cell, collections::HashMap};

use super::{
    atom::Atom,
    bits::Bits,
    future::Truth,
    lasting::is_fixed,
    pass,
    truth::{Joined, truth},
    world::{Scene, World},
};
use crate::{
    budget,
    syntax::{
        ast::{Expr, ExprKind, Hop, Inner, NodeId, Property, Pseudo, Selector},
        print,
    },
};

/// For which spans a statement holds, does not hold, or is open; for all others it is undefined. Spans stand in the
/// order of arrival, in which their rows lie in memory.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    pub(crate) yes: Bits,
    pub(crate) no: Bits,
    pub(crate) open: Bits,
}

/// The answers to the atoms of a plan.
#[derive(Debug, Default)]
pub(crate) struct Index {
    extents: Vec<Answered>,
    numbers: HashMap<NodeId, usize>,
}

/// The answers to an atom.
#[derive(Debug)]
struct Answered {
    extent: Extent,
    /// What they took.
    steps: u64,
    /// The statement that paid for them last.
    payer: Cell<u32>,
}

/// How many atoms are answered in one pass; what is beyond is asked span by span.
const ATOMS_MAX: usize = 20_000;

/// For so many spans an atom costs a step, beside what its answers take.
const ATOM_SPANS: u64 = 4;

/// How many bytes the answers of one pass may take.
const EXTENTS_BYTES_MAX: usize = 256 << 20;

impl Index {
    /// Answers all atoms of these.
    pub(crate) fn of<'a>(
        expressions: &[&'a Expr],
        selectors: &[&'a Selector],
        world: &World<'a>,
    ) -> Self {
        let mut found = Vec::new();
        expressions.iter().for_each(|expression| atoms_of(expression, &mut found));
        selectors.iter().for_each(|selector| atoms_within(selector, &mut found));
        let atoms_max = ATOMS_MAX.min(EXTENTS_BYTES_MAX / Extent::bytes(world.len()));
        let mut atoms: Vec<Atom<'a>> = Vec::new();
        // Two that say the same are one. Two that only look the same may hold different secrets.
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
            Answered { extent, steps, payer: Cell::new(0) }
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

/// For which of the spans in `mask` a statement holds; of others nothing is said.
pub(crate) fn extent<'a>(expression: &'a Expr, mask: &Bits, scene: &Scene<'_, 'a>) -> Extent {
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
                // Most spans have none, and all of these answer alike.
                let (events, links) = scene.world.inner();
                let having = if inner == Inner::Event { events } else { links };
                asked.fill(without);
                asked.clear(having);
                mask.to_mut().keep(having);
            }
            for number in mask.ones() {
                let span = Some(scene.world.trace.numbered_span(number));
                asked.set(number, truth(expression, &Scene { span, ..*scene }).truth);
            }
            asked
        }
    }
}

/// Whether a comparison asks for events or links, and what it is without any.
fn of_inner(expression: &Expr, world: &World<'_>) -> Option<(Inner, Truth)> {
    let (value, without) = match &expression.kind {
        ExprKind::Within { inner, .. } => return Some((*inner, Truth::False)),
        ExprKind::Compare { left, right, .. } if is_fixed(right) => (left, Truth::Undefined),
        ExprKind::Exists { value, is_negated } => (value, Truth::from(*is_negated)),
        _ => return None,
    };
    let ExprKind::Property(property) = &value.kind else { return None };
    let property = match property {
        // An attribute of that name comes first, if there is one anywhere.
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

/// What is answered already comes first; the rest is asked only where that does not decide.
fn join<'a>(
    parts: &'a [Expr],
    mask: &Bits,
    scene: &Scene<'_, 'a>,
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
    /// How many bytes it takes for so many spans.
    fn bytes(spans: usize) -> usize {
        size_of::<Self>() + 3 * spans.div_ceil(64) * size_of::<u64>()
    }

    /// Undefined everywhere.
    pub(super) fn nowhere(len: usize) -> Self {
        Self { yes: Bits::none(len), no: Bits::none(len), open: Bits::none(len) }
    }

    /// The same everywhere.
    pub(super) fn fill(&mut self, truth: Truth) {
        let len = self.yes.len();
        let all = |is_so: bool| if is_so { Bits::all(len) } else { Bits::none(len) };
        self.yes = all(truth == Truth::True);
        self.no = all(truth == Truth::False);
        self.open = all(truth == Truth::Open);
    }

    /// Where nothing has been set before.
    pub(super) fn set(&mut self, number: usize, truth: Truth) {
        match truth {
            Truth::True => self.yes.set(number),
            Truth::False => self.no.set(number),
            Truth::Open => self.open.set(number),
            Truth::Undefined => {}
        }
    }

    /// Nothing is said of these any more.
    fn clear(&mut self, numbers: &Bits) {
        [&mut self.yes, &mut self.no, &mut self.open]
            .into_iter()
            .for_each(|bits| bits.remove(numbers));
    }

    pub(crate) fn at(&self, number: usize) -> Truth {
        match (self.yes.has(number), self.no.has(number), self.open.has(number)) {
            (true, ..) => Truth::True,
            (_, true, _) => Truth::False,
            (.., true) => Truth::Open,
            _ => Truth::Undefined,
        }
    }

    fn negated(mut self) -> Self {
        std::mem::swap(&mut self.yes, &mut self.no);
        self
    }

    fn and(&mut self, other: &Self) {
        // Open is what is open on one side and not undefined on the other.
        let mut opened = other.yes.clone();
        opened.add(&other.open);
        opened.keep(&self.open);
        let mut more = self.yes.clone();
        more.keep(&other.open);
        opened.add(&more);
        self.open = opened;
        self.yes.keep(&other.yes);
        self.no.add(&other.no);
    }

    fn or(&mut self, other: &Self) {
        self.yes.add(&other.yes);
        self.no.keep(&other.no);
        self.open.add(&other.open);
        self.open.remove(&self.yes);
    }
}

/// What a statement comes to on each of several spans, and on all of them.
#[derive(Debug)]
pub(crate) struct Tally {
    /// In the order of the places.
    pub(crate) truths: Vec<Truth>,
    pub(crate) found: Joined,
}

/// Asks a statement of several spans.
pub(crate) fn tally<'a>(expression: &'a Expr, places: &[u32], scene: &Scene<'_, 'a>) -> Tally {
    let at = |place: u32| {
        let span = Some(scene.world.span_at(place as usize));
        truth(expression, &Scene { span, ..*scene })
    };
    // A set costs the more the larger the trace is, a span by itself does not.
    let is_few = places.len() < scene.world.len() / 64;
    if !is_fixed(expression) || is_few {
        let mut tally =
            Tally { truths: Vec::with_capacity(places.len()), found: Joined::nothing() };
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
    let mut found = Joined::nothing();
    // One span of each kind stands for all of them: nothing about them will change.
    for kind in Truth::ALL {
        if let Some(first) = truths.iter().position(|truth| *truth == kind) {
            found.add(at(places[first]));
        }
    }
    Tally { truths, found }
}

#[cfg(test)]
mod tests {
    use model::{
        SpanId, Timestamp, Trace, TraceId,
        trace::{Kind, ResourceData, ScopeData, SpanData, Status, StatusCode, Value},
    };
    use proptest::{
        collection::vec,
        prelude::{Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest},
        sample::select,
    };

    use super::{Index, extent};
    use crate::{
        eval::{bits::Bits, truth::truth, world::World},
        syntax::{number::Numbers, parse},
    };

    const KEYS: &[&str] = &["a", "name", "status", "duration", "service", "type", "resource.a"];

    fn value() -> impl Strategy<Value = Value> {
        let text = select(vec![
            "",
            "x",
            "1",
            "1.0",
            "007",
            "5ms",
            "[1]",
            "{\"k\":1}",
            "true",
            "ok",
            "http",
        ]);
        prop_oneof![
            Just(Value::Empty),
            any::<bool>().prop_map(Value::Bool),
            (-1i64..3).prop_map(Value::Int),
            Just(Value::Int(5_000_000)),
            select(vec![0.5, 1.0, f64::NAN, -0.0]).prop_map(Value::Double),
            text.prop_map(|text| Value::Str(text.to_owned())),
            Just(Value::Bytes(vec![1])),
            vec(Just(Value::Int(1)), 0..2).prop_map(Value::Array),
            vec(Just(("k".to_owned(), Value::Int(1))), 0..2).prop_map(Value::Map),
        ]
    }

    /// Kind and status, its own attributes, those of its resource.
    type Drawn = ((i32, i32), Vec<(String, Value)>, Vec<(String, Value)>);

    fn attributes() -> impl Strategy<Value = Vec<(String, Value)>> {
        vec((select(KEYS).prop_map(str::to_owned), value()), 0..4)
    }

    fn trace(spans: Vec<Drawn>) -> Trace {
        let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
        for (number, ((kind, code), attributes, resource)) in (1u64..).zip(spans) {
            let resource = ResourceData { attributes: resource, ..ResourceData::default() };
            let resource = trace.resource(resource).expect("room");
            let scope = trace.scope(ScopeData { name: "x".to_owned(), ..ScopeData::default() });
            let id = SpanId::from_bytes(number.to_be_bytes()).expect("numbers start at 1");
            let name = ["x", "documentLoad", "Tracetest trigger"][number as usize % 3];
            let mut span = SpanData::new(id, None, name);
            span.kind = Kind::from_number(kind);
            span.status = Status { code: StatusCode::from_number(code), message: "x".to_owned() };
            span.end = Timestamp::from_nanos(number * 2_500_000);
            span.attributes = attributes;
            trace.push(resource, scope.expect("room"), span).expect("room");
        }
        trace
    }

    fn statements() -> Vec<String> {
        let properties = [
            "a",
            "name",
            "kind",
            "status",
            "status_message",
            "duration",
            "service",
            "type",
            "resource.a",
            "scope.name",
            "start",
            "tracetest.span.status_code",
            "tracetest.span.type",
        ];
        let rests = [
            "exists",
            "not exists",
            "= \"x\"",
            "!= \"x\"",
            "= 1",
            "= \"1\"",
            "= 007",
            "= true",
            "= null",
            "= 5ms",
            "< 1",
            ">= 1.0",
            "> 4ms",
            "<= \"5ms\"",
            "contains \"o\"",
            "not-contains \"\"",
            "contains \"[1]\"",
            "contains 1",
            "starts-with \"x\"",
            "ends-with \"l\"",
            "=~ \"^[x1]\"",
            "in [1, \"x\", 5ms]",
            "not in [\"ok\"]",
            "between 0 and 1",
            "not between 1ms and 6ms",
            "= [1]",
        ];
        let pairs =
            properties.iter().flat_map(|p| rests.iter().map(move |r| format!("span[{p} {r}]")));
        pairs.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

        /// What is answered for all spans at once is what each of them answers by itself.
        #[test]
        fn one_pass_says_what_each_span_says(
            spans in vec(((0i32..8, 0i32..5), attributes(), attributes()), 1..70)
        ) {
            let trace = trace(spans);
            let mut selectors: Vec<_> =
                statements().iter().filter_map(|source| parse::selector(source).tree).collect();
            let mut numbers = Numbers::default();
            selectors.iter_mut().for_each(|selector| numbers.selector(selector));
            assert!(selectors.len() > 250, "most of these are right");
            let mut world = World::new(&trace, None, None);
            world.prepare(&[], &selectors.iter().collect::<Vec<_>>());
            for selector in &selectors {
                let condition = selector.parts[0].hops[0].step.condition.as_ref().expect("one");
                let all = Bits::all(world.len());
                let answers = extent(condition, &all, &world.scene());
                for span in trace.spans() {
                    let alone = truth(condition, &world.scene_of(span)).truth;
                    let written = crate::syntax::print::expression(condition);
                    prop_assert_eq!(answers.at(span.ix().number()), alone, "{} on {:?}", written, span.to_data());
                }
            }
            assert!(matches!(world.index, Index { ref extents, .. } if extents.len() > 200));
        }
    }
}

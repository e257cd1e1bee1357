//! Generates random selectors about the content of a sample, so that many of them select something.

use model::trace::Value;

use super::{
    super::chance::{
        Dice,
        sample::{One, Sample},
    },
    selector::{
        Combinator, Comparator, Condition, Literal, Name, Operand, Part, Position, Pseudo,
        Selector, Step,
    },
};

const COMBINATORS: &[Combinator] = &[
    Combinator::Descendant,
    Combinator::Descendant,
    Combinator::Child,
    Combinator::Adjacent,
    Combinator::Sibling,
    Combinator::Parent,
    Combinator::Ancestor,
    Combinator::Linked,
];
/// The number of order comparators; they are first.
const ORDERS: usize = 4;
const COMPARATORS: &[Comparator] = &[
    Comparator::Less,
    Comparator::AtMost,
    Comparator::Greater,
    Comparator::AtLeast,
    Comparator::Equal,
    Comparator::Equal,
    Comparator::Contains,
    Comparator::StartsWith,
    Comparator::EndsWith,
    Comparator::Matches,
];
/// The intrinsics to query in addition to attributes.
const NAMES: &[&str] = &[
    "name",
    "kind",
    "status",
    "status_message",
    "duration",
    "start",
    "end",
    "service",
    "type",
    "id",
    "parent_id",
    "depth",
    "children",
    "self_time",
    "tracetest.span.name",
    "tracetest.span.status_code",
    "tracetest.span.duration",
    "resource.a",
    "resource.service.name",
    "scope.name",
    "scope.version",
    "scope.a",
    "event.name",
    "event.a",
    "event.b",
    "link.a",
    "link.span_id",
    "link.trace_id",
    "a",
    "b",
    "http.method",
    "x-y",
    "no.such.name",
    "name",
    "name",
    "kind",
    "depth",
    "status",
];
const INNER_NAMES: &[&str] = &["name", "a", "b", "http.method", "db.system", "no.such.name"];
const PATTERNS: &[&str] = &["a", "^a", "b$", "^ab$", "a.a", "^GET|query", ".", "^$", "0", "é"];

/// The state of the generator: the sample, and the random numbers.
pub(crate) struct Grower<'a> {
    pub(crate) sample: &'a Sample,
    pub(crate) dice: Dice,
}

impl Grower<'_> {
    pub(crate) fn selector(&mut self, depth: usize) -> Selector {
        let parts = 1 + if self.dice.once_in(4) { 1 + self.dice.below(2) } else { 0 };
        Selector { parts: (0..parts).map(|_| self.part(depth)).collect() }
    }

    fn part(&mut self, depth: usize) -> Part {
        let hops = 1 + if depth > 0 && self.dice.once_in(2) { 1 + self.dice.below(2) } else { 0 };
        let hop = |grower: &mut Self| {
            let combinator = COMBINATORS[grower.dice.below(COMBINATORS.len())];
            (combinator, grower.step(depth))
        };
        Part { hops: (0..hops).map(|_| hop(self)).collect() }
    }

    fn step(&mut self, depth: usize) -> Step {
        let condition = (!self.dice.once_in(5)).then(|| self.condition(depth, Inside::Span));
        let mut pseudos = Vec::new();
        while depth > 0 && self.dice.once_in(4) {
            pseudos.push(match self.dice.below(7) {
                0 => Pseudo::Root,
                1 | 2 => Pseudo::Leaf,
                3 => Pseudo::Orphan,
                4 => Pseudo::Not(self.selector(depth - 1)),
                _ => Pseudo::Has(self.selector(depth - 1)),
            });
        }
        let position = self.dice.once_in(6).then(|| match self.dice.below(4) {
            0 => Position::First,
            1 => Position::Last,
            _ => Position::Nth(1 + self.dice.below(3)),
        });
        Step { condition, pseudos, position }
    }

    fn condition(&mut self, depth: usize, inside: Inside) -> Condition {
        let several = |grower: &mut Self| {
            let count = 2 + grower.dice.below(2);
            (0..count).map(|_| grower.condition(depth - 1, inside)).collect()
        };
        match self.dice.below(12) {
            0 | 1 if depth > 0 => Condition::And(several(self)),
            2 | 3 if depth > 0 => Condition::Or(several(self)),
            4 if depth > 0 => Condition::Not(Box::new(self.condition(depth - 1, inside))),
            5 if depth > 0 && inside == Inside::Span => {
                let inner = if self.dice.once_in(2) { Inside::Event } else { Inside::Link };
                let condition =
                    (!self.dice.once_in(5)).then(|| Box::new(self.condition(depth - 1, inner)));
                match inner {
                    Inside::Event => Condition::Event(condition),
                    _ => Condition::Link(condition),
                }
            }
            _ => self.statement(inside),
        }
    }

    /// Generates one comparison that is true or nearly true.
    fn statement(&mut self, inside: Inside) -> Condition {
        let (name, value) = self.fact(inside);
        // The property has a fixed set of words: the parser rejects another one.
        let words = ["kind", "tracetest.span.type", "tracetest.span.status_code"];
        let is_word = inside == Inside::Span && words.contains(&name.as_str());
        let is_taken = |literal: &Literal| {
            !is_word || !matches!(literal, Literal::Text(_)) || Some(literal) == value.as_ref()
        };
        let left = Name(name);
        let is_negated = self.dice.once_in(4);
        match self.dice.below(12) {
            0 => return Condition::Exists { value: left, is_negated },
            1 => {
                // If there are several values, a single one has to be between both bounds.
                let is_many = inside == Inside::Span && self.dice.once_in(2);
                let name = if is_many {
                    self.dice.pick(&["event.a", "event.b", "link.a"])
                } else {
                    &left.0
                };
                let value = value.filter(|_| !is_many);
                let left = Name(name.to_owned());
                let (low, high) = (self.sized(None, inside), self.sized(value, inside));
                return Condition::Between { value: left, is_negated, low, high };
            }
            2 => {
                let count = self.dice.below(3);
                let mut list: Vec<Literal> = (0..count).map(|_| self.literal(2)).collect();
                list.retain(is_taken);
                list.extend(value);
                return Condition::In { value: left, is_negated, list };
            }
            _ => {}
        }
        // Most values have no order.
        let has_order =
            matches!(value, Some(Literal::Int(..) | Literal::Double(..) | Literal::Duration(_)));
        let skipped = if has_order || self.dice.once_in(8) { 0 } else { ORDERS };
        let comparator = COMPARATORS[skipped + self.dice.below(COMPARATORS.len() - skipped)];
        let right = match comparator {
            Comparator::Matches => {
                Operand::Literal(Literal::Text(self.dice.pick(PATTERNS).to_owned()))
            }
            Comparator::Less | Comparator::AtMost | Comparator::Greater | Comparator::AtLeast => {
                self.sized(value, inside)
            }
            _ => match self.operand(value.clone(), inside) {
                Operand::Literal(literal) if !is_taken(&literal) => Operand::Literal(Literal::Null),
                operand => operand,
            },
        };
        // An order comparator has no negated form.
        let can_negate = matches!(
            comparator,
            Comparator::Equal
                | Comparator::Contains
                | Comparator::StartsWith
                | Comparator::EndsWith
                | Comparator::Matches
        );
        Condition::Compare { left, comparator, is_negated: is_negated && can_negate, right }
    }

    /// Returns a name, and a value that it has in the sample, if the value has a literal form.
    fn fact(&mut self, inside: Inside) -> (String, Option<Literal>) {
        let at = self.dice.below(self.sample.spans.len());
        let One { resource, scope, span } = self.sample.spans[at].clone();
        let held = match (inside, self.dice.below(10)) {
            (Inside::Event, 0..7) => {
                span.events.first().map(|it| ("", it.attributes.clone())).unwrap_or_default()
            }
            (Inside::Link, 0..7) => {
                span.links.first().map(|it| ("", it.attributes.clone())).unwrap_or_default()
            }
            (Inside::Event | Inside::Link, _) => Default::default(),
            (Inside::Span, 0..4) => ("", span.attributes),
            (Inside::Span, 4) => ("resource.", resource.attributes),
            (Inside::Span, 5) => ("scope.", scope.attributes),
            (Inside::Span, _) => Default::default(),
        };
        if !held.1.is_empty() {
            let (key, value) = &held.1[self.dice.below(held.1.len())];
            return (format!("{}{key}", held.0), self.spelled(value));
        }
        let known = match inside {
            Inside::Span => NAMES,
            Inside::Event | Inside::Link => INNER_NAMES,
        };
        // The active time of a child that ends before it starts is unknown, and so is the self time of its parent.
        let is_timed = self.sample.spans.iter().all(|one| one.span.start <= one.span.end);
        let name = match self.dice.pick(known) {
            "self_time" if !is_timed => "duration".to_owned(),
            name => name.to_owned(),
        };
        let value = match name.as_str() {
            "name" | "event.name" | "tracetest.span.name" => Literal::Text(span.name),
            "kind" => Literal::Text(span.kind.as_str().to_owned()),
            "status" => Literal::Text(span.status.code.as_str().to_owned()),
            "service" | "resource.service.name" => Literal::Text("s2".to_owned()),
            "id" | "link.span_id" => Literal::Text(span.id.to_string()),
            "parent_id" => Literal::Text(span.parent.map(|it| it.to_string()).unwrap_or_default()),
            "duration" | "self_time" => Literal::Duration(5_000_000),
            "start" => self.int(span.start.as_nanos().into()),
            "end" => self.int(span.end.as_nanos().into()),
            "depth" | "children" => self.int(1),
            "tracetest.span.status_code" => Literal::Text("STATUS_CODE_OK".to_owned()),
            "type" => Literal::Text("http".to_owned()),
            _ => return (name, None),
        };
        (name, Some(value))
    }

    fn operand(&mut self, value: Option<Literal>, inside: Inside) -> Operand {
        match (value, self.dice.below(7)) {
            (Some(value), 0..5) => Operand::Literal(value),
            (_, 0..2) => Operand::Name(Name(self.fact(inside).0)),
            _ => Operand::Literal(self.literal(2)),
        }
    }

    /// Generates an operand with an order, as far as its spelling shows.
    fn sized(&mut self, value: Option<Literal>, inside: Inside) -> Operand {
        match self.operand(value, inside) {
            name @ Operand::Name(_) => name,
            Operand::Literal(Literal::Text(text)) if text.parse::<f64>().is_ok() => {
                Operand::Literal(Literal::Text(text))
            }
            Operand::Literal(
                number @ (Literal::Int(..) | Literal::Double(..) | Literal::Duration(_)),
            ) => Operand::Literal(number),
            Operand::Literal(_) => {
                let int = self.dice.below(4) as i128;
                Operand::Literal(self.int(int))
            }
        }
    }

    fn literal(&mut self, depth: usize) -> Literal {
        let texts = ["a", "b", "ab", "", "1", "5ms", "error", "server", "true", "[1,2]"];
        match self.dice.below(if depth == 0 { 10 } else { 12 }) {
            0..4 => Literal::Text(self.dice.pick(&texts).to_owned()),
            4 | 5 => {
                let int = [0, 1, 2, -1, 200, 9_007_199_254_740_993][self.dice.below(6)];
                self.int(int)
            }
            6 => Literal::Double(0.5, "0.5".to_owned()),
            7 => Literal::Bool(self.dice.once_in(2)),
            8 => Literal::Duration([0, 1, 1_000_000, 5_000_000][self.dice.below(4)]),
            9 => Literal::Null,
            _ => {
                let count = self.dice.below(3);
                Literal::List((0..count).map(|_| self.literal(depth - 1)).collect())
            }
        }
    }

    fn int(&mut self, int: i128) -> Literal {
        let spelling = match self.dice.below(6) {
            0 if int >= 0 => format!("{int:#x}"),
            1 if int >= 1000 => format!("{}_{:03}", int / 1000, int % 1000),
            2 if (1..10).contains(&int) => format!("00{int}"),
            _ => int.to_string(),
        };
        Literal::Int(int, spelling)
    }

    /// Returns a value of a span as a literal; `None` if it has no literal form.
    fn spelled(&mut self, value: &Value) -> Option<Literal> {
        Some(match value {
            Value::Empty => Literal::Null,
            Value::Bool(bool) => Literal::Bool(*bool),
            Value::Int(int) => self.int((*int).into()),
            Value::Double(double) if double.is_finite() => {
                Literal::Double(*double, format!("{double:?}"))
            }
            Value::Double(_) | Value::Map(_) => return None,
            Value::Str(text) => Literal::Text(text.clone()),
            Value::Bytes(bytes) => Literal::Text("ab".repeat(bytes.len())),
            Value::Array(items) => {
                Literal::List(items.iter().filter_map(|item| self.spelled(item)).collect())
            }
        })
    }
}

/// The subject of the names of a condition.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Span,
    Event,
    Link,
}

//! Evaluates predicates on a single span and literals, for all spans of a trace in one pass.
//!
//! The trace numbers its texts, so a value is compared once for each text and not for each span. Numbers are compared
//! without creating values. A result that all spans of a resource share is computed once for the resource.

use std::cell::Cell;

use model::trace::Span;

use super::{
    contrast::{contrast, contrast_between},
    expression::{ExprValue, Trend, Values, value_of},
    future::Truth,
    lookup::Lookup,
    truth::is_something,
    world::EvalContext,
};
use crate::{
    budget,
    syntax::ast::{Comparator, Expr, ExprKind, Intrinsic, Property},
    value::{Number, Size, Value, json::read_document},
};

/// A predicate on one property of a span.
#[derive(Debug)]
pub(super) struct Atom<'a> {
    property: &'a Property,
    test: AtomTest<'a>,
    is_negated: bool,
    quick: Quick<'a>,
    /// The budget steps of all evaluations so far.
    steps: Cell<u64>,
}

/// The test of a predicate.
#[derive(Debug)]
enum AtomTest<'a> {
    Exists,
    Compare(Comparator, ExprValue<'a>),
    Between(ExprValue<'a>, ExprValue<'a>),
}

/// A test in a form that needs no value: it returns the same result as [`contrast`], or does not apply.
#[derive(Debug)]
enum Quick<'a> {
    /// Compares a text with this one, which has this number if any span has it.
    Text(Comparator, &'a str, Option<u32>),
    /// Compares a number or duration with this one.
    Number(Comparator, Number),
    None,
}

/// The source of the value of a span, unless an attribute overrides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// No source: the value is absent.
    None,
    Name,
    Kind,
    Status,
    Duration,
    Type,
    /// Shared by all spans of one resource, or of one scope.
    Resource,
    Scope,
    /// Looked up for each span.
    Span,
}

impl<'a> Atom<'a> {
    /// Whether an expression is an atom.
    pub(super) fn is_one(expression: &Expr) -> bool {
        parts(expression).is_some_and(|(property, _, literals)| {
            is_plain(property) && literals.into_iter().all(is_literal)
        })
    }

    pub(super) fn of(expression: &'a Expr, world: &EvalContext<'a>) -> Option<Self> {
        let (property, is_negated, literals) = parts(expression)?;
        let mut values = literals.iter().map(|literal| value_of(literal, &world.scene()));
        let mut value = || values.next()?.ok();
        let test = match &expression.kind {
            ExprKind::Compare { comparator, .. } => AtomTest::Compare(*comparator, value()?),
            ExprKind::Between { .. } => AtomTest::Between(value()?, value()?),
            _ => AtomTest::Exists,
        };
        let quick = Quick::of(&test, world);
        Some(Self { property, test, is_negated, quick, steps: Cell::new(0) })
    }

    /// Returns the name of the attribute that is looked up first.
    pub(super) fn attribute(&self) -> Option<&'a str> {
        match self.property {
            Property::Attribute { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Returns the property that is looked up if there is no such attribute.
    pub(super) fn otherwise(&self) -> Option<&'a Property> {
        match self.property {
            Property::Attribute { otherwise, .. } => otherwise.as_deref(),
            property => Some(property),
        }
    }

    pub(super) fn source(&self) -> Source {
        match self.otherwise() {
            None => Source::None,
            Some(Property::Intrinsic(intrinsic, _)) => match intrinsic {
                Intrinsic::Name => Source::Name,
                Intrinsic::Kind => Source::Kind,
                Intrinsic::Status | Intrinsic::StatusCode => Source::Status,
                Intrinsic::Duration => Source::Duration,
                Intrinsic::Type => Source::Type,
                Intrinsic::Service => Source::Resource,
                _ => Source::Span,
            },
            Some(Property::Resource(_)) => Source::Resource,
            Some(Property::Scope(_)) => Source::Scope,
            Some(_) => Source::Span,
        }
    }

    /// Whether the values are the words of Tracetest's status codes.
    pub(super) fn is_status_code(&self) -> bool {
        matches!(self.otherwise(), Some(Property::Intrinsic(Intrinsic::StatusCode, _)))
    }

    /// Whether a resource may have the attribute, so that an attribute of a span overrides it.
    pub(super) fn may_be_shared(&self, world: &EvalContext<'_>) -> bool {
        self.attribute().is_some_and(|name| world.is_resource_key(name))
    }

    pub(super) fn absent(&self) -> Truth {
        let truth = match self.test {
            AtomTest::Exists => Truth::False,
            AtomTest::Compare(..) | AtomTest::Between(..) => Truth::Undefined,
        };
        self.signed(truth)
    }

    fn signed(&self, truth: Truth) -> Truth {
        if self.is_negated { truth.negated() } else { truth }
    }

    /// Returns the budget steps of all evaluations.
    pub(super) fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Evaluates the predicate, and counts the budget steps. Beyond the limit of a statement, nothing is evaluated any
    /// more: the statement that needs the results is charged, and exceeds its budget.
    fn measured(&self, answer: impl FnOnce() -> Truth) -> Truth {
        if self.steps.get() > budget::STATEMENT_STEPS_MAX {
            return Truth::Undefined;
        }
        let before = budget::charged();
        let truth = answer();
        self.steps.set(self.steps.get() + (budget::charged() - before));
        truth
    }

    /// Returns the result for a value that was looked up.
    pub(super) fn looked_up(&self, lookup: Lookup<'_>) -> Truth {
        self.measured(|| self.compared(lookup))
    }

    fn compared(&self, lookup: Lookup<'_>) -> Truth {
        let values = match lookup {
            Lookup::One(value) => Values::One(value),
            Lookup::Many(values) => Values::Many(values),
            Lookup::Absent => return self.absent(),
            Lookup::Untimed(_) if matches!(self.test, AtomTest::Exists) => return self.absent(),
            Lookup::Encoded(_) if matches!(self.test, AtomTest::Exists) => {
                return self.signed(Truth::True);
            }
            Lookup::Between(..)
            | Lookup::Untimed(_)
            | Lookup::Dropped(_)
            | Lookup::Encoded(_)
            | Lookup::Unknown => return Truth::Open,
        };
        let left = ExprValue {
            values,
            trend: Trend::Fixed,
            is_secret: false,
            doubt: None,
            literal: None,
            is_several: false,
        };
        self.signed(match &self.test {
            AtomTest::Exists => is_something(&left.values).into(),
            AtomTest::Compare(comparator, right) => {
                contrast(&left, *comparator, false, right).truth
            }
            AtomTest::Between(low, high) => contrast_between(&left, false, [low, high]).truth,
        })
    }

    /// Returns the result for a text of the trace.
    pub(super) fn text(&self, number: u32, world: &EvalContext<'_>) -> Truth {
        match self.quick {
            Quick::Text(Comparator::Equal, _, wanted) => {
                self.signed((wanted == Some(number)).into())
            }
            Quick::Text(comparator, part, _) => {
                let text = world.trace.text(number);
                self.measured(|| {
                    budget::spend(text.len() as u64 / 8);
                    self.signed(is_part(comparator, text, part).into())
                })
            }
            _ => self.looked_up(Lookup::One(Value::borrowed(world.trace.text(number)))),
        }
    }

    /// Returns the result for a number.
    pub(super) fn number(&self, number: Number) -> Truth {
        match &self.quick {
            Quick::Number(comparator, other) => self.ordered(number, *comparator, *other),
            _ => self.looked_up(Lookup::One(Value::Number(number))),
        }
    }

    /// Returns the result for a duration.
    pub(super) fn duration(&self, nanos: i128) -> Truth {
        match &self.quick {
            Quick::Number(comparator, other) => {
                self.ordered(Number::Int(nanos), *comparator, *other)
            }
            _ => self.looked_up(Lookup::One(Value::Duration(nanos))),
        }
    }

    fn ordered(&self, number: Number, comparator: Comparator, other: Number) -> Truth {
        let order = number.compare(other);
        self.signed(order.map_or(Truth::Undefined, |order| accepts(comparator, order).into()))
    }

    /// Returns the result for a span that dropped data: a property that is absent may have been dropped.
    pub(super) fn of_rest(&self, span: Span<'a>, world: &EvalContext<'a>) -> Truth {
        self.looked_up(world.look_up(self.property, &world.scene_of(span)))
    }

    /// Returns the result for a property of the span itself.
    pub(super) fn of_span(&self, span: Span<'a>, world: &EvalContext<'a>) -> Truth {
        match self.otherwise() {
            Some(property) => self.looked_up(world.look_up(property, &world.scene_of(span))),
            None => self.absent(),
        }
    }
}

impl<'a> Quick<'a> {
    fn of(test: &AtomTest<'a>, world: &EvalContext<'_>) -> Self {
        let AtomTest::Compare(comparator, ExprValue { values: Values::One(value), .. }) = test
        else {
            return Self::None;
        };
        let is_order = matches!(
            comparator,
            Comparator::Equal
                | Comparator::Less
                | Comparator::AtMost
                | Comparator::Greater
                | Comparator::AtLeast
        );
        let is_text = match comparator {
            Comparator::Equal | Comparator::StartsWith | Comparator::EndsWith => true,
            // A JSON document is searched as JSON.
            Comparator::Contains => matches!(read_document(&value.text()), Ok(None)),
            _ => false,
        };
        match value {
            Value::Quoted(text) if is_text => {
                Self::Text(*comparator, text, world.trace.text_number(text))
            }
            Value::Number(_) | Value::Numeral { .. } | Value::Duration(_) if is_order => {
                match value.size() {
                    Some(Size::Number(number)) => Self::Number(*comparator, number),
                    Some(Size::Nanos(nanos)) => Self::Number(*comparator, Number::Int(nanos)),
                    None => Self::None,
                }
            }
            _ => Self::None,
        }
    }
}

fn is_part(comparator: Comparator, text: &str, part: &str) -> bool {
    match comparator {
        Comparator::Contains => text.contains(part),
        Comparator::StartsWith => text.starts_with(part),
        Comparator::EndsWith => text.ends_with(part),
        _ => text == part,
    }
}

fn accepts(comparator: Comparator, order: std::cmp::Ordering) -> bool {
    match comparator {
        Comparator::Less => order.is_lt(),
        Comparator::AtMost => order.is_le(),
        Comparator::Greater => order.is_gt(),
        Comparator::AtLeast => order.is_ge(),
        _ => order.is_eq(),
    }
}

/// Returns the property, whether the result is negated, and the literals that the property is compared with.
fn parts(expression: &Expr) -> Option<(&Property, bool, Vec<&Expr>)> {
    let (value, is_negated, literals) = match &expression.kind {
        ExprKind::Compare { left, is_negated, right, .. } => (left, *is_negated, vec![&**right]),
        ExprKind::Between { value, is_negated, low, high } => {
            (value, *is_negated, vec![&**low, &**high])
        }
        ExprKind::Exists { value, is_negated } => (value, *is_negated, Vec::new()),
        _ => return None,
    };
    match &value.kind {
        ExprKind::Property(property) => Some((property, is_negated, literals)),
        _ => None,
    }
}

/// Whether a property depends on the span alone, and is cheap to look up.
fn is_plain(property: &Property) -> bool {
    match property {
        Property::Attribute { otherwise, .. } => {
            otherwise.as_ref().is_none_or(|otherwise| is_plain(otherwise))
        }
        Property::Intrinsic(intrinsic, _) => !matches!(
            intrinsic,
            Intrinsic::Depth
                | Intrinsic::Children
                | Intrinsic::SelfTime
                | Intrinsic::CriticalTime
                | Intrinsic::Attributes
                | Intrinsic::Events
                | Intrinsic::Id
                | Intrinsic::ParentId
        ),
        Property::Resource(_) | Property::Scope(_) => true,
        Property::Event(_) | Property::Link(_) | Property::Response(_) | Property::Count => false,
    }
}

fn is_literal(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Null
        | ExprKind::Bool(_)
        | ExprKind::Number { .. }
        | ExprKind::Duration(_)
        | ExprKind::Text(_)
        | ExprKind::Known(_) => true,
        ExprKind::List(items) => items.iter().all(is_literal),
        _ => false,
    }
}

//! The possible values of an operand, and the comparison of two operands.

use super::{
    document::{Arithmetic, Operand, Operator, Property, Scope, ValueFilter},
    select::{Court, Focus, Item, Unsaid},
    trace::{RefereeKind, RefereeSpan, Status, id_text},
    truth::Truths,
    value::{self, RefereeValue},
};

/// A possible value of an operand.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    Value(RefereeValue),
    Absent,
    /// A time that a span lacks: it does not exist, and a comparison with it is open.
    Lacking,
    /// A number in this range; durations are in nanoseconds.
    Range(f64, f64),
    /// A list that contains these items, and may contain more.
    AtLeast(Vec<RefereeValue>),
    /// Any value, or absent.
    Any,
}

/// Evaluates a comparison for all possible values of both sides.
pub(super) fn compare(left: &[Choice], operator: Operator, right: &[Choice]) -> Truths {
    let mut truths = Truths::EMPTY;
    for one in left {
        for other in right {
            truths |= compare_choices(one, operator, other);
        }
    }
    truths
}

fn compare_choices(left: &Choice, operator: Operator, right: &Choice) -> Truths {
    match (left, right) {
        (Choice::Absent, _) | (_, Choice::Absent) => Truths::UNDEFINED,
        (Choice::Lacking, _) | (_, Choice::Lacking) => Truths::OPEN,
        (Choice::Any, _) | (_, Choice::Any) => Truths::ANY,
        (Choice::Value(left), Choice::Value(right)) => value::compare(left, operator, right),
        (Choice::AtLeast(items), Choice::Value(right)) if operator == Operator::Contains => {
            growing(value::compare(&RefereeValue::List(items.clone()), operator, right))
        }
        (Choice::Value(left), Choice::AtLeast(items)) if operator == Operator::In => {
            growing(value::compare(left, operator, &RefereeValue::List(items.clone())))
        }
        _ => match (range(left), range(right)) {
            (Some(left), Some(right)) => compare_ranges(left, operator, right),
            _ => Truths::ANY,
        },
    }
}

/// An item of a growing list stays in it.
fn growing(now: Truths) -> Truths {
    if now == Truths::TRUE { now } else { now | Truths::OPEN }
}

fn range(choice: &Choice) -> Option<(f64, f64)> {
    match choice {
        Choice::Range(low, high) => Some((*low, *high)),
        Choice::Value(value) => value.number().map(|number| (number, number)),
        _ => None,
    }
}

fn compare_ranges(left: (f64, f64), operator: Operator, right: (f64, f64)) -> Truths {
    let less = (left.0 < right.1, left.1 >= right.0);
    let less_or_equal = (left.0 <= right.1, left.1 > right.0);
    let meet = left.0 <= right.1 && right.0 <= left.1;
    let are_one = left.0 == left.1 && left == right;
    let (may_hold, may_fail) = match operator {
        Operator::Less => less,
        Operator::LessOrEqual => less_or_equal,
        Operator::Greater => (less_or_equal.1, less_or_equal.0),
        Operator::GreaterOrEqual => (less.1, less.0),
        Operator::Equal => (meet, !are_one),
        Operator::Unequal => (!are_one, meet),
        _ => return Truths::ANY,
    };
    let mut truths = Truths::EMPTY;
    if may_hold {
        truths |= Truths::TRUE;
    }
    if may_fail {
        truths |= Truths::FALSE;
    }
    truths
}

fn one(value: RefereeValue) -> Vec<Choice> {
    vec![Choice::Value(value)]
}

impl Court<'_> {
    /// Whether a filter may have no input: an absent attribute, or no JSON.
    pub(super) fn has_nothing_for(
        &self,
        of: &Operand,
        filter: &ValueFilter,
        focus: Focus<'_>,
    ) -> bool {
        self.choices(of, focus).iter().any(|choice| match (choice, filter) {
            (Choice::Absent, _) => true,
            (Choice::Value(value), ValueFilter::JsonPath(_)) => value::json(value).is_none(),
            _ => false,
        })
    }

    pub(super) fn choices(&self, operand: &Operand, focus: Focus<'_>) -> Vec<Choice> {
        match operand {
            Operand::Literal(value) => one(value.clone()),
            Operand::Attribute(name) => vec![self.attribute(name, focus)],
            Operand::Property(property) => match focus.span {
                Some(span) => self.property(*property, span),
                None => vec![Choice::Absent],
            },
            Operand::Scoped(scope, name) => match focus.span {
                Some(span) => self.scoped(*scope, name, span),
                None => vec![Choice::Absent],
            },
            Operand::Filter(of, filter) => {
                // The reference does not define how many matches a path has in an absent attribute.
                if let (ValueFilter::Length, Operand::Filter(of, path)) = (filter, &**of)
                    && self.has_nothing_for(of, path, focus)
                {
                    self.unsaid.set(Some(Unsaid::FilterOfAbsent));
                }
                let is_found = matches!(**of, Operand::Filter(..));
                let filtered = |choice: Choice| match choice {
                    // A path or pattern without a match has zero matches.
                    Choice::Absent if is_found && *filter == ValueFilter::Length => {
                        Choice::Value(RefereeValue::Int(0))
                    }
                    choice => filtered(&choice, filter),
                };
                self.choices(of, focus).into_iter().map(filtered).collect()
            }
            Operand::Arithmetic(left, operator, right) => {
                let mut all = Vec::new();
                for left in self.choices(left, focus) {
                    for right in self.choices(right, focus) {
                        all.push(computed(&left, *operator, &right));
                    }
                }
                all
            }
            Operand::Aggregate(aggregate) => self.aggregate(aggregate, focus),
            Operand::Gap(from, to) => self.gap(from, to, focus),
            Operand::SelectedCount => match focus.selected {
                Some((least, most)) => vec![count(least, most)],
                None => vec![Choice::Absent],
            },
            Operand::ResponseStatus => vec![Choice::Any],
        }
    }

    /// Returns an attribute of the span, else of its resource; inside `event[…]` and `link[…]` one of the event or link.
    fn attribute(&self, name: &str, focus: Focus<'_>) -> Choice {
        if let Some(item) = focus.item {
            return match (item, name) {
                (Item::Event(event), "name") => {
                    Choice::Value(RefereeValue::Text(event.name.clone()))
                }
                (Item::Event(event), _) => {
                    held(find(&event.attributes, name), event.dropped_attributes)
                }
                (Item::Link(link), "trace_id") => {
                    Choice::Value(RefereeValue::text(link.trace_id()))
                }
                (Item::Link(link), "span_id") => {
                    Choice::Value(RefereeValue::Text(id_text(link.span)))
                }
                (Item::Link(_), _) => Choice::Absent,
            };
        }
        let Some(span) = focus.span.map(|span| &self.spans[span]) else { return Choice::Absent };
        let found = find(&span.attributes, name).or_else(|| of_resource(span, name));
        held(found, span.dropped_attributes + span.dropped_resource)
    }

    fn property(&self, property: Property, index: usize) -> Vec<Choice> {
        let span = &self.spans[index];
        let text = |text: &str| one(RefereeValue::text(text));
        match property {
            Property::Name => text(&span.name),
            Property::Kind => text(match span.kind {
                RefereeKind::Internal => "internal",
                RefereeKind::Server => "server",
                RefereeKind::Client => "client",
                RefereeKind::Producer => "producer",
                RefereeKind::Consumer => "consumer",
            }),
            Property::Status => text(match span.status {
                Status::Unset => "unset",
                Status::Ok => "ok",
                Status::Error => "error",
            }),
            Property::Service => text(&span.service),
            Property::Duration => match span.end {
                Some(end) => one(RefereeValue::Duration(i128::from(end) - i128::from(span.start))),
                None => vec![Choice::Lacking],
            },
            Property::Depth => {
                let above = self.above(index);
                let top = above.last().copied().unwrap_or(index);
                let is_fixed = self.is_complete || self.spans[top].parent.is_none();
                vec![count(above.len(), if is_fixed { above.len() } else { usize::MAX })]
            }
            Property::Children => {
                let children = self.children(index).len();
                vec![count(children, if self.is_complete { children } else { usize::MAX })]
            }
            Property::SelfTime => self.self_time(index),
        }
    }

    /// Returns the possible values of a scoped attribute; for events and links, one for each that has it.
    pub(super) fn scoped(&self, scope: Scope, name: &str, index: usize) -> Vec<Choice> {
        let span = &self.spans[index];
        if matches!(scope, Scope::Resource | Scope::Library) && span.dropped_attributes > 0 {
            self.unsaid.set(Some(Unsaid::DroppedElsewhere));
        }
        let (found, dropped): (Vec<Choice>, bool) = match scope {
            Scope::Resource => {
                let found = held(of_resource(span, name), span.dropped_resource);
                ([found].into(), false)
            }
            Scope::Library => {
                let name =
                    (name == "name").then(|| Choice::Value(RefereeValue::Text(span.scope.clone())));
                (name.into_iter().collect(), false)
            }
            Scope::Event => {
                let of = |event| {
                    self.attribute(
                        name,
                        Focus { item: Some(Item::Event(event)), ..Focus::default() },
                    )
                };
                (span.events.iter().map(of).collect(), span.dropped_events > 0)
            }
            Scope::Link => {
                let of = |link| {
                    self.attribute(name, Focus { item: Some(Item::Link(link)), ..Focus::default() })
                };
                (span.links.iter().map(of).collect(), span.dropped_links > 0)
            }
        };
        let mut found: Vec<_> =
            found.into_iter().filter(|choice| *choice != Choice::Absent).collect();
        if dropped {
            found.push(Choice::Any);
        }
        if found.is_empty() { vec![Choice::Absent] } else { found }
    }
}

pub(super) fn count(least: usize, most: usize) -> Choice {
    if least == most {
        return Choice::Value(RefereeValue::Int(least as i64));
    }
    Choice::Range(least as f64, if most == usize::MAX { f64::INFINITY } else { most as f64 })
}

/// For a repeated key the last value counts.
fn find(attributes: &[(String, RefereeValue)], name: &str) -> Option<RefereeValue> {
    attributes.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}

fn of_resource(span: &RefereeSpan, name: &str) -> Option<RefereeValue> {
    match name {
        "service.name" => Some(RefereeValue::Text(span.service.clone())),
        "host.name" => Some(RefereeValue::Text(span.host.clone())),
        _ => find(&span.resource, name),
    }
}

/// An absent value may have been dropped if values were dropped.
fn held(found: Option<RefereeValue>, dropped: u32) -> Choice {
    match found {
        Some(value) => Choice::Value(value),
        None if dropped > 0 => Choice::Any,
        None => Choice::Absent,
    }
}

fn filtered(choice: &Choice, filter: &ValueFilter) -> Choice {
    let value = match choice {
        Choice::Value(value) => value,
        Choice::Absent => return Choice::Absent,
        _ => return Choice::Any,
    };
    let result = match filter {
        ValueFilter::JsonPath(path) => {
            value::json(value).and_then(|json| value::json_path(&json, path))
        }
        ValueFilter::Regex(pattern) => match value {
            RefereeValue::Text(text) => value::find(text, pattern).map(RefereeValue::Text),
            _ => None,
        },
        ValueFilter::GetIndex(index) => match value {
            RefereeValue::List(items) => items.get(*index).cloned(),
            _ => None,
        },
        ValueFilter::Length => match value {
            RefereeValue::List(items) => Some(RefereeValue::Int(items.len() as i64)),
            RefereeValue::Text(text) => Some(RefereeValue::Int(text.chars().count() as i64)),
            _ => None,
        },
    };
    result.map_or(Choice::Absent, Choice::Value)
}

fn computed(left: &Choice, operator: Arithmetic, right: &Choice) -> Choice {
    let (left, right) = match (left, right) {
        (Choice::Absent, _) | (_, Choice::Absent) => return Choice::Absent,
        (Choice::Value(left), Choice::Value(right)) => (left, right),
        _ => return Choice::Any,
    };
    let result = match (&whole(left), &whole(right)) {
        (RefereeValue::Int(left), RefereeValue::Int(right)) => match operator {
            Arithmetic::Plus => left.checked_add(*right).map(RefereeValue::Int),
            Arithmetic::Minus => left.checked_sub(*right).map(RefereeValue::Int),
            Arithmetic::Times => left.checked_mul(*right).map(RefereeValue::Int),
            Arithmetic::Divided => match left.checked_rem(*right) {
                Some(0) => left.checked_div(*right).map(RefereeValue::Int),
                _ => divided(*left as f64, *right as f64),
            },
        },
        (RefereeValue::Duration(left), RefereeValue::Duration(right)) => match operator {
            Arithmetic::Plus => Some(RefereeValue::Duration(left + right)),
            Arithmetic::Minus => Some(RefereeValue::Duration(left - right)),
            Arithmetic::Times => None,
            Arithmetic::Divided => divided(*left as f64, *right as f64),
        },
        (
            left @ (RefereeValue::Int(_) | RefereeValue::Double(_)),
            right @ (RefereeValue::Int(_) | RefereeValue::Double(_)),
        ) => {
            let (left, right) = (left.number().unwrap_or(0.0), right.number().unwrap_or(0.0));
            match operator {
                Arithmetic::Plus => Some(RefereeValue::Double(left + right)),
                Arithmetic::Minus => Some(RefereeValue::Double(left - right)),
                Arithmetic::Times => Some(RefereeValue::Double(left * right)),
                Arithmetic::Divided => divided(left, right),
            }
        }
        _ => None,
    };
    result.map_or(Choice::Absent, Choice::Value)
}

/// Converts a double with an integer value to an integer.
fn whole(value: &RefereeValue) -> RefereeValue {
    match value {
        RefereeValue::Double(double) if double.fract() == 0.0 && double.abs() < 1e18 => {
            RefereeValue::Int(*double as i64)
        }
        value => value.clone(),
    }
}

/// Division by zero is undefined.
fn divided(left: f64, right: f64) -> Option<RefereeValue> {
    (right != 0.0).then(|| RefereeValue::Double(left / right))
}

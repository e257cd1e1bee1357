//! Compares two operands, each with one value, several values or groups, and computes the results that are still possible.

use super::{
    expression::{ExprValue, Interval, Trend, Values},
    future::{Future, Truth},
};
use crate::{
    syntax::ast::Comparator,
    value::{
        Literal, Value,
        compare::{ComparisonResult, Outcome, compare_literal},
    },
};

/// The maximum number of pairs of values that are compared if both operands have several.
const PAIRS_MAX: usize = 100_000;

/// The result of a comparison of two operands.
#[derive(Clone, Debug)]
pub(crate) struct Contrast {
    pub(crate) truth: Truth,
    /// Why the result is undefined or open.
    pub(crate) reason: Option<String>,
    /// The conversion that was applied.
    pub(crate) remark: Option<&'static str>,
}

/// Compares all values of two operands.
pub(crate) fn contrast(
    left: &ExprValue<'_>,
    comparator: Comparator,
    is_negated: bool,
    right: &ExprValue<'_>,
) -> Contrast {
    let lists = (left.beside(comparator, &right.values), right.beside(comparator, &left.values));
    let (left, right) = (lists.0.as_ref().unwrap_or(left), lists.1.as_ref().unwrap_or(right));
    let both = |left: &[Value<'_>], values: &[Value<'_>]| {
        any_pair_literal(left, comparator, values, right.literal)
    };
    let each = |groups: &[(String, Value<'_>)], compare: &dyn Fn(&Value<'_>) -> Contrast| {
        let mut all = Contrast { truth: Truth::True, reason: None, remark: None };
        for (_, value) in groups {
            let one = compare(value).negated_if(is_negated);
            if all.truth.and(one.truth) != all.truth {
                all = one;
            }
        }
        all
    };
    match (&left.values, &right.values) {
        (Values::Between(interval), other) => {
            between_bounds(interval, comparator, other).negated_if(is_negated)
        }
        (other, Values::Between(interval)) => match comparator.turned() {
            Some(turned) => between_bounds(interval, turned, other).negated_if(is_negated),
            None => interval.open(),
        },
        (Values::Groups(_), Values::Groups(_)) => Contrast {
            truth: Truth::Undefined,
            reason: Some("only one side of a comparison may have groups".to_owned()),
            remark: None,
        },
        (Values::Groups(groups), right) => {
            each(groups, &|value| both(std::slice::from_ref(value), listed(right)))
        }
        (left, Values::Groups(groups)) => {
            each(groups, &|value| both(listed(left), std::slice::from_ref(value)))
        }
        (left, right) => both(listed(left), listed(right)).negated_if(is_negated),
    }
}

/// Compares a value that is known between bounds: the result is that of both bounds, if they agree.
fn between_bounds(interval: &Interval<'_>, comparator: Comparator, other: &Values<'_>) -> Contrast {
    let at = |end: &Value<'_>, comparator| {
        let end = std::slice::from_ref(end);
        match other {
            Values::Between(_) | Values::Groups(_) => interval.open(),
            other => any_pair(end, comparator, listed(other)),
        }
    };
    let [low, high] = [&interval.low, &interval.high];
    match comparator {
        Comparator::Equal => {
            let is_all = |comparator| {
                [low, high].into_iter().all(|end| at(end, comparator).truth == Truth::True)
            };
            match is_all(Comparator::Less) || is_all(Comparator::Greater) {
                true => Contrast { truth: Truth::False, reason: None, remark: None },
                false => interval.open(),
            }
        }
        Comparator::Less | Comparator::AtMost | Comparator::Greater | Comparator::AtLeast => {
            let [low, high] = [low, high].map(|end| at(end, comparator));
            if low.truth == high.truth { low } else { interval.open() }
        }
        _ => interval.open(),
    }
}

impl Interval<'_> {
    fn open(&self) -> Contrast {
        Contrast { truth: Truth::Open, reason: Some(self.reason.clone()), remark: None }
    }
}

impl Comparator {
    /// Returns the comparator for swapped operands, if there is one.
    pub(crate) fn turned(self) -> Option<Self> {
        match self {
            Self::Equal => Some(Self::Equal),
            Self::Less => Some(Self::Greater),
            Self::AtMost => Some(Self::AtLeast),
            Self::Greater => Some(Self::Less),
            Self::AtLeast => Some(Self::AtMost),
            _ => None,
        }
    }
}

/// Compares all values of an operand with two bounds: one of several values has to lie between both, and each group.
pub(crate) fn contrast_between(
    value: &ExprValue<'_>,
    is_negated: bool,
    [low, high]: [&ExprValue<'_>; 2],
) -> Contrast {
    let one = |value: &Value<'_>| {
        let side = std::slice::from_ref(value);
        let low = any_pair(side, Comparator::AtLeast, listed(&low.values));
        let high = any_pair(side, Comparator::AtMost, listed(&high.values));
        match (low.truth, high.truth) {
            (Truth::Undefined, _) => low,
            (_, Truth::Undefined) => high,
            (one, other) if one.and(other) == one => low,
            _ => high,
        }
    };
    let mut all: Option<Contrast> = None;
    let mut join = |one: Contrast, join: fn(Truth, Truth) -> Truth| {
        let truth = all.as_ref().map_or(one.truth, |all| join(all.truth, one.truth));
        if all.as_ref().is_none_or(|all| all.truth != truth) {
            all = Some(Contrast { truth, ..one });
        }
    };
    match &value.values {
        Values::Between(interval) => interval.open(),
        Values::Groups(groups) => {
            groups
                .iter()
                .for_each(|(_, value)| join(one(value).negated_if(is_negated), Truth::and));
            all.unwrap_or(Contrast { truth: Truth::True, reason: None, remark: None })
        }
        values => {
            listed(values).iter().for_each(|value| join(one(value), Truth::or));
            all.unwrap_or(Contrast { truth: Truth::False, reason: None, remark: None })
                .negated_if(is_negated)
        }
    }
}

impl Contrast {
    pub(super) fn negated_if(self, is_negated: bool) -> Self {
        match is_negated {
            true => Self { truth: self.truth.negated(), ..self },
            false => self,
        }
    }
}

pub(super) fn listed<'v, 'a>(values: &'v Values<'a>) -> &'v [Value<'a>] {
    match values {
        Values::One(value) => std::slice::from_ref(value),
        Values::Many(values) => values,
        Values::Groups(_) | Values::Between(_) => &[],
    }
}

pub(super) fn any_pair(
    left: &[Value<'_>],
    comparator: Comparator,
    right: &[Value<'_>],
) -> Contrast {
    any_pair_literal(left, comparator, right, None)
}

/// Compares pairs with a right operand that may be a literal of the test.
fn any_pair_literal(
    left: &[Value<'_>],
    comparator: Comparator,
    right: &[Value<'_>],
    literal: Option<&Literal>,
) -> Contrast {
    if left.len().saturating_mul(right.len()) > PAIRS_MAX {
        let reason = Some("too many values to compare".to_owned());
        return Contrast { truth: Truth::Open, reason, remark: None };
    }
    let pairs = left.iter().flat_map(|left| right.iter().map(move |right| (left, right)));
    let mut any: Option<Contrast> = None;
    for (left, right) in pairs {
        let one = Contrast::from(compare_literal(left, comparator, right, literal));
        let truth = any.as_ref().map_or(one.truth, |any| any.truth.or(one.truth));
        if any.as_ref().is_none_or(|any| any.truth != truth) {
            any = Some(Contrast { truth, ..one });
        }
        if truth == Truth::True {
            break;
        }
    }
    any.unwrap_or(Contrast { truth: Truth::False, reason: None, remark: None })
}

impl From<ComparisonResult> for Contrast {
    fn from(compared: ComparisonResult) -> Self {
        let (truth, reason) = match compared.outcome {
            Outcome::True => (Truth::True, None),
            Outcome::False => (Truth::False, None),
            Outcome::Undefined(reason) => (Truth::Undefined, Some(reason.into_owned())),
            Outcome::Open(reason) => (Truth::Open, Some(reason.to_owned())),
        };
        Self { truth, reason, remark: compared.remark }
    }
}

/// Returns the results that a comparison may still get while its operands have values. Groups are negated one by one.
pub(super) fn future_of(
    contrast: &Contrast,
    (left, comparator, right): (&ExprValue<'_>, Comparator, &ExprValue<'_>),
    is_negated: bool,
) -> Future {
    let trend = trend(left.trend, right.trend);
    let in_group = |a: &[Value<'_>], b: &[Value<'_>]| {
        let truth = any_pair_literal(a, comparator, b, right.literal).truth;
        let future = future_of_pair(truth, (a, comparator, b), trend);
        if is_negated { future.negated() } else { future }
    };
    let alone = std::slice::from_ref;
    match (&left.values, &right.values) {
        (Values::Between(interval), right) => {
            let truth = if is_negated { contrast.truth.negated() } else { contrast.truth };
            let ends = [&interval.low, &interval.high]
                .map(|end| future_of_pair(truth, (alone(end), comparator, listed(right)), trend));
            let is_sure = ends.iter().all(|end| end.is_only(truth));
            if is_sure { Future::only(contrast.truth) } else { Future::ANY }
        }
        (_, Values::Between(_)) => Future::ANY,
        (Values::Groups(_), Values::Groups(_)) => Future::only(Truth::Undefined),
        (Values::Groups(groups), right) => {
            in_groups(groups.iter().map(|(_, value)| in_group(alone(value), listed(right))))
        }
        (left, Values::Groups(groups)) => {
            in_groups(groups.iter().map(|(_, value)| in_group(listed(left), alone(value))))
        }
        (left, right) => {
            let truth = if is_negated { contrast.truth.negated() } else { contrast.truth };
            let future = future_of_pair(truth, (listed(left), comparator, listed(right)), trend);
            if is_negated { future.negated() } else { future }
        }
    }
}

/// Every group has to hold, later groups included.
fn in_groups(groups: impl Iterator<Item = Future>) -> Future {
    groups.fold(Future::DEFINED_OR_OPEN, Future::and)
}

fn future_of_pair(
    truth: Truth,
    (left, comparator, right): (&[Value<'_>], Comparator, &[Value<'_>]),
    trend: Trend,
) -> Future {
    if !Future::DEFINED.has(truth) {
        return Future::ANY;
    }
    let is_true = truth == Truth::True;
    let is_beyond = |comparator| any_pair(left, comparator, right).truth == Truth::True;
    let is_decided = match (trend, comparator) {
        (Trend::Fixed, _) => true,
        (Trend::Rising, Comparator::AtLeast | Comparator::Greater)
        | (Trend::Falling, Comparator::AtMost | Comparator::Less) => is_true,
        (Trend::Rising, Comparator::AtMost | Comparator::Less)
        | (Trend::Falling, Comparator::AtLeast | Comparator::Greater) => !is_true,
        (Trend::Rising, Comparator::Equal) => !is_true && is_beyond(Comparator::Greater),
        (Trend::Falling, Comparator::Equal) => !is_true && is_beyond(Comparator::Less),
        _ => false,
    };
    let has_list =
        || left.iter().chain(right).any(|value| matches!(value, Value::List(_) | Value::Json(_)));
    match is_decided {
        true => Future::only(truth),
        // A list may grow too long to be searched.
        false if has_list() => Future::ANY,
        false => Future::DEFINED_OR_OPEN,
    }
}

/// Returns how the left operand changes relative to the right one.
pub(super) fn trend(left: Trend, right: Trend) -> Trend {
    match (left, right) {
        (Trend::Fixed, Trend::Fixed) => Trend::Fixed,
        (Trend::Rising, Trend::Fixed | Trend::Falling) | (Trend::Fixed, Trend::Falling) => {
            Trend::Rising
        }
        (Trend::Falling, Trend::Fixed | Trend::Rising) | (Trend::Fixed, Trend::Rising) => {
            Trend::Falling
        }
        _ => Trend::Any,
    }
}

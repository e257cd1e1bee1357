//! How two values are compared: exact, typed, and with every conversion named.
//!
//! | | equal when |
//! | --- | --- |
//! | numbers | they are the same number; integers and doubles compare exactly, and what is not a number equals nothing |
//! | durations | they are the same count of nanoseconds; a number beside a duration counts as nanoseconds |
//! | a text and a number | the text is spelled like the number, or, unless it is a literal in quotes, holds it (`numeral.rs`); or it holds a duration of that many nanoseconds |
//! | a text and a duration | the text holds the duration, or its nanoseconds |
//! | a text and a boolean | the text is `true` or `false` |
//! | a text and a list or map | the text is JSON of the same content |
//!
//! Order is of numbers and durations only: a text takes part if it holds one. A list `contains` what equals one of its
//! items. A JSON document contains another by `json::contains`, where both sides are lists or objects; everything else is
//! searched as text. An attribute that was sent without a value equals and contains nothing, not even the empty text.

use std::cmp::Ordering;

use model::trace::ValueRef;

use crate::{
    json,
    numeral::{Number, read_duration, read_loose, read_number},
    value::{Literal, Value},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Contains,
    NotContains,
}

/// One side of a comparison: a literal, or a value that was found.
#[derive(Clone, Debug)]
pub(crate) enum Operand<'a> {
    Literal(&'a Literal),
    Found(Value<'a>),
}

/// What came of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) holds: bool,
    /// The conversion that was made, or what made the comparison impossible.
    pub(crate) remark: Option<&'static str>,
}

/// Whether one contains the other was not found out, so that nothing can be said of `contains` and `not-contains`.
const TOO_LARGE: Compared = Compared { holds: false, remark: Some("too large to compare") };

pub(crate) const COMPARATORS: &[(&str, Comparator)] = &[
    ("=", Comparator::Equal),
    ("!=", Comparator::NotEqual),
    ("<", Comparator::Less),
    ("<=", Comparator::AtMost),
    (">", Comparator::Greater),
    (">=", Comparator::AtLeast),
    ("contains", Comparator::Contains),
    ("not-contains", Comparator::NotContains),
];

impl Compared {
    /// Whether the comparison was made at all.
    pub(crate) fn is_made(self) -> bool {
        self != TOO_LARGE
    }
}

impl Comparator {
    pub(crate) fn as_str(self) -> &'static str {
        COMPARATORS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }

    /// The comparator that says the same with the sides exchanged; none for what has a direction of its own.
    pub(crate) fn mirrored(self) -> Option<Self> {
        match self {
            Self::Equal | Self::NotEqual => Some(self),
            Self::Less => Some(Self::Greater),
            Self::AtMost => Some(Self::AtLeast),
            Self::Greater => Some(Self::Less),
            Self::AtLeast => Some(Self::AtMost),
            Self::Contains | Self::NotContains => None,
        }
    }

    /// Whether it asks which side is larger.
    pub(crate) fn is_order(self) -> bool {
        matches!(self, Self::Less | Self::AtMost | Self::Greater | Self::AtLeast)
    }

    fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Equal | Self::Contains => order.is_eq(),
            Self::NotEqual | Self::NotContains => order.is_ne(),
        }
    }
}

impl<'a> Operand<'a> {
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Literal(literal) => literal.value(),
            Self::Found(value) => value.clone(),
        }
    }

    pub(crate) fn show(&self) -> String {
        match self {
            Self::Literal(literal) => literal.show(),
            Self::Found(value) => value.show(),
        }
    }

    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Literal(literal) => literal.text(),
            Self::Found(value) => value.text(),
        }
    }

    fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }
}

/// Compares the two sides.
pub(crate) fn compare(left: &Operand<'_>, comparator: Comparator, right: &Operand<'_>) -> Compared {
    match comparator {
        Comparator::Equal => equal(left, right),
        Comparator::Contains => contains(left, right),
        Comparator::NotEqual => negated(equal(left, right)),
        Comparator::NotContains => negated(contains(left, right)),
        Comparator::Less | Comparator::AtMost | Comparator::Greater | Comparator::AtLeast => {
            ordered(left, comparator, right)
        }
    }
}

/// Whether a text can take part in an order.
pub(crate) fn has_order(text: &str) -> bool {
    read_loose(text).is_some() || read_duration(text).is_some()
}

fn equal(left: &Operand<'_>, right: &Operand<'_>) -> Compared {
    match (left.value(), right.value()) {
        (Value::Number(a), Value::Number(b)) => plain(is_same(a.compare(b))),
        (Value::Duration(a), Value::Duration(b)) => plain(a == b),
        (Value::Duration(nanos), Value::Number(number))
        | (Value::Number(number), Value::Duration(nanos)) => {
            with(is_same(number.compare(Number::Int(nanos))), "the number counts as nanoseconds")
        }
        (Value::Bool(a), Value::Bool(b)) => plain(a == b),
        (Value::Text(a), Value::Text(b)) => plain(a == b),
        (Value::Bytes(a), Value::Bytes(b)) => plain(a == b),
        (Value::Nothing, Value::Nothing) => plain(true),
        (Value::Text(text), Value::Number(number)) => {
            text_and_number(&text, left.is_literal(), number, right)
        }
        (Value::Number(number), Value::Text(text)) => {
            text_and_number(&text, right.is_literal(), number, left)
        }
        (Value::Text(text), Value::Duration(nanos))
        | (Value::Duration(nanos), Value::Text(text)) => text_and_duration(&text, nanos),
        (Value::Text(text), bool @ Value::Bool(_)) | (bool @ Value::Bool(_), Value::Text(text)) => {
            with(text == bool.text(), "compared as text")
        }
        (Value::Text(text), bytes @ Value::Bytes(_))
        | (bytes @ Value::Bytes(_), Value::Text(text)) => {
            with(text == bytes.text(), "bytes compared by their hexadecimal digits")
        }
        (a @ (Value::List(_) | Value::Map(_)), b) | (b, a @ (Value::List(_) | Value::Map(_))) => {
            let same =
                json::read(&a).zip(json::read(&b)).is_some_and(|(a, b)| json::equals(&a, &b));
            with(same, "compared as JSON")
        }
        _ => with(false, "of different types"),
    }
}

fn text_and_number(text: &str, quoted: bool, number: Number, spelled: &Operand<'_>) -> Compared {
    if number.is_nan() {
        return plain(false);
    }
    if quoted {
        let nanos = read_duration(text).map(|nanos| is_same(number.compare(Number::Int(nanos))));
        return with(nanos.unwrap_or(text == spelled.text()), "compared as text");
    }
    if let Some(nanos) = read_duration(text) {
        let same = is_same(number.compare(Number::Int(nanos)));
        return with(same, "text read as a duration, the number counts as nanoseconds");
    }
    match read_number(text) {
        Some(held) => with(is_same(held.compare(number)), "text read as a number"),
        None if text == spelled.text() => with(true, "compared as text"),
        None => with(false, "the text is not a number"),
    }
}

fn text_and_duration(text: &str, nanos: i128) -> Compared {
    if let Some(held) = read_duration(text) {
        return with(held == nanos, "text read as a duration");
    }
    match read_number(text) {
        Some(number) => with(
            is_same(number.compare(Number::Int(nanos))),
            "text read as a number of nanoseconds",
        ),
        None => with(false, "the text is not a duration"),
    }
}

fn ordered(left: &Operand<'_>, comparator: Comparator, right: &Operand<'_>) -> Compared {
    let (Some(a), Some(b)) = (size(&left.value()), size(&right.value())) else {
        return with(false, "only numbers and durations have an order");
    };
    let order = match (a, b) {
        (Size::Number(a), Size::Number(b)) => a.compare(b),
        (Size::Nanos(a), Size::Nanos(b)) => Some(a.cmp(&b)),
        (Size::Number(a), Size::Nanos(b)) => a.compare(Number::Int(b)),
        (Size::Nanos(a), Size::Number(b)) => b.compare(Number::Int(a)).map(Ordering::reverse),
    };
    let holds = order.is_some_and(|order| comparator.accepts(order));
    let is_text = |side: &Operand<'_>| matches!(side.value(), Value::Text(_));
    match (a, b) {
        _ if order.is_none() => with(false, "what is not a number has no order"),
        _ if is_text(left) || is_text(right) => with(holds, "text read by its value"),
        (Size::Number(_), Size::Nanos(_)) | (Size::Nanos(_), Size::Number(_)) => {
            with(holds, "the number counts as nanoseconds")
        }
        _ => plain(holds),
    }
}

#[derive(Clone, Copy)]
enum Size {
    Number(Number),
    Nanos(i128),
}

fn size(value: &Value<'_>) -> Option<Size> {
    match value {
        Value::Number(number) => Some(Size::Number(*number)),
        Value::Duration(nanos) => Some(Size::Nanos(*nanos)),
        Value::Text(text) => {
            read_loose(text).map(Size::Number).or_else(|| read_duration(text).map(Size::Nanos))
        }
        _ => None,
    }
}

fn contains(left: &Operand<'_>, right: &Operand<'_>) -> Compared {
    let (whole, part) = (left.value(), right.value());
    if let Some(part) = json::read(&part)
        && let Some(whole) = json::read(&whole)
    {
        return json::contains(&whole, &part)
            .map_or(TOO_LARGE, |holds| with(holds, "compared as JSON"));
    }
    match &whole {
        Value::Nothing => with(false, "the attribute has no value"),
        // The part is no JSON, so it equals no list and no map; trying would read it anew for each of them.
        Value::List(items) => plain(
            items
                .iter()
                .filter(|item| !matches!(item, ValueRef::Array(_) | ValueRef::Map(_)))
                .any(|item| equal(&Operand::Found(item.into()), right).holds),
        ),
        Value::Text(text) => plain(text.contains(&*right.text())),
        _ => with(left.text().contains(&*right.text()), "searched as text"),
    }
}

fn is_same(order: Option<Ordering>) -> bool {
    order.is_some_and(Ordering::is_eq)
}

fn plain(holds: bool) -> Compared {
    Compared { holds, remark: None }
}

fn with(holds: bool, remark: &'static str) -> Compared {
    Compared { holds, remark: Some(remark) }
}

fn negated(compared: Compared) -> Compared {
    // What was not found out stays so.
    Compared { holds: compared.is_made() && !compared.holds, ..compared }
}

#[cfg(test)]
mod tests {
    use super::{COMPARATORS, Comparator, Operand, compare};
    use crate::{
        numeral::Number,
        value::{Literal, Value},
    };

    fn found(value: Value<'_>) -> Operand<'_> {
        Operand::Found(value)
    }

    fn double(double: f64) -> Value<'static> {
        Value::Number(Number::Double(double))
    }

    #[test]
    fn with_what_is_not_a_number_only_inequality_holds() {
        let others = [
            double(f64::NAN),
            double(1.0),
            Value::Number(Number::Int(0)),
            Value::Duration(5),
            Value::Text("1".into()),
            Value::Text("NaN".into()),
            Value::Bool(true),
        ];
        let comparators = COMPARATORS.iter().map(|(_, comparator)| *comparator);
        for comparator in comparators.filter(|c| *c == Comparator::Equal || c.is_order()) {
            for other in &others {
                let nan = found(double(f64::NAN));
                let other = found(other.clone());
                assert!(!compare(&nan, comparator, &other).holds, "NaN {comparator:?} {other:?}");
                assert!(!compare(&other, comparator, &nan).holds, "{other:?} {comparator:?} NaN");
                assert!(compare(&nan, Comparator::NotEqual, &other).holds, "NaN != {other:?}");
            }
        }
    }

    #[test]
    fn both_directions_agree() {
        let quoted = Literal::Text("12.50".to_owned());
        let number = Literal::Number { value: Number::Double(12.5), spelling: "12.5".to_owned() };
        let operands = [
            found(double(12.5)),
            found(Value::Text("12.50".into())),
            found(Value::Text("12ns".into())),
            found(Value::Text("abc".into())),
            found(Value::Duration(12)),
            found(Value::Bool(false)),
            found(Value::Bytes(b"ab")),
            found(Value::Nothing),
            Operand::Literal(&quoted),
            Operand::Literal(&number),
        ];
        for a in &operands {
            for b in &operands {
                for (word, comparator) in COMPARATORS {
                    let Some(mirrored) = comparator.mirrored() else { continue };
                    let (there, back) = (compare(a, *comparator, b), compare(b, mirrored, a));
                    assert_eq!(there.holds, back.holds, "{a:?} {word} {b:?}");
                }
            }
        }
        let equal =
            |a: usize, b: usize| compare(&operands[a], Comparator::Equal, &operands[b]).holds;
        assert!(equal(0, 1), "a text that was found is read as a number");
        assert!(!equal(0, 8), "a text in quotes is not");
        assert!(equal(1, 9) && equal(1, 8));
    }
}

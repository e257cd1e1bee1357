//! Comparison of two values: exact, typed, and with every conversion reported.
//!
//! | | equal when |
//! | --- | --- |
//! | numbers | they are the same number; integers and doubles compare exactly; a comparison with NaN is undefined |
//! | durations | they are the same count of nanoseconds; a number compared with a duration counts as nanoseconds |
//! | a text and a number | the text has its spelling or, unless quoted, its value (`numeral.rs`), or is a duration of that many ns |
//! | a text and a duration | the text contains the duration, or its nanoseconds |
//! | a text and a boolean or null | the text is `true`, `false` or `null` |
//! | a text and a list or object | the text is JSON with the same content |
//! | two lists | their items are equal, one by one; without any conversion if both are JSON |
//! | nothing, and a value | the value is the empty text or an empty list; any other comparison is undefined |
//!
//! Only numbers and durations have an order: a text has one if it contains a number or a duration; for other values it is
//! undefined. A list `contains` a value that equals one of its items, and a list if all items of that list do; a JSON document
//! contains another by `json::contains`; any other value is searched as text. A pattern may match anywhere in the text. A text
//! that would be parsed as JSON but exceeds its limits leaves the comparison open.

use std::{borrow::Cow, cmp::Ordering};

use super::{
    Json, Literal, Number, Size, TOO_LARGE, Value,
    json::{self, read_document},
    pattern, read_duration, read_number,
};
use crate::{budget, value::operator::Comparator};

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ComparisonResult {
    pub(crate) outcome: Outcome,
    /// The conversion that the comparison applied.
    pub(crate) remark: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    True,
    False,
    /// The two values cannot be compared this way, with the reason.
    Undefined(Cow<'static, str>),
    /// The result is unknown, with the reason.
    Open(&'static str),
}

/// The fixed cost of a comparison, in addition to the bytes of its sides.
const COMPARE_STEPS: u64 = 4;

/// The maximum number of item pairs to compare.
const PAIRS_MAX: usize = 1_000_000;

/// A path or pattern that finds nothing behaves like an absent attribute: neither equal nor unequal, so that a misspelled one
/// does not pass by negation.
const NOTHING_FOUND: &str = "nothing was found to compare; `exists` tests for that";

const NOT_A_NUMBER: &str = "NaN is not a number, so that it cannot be compared with one";

const NO_ORDER: &str = "only numbers and durations have an order";

/// Compares the two sides.
pub(crate) fn compare(
    left: &Value<'_>,
    comparator: Comparator,
    right: &Value<'_>,
) -> ComparisonResult {
    compare_literal(left, comparator, right, None)
}

/// Does the same for a right side that is a literal of the test, with its compiled forms.
pub(crate) fn compare_literal(
    left: &Value<'_>,
    comparator: Comparator,
    right: &Value<'_>,
    literal: Option<&Literal>,
) -> ComparisonResult {
    if !budget::spend(COMPARE_STEPS + (left.len() + right.len()) as u64 / 8) {
        return ComparisonResult { outcome: Outcome::Open(budget::OVER), remark: None };
    }
    let is_nothing = [left, right].into_iter().any(|side| *side == Value::Nothing);
    match compare_values(left, comparator, right, literal) {
        ComparisonResult { outcome: Outcome::False, .. } if is_nothing => undefined(NOTHING_FOUND),
        compared => compared,
    }
}

fn compare_values(
    left: &Value<'_>,
    comparator: Comparator,
    right: &Value<'_>,
    literal: Option<&Literal>,
) -> ComparisonResult {
    match comparator {
        Comparator::Equal => equal(left, right),
        Comparator::Less | Comparator::AtMost | Comparator::Greater | Comparator::AtLeast => {
            ordered(left, comparator, right)
        }
        Comparator::Contains => contains(left, right),
        Comparator::StartsWith => edge(left, right, |text, part| text.starts_with(part)),
        Comparator::EndsWith => edge(left, right, |text, part| text.ends_with(part)),
        Comparator::Matches => matches(left, right, literal),
        Comparator::In => is_in(left, right),
    }
}

impl ComparisonResult {
    pub(crate) fn holds(&self) -> bool {
        self.outcome == Outcome::True
    }
}

fn equal(left: &Value<'_>, right: &Value<'_>) -> ComparisonResult {
    match (left, right) {
        _ if is_nan(left) && is_number_or_text(right)
            || is_number_or_text(left) && is_nan(right) =>
        {
            undefined(NOT_A_NUMBER)
        }
        (Value::Text(_) | Value::Quoted(_), Value::Text(_) | Value::Quoted(_)) => {
            plain(left.text() == right.text())
        }
        (Value::Text(_) | Value::Quoted(_), other) => text_and(left, other),
        (other, Value::Text(_) | Value::Quoted(_)) => text_and(right, other),
        (Value::Nothing, other) | (other, Value::Nothing) => plain(is_empty(other)),
        (Value::Null, Value::Null) => plain(true),
        (Value::Bool(a), Value::Bool(b)) => plain(a == b),
        (Value::Bytes(a), Value::Bytes(b)) => plain(a == b),
        (Value::Json(a), Value::Json(b)) => with(json::equals(a, b), "compared as JSON"),
        (Value::List(_) | Value::Json(_), Value::List(_) | Value::Json(_)) => {
            items(left).zip(items(right)).map_or(plain(false), |(a, b)| same_items(&a, &b))
        }
        _ => match (left.size(), right.size()) {
            (Some(a), Some(b)) => compare_sizes(a, b)
                .map_or(undefined(NOT_A_NUMBER), |order| sized(order.is_eq(), a, b)),
            _ => with(false, "of different types"),
        },
    }
}

fn text_and(text: &Value<'_>, other: &Value<'_>) -> ComparisonResult {
    let is_quoted = matches!(text, Value::Quoted(_));
    let text = text.text();
    match other {
        Value::Number(number) | Value::Numeral { number, .. } => {
            text_and_number(&text, is_quoted, *number, &other.text())
        }
        Value::Duration(nanos) => text_and_duration(&text, *nanos),
        Value::Bytes(_) => with(text == other.text(), "bytes compared by their hexadecimal digits"),
        Value::Json(json) => {
            let same = |text: &Json| json::equals(text, json);
            match read_document(&text) {
                Ok(text) => with(text.as_ref().is_some_and(same), "compared as JSON"),
                Err(limit) => open(limit),
            }
        }
        Value::List(list) => {
            let read = match read_document(&text) {
                Ok(read) => read.map(Value::Json),
                Err(limit) => return open(limit),
            };
            let same = read.as_ref().and_then(items).map(|read| same_items(&read, list));
            ComparisonResult { remark: Some("compared as JSON"), ..same.unwrap_or(plain(false)) }
        }
        Value::Nothing => plain(text.is_empty()),
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::Quoted(_) => {
            with(text == other.text(), "compared as text")
        }
    }
}

fn text_and_number(
    text: &str,
    is_quoted: bool,
    number: Number,
    spelling: &str,
) -> ComparisonResult {
    if let Some(nanos) = read_duration(text) {
        let same = number.equals(Number::Int(nanos));
        return with(same, "text read as a duration, the number counts as nanoseconds");
    }
    match read_number(text) {
        _ if is_quoted || text == spelling => with(text == spelling, "compared as text"),
        Some(held) => with(held.equals(number), "text read as a number"),
        None => with(false, "the text is not a number"),
    }
}

fn text_and_duration(text: &str, nanos: i128) -> ComparisonResult {
    if let Some(held) = read_duration(text) {
        return with(held == nanos, "text read as a duration");
    }
    match read_number(text) {
        Some(number) => {
            with(number.equals(Number::Int(nanos)), "text read as a number of nanoseconds")
        }
        None => with(false, "the text is not a duration"),
    }
}

fn ordered(left: &Value<'_>, comparator: Comparator, right: &Value<'_>) -> ComparisonResult {
    let (Some(a), Some(b)) = (left.size(), right.size()) else { return undefined(NO_ORDER) };
    let Some(order) = compare_sizes(a, b) else { return undefined(NOT_A_NUMBER) };
    let holds = match comparator {
        Comparator::Less => order.is_lt(),
        Comparator::AtMost => order.is_le(),
        Comparator::Greater => order.is_gt(),
        _ => order.is_ge(),
    };
    let is_text = |side: &Value<'_>| matches!(side, Value::Text(_) | Value::Quoted(_));
    if is_text(left) || is_text(right) {
        return with(holds, "text read by its value");
    }
    sized(holds, a, b)
}

/// Compares two sizes; `None` if one of them is NaN.
pub(crate) fn compare_sizes(a: Size, b: Size) -> Option<Ordering> {
    let number = |size| match size {
        Size::Number(number) => number,
        Size::Nanos(nanos) => Number::Int(nanos),
    };
    number(a).compare(number(b))
}

fn sized(holds: bool, a: Size, b: Size) -> ComparisonResult {
    match (a, b) {
        (Size::Number(_), Size::Number(_)) | (Size::Nanos(_), Size::Nanos(_)) => plain(holds),
        _ => with(holds, "the number counts as nanoseconds"),
    }
}

fn contains(whole: &Value<'_>, part: &Value<'_>) -> ComparisonResult {
    try_contains(whole, part).unwrap_or_else(open)
}

/// The error is the JSON limit that one of them exceeds.
fn try_contains(whole: &Value<'_>, part: &Value<'_>) -> Result<ComparisonResult, &'static str> {
    Ok(match (whole, part) {
        (Value::Null, _) => with(false, "there is no value"),
        (_, Value::List(wanted)) => {
            let read = read_text(whole)?.map(Value::Json);
            match items(read.as_ref().unwrap_or(whole)) {
                Some(held) => contains_all(&held, part, wanted),
                None => with(false, "of different types"),
            }
        }
        _ => {
            if let Some(part) = document(part)?
                && let Some(whole) = document(whole)?.or_else(|| list_as_document(whole))
            {
                return json::contains(&whole, &part)
                    .map(|holds| with(holds, "compared as JSON"))
                    .ok_or(TOO_LARGE);
            }
            match items(whole) {
                Some(held) => any_equal(&held, part),
                None => plain(whole.text().contains(&*part.text())),
            }
        }
    })
}

fn contains_all(held: &[Value<'_>], part: &Value<'_>, wanted: &[Value<'_>]) -> ComparisonResult {
    if held.len().saturating_mul(wanted.len()) > PAIRS_MAX {
        return open(TOO_LARGE);
    }
    let all = all_of(wanted.iter().map(|wanted| any_equal(held, wanted)));
    any_of([all, any_equal(held, part)].into_iter())
}

/// Whether one of many items equals a value.
pub(crate) fn is_among(value: &Value<'_>, items: &[Value<'_>]) -> ComparisonResult {
    let bytes = items.iter().map(|item| item.len() + value.len()).sum::<usize>() as u64;
    match budget::spend(COMPARE_STEPS * items.len() as u64 + bytes / 8) {
        true => any_equal(items, value),
        false => open(budget::OVER),
    }
}

fn any_equal(items: &[Value<'_>], value: &Value<'_>) -> ComparisonResult {
    any_of(items.iter().map(|item| equal(item, value)))
}

/// A true result decides; then an open one, then an undefined one.
fn any_of(each: impl Iterator<Item = ComparisonResult>) -> ComparisonResult {
    worst_of(each, &Outcome::True)
}

/// A false result decides; then an open one, then an undefined one.
fn all_of(each: impl Iterator<Item = ComparisonResult>) -> ComparisonResult {
    worst_of(each, &Outcome::False)
}

fn worst_of(each: impl Iterator<Item = ComparisonResult>, deciding: &Outcome) -> ComparisonResult {
    let weight = |outcome: &Outcome| match outcome {
        outcome if outcome == deciding => 3,
        Outcome::Open(_) => 2,
        Outcome::Undefined(_) => 1,
        Outcome::True | Outcome::False => 0,
    };
    let mut worst = plain(*deciding == Outcome::False);
    for one in each {
        if weight(&one.outcome) > weight(&worst.outcome) {
            worst = ComparisonResult { remark: None, ..one };
        }
        if worst.outcome == *deciding {
            break;
        }
    }
    worst
}

fn edge(
    whole: &Value<'_>,
    part: &Value<'_>,
    is_there: impl Fn(&str, &str) -> bool,
) -> ComparisonResult {
    if [whole, part].iter().any(|value| matches!(value, Value::List(_) | Value::Json(_))) {
        return undefined("a list or an object has no beginning and no end");
    }
    plain(is_there(&whole.text(), &part.text()))
}

fn matches(text: &Value<'_>, pattern: &Value<'_>, literal: Option<&Literal>) -> ComparisonResult {
    let text = text.text();
    if let Some(literal) = literal {
        return match literal.pattern() {
            Ok(pattern) => plain(pattern.is_match(&text)),
            Err(mistake) => undefined(mistake.to_owned()),
        };
    }
    match pattern::compile_for_once(&pattern.text()) {
        Ok(pattern) => plain(pattern.is_match(&text)),
        Err(mistake) => undefined(mistake),
    }
}

fn is_in(value: &Value<'_>, list: &Value<'_>) -> ComparisonResult {
    let read = match read_text(list) {
        Ok(read) => read.map(Value::Json),
        Err(limit) => return open(limit),
    };
    match items(read.as_ref().unwrap_or(list)) {
        Some(items) => any_equal(&items, value),
        None if *list == Value::Nothing => plain(false),
        None => undefined("`in` needs a list on its right"),
    }
}

/// Returns the items of a list of any kind.
fn items<'v>(value: &'v Value<'_>) -> Option<Cow<'v, [Value<'v>]>> {
    match value {
        Value::List(items) => Some(Cow::Borrowed(items)),
        Value::Json(Json::List(items)) => {
            Some(items.iter().map(|item| Value::from(item.clone())).collect())
        }
        _ => None,
    }
}

/// Returns the list or object of a value, or of its text.
fn document<'v>(value: &'v Value<'_>) -> Result<Option<Cow<'v, Json>>, &'static str> {
    match value {
        Value::Json(json) => Ok(Some(Cow::Borrowed(json))),
        _ => Ok(read_text(value)?.map(Cow::Owned)),
    }
}

fn read_text(value: &Value<'_>) -> Result<Option<Json>, &'static str> {
    match value {
        Value::Text(text) => read_document(text),
        Value::Quoted(text) => read_document(text),
        _ => Ok(None),
    }
}

fn is_nan(value: &Value<'_>) -> bool {
    matches!(value, Value::Number(number) if number.is_nan())
}

fn is_number_or_text(value: &Value<'_>) -> bool {
    let is_text = matches!(value, Value::Text(_) | Value::Quoted(_));
    is_text || matches!(value, Value::Number(_) | Value::Numeral { .. } | Value::Duration(_))
}

fn list_as_document<'v>(value: &Value<'_>) -> Option<Cow<'v, Json>> {
    matches!(value, Value::List(_)).then(|| Cow::Owned(value.to_json()))
}

fn same_items(a: &[Value<'_>], b: &[Value<'_>]) -> ComparisonResult {
    match a.len() == b.len() {
        true => all_of(a.iter().zip(b).map(|(a, b)| equal(a, b))),
        false => plain(false),
    }
}

fn is_empty(value: &Value<'_>) -> bool {
    match value {
        Value::Nothing => true,
        Value::List(items) => items.is_empty(),
        Value::Json(Json::List(items)) => items.is_empty(),
        _ => false,
    }
}

fn plain(holds: bool) -> ComparisonResult {
    let outcome = if holds { Outcome::True } else { Outcome::False };
    ComparisonResult { outcome, remark: None }
}

fn with(holds: bool, remark: &'static str) -> ComparisonResult {
    ComparisonResult { remark: Some(remark), ..plain(holds) }
}

fn undefined(reason: impl Into<Cow<'static, str>>) -> ComparisonResult {
    ComparisonResult { outcome: Outcome::Undefined(reason.into()), remark: None }
}

fn open(reason: &'static str) -> ComparisonResult {
    ComparisonResult { outcome: Outcome::Open(reason), remark: None }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, compare};
    use crate::value::{
        Number, Value, json,
        operator::Comparator::{
            self, AtLeast, AtMost, Contains, EndsWith, Equal, Greater, In, Less, Matches,
            StartsWith,
        },
    };

    const ORDERS: [(Comparator, Comparator); 5] =
        [(Equal, Equal), (Less, Greater), (Greater, Less), (AtMost, AtLeast), (AtLeast, AtMost)];

    fn double(double: f64) -> Value<'static> {
        Value::Number(Number::Double(double))
    }

    fn int(int: i128) -> Value<'static> {
        Value::Number(Number::Int(int))
    }

    fn text(text: &str) -> Value<'_> {
        Value::borrowed(text)
    }

    fn document(text: &str) -> Value<'static> {
        json::read(text).expect(text).into()
    }

    fn numeral(spelling: &str) -> Value<'_> {
        Value::Numeral { number: Number::Double(spelling.parse().expect(spelling)), spelling }
    }

    #[test]
    fn with_what_is_not_a_number_nothing_holds() {
        let others = [
            double(f64::NAN),
            double(1.0),
            int(0),
            Value::Duration(5),
            text("1"),
            text("NaN"),
            Value::Bool(true),
        ];
        for (comparator, _) in ORDERS {
            for other in &others {
                let nan = double(f64::NAN);
                assert!(!compare(&nan, comparator, other).holds(), "NaN {comparator:?} {other:?}");
                assert!(!compare(other, comparator, &nan).holds(), "{other:?} {comparator:?} NaN");
            }
        }
        // NaN cannot be compared: neither `!=` nor `not (x < 1)` nor `not in` holds.
        let nan = double(f64::NAN);
        let list = Value::List(vec![int(1), text("a")]);
        for (left, comparator, right) in [
            (&nan, Less, &int(1)),
            (&nan, Equal, &int(1)),
            (&text("x"), Equal, &nan),
            (&nan, In, &list),
            (&list, Contains, &nan),
        ] {
            let outcome = compare(left, comparator, right).outcome;
            assert!(matches!(outcome, Outcome::Undefined(_)), "{left:?} {comparator:?} {right:?}");
        }
    }

    #[test]
    fn both_directions_agree() {
        let sides = [
            double(12.5),
            text("12.50"),
            text("12ns"),
            text("abc"),
            text("[1, 2]"),
            Value::Quoted("12.50"),
            numeral("12.5"),
            Value::Duration(12),
            Value::Bool(false),
            Value::Bytes(b"ab".as_slice().into()),
            Value::Null,
            Value::Nothing,
            Value::List(vec![int(1), int(2)]),
            document("[1,2]"),
            document(r#"{"a":1}"#),
        ];
        for a in &sides {
            for b in &sides {
                for (comparator, mirrored) in ORDERS {
                    let (there, back) = (compare(a, comparator, b), compare(b, mirrored, a));
                    assert_eq!(there.outcome, back.outcome, "{a:?} {comparator:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn values_are_equal() {
        let list = |items: &[&'static str]| {
            Value::List(items.iter().map(|item| Value::Quoted(item)).collect())
        };
        for (left, right, expected) in [
            (double(12.5), text("12.50"), true),
            (double(12.5), Value::Quoted("12.50"), false),
            (double(12.5), Value::Quoted("12.5"), true),
            (text("007"), numeral("7"), false),
            (text("007"), numeral("007"), true),
            (int(9_007_199_254_740_993), double(9_007_199_254_740_992.0), false),
            (Value::Duration(10_000_000), Value::Quoted("10ms"), true),
            (Value::Duration(10_000_000), int(10_000_000), true),
            (Value::Quoted("10ms"), int(10_000_000), true),
            (text("10 ms"), Value::Duration(10_000_000), false),
            (Value::Bool(true), text("true"), true),
            (Value::Bool(true), text("True"), false),
            (Value::Null, Value::Null, true),
            (Value::Null, text("null"), true),
            (Value::Null, text(""), false),
            (Value::Nothing, text(""), true),
            (Value::Nothing, Value::List(Vec::new()), true),
            (Value::Nothing, document("[]"), true),
            (Value::Nothing, int(0), false),
            (Value::Bytes(b"\x01\xff".as_slice().into()), text("01ff"), true),
            (list(&["1", "a"]), Value::List(vec![int(1), text("a")]), true),
            (list(&["a", "b"]), list(&["b", "a"]), false),
            (document("[1,2]"), Value::List(vec![int(1), double(2.0)]), true),
            (document("[1,2]"), text("[1, 2.0]"), true),
            (document(r#"{"a":1,"b":2}"#), text(r#"{"b":2,"a":1}"#), true),
            (document(r#"{"a":1}"#), text(r#"{"a":"1"}"#), false),
            (text(r#"{"a":1}"#), text(r#"{ "a": 1 }"#), false),
            (Value::Bool(true), int(1), false),
        ] {
            assert_eq!(compare(&left, Equal, &right).holds(), expected, "{left:?} = {right:?}");
        }
    }

    #[test]
    fn values_contain_and_match() {
        let abc = || Value::List(vec![text("a"), text("b"), text("c")]);
        for (left, comparator, right, expected) in [
            (text("abc"), Contains, text("b"), true),
            (int(1_500), Contains, int(50), true),
            (Value::Duration(5_000_000), Contains, int(5), true),
            (text("[1,2]"), Contains, text("1,2"), true),
            (abc(), Contains, text("b"), true),
            (abc(), Contains, text(""), false),
            (abc(), Contains, Value::List(vec![text("c"), text("a")]), true),
            (abc(), Contains, Value::List(vec![text("c"), text("d")]), false),
            (Value::List(vec![abc()]), Contains, abc(), true),
            (document(r#"["ab"]"#), Contains, text("a"), false),
            (document(r#"["ab"]"#), Contains, Value::List(vec![text("ab")]), true),
            (Value::List(vec![document(r#"{"a":1,"b":2}"#)]), Contains, text(r#"{"b":2}"#), true),
            (text(r#"{ "a": 1, "b": 2 }"#), Contains, text(r#"{"a":1}"#), true),
            (Value::Null, Contains, text("u"), false),
            (Value::Nothing, Contains, text(""), true),
            (int(1), Contains, Value::List(vec![int(1)]), false),
            (text("abc"), StartsWith, text("ab"), true),
            (int(503), StartsWith, int(5), true),
            (text("abc"), EndsWith, text("bc"), true),
            (text("abc"), EndsWith, text("ab"), false),
            (text("abc"), Matches, text("b"), true),
            (text("abc"), Matches, text("^b"), false),
            (int(503), Matches, text("^5..$"), true),
            (text("b"), In, abc(), true),
            (text("d"), In, abc(), false),
            (int(2), In, text("[1, 2]"), true),
            (int(2), In, document("[1,2]"), true),
            (int(2), In, Value::Nothing, false),
        ] {
            let holds = compare(&left, comparator, &right).holds();
            assert_eq!(holds, expected, "{left:?} {comparator:?} {right:?}");
        }
    }

    #[test]
    fn what_cannot_be_compared_is_undefined() {
        let list = Value::List(vec![int(1)]);
        for (left, comparator, right, expected) in [
            (text("abc"), Greater, int(5), "only numbers and durations have an order"),
            (Value::Bool(true), Less, int(5), "only numbers and durations have an order"),
            (Value::Nothing, Less, int(5), "only numbers and durations have an order"),
            (list.clone(), AtLeast, int(1), "only numbers and durations have an order"),
            (list, StartsWith, int(1), "a list or an object has no beginning and no end"),
            (text("a"), In, text("abc"), "`in` needs a list on its right"),
            (text("a"), Matches, text("("), "the pattern is no regular expression: unclosed group"),
        ] {
            let outcome = compare(&left, comparator, &right).outcome;
            assert_eq!(outcome, Outcome::Undefined(expected.into()), "{left:?} {comparator:?}");
        }
        let long = Value::List(vec![int(1); 2_000]);
        assert_eq!(compare(&long, Contains, &long).outcome, Outcome::Open("too large to compare"));
    }
}

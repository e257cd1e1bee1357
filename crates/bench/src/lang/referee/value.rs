//! Values, and their comparison by the reference.

use std::cmp::Ordering;

use super::{document::Operator, truth::Truths};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum RefereeValue {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    /// In nanoseconds.
    Duration(i128),
    List(Vec<RefereeValue>),
    Map(Vec<(String, RefereeValue)>),
}

impl RefereeValue {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(super) fn from_json(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(bool) => Self::Bool(*bool),
            serde_json::Value::Number(number) => number
                .as_i64()
                .map_or_else(|| Self::Double(number.as_f64().unwrap_or(f64::NAN)), Self::Int),
            serde_json::Value::String(text) => Self::Text(text.clone()),
            serde_json::Value::Array(items) => {
                Self::List(items.iter().map(Self::from_json).collect())
            }
            serde_json::Value::Object(entries) => Self::Map(
                entries.iter().map(|(key, value)| (key.clone(), Self::from_json(value))).collect(),
            ),
        }
    }

    /// Returns the value as a number; a duration in nanoseconds.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Int(int) => Some(*int as f64),
            Self::Double(double) => Some(*double),
            Self::Duration(nanos) => Some(*nanos as f64),
            _ => None,
        }
    }
}

/// Evaluates `left operator right` for two present values.
pub(super) fn compare(left: &RefereeValue, operator: Operator, right: &RefereeValue) -> Truths {
    let ordered = |is: fn(Ordering) -> bool| match order(left, right) {
        Some(ordering) => Truths::of(is(ordering)),
        None => Truths::UNDEFINED,
    };
    match operator {
        Operator::Equal => Truths::of(equal(left, right)),
        Operator::Unequal => Truths::of(!equal(left, right)),
        Operator::Less => ordered(Ordering::is_lt),
        Operator::LessOrEqual => ordered(Ordering::is_le),
        Operator::Greater => ordered(Ordering::is_gt),
        Operator::GreaterOrEqual => ordered(Ordering::is_ge),
        Operator::Contains => contains(left, right),
        Operator::In => contains(right, left),
        Operator::StartsWith => texts(left, right, |text, start| text.starts_with(start)),
        Operator::EndsWith => texts(left, right, |text, end| text.ends_with(end)),
        Operator::Matches => texts(left, right, |text, pattern| find(text, pattern).is_some()),
    }
}

fn texts(left: &RefereeValue, right: &RefereeValue, holds: impl Fn(&str, &str) -> bool) -> Truths {
    match (left, right) {
        (RefereeValue::Text(left), RefereeValue::Text(right)) => Truths::of(holds(left, right)),
        _ => Truths::UNDEFINED,
    }
}

pub(super) fn equal(left: &RefereeValue, right: &RefereeValue) -> bool {
    match (left, right) {
        (RefereeValue::Null, RefereeValue::Null) => true,
        (RefereeValue::Bool(left), RefereeValue::Bool(right)) => left == right,
        (RefereeValue::Text(left), RefereeValue::Text(right)) => left == right,
        (RefereeValue::Text(text), other) | (other, RefereeValue::Text(text)) => match other {
            RefereeValue::Duration(nanos) => duration_in(text) == Some(*nanos),
            RefereeValue::Int(_) | RefereeValue::Double(_) => number_in(text, Spelling::Plain)
                .is_some_and(|number| numbers(&number, other).is_eq()),
            _ => false,
        },
        (RefereeValue::List(left), RefereeValue::List(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (RefereeValue::Map(left), RefereeValue::Map(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| {
                    right.iter().any(|(other, there)| key == other && equal(value, there))
                })
        }
        _ => left.number().is_some() && right.number().is_some() && numbers(left, right).is_eq(),
    }
}

fn order(left: &RefereeValue, right: &RefereeValue) -> Option<Ordering> {
    match (left, right) {
        (RefereeValue::Text(_), RefereeValue::Text(_)) => None,
        (RefereeValue::Text(text), other) => order_of_text(text, other),
        (other, RefereeValue::Text(text)) => order_of_text(text, other).map(Ordering::reverse),
        _ => (left.number().is_some() && right.number().is_some()).then(|| numbers(left, right)),
    }
}

fn order_of_text(text: &str, other: &RefereeValue) -> Option<Ordering> {
    other.number()?;
    if let (RefereeValue::Duration(nanos), Some(duration)) = (other, duration_in(text)) {
        return Some(duration.cmp(nanos));
    }
    number_in(text, Spelling::Any).map(|number| numbers(&number, other))
}

/// Compares exactly: an integer is not rounded to a double.
fn numbers(left: &RefereeValue, right: &RefereeValue) -> Ordering {
    let whole = |it: &RefereeValue| match it {
        RefereeValue::Int(int) => Some(i128::from(*int)),
        RefereeValue::Duration(nanos) => Some(*nanos),
        _ => None,
    };
    let beside = |whole: i128, double: f64| {
        let floor = double.floor();
        whole.cmp(&(floor as i128)).then(if double > floor {
            Ordering::Less
        } else {
            Ordering::Equal
        })
    };
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => beside(left, right.number().unwrap_or(f64::NAN)),
        (None, Some(right)) => beside(right, left.number().unwrap_or(f64::NAN)).reverse(),
        (None, None) => left.number().partial_cmp(&right.number()).unwrap_or(Ordering::Equal),
    }
}

/// The accepted spelling of a number in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// For `=`: without a plus sign and without zeros in front.
    Plain,
    /// For an order.
    Any,
}

fn number_in(text: &str, spelling: Spelling) -> Option<RefereeValue> {
    let digits = text
        .strip_prefix('-')
        .or_else(|| text.strip_prefix('+').filter(|_| spelling == Spelling::Any));
    let digits = digits.unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let is_digits = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = whole == "0" || !whole.starts_with('0');
    if !is_digits(whole)
        || !fraction.is_none_or(is_digits)
        || (spelling == Spelling::Plain && !is_plain)
    {
        return None;
    }
    match fraction {
        None => text.parse().ok().map(RefereeValue::Int),
        Some(_) => text.parse().ok().map(RefereeValue::Double),
    }
}

fn duration_in(text: &str) -> Option<i128> {
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    units.iter().find_map(|(unit, size)| {
        let digits = text.strip_suffix(unit)?;
        digits.parse::<u32>().ok().map(|number| i128::from(number) * size)
    })
}

/// A list contains its items, a text its substrings, a JSON document another one that is a part of it.
fn contains(outer: &RefereeValue, inner: &RefereeValue) -> Truths {
    match (outer, inner) {
        (RefereeValue::List(items), RefereeValue::List(wanted)) => {
            Truths::of(wanted.iter().all(|one| items.iter().any(|item| equal(item, one))))
        }
        (RefereeValue::List(items), one) => Truths::of(items.iter().any(|item| {
            equal(item, one)
                || matches!((item, json(one)), (RefereeValue::Map(_), Some(part)) if is_part(item, &part))
        })),
        (RefereeValue::Text(text), RefereeValue::Text(part)) => match (json(outer), json(inner)) {
            (Some(whole), Some(part)) => Truths::of(is_part(&whole, &part)),
            _ => Truths::of(text.contains(part.as_str())),
        },
        (RefereeValue::Map(_), RefereeValue::Text(_)) => match json(inner) {
            Some(part) => Truths::of(is_part(outer, &part)),
            None => Truths::UNDEFINED,
        },
        _ => Truths::UNDEFINED,
    }
}

/// Parses the JSON object or list in a text.
pub(super) fn json(value: &RefereeValue) -> Option<RefereeValue> {
    let RefereeValue::Text(text) = value else { return None };
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    (json.is_object() || json.is_array()).then(|| RefereeValue::from_json(&json))
}

fn is_part(whole: &RefereeValue, part: &RefereeValue) -> bool {
    match (whole, part) {
        (RefereeValue::Map(whole), RefereeValue::Map(part)) => part.iter().all(|(key, value)| {
            whole.iter().any(|(other, there)| key == other && is_part(there, value))
        }),
        _ => equal(whole, part),
    }
}

/// Evaluates a path on a JSON document; none where it has no match.
pub(super) fn json_path(document: &RefereeValue, path: &str) -> Option<RefereeValue> {
    let mut found = vec![document.clone()];
    let mut is_list = false;
    for part in path.trim_start_matches('$').replace('[', ".[").split('.').skip(1) {
        let step = |it: &RefereeValue| -> Vec<RefereeValue> {
            match (it, part.strip_prefix('[').map(|index| index.trim_end_matches(']'))) {
                (RefereeValue::List(items), Some("*")) => items.clone(),
                (RefereeValue::List(items), Some(index)) => index
                    .parse()
                    .ok()
                    .and_then(|index: usize| items.get(index))
                    .cloned()
                    .into_iter()
                    .collect(),
                (RefereeValue::Map(entries), None) => entries
                    .iter()
                    .filter(|(key, _)| key == part)
                    .map(|(_, value)| value.clone())
                    .collect(),
                _ => Vec::new(),
            }
        };
        is_list |= part == "[*]";
        found = found.iter().flat_map(step).collect();
    }
    if found.is_empty() {
        return None;
    }
    if is_list { Some(RefereeValue::List(found)) } else { found.into_iter().next() }
}

/// The patterns of generated documents; a regex dependency would be another interpretation of patterns.
pub(super) const PATTERNS: [&str; 6] = ["^[a-z]+$", "[0-9]+", "^c", "5$", "^$", "Q"];

/// Returns the first match of one of [`PATTERNS`] in the text.
pub(super) fn find(text: &str, pattern: &str) -> Option<String> {
    match pattern {
        "^[a-z]+$" => {
            let is_match = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
            is_match.then(|| text.to_owned())
        }
        "[0-9]+" => {
            let start = text.find(|char: char| char.is_ascii_digit())?;
            let rest = &text[start..];
            let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
            Some(rest[..end].to_owned())
        }
        "^c" => text.starts_with('c').then(|| "c".to_owned()),
        "5$" => text.ends_with('5').then(|| "5".to_owned()),
        "^$" => text.is_empty().then(String::new),
        "Q" => text.contains('Q').then(|| "Q".to_owned()),
        _ => None,
    }
}

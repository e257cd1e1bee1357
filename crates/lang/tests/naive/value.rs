//! Values and comparisons, written out: equality, order, containment.

use std::cmp::Ordering;

use model::trace::Value;
use serde_json::Value as Json;

use super::condition::{both, either};

#[derive(Clone, Debug)]
pub(crate) enum Val {
    /// The literal, and an attribute that was sent without a value.
    Null,
    Bool(bool),
    Int(i128),
    Double(f64),
    Nanos(i128),
    Text(String),
    Bytes(Vec<u8>),
    /// A list of an attribute, or of a text that contains JSON.
    List(Vec<Val>),
    Map(Vec<(String, Val)>),
    /// A list as written in a selector.
    Written(Vec<Side>),
}

/// One side of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) val: Val,
    /// The spelling, if it is a literal.
    pub(crate) spelling: Option<String>,
}

impl Val {
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Empty => Self::Null,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Int(int) => Self::Int((*int).into()),
            Value::Double(double) => Self::Double(*double),
            Value::Str(text) => Self::Text(text.clone()),
            Value::Bytes(bytes) => Self::Bytes(bytes.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::of_inner).collect()),
            Value::Map(entries) => {
                let entry = |(key, value): &(String, Value)| (key.clone(), Self::of_inner(value));
                Self::Map(entries.iter().map(entry).collect())
            }
        }
    }

    /// Within a list or map, bytes become their hexadecimal digits.
    fn of_inner(value: &Value) -> Self {
        match Self::of(value) {
            bytes @ Self::Bytes(_) => Self::Text(bytes.plain()),
            other => other,
        }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Returns the value as plain text.
    fn plain(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(bool) => bool.to_string(),
            Self::Int(int) | Self::Nanos(int) => int.to_string(),
            Self::Double(double) => double.to_string(),
            Self::Text(text) => text.clone(),
            Self::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Self::List(_) | Self::Map(_) | Self::Written(_) => self.json(),
        }
    }

    /// Returns the value as JSON without whitespace.
    fn json(&self) -> String {
        match self {
            Self::Text(text) => Json::String(text.clone()).to_string(),
            Self::Double(double) if !double.is_finite() => "null".to_owned(),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::json).collect();
                format!("[{}]", items.join(","))
            }
            Self::Map(entries) => {
                let entry = |(key, val): &(String, Self)| format!("\"{key}\":{}", val.json());
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(","))
            }
            Self::Written(items) => {
                Self::List(items.iter().map(|it| it.val.clone()).collect()).json()
            }
            _ => self.plain(),
        }
    }

    /// Returns the list or map of a value, or of its text.
    fn document(&self) -> Option<Self> {
        match self {
            Self::List(_) | Self::Map(_) => Some(self.clone()),
            Self::Text(text) => {
                let read = of_json(&serde_json::from_str(text).ok()?);
                matches!(read, Self::List(_) | Self::Map(_)).then_some(read)
            }
            _ => None,
        }
    }

    fn items(&self) -> Option<Vec<Side>> {
        match self {
            Self::List(items) => Some(items.iter().cloned().map(Side::found).collect()),
            Self::Written(items) => Some(items.clone()),
            _ => None,
        }
    }
}

fn of_json(json: &Json) -> Val {
    match json {
        Json::Null => Val::Null,
        Json::Bool(bool) => Val::Bool(*bool),
        Json::Number(number) => match number.as_i64() {
            Some(int) => Val::Int(int.into()),
            None => Val::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Val::text(text),
        Json::Array(items) => Val::List(items.iter().map(of_json).collect()),
        Json::Object(entries) => {
            Val::Map(entries.iter().map(|(key, json)| (key.clone(), of_json(json))).collect())
        }
    }
}

impl Side {
    pub(crate) fn found(val: Val) -> Self {
        Self { val, spelling: None }
    }

    fn plain(&self) -> String {
        match (&self.val, &self.spelling) {
            (Val::Int(_) | Val::Double(_), Some(spelling)) => spelling.clone(),
            (val, _) => val.plain(),
        }
    }
}

/// Whether they are equal; `None` if one is NaN and the other a number or a text.
pub(crate) fn equal(left: &Side, right: &Side) -> Option<bool> {
    use Val::{Bool, Bytes, Double, Int, List, Map, Nanos, Null, Text, Written};
    Some(match (&left.val, &right.val) {
        (Double(nan), Int(_) | Double(_) | Nanos(_) | Text(_)) if nan.is_nan() => return None,
        (Int(_) | Double(_) | Nanos(_) | Text(_), Double(nan)) if nan.is_nan() => return None,
        (Text(a), Text(b)) => a == b,
        (Text(text), Bool(_) | Bytes(_) | Null) => *text == right.val.plain(),
        (Text(text), Nanos(nanos)) => match (duration(text), number(text, Spelled::Strictly)) {
            (Some(held), _) => held == *nanos,
            (None, Some(held)) => is_same(&held, &Int(*nanos)),
            (None, None) => false,
        },
        (Text(text), Int(_) | Double(_)) => {
            let is_quoted = left.spelling.is_some();
            let held = number(text, Spelled::Strictly).filter(|_| !is_quoted);
            let same = |held: Option<Val>| held.is_some_and(|held| is_same(&held, &right.val));
            same(duration(text).map(Int)) || same(held) || *text == right.plain()
        }
        (Text(_), List(_) | Map(_) | Written(_)) => match left.val.document() {
            Some(document) => return equal(&Side::found(document), right),
            None => false,
        },
        (_, Text(_)) => return equal(right, left),
        (Null, Null) => true,
        (Bool(a), Bool(b)) => a == b,
        (Bytes(a), Bytes(b)) => a == b,
        (List(_) | Map(_), List(_) | Map(_)) => same_document(&left.val, &right.val),
        (a, b) => match (a.items(), b.items()) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                return both(&(0..a.len()).map(|at| equal(&a[at], &b[at])).collect::<Vec<_>>());
            }
            (Some(_), Some(_)) => false,
            _ => is_same(a, b),
        },
    })
}

/// Whether one of the items is equal.
pub(crate) fn is_among(side: &Side, items: &[Side]) -> Option<bool> {
    either(&items.iter().map(|item| equal(item, side)).collect::<Vec<_>>())
}

/// Compares by size: `Err` if one of them has no size, `Ok(None)` if one of them is NaN.
pub(crate) fn ordered(left: &Side, right: &Side) -> Result<Option<Ordering>, NoSize> {
    let (a, b) = (size(&left.val).ok_or(NoSize)?, size(&right.val).ok_or(NoSize)?);
    Ok(order(&a, &b))
}

/// The value has no size. Only numbers and durations have one, and texts that contain one.
#[derive(Debug)]
pub(crate) struct NoSize;

pub(crate) fn contains(left: &Side, right: &Side) -> Option<bool> {
    if matches!(left.val, Val::Null) {
        return Some(false);
    }
    if let Val::Written(wanted) = &right.val {
        let document = left.val.document().unwrap_or_else(|| left.val.clone());
        let Some(held) = document.items() else { return Some(false) };
        let all: Vec<_> = wanted.iter().map(|wanted| is_among(wanted, &held)).collect();
        return either(&[both(&all), is_among(right, &held)]);
    }
    if let (Some(whole), Some(part)) = (left.val.document(), right.val.document()) {
        let items = |val: &Val| match val {
            Val::List(items) => items.clone(),
            other => vec![other.clone()],
        };
        let is_item = matches!(part, Val::List(_))
            && items(&whole).iter().any(|item| same_document(item, &part));
        let is_in = |wanted: &Val| items(&whole).iter().any(|item| is_found(wanted, item));
        return Some(is_item || items(&part).iter().all(is_in));
    }
    match left.val.items() {
        Some(items) => is_among(right, &items),
        None => Some(left.plain().contains(&right.plain())),
    }
}

/// Whether one starts or ends with the other; `None` if one is a list or a map.
pub(crate) fn has_edge(
    left: &Side,
    right: &Side,
    is_there: fn(&str, &str) -> bool,
) -> Option<bool> {
    let has_none = |side: &Side| matches!(side.val, Val::List(_) | Val::Map(_) | Val::Written(_));
    let has_edges = !has_none(left) && !has_none(right);
    has_edges.then(|| is_there(&left.plain(), &right.plain()))
}

/// Whether the text contains one of the words, with `^` and `$` as anchors and `.` for any character.
pub(crate) fn matches(left: &Side, pattern: &str) -> bool {
    let text: Vec<char> = left.plain().chars().collect();
    pattern.split('|').any(|word| {
        let (word, at_start) = word.strip_prefix('^').map_or((word, false), |word| (word, true));
        let (word, at_end) = word.strip_suffix('$').map_or((word, false), |word| (word, true));
        let word: Vec<char> = word.chars().collect();
        (0..=text.len()).any(|start| {
            let end = start + word.len();
            end <= text.len()
                && (!at_start || start == 0)
                && (!at_end || end == text.len())
                && text[start..end].iter().zip(&word).all(|(is, want)| is == want || *want == '.')
        })
    })
}

fn size(val: &Val) -> Option<Val> {
    match val {
        Val::Int(_) | Val::Double(_) | Val::Nanos(_) => Some(val.clone()),
        Val::Text(text) => {
            number(text, Spelled::Loosely).or_else(|| duration(text).map(Val::Nanos))
        }
        _ => None,
    }
}

fn is_same(left: &Val, right: &Val) -> bool {
    order(left, right) == Some(Ordering::Equal)
}

/// Compares numbers; a duration counts as its nanoseconds.
fn order(left: &Val, right: &Val) -> Option<Ordering> {
    match (left, right) {
        (Val::Int(a) | Val::Nanos(a), Val::Int(b) | Val::Nanos(b)) => Some(a.cmp(b)),
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(b),
        (Val::Double(_), Val::Int(_) | Val::Nanos(_)) => order(right, left).map(Ordering::reverse),
        (Val::Int(a) | Val::Nanos(a), Val::Double(b)) => {
            if b.is_nan() || b.is_infinite() {
                return 0.0.partial_cmp(b);
            }
            // The samples have no values near the limits of `i128`.
            let whole = a.cmp(&(b.trunc() as i128));
            Some(whole.then(0.0.partial_cmp(&b.fract())?))
        }
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum Spelled {
    Strictly,
    Loosely,
}

/// Parses `-`, digits and an optional fraction; loosely also a leading `+` or leading zeros.
fn number(text: &str, spelled: Spelled) -> Option<Val> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let is_padded = whole.len() > 1 && whole.starts_with('0');
    if matches!(spelled, Spelled::Strictly) && (text.starts_with('+') || is_padded) {
        return None;
    }
    if fraction.chars().all(|c| c == '0') {
        return whole.parse::<i128>().ok().map(|int| Val::Int(sign * int));
    }
    text.parse().ok().map(Val::Double)
}

/// Parses a duration. The samples only have durations of one part.
fn duration(text: &str) -> Option<i128> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let nanos = match &text[unit..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    text[..unit].parse::<i128>().ok().map(|count| count * nanos)
}

/// Compares two documents: numbers by value, without conversion.
fn same_document(a: &Val, b: &Val) -> bool {
    match (a, b) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Text(a), Val::Text(b)) => a == b,
        (Val::List(a), Val::List(b)) => {
            a.len() == b.len() && (0..a.len()).all(|at| same_document(&a[at], &b[at]))
        }
        (Val::Map(a), Val::Map(b)) => {
            let within = |a: &[(String, Val)], b: &[(String, Val)]| {
                a.iter().all(|(key, a)| b.iter().any(|(k, b)| key == k && same_document(a, b)))
            };
            within(a, b) && within(b, a)
        }
        _ => is_same(a, b),
    }
}

/// Whether an item contains the wanted value: maps by their keys, all other values by equality.
fn is_found(wanted: &Val, item: &Val) -> bool {
    match (wanted, item) {
        (Val::Map(wanted), Val::Map(item)) => wanted
            .iter()
            .all(|(key, wanted)| item.iter().any(|(k, item)| key == k && is_found(wanted, item))),
        _ => same_document(wanted, item),
    }
}

//! Lists, maps and texts as JSON, and what it means that one document contains another.

use std::cmp::Ordering;

use model::trace::ValueRef;
use serde_json::{Map, Value as Json};

use crate::{numeral::Number, value::Value};

/// How many values are compared at the most to find out whether one document contains another.
const COMPARISONS_MAX: usize = 4_000_000;

/// A value of a span as JSON. Bytes become their hexadecimal digits, what is not a number becomes null.
pub(crate) fn of_value(value: &Value<'_>) -> Json {
    match value {
        Value::Nothing => Json::Null,
        Value::Bool(bool) => Json::Bool(*bool),
        Value::Number(Number::Int(int)) => whole(*int),
        Value::Number(Number::Double(double)) => Json::from(*double),
        Value::List(values) => Json::Array(values.iter().map(of_ref).collect()),
        Value::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, value)| (key.to_owned(), of_ref(value)))
                .collect::<Map<_, _>>(),
        ),
        Value::Text(_) | Value::Bytes(_) | Value::Duration(_) => {
            Json::String(value.text().into_owned())
        }
    }
}

/// The list or object that a value is, or holds as text.
pub(crate) fn read(value: &Value<'_>) -> Option<Json> {
    match value {
        Value::List(_) | Value::Map(_) => Some(of_value(value)),
        // Most texts are no JSON, and the first character of most of them says so.
        Value::Text(text) if text.trim_start().starts_with(['{', '[']) => {
            serde_json::from_str(text).ok()
        }
        _ => None,
    }
}

/// Whether each object of `part` is found in some object of `whole`; nothing where that takes too long to find out.
///
/// An object stands for a list of one. It is found in another if that has all its keys with the same values, objects
/// within objects again by their keys; lists within objects have to be equal.
pub(crate) fn contains(whole: &Json, part: &Json) -> Option<bool> {
    let (candidates, wanted) = (as_list(whole), as_list(part));
    // Each wanted one is held against all of the whole, in the worst case down to its last value.
    if wanted.len() > 1 && wanted.len().saturating_mul(size(whole)) > COMPARISONS_MAX {
        return None;
    }
    Some(wanted.iter().all(|wanted| candidates.iter().any(|item| is_found(wanted, item))))
}

/// Equality with numbers by their value: `1` equals `1.0`. Whole numbers are compared exactly as far as 64 bits hold
/// them; larger ones in JSON are read as the nearest double, as most programs read them.
pub(crate) fn equals(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => {
            let same = number(a).zip(number(b)).and_then(|(a, b)| a.compare(b));
            same.is_some_and(Ordering::is_eq)
        }
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equals(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equals(a, b)))
        }
        _ => a == b,
    }
}

fn as_list(json: &Json) -> &[Json] {
    match json {
        Json::Array(items) => items,
        other => std::slice::from_ref(other),
    }
}

fn is_found(wanted: &Json, item: &Json) -> bool {
    match (wanted, item) {
        (Json::Object(wanted), Json::Object(item)) => wanted
            .iter()
            .all(|(key, wanted)| item.get(key).is_some_and(|item| is_found(wanted, item))),
        _ => equals(wanted, item),
    }
}

fn of_ref(value: ValueRef<'_>) -> Json {
    of_value(&Value::from(value))
}

fn whole(int: i128) -> Json {
    let number = serde_json::Number::from_i128(int);
    number.map_or_else(|| Json::String(int.to_string()), Json::Number)
}

fn number(number: &serde_json::Number) -> Option<Number> {
    number.as_i128().map(Number::Int).or_else(|| number.as_f64().map(Number::Double))
}

/// How many values a document holds, itself included.
fn size(json: &Json) -> usize {
    match json {
        Json::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Json::Object(entries) => 1 + entries.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

//! Lists, maps and texts as JSON, and what it means that one document contains another.

use model::trace::ValueRef;
use serde_json::{Map, Value as Json};

use crate::{numeral::Number, value::Value};

/// A value of a span as JSON. Bytes become their hexadecimal digits, what is not a number becomes null.
pub(crate) fn of_value(value: &Value<'_>) -> Json {
    match value {
        Value::Nothing => Json::Null,
        Value::Bool(bool) => Json::Bool(*bool),
        Value::Number(Number::Int(int)) => Json::from(*int),
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

/// Whether each object of `part` is found in some object of `whole`.
///
/// An object stands for a list of one. It is found in another if that has all its keys with the same values, objects
/// within objects again by their keys; lists within objects have to be equal.
pub(crate) fn contains(whole: &Json, part: &Json) -> bool {
    let candidates = as_list(whole);
    as_list(part).iter().all(|wanted| candidates.iter().any(|item| is_found(wanted, item)))
}

/// Equality with numbers by their value: `1` equals `1.0`.
pub(crate) fn equals(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => {
            a == b
                || number(a)
                    .zip(number(b))
                    .is_some_and(|(a, b)| a.compare(b).is_some_and(|o| o.is_eq()))
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

fn number(number: &serde_json::Number) -> Option<Number> {
    number.as_i64().map(Number::Int).or_else(|| number.as_f64().map(Number::Double))
}

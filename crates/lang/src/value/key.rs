//! Keys for distinguishing many values: equal values have the same key.
//!
//! Numbers are equal by value, whatever their type, and objects are equal whatever the order of their keys. A text and a number
//! are different values, also if the text contains the number: `"7"` and `"7.0"` both equal 7, but not each other.

use std::fmt::Write;

use super::{Json, Number, Value};

/// Returns the key of a value. Values that are not equal never have the same key.
pub(crate) fn key(value: &Value<'_>) -> String {
    let mut key = String::new();
    write_value(value, &mut key);
    key
}

fn write_value(value: &Value<'_>, key: &mut String) {
    match value {
        Value::Nothing => key.push_str("nothing"),
        Value::Duration(nanos) => write_all(key, format_args!("{nanos}ns")),
        Value::Bytes(bytes) => write_all(key, format_args!("bytes {bytes:?}")),
        Value::List(items) => write_list(items, key, write_value),
        Value::Json(json) => write_json(json, key),
        Value::Number(number) | Value::Numeral { number, .. } => write_number(*number, key),
        Value::Text(text) => write_all(key, format_args!("{text:?}")),
        Value::Quoted(text) => write_all(key, format_args!("{text:?}")),
        Value::Null => write_json(&Json::Null, key),
        Value::Bool(bool) => write_json(&Json::Bool(*bool), key),
    }
}

fn write_json(json: &Json, key: &mut String) {
    match json {
        Json::Null => key.push_str("null"),
        Json::Bool(bool) => write_all(key, format_args!("{bool}")),
        Json::Number(number) => write_number(*number, key),
        Json::Text(text) => write_all(key, format_args!("{text:?}")),
        Json::List(items) => write_list(items, key, write_json),
        Json::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            key.push('{');
            for (name, value) in entries {
                write_all(key, format_args!("{name:?}:"));
                write_json(value, key);
                key.push(',');
            }
            key.push('}');
        }
    }
}

fn write_list<T>(items: &[T], key: &mut String, write_item: impl Fn(&T, &mut String)) {
    key.push('[');
    for item in items {
        write_item(item, key);
        key.push(',');
    }
    key.push(']');
}

/// Writes a double without a fraction as an integer.
fn write_number(number: Number, key: &mut String) {
    match number.whole() {
        Some(int) => write_all(key, format_args!("{int}")),
        None => write_all(key, format_args!("{number:?}")),
    }
}

fn write_all(key: &mut String, written: std::fmt::Arguments<'_>) {
    key.write_fmt(written).expect("a text takes what is written to it");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::key;
    use crate::{
        syntax::ast::Comparator,
        value::{Number, Value, compare::compare, json},
    };

    fn number() -> impl Strategy<Value = Number> {
        let near = prop_oneof![Just(0_i128), Just(1 << 53), Just(1 << 63), Just(1 << 100)];
        let whole = (near, -3_i128..4).prop_map(|(near, off)| near + off);
        prop_oneof![
            whole.clone().prop_map(Number::Int),
            whole.prop_map(|whole| Number::Double(whole as f64)),
            prop::sample::select(vec![0.5, -0.0, 1e39, -1e300, f64::INFINITY])
                .prop_map(Number::Double),
        ]
    }

    proptest! {
        #[test]
        fn equal_numbers_have_one_key(a in number(), b in number()) {
            let is_same = key(&Value::Number(a)) == key(&Value::Number(b));
            prop_assert_eq!(is_same, a.equals(b), "{:?} and {:?}", a, b);
        }
    }

    #[test]
    fn documents_that_are_equal_have_one_key() {
        let read = |text: &str| Value::from(json::read(text).expect(text));
        for (a, b) in [
            ("[10, 1]", "[10.0, 1]"),
            (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1}"#),
            ("[10]", "[11]"),
            ("[[1],2]", "[[1,2]]"),
            (r#"["1"]"#, "[1]"),
            (r#"["1,2"]"#, r#"["1","2"]"#),
            (r#"{"a":1}"#, r#"{"a":1,"b":1}"#),
        ] {
            let (a, b) = (read(a), read(b));
            let is_equal = compare(&a, Comparator::Equal, &b).holds();
            assert_eq!(key(&a) == key(&b), is_equal, "{a:?} and {b:?}");
        }
    }
}

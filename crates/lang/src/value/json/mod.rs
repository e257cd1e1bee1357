//! JSON values: exact numbers, objects in document order.
//!
//! `serde_json` is not used: it rounds integers beyond 64 bits, and drops the order of keys unless a feature of the complete
//! program keeps it.

mod object;
mod read;

use std::fmt;

use super::Number;
use crate::budget;
pub(crate) use object::Object;
pub(crate) use read::{ReadError, read};

/// The maximum number of comparisons to decide whether one document contains another.
const COMPARISONS_MAX: usize = 4_000_000;

/// A document, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Self>),
    Object(Object),
}

/// Parses a text as a list or object; `None` if it is neither, the error is the limit that it exceeds. A scalar does not count:
/// most texts would be one.
pub(crate) fn read_document(text: &str) -> Result<Option<Json>, &'static str> {
    // Most texts are not JSON, and their first character shows it.
    if !text.trim_start().starts_with(['{', '[']) {
        return Ok(None);
    }
    match read(text) {
        Ok(json) => Ok(Some(json)),
        Err(ReadError::Malformed(_)) => Ok(None),
        Err(ReadError::Beyond(limit)) => Err(limit),
    }
}

/// Whether `whole` contains each item of `part`; `None` if deciding that takes too long.
///
/// An object counts as a list of one. An object contains another if it has all its keys with the same values; nested objects are
/// compared by their keys again, nested lists have to be equal. A list is also contained if it is itself an item.
pub(crate) fn contains(whole: &Json, part: &Json) -> Option<bool> {
    let (candidates, wanted) = (as_list(whole), as_list(part));
    // Each wanted item is compared with the complete `whole`, in the worst case down to the last value.
    if wanted.len() > 1 && wanted.len().saturating_mul(whole.weight()) > COMPARISONS_MAX {
        return None;
    }
    if wanted.len() > 1 && !budget::spend((wanted.len() * whole.weight()) as u64) {
        return None;
    }
    let is_item = matches!(part, Json::List(_)) && candidates.iter().any(|item| equals(part, item));
    let is_in = |wanted| candidates.iter().any(|item| is_found(wanted, item));
    Some(is_item || wanted.iter().all(is_in))
}

/// Compares with numbers by value: `1` equals `1.0`.
pub(crate) fn equals(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a.equals(*b),
        (Json::List(a), Json::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equals(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equals(a, b)))
        }
        _ => a == b,
    }
}

impl Json {
    /// Returns its size: the number of its values, plus its texts by their length.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => 1,
            Self::Text(text) => 1 + text.len() / 16,
            Self::List(items) => 1 + items.iter().map(Self::weight).sum::<usize>(),
            Self::Object(entries) => {
                1 + entries
                    .iter()
                    .map(|(key, value)| key.len() / 16 + value.weight())
                    .sum::<usize>()
            }
        }
    }
}

fn as_list(json: &Json) -> &[Json] {
    match json {
        Json::List(items) => items,
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Prints without whitespace. NaN and infinities become null, as in most programs.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(bool) => write!(f, "{bool}"),
            Self::Number(Number::Double(double)) if !double.is_finite() => f.write_str("null"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write_text(text, f),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Self::Object(entries) => {
                f.write_str("{")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    write_text(key, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if u32::from(c) < 0x20 => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Json, contains, equals, read};
    use crate::value::Number;

    fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::Bool),
            any::<i128>().prop_map(|int| Json::Number(Number::Int(int))),
            any::<f64>()
                .prop_filter("a number", |double| double.is_finite())
                .prop_map(|double| Json::Number(Number::Double(double))),
            any::<String>().prop_map(Json::Text),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Json::List),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|entries| Json::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(json in any_json()) {
            let written = json.to_string();
            let again = read(&written).expect("it was written");
            prop_assert!(equals(&json, &again), "{written}");
            prop_assert_eq!(contains(&json, &json), Some(true));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]{},:\"\\\\u0-9eE.+ \\-a-fn-t]{0,24}") {
            if let Ok(json) = read(&text) {
                prop_assert!(read(&json.to_string()).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn one_document_contains_another() {
        for (whole, part, expected) in [
            (r#"{"a":1,"b":"x"}"#, r#"{"b":"x"}"#, true),
            (r#"{"a":1}"#, r#"{"a":1.0}"#, true),
            (r#"{"a":1}"#, r#"{"a":"1"}"#, false),
            (r#"{"a":{"b":1,"c":2}}"#, r#"{"a":{"c":2}}"#, true),
            (r#"{"a":[1,2]}"#, r#"{"a":[1]}"#, false),
            (r#"[{"id":1},{"id":2}]"#, r#"[{"id":2},{"id":1}]"#, true),
            (r#"[{"id":1}]"#, r#"{"id":1}"#, true),
            ("[[1],[2]]", "[1]", true),
            ("[1,2]", "[2]", true),
            ("[1,2]", "[3]", false),
            (r#"{"a":1}"#, "[]", true),
            (r#"{"n":9007199254740993}"#, r#"{"n":9007199254740992}"#, false),
        ] {
            let (whole, part) = (read(whole).expect(whole), read(part).expect(part));
            assert_eq!(contains(&whole, &part), Some(expected), "{whole} contains {part}");
        }
        let many = read(&format!("[{}0]", "0,".repeat(5_000))).expect("a list");
        assert_eq!(contains(&many, &many), None, "25 million comparisons are not made");
    }

    #[test]
    fn what_is_read_is_written_in_the_same_order() {
        for (source, written) in [
            (r#" { "b" : 1 , "a" : [ true , null ] } "#, r#"{"b":1,"a":[true,null]}"#),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"b":2,"a":3}"#),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("[1.0, 1e2, -0.5, 1.5000005e+06]", "[1,100,-0.5,1500000.5]"),
            (r#""\u00e9\ud83d\ude80\n\"\/\u0001""#, "\"é🚀\\n\\\"/\\u0001\""),
        ] {
            assert_eq!(read(source).map(|json| json.to_string()).as_deref(), Ok(written));
        }
    }
}

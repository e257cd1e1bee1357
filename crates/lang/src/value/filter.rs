//! Filters: the functions after `|`.
//!
//! A filter that finds one value returns it, one that finds several returns a list. Such a list is not a document: only
//! `get_index`, `length` and `type` accept it.

use super::{
    Json, Lack, Literal, Number, Size, Value,
    json::{self, ReadError, read_document},
    json_path, read_duration,
};
use crate::{budget, value::operator::Filter};

/// The maximum number of matches of a pattern.
const MATCHES_MAX: usize = 100_000;

/// The cost of storing one match.
const FOUND_STEPS: u64 = 32;

/// The maximum weight of the results of a path, by [`Json::weight`]: `$..*` finds the innermost value once for each level. A path
/// visits no more values than that either.
const FOUND_WEIGHT_MAX: usize = 2_000_000;

const TOO_MUCH: &str = "too large to be filtered";

/// Applies the filter to `input`. If its argument is a literal of the test, `literal` is that.
pub(crate) fn apply<'a>(
    filter: Filter,
    input: &Value<'a>,
    arguments: &[Value<'_>],
    literal: Option<&Literal>,
) -> Result<Value<'a>, Lack> {
    let made;
    let literal = match (literal, arguments) {
        (Some(literal), _) => literal,
        (None, [argument]) => {
            made = Literal::from(argument.text().into_owned());
            &made
        }
        (None, _) => &Literal::default(),
    };
    match (filter, arguments) {
        (Filter::JsonPath, [_]) => json_path(input, literal),
        (Filter::Regex, [_]) => regex(input, literal),
        (Filter::RegexGroup, [_]) => regex_group(input, literal),
        (Filter::GetIndex, [index]) => get_index(input, index),
        (Filter::Length, []) => length(input),
        (Filter::Type, []) => type_of(input).map(Value::borrowed),
        (Filter::Keys, []) => keys(input),
        (Filter::Length | Filter::Type | Filter::Keys, _) => {
            Err(undefined("this filter takes no argument"))
        }
        _ => Err(undefined("this filter takes one argument")),
    }
}

fn json_path<'a>(input: &Value<'a>, path: &Literal) -> Result<Value<'a>, Lack> {
    let query = path.path().map_err(undefined)?;
    let document = match input {
        Value::List(_) => {
            return Err(undefined("`json_path` takes one document, not several values"));
        }
        Value::Text(_) | Value::Quoted(_) | Value::Nothing | Value::Bytes(_) => {
            json::read(&input.text()).map_err(|error| match error {
                ReadError::Malformed(mistake) => {
                    undefined(&format!("the text is no JSON: {mistake}"))
                }
                ReadError::Beyond(limit) => Lack::Open(limit.to_owned()),
            })?
        }
        _ => input.to_json(),
    };
    let found = json_path::find(query, &document).map_err(|_| Lack::Open(TOO_MUCH.to_owned()))?;
    if found.iter().map(|json| json.weight()).sum::<usize>() > FOUND_WEIGHT_MAX {
        return Err(Lack::Open(TOO_MUCH.to_owned()));
    }
    Ok(match found.as_slice() {
        [] => Value::Nothing,
        several => one_or_list(several.iter().map(|&json| json.clone().into()).collect()),
    })
}

fn regex<'a>(input: &Value<'a>, source: &Literal) -> Result<Value<'a>, Lack> {
    let text = searched(input)?;
    let pattern = source.pattern().map_err(undefined)?;
    bounded(pattern.find_all(&text))
}

/// Returns the groups of all matches; a group that did not participate is the empty text.
fn regex_group<'a>(input: &Value<'a>, source: &Literal) -> Result<Value<'a>, Lack> {
    let text = searched(input)?;
    let pattern = source.pattern().map_err(undefined)?;
    bounded(pattern.groups_of_all(&text))
}

fn searched<'v>(input: &'v Value<'_>) -> Result<std::borrow::Cow<'v, str>, Lack> {
    match input {
        Value::List(_) => {
            Err(undefined("a pattern is searched in one text, not in several values"))
        }
        _ => Ok(input.text()),
    }
}

fn bounded<'a, 't>(found: impl Iterator<Item = &'t str>) -> Result<Value<'a>, Lack> {
    let found: Vec<_> =
        found.take(MATCHES_MAX + 1).map(|text| Value::owned(text.to_owned())).collect();
    if !budget::spend(FOUND_STEPS * found.len() as u64) || found.len() > MATCHES_MAX {
        return Err(Lack::Open(TOO_MUCH.to_owned()));
    }
    Ok(one_or_list(found))
}

/// Returns an item by index. A value that is not a list counts as a list of one.
fn get_index<'a>(input: &Value<'a>, index: &Value<'_>) -> Result<Value<'a>, Lack> {
    let count = match input {
        Value::Nothing => 0,
        Value::List(items) => items.len(),
        Value::Json(Json::List(items)) => items.len(),
        _ => 1,
    };
    let index = match index.size() {
        _ if index.text() == "last" => count.wrapping_sub(1),
        Some(Size::Number(Number::Int(index))) => usize::try_from(index).unwrap_or(usize::MAX),
        _ => return Err(undefined("an index is a whole number, or `last`")),
    };
    if index >= count {
        return Err(undefined(&format!(
            "there is no such item: there are {count}, counted from 0"
        )));
    }
    Ok(match input {
        Value::List(items) => items[index].clone(),
        Value::Json(Json::List(items)) => items[index].clone().into(),
        one => one.clone(),
    })
}

/// Returns the keys of an object, in document order: always a list, even for a single key.
fn keys<'a>(input: &Value<'_>) -> Result<Value<'a>, Lack> {
    let names = |document: &Json| match document {
        Json::Object(entries) => Some(Value::List(
            entries.iter().map(|(name, _)| Value::owned(name.to_owned())).collect(),
        )),
        _ => None,
    };
    let found = match input {
        Value::Json(document) => names(document),
        Value::Text(_) | Value::Quoted(_) => {
            let read = read_document(&input.text());
            read.map_err(|limit| Lack::Open(limit.to_owned()))?.as_ref().and_then(names)
        }
        _ => None,
    };
    found.ok_or_else(|| undefined("only an object has keys"))
}

/// Returns the number of items of a list, or of bytes of a text.
fn length<'a>(input: &Value<'_>) -> Result<Value<'a>, Lack> {
    let length = match input {
        Value::Nothing => 0,
        Value::List(items) => items.len(),
        Value::Json(Json::List(items)) => items.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Text(_) | Value::Quoted(_) | Value::Bool(_) => input.text().len(),
        Value::Null
        | Value::Number(_)
        | Value::Numeral { .. }
        | Value::Duration(_)
        | Value::Json(_) => return Err(undefined("only a text and a list have a length")),
    };
    Ok(Value::whole(length as u64))
}

/// Returns the type of a value, or of the content of a text, in Tracetest's terms. Tracetest only has texts: a boolean is one.
fn type_of(input: &Value<'_>) -> Result<&'static str, Lack> {
    Ok(match input {
        Value::Nothing | Value::Null => "nil",
        Value::Bool(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Number(_) | Value::Numeral { .. } => "number",
        Value::Duration(_) => "duration",
        Value::List(_) | Value::Json(Json::List(_)) => "array",
        Value::Json(_) => "json",
        Value::Text(text) => return type_of_text(text),
        Value::Quoted(text) => return type_of_text(text),
    })
}

fn type_of_text(text: &str) -> Result<&'static str, Lack> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_number = match text.split_once('.') {
        Some((whole, fraction)) => is_digits(whole) && is_digits(fraction),
        None => is_digits(text),
    };
    let is_object = |json: &Json| matches!(json, Json::Object(_));
    let document = read_document(text).map_err(|limit| Lack::Open(limit.to_owned()))?;
    Ok(match document {
        _ if is_number => "number",
        _ if read_duration(text).is_some() => "duration",
        Some(Json::List(items)) if items.iter().all(is_object) => "json",
        Some(Json::Object(_)) => "json",
        _ if text == "null" => "json",
        _ if text.starts_with('[') && text.ends_with(']') => "array",
        _ => "string",
    })
}

fn one_or_list(mut found: Vec<Value<'_>>) -> Value<'_> {
    match found.pop() {
        Some(one) if found.is_empty() => one,
        last => {
            found.extend(last);
            Value::List(found)
        }
    }
}

fn undefined(reason: &str) -> Lack {
    Lack::Undefined(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Value, apply};
    use crate::value::operator::Filter;

    #[test]
    fn bytes_are_bytes_as_long_as_they_are() {
        let bytes = Value::Bytes(b"\xffab".as_slice().into());
        let filtered = |filter| apply(filter, &bytes, &[], None).map(|value| value.show());
        assert_eq!(filtered(Filter::Type), Ok("\"bytes\"".to_owned()));
        assert_eq!(filtered(Filter::Length), Ok("3".to_owned()));
    }
}

//! Filters: what stands behind `|`.
//!
//! A filter that finds one thing gives it, one that finds several gives a list of them. Such a list is no document: only
//! `get_index`, `length` and `type` take it.

use super::{
    Json, Lack, Number, Size, Value,
    json::{self, read_document},
    json_path, pattern, read_duration,
};
use crate::syntax::ast::Filter;

/// How many things a pattern may find.
const MATCHES_MAX: usize = 100_000;

/// How much a path may find, by [`Json::weight`]: `$..*` finds the innermost value once for each level.
const FOUND_WEIGHT_MAX: usize = 2_000_000;

const TOO_MUCH: &str = "too large to be filtered";

/// What the filter makes of `input`.
pub(crate) fn apply<'a>(
    filter: Filter,
    input: &Value<'a>,
    arguments: &[Value<'_>],
) -> Result<Value<'a>, Lack> {
    match (filter, arguments) {
        (Filter::JsonPath, [path]) => json_path(input, &path.text()),
        (Filter::Regex, [source]) => regex(input, &source.text()),
        (Filter::RegexGroup, [source]) => regex_group(input, &source.text()),
        (Filter::GetIndex, [index]) => get_index(input, index),
        (Filter::Length, []) => length(input),
        (Filter::Type, []) => Ok(Value::borrowed(type_of(input))),
        (Filter::Keys, []) => keys(input),
        (Filter::Length | Filter::Type | Filter::Keys, _) => {
            Err(undefined("this filter takes no argument"))
        }
        _ => Err(undefined("this filter takes one argument")),
    }
}

fn json_path<'a>(input: &Value<'a>, path: &str) -> Result<Value<'a>, Lack> {
    let query = json_path::parse(path).map_err(Lack::Undefined)?;
    let document = match input {
        Value::List(_) => {
            return Err(undefined("`json_path` takes one document, not several values"));
        }
        Value::Text(_) | Value::Quoted(_) | Value::Nothing | Value::Bytes(_) => {
            json::read(&input.text())
                .map_err(|mistake| undefined(&format!("the text is no JSON: {mistake}")))?
        }
        _ => input.to_json(),
    };
    let found = json_path::find(&query, &document).map_err(|_| Lack::Open(TOO_MUCH.to_owned()))?;
    if found.iter().map(|json| json.weight()).sum::<usize>() > FOUND_WEIGHT_MAX {
        return Err(Lack::Open(TOO_MUCH.to_owned()));
    }
    Ok(match found.as_slice() {
        [] => Value::Nothing,
        several => one_or_list(several.iter().map(|&json| json.clone().into()).collect()),
    })
}

fn regex<'a>(input: &Value<'a>, source: &str) -> Result<Value<'a>, Lack> {
    let text = searched(input)?;
    let found = pattern::with(source, |regex| {
        let matches = regex.find_iter(&text).take(MATCHES_MAX + 1);
        matches.map(|found| Value::owned(found.as_str().to_owned())).collect::<Vec<_>>()
    });
    bounded(found.map_err(Lack::Undefined)?)
}

/// The groups of all matches; one that took no part is the empty text.
fn regex_group<'a>(input: &Value<'a>, source: &str) -> Result<Value<'a>, Lack> {
    let text = searched(input)?;
    let found = pattern::with(source, |regex| {
        let groups = regex.captures_iter(&text).flat_map(|captures| {
            let group = |index| captures.get(index).map_or("", |group| group.as_str()).to_owned();
            (1..captures.len()).map(group).map(Value::owned).collect::<Vec<_>>()
        });
        groups.take(MATCHES_MAX + 1).collect::<Vec<_>>()
    });
    bounded(found.map_err(Lack::Undefined)?)
}

fn searched<'v>(input: &'v Value<'_>) -> Result<std::borrow::Cow<'v, str>, Lack> {
    match input {
        Value::List(_) => {
            Err(undefined("a pattern is searched in one text, not in several values"))
        }
        _ => Ok(input.text()),
    }
}

fn bounded(found: Vec<Value<'_>>) -> Result<Value<'_>, Lack> {
    if found.len() > MATCHES_MAX {
        return Err(Lack::Open(TOO_MUCH.to_owned()));
    }
    Ok(one_or_list(found))
}

/// Anything but a list is a list of one.
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

/// The names in an object, in their order: always a list, since one name is still a list of names.
fn keys<'a>(input: &Value<'_>) -> Result<Value<'a>, Lack> {
    let names = |document: &Json| match document {
        Json::Object(entries) => Some(Value::List(
            entries.iter().map(|(name, _)| Value::owned(name.to_owned())).collect(),
        )),
        _ => None,
    };
    let found = match input {
        Value::Json(document) => names(document),
        Value::Text(_) | Value::Quoted(_) => read_document(&input.text()).as_ref().and_then(names),
        _ => None,
    };
    found.ok_or_else(|| undefined("only an object has keys"))
}

/// Items of a list, or bytes of a text.
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

/// What a value is, or what a text holds, in the words of Tracetest, which knows texts only: a boolean is one.
fn type_of(input: &Value<'_>) -> &'static str {
    match input {
        Value::Nothing | Value::Null => "nil",
        Value::Bool(_) | Value::Bytes(_) => "string",
        Value::Number(_) | Value::Numeral { .. } => "number",
        Value::Duration(_) => "duration",
        Value::List(_) | Value::Json(Json::List(_)) => "array",
        Value::Json(_) => "json",
        Value::Text(text) => type_of_text(text),
        Value::Quoted(text) => type_of_text(text),
    }
}

fn type_of_text(text: &str) -> &'static str {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_number = match text.split_once('.') {
        Some((whole, fraction)) => is_digits(whole) && is_digits(fraction),
        None => is_digits(text),
    };
    let is_object = |json: &Json| matches!(json, Json::Object(_));
    match read_document(text) {
        _ if is_number => "number",
        _ if read_duration(text).is_some() => "duration",
        Some(Json::List(items)) if items.iter().all(is_object) => "json",
        Some(Json::Object(_)) => "json",
        _ if text == "null" => "json",
        _ if text.starts_with('[') && text.ends_with(']') => "array",
        _ => "string",
    }
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

//! Parts of documents that all writers share: ids, times and values.

use model::{
    SpanId, Timestamp, TraceId,
    trace::{ResourceData, ScopeData, SpanData, Value},
};
use serde_json::{Map, Value as Json};

/// A span with its resource and its scope.
#[derive(Debug, PartialEq)]
pub(super) struct StoredSpan {
    pub(super) resource: ResourceData,
    pub(super) scope: ScopeData,
    pub(super) span: SpanData,
}

pub(super) type Attributes = Vec<(String, Value)>;

impl StoredSpan {
    /// Sorts the attributes: a document does not state their order.
    pub(super) fn sort(&mut self) {
        let Self { resource, scope, span } = self;
        let events = span.events.iter_mut().map(|event| &mut event.attributes);
        let links = span.links.iter_mut().map(|link| &mut link.attributes);
        let all = [&mut resource.attributes, &mut scope.attributes, &mut span.attributes];
        for attributes in all.into_iter().chain(events).chain(links) {
            attributes.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
    }
}

/// Returns what is at a path, whose steps are objects or parts of one key: `{"a.b": 1}` and `{"a": {"b": 1}}` are the same
/// document. Null is nothing.
pub(super) fn at<'a>(object: &'a Map<String, Json>, path: &str) -> Option<&'a Json> {
    if let Some(found) = object.get(path) {
        return Some(found).filter(|it| !it.is_null());
    }
    path.match_indices('.').find_map(|(dot, _)| {
        let inner = object.get(&path[..dot])?.as_object()?;
        at(inner, &path[dot + 1..])
    })
}

/// Returns the text at a path; empty if there is none.
pub(super) fn text(object: &Map<String, Json>, path: &str) -> Result<String, String> {
    match at(object, path) {
        None => Ok(String::new()),
        Some(Json::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("`{path}` is not a text")),
    }
}

/// Returns the count at a path; zero if there is none.
pub(super) fn count(object: &Map<String, Json>, path: &str) -> Result<u32, String> {
    let Some(found) = at(object, path) else { return Ok(0) };
    let count = found.as_u64().and_then(|count| u32::try_from(count).ok());
    count.ok_or_else(|| format!("`{path}` is not a count"))
}

/// Returns the objects at a path; none if there is no such list. A single one may be there without a list.
pub(super) fn objects<'a>(
    object: &'a Map<String, Json>,
    path: &str,
) -> Result<Vec<&'a Map<String, Json>>, String> {
    let wrong = || format!("`{path}` is not a list of objects");
    match at(object, path) {
        None => Ok(Vec::new()),
        Some(Json::Object(one)) => Ok(vec![one]),
        Some(Json::Array(list)) => list.iter().map(|it| it.as_object().ok_or_else(wrong)).collect(),
        Some(_) => Err(wrong()),
    }
}

/// Parses the id of a trace; none if the text is empty or zero. Leading zeros may be absent.
pub(super) fn trace_id(text: &str) -> Result<Option<TraceId>, String> {
    if text.trim_start_matches('0').is_empty() {
        return Ok(None);
    }
    format!("{text:0>32}").parse().map(Some).map_err(|_| format!("`{text}` is not a trace id"))
}

/// Parses the id of a span; none if the text is empty or zero. Leading zeros may be absent.
pub(super) fn span_id(text: &str) -> Result<Option<SpanId>, String> {
    if text.trim_start_matches('0').is_empty() {
        return Ok(None);
    }
    format!("{text:0>16}").parse().map(Some).map_err(|_| format!("`{text}` is not a span id"))
}

/// Parses a time: ISO 8601, or milliseconds with the nanoseconds since them, which the Collector's exporter to Elasticsearch writes
/// without leading zeros: `7.5` is 7 ms and 5 ns.
pub(super) fn time(json: &Json) -> Result<Timestamp, String> {
    let wrong = || format!("`{json}` is not a time");
    let (millis, nanos) = match json {
        Json::Number(millis) => (millis.as_u64().ok_or_else(wrong)?, 0),
        Json::String(text) => match text.split_once('.') {
            Some((millis, nanos)) if is_number(millis) && is_number(nanos) => {
                (millis.parse().map_err(|_| wrong())?, nanos.parse().map_err(|_| wrong())?)
            }
            _ if is_number(text) => (text.parse().map_err(|_| wrong())?, 0),
            _ => return serde_json::from_value(json.clone()).map_err(|_| wrong()),
        },
        _ => return Err(wrong()),
    };
    let nanos: Option<u64> =
        u64::checked_mul(millis, 1_000_000).and_then(|it| it.checked_add(nanos));
    nanos.map(Timestamp::from_nanos).ok_or_else(wrong)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Converts an object to attributes.
pub(super) fn attributes(object: &Map<String, Json>) -> Result<Attributes, String> {
    object.iter().map(|(key, json)| Ok((key.clone(), value(json)?))).collect()
}

pub(super) fn value(json: &Json) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Empty,
        Json::Bool(is_true) => Value::Bool(*is_true),
        Json::String(text) => Value::Str(text.clone()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Value::Int(integer),
            (None, Some(double)) if !number.is_u64() => Value::Double(double),
            _ => return Err(format!("`{number}` is not a number of 64 bits")),
        },
        Json::Array(list) => Value::Array(list.iter().map(value).collect::<Result<_, _>>()?),
        Json::Object(object) => Value::Map(attributes(object)?),
    })
}

//! Documents of Jaeger: `jaeger-span-*`.
//!
//! Jaeger stores what has no field of its own as tags; some tags are in a list with their types, others, by its configuration, in
//! an object without them. Here they are moved back to the fields of OTLP, as Jaeger does. Deliberately absent: guesses, such as a
//! status from the code of an HTTP response.

use model::{
    SpanId, Timestamp, TraceId,
    trace::{
        EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode, Value,
    },
};
use serde_json::{Map, Value as Json};

use super::source::{Attributes, StoredSpan, at, count, objects, span_id, text, trace_id, value};

/// The name that Jaeger gives a service that has none.
const NO_SERVICE_NAME: &str = "OTLPResourceNoServiceName";

pub(super) fn read(source: &Map<String, Json>, trace: TraceId) -> Result<StoredSpan, String> {
    let found = text(source, "traceID")?;
    if trace_id(&found)? != Some(trace) {
        return Err(format!("its trace is `{found}`"));
    }
    let mut tags = tags(source, "tags", "tag")?;
    let scope = ScopeData {
        name: take_text(&mut tags, "otel.scope.name"),
        version: take_text(&mut tags, "otel.scope.version"),
        ..ScopeData::default()
    };
    let id = span_id(&text(source, "spanID")?)?.ok_or("its span id is zero")?;
    let (parent, links) = references(source, trace)?;
    let start = micros(source, "startTime")?;
    let span = SpanData {
        trace_state: take_text(&mut tags, "w3c.tracestate"),
        flags: count(source, "flags")?,
        kind: take_kind(&mut tags),
        start,
        end: Timestamp::from_nanos(
            start.as_nanos().saturating_add(micros(source, "duration")?.as_nanos()),
        ),
        status: take_status(&mut tags),
        attributes: tags,
        events: events(source)?,
        links,
        ..SpanData::new(id, parent, text(source, "operationName")?)
    };
    Ok(StoredSpan { resource: resource(source)?, scope, span })
}

fn resource(source: &Map<String, Json>) -> Result<ResourceData, String> {
    let Some(process) = at(source, "process").and_then(Json::as_object) else {
        return Err("it has no `process`".to_owned());
    };
    let mut attributes = tags(process, "tags", "tag")?;
    let service = text(process, "serviceName")?;
    if !service.is_empty() && service != NO_SERVICE_NAME {
        attributes.push(("service.name".to_owned(), Value::Str(service)));
    }
    Ok(ResourceData { attributes, ..ResourceData::default() })
}

fn events(source: &Map<String, Json>) -> Result<Vec<EventData>, String> {
    let event = |log: &Map<String, Json>| {
        let mut fields = tags(log, "fields", "")?;
        Ok(EventData {
            at: micros(log, "timestamp")?,
            name: take_text(&mut fields, "event"),
            attributes: fields,
            ..EventData::default()
        })
    };
    objects(source, "logs")?.into_iter().map(event).collect()
}

/// Reads the references. The parent is the first `CHILD_OF` reference to the same trace, and without one the first other
/// reference to it. All others are links.
fn references(
    source: &Map<String, Json>,
    trace: TraceId,
) -> Result<(Option<SpanId>, Vec<LinkData>), String> {
    let mut links = Vec::new();
    for reference in objects(source, "references")? {
        let kind = text(reference, "refType")?;
        let attributes = match kind.as_str() {
            "CHILD_OF" => {
                vec![("opentracing.ref_type".to_owned(), Value::Str("child_of".to_owned()))]
            }
            "FOLLOWS_FROM" => Vec::new(),
            _ => return Err(format!("a reference of the type `{kind}`")),
        };
        links.push(LinkData {
            trace_id: trace_id(&text(reference, "traceID")?)?,
            span_id: span_id(&text(reference, "spanID")?)?,
            attributes,
            ..LinkData::default()
        });
    }
    let is_own = |link: &LinkData| link.trace_id == Some(trace) && link.span_id.is_some();
    let is_child = |link: &LinkData| is_own(link) && !link.attributes.is_empty();
    let parent = links.iter().position(is_child).or_else(|| links.iter().position(is_own));
    let parent = match parent {
        Some(ix) => links.remove(ix).span_id,
        // The older format without references.
        None => span_id(&text(source, "parentSpanID")?)?,
    };
    Ok((parent, links))
}

/// Converts the microseconds of a field.
fn micros(source: &Map<String, Json>, field: &str) -> Result<Timestamp, String> {
    let micros = at(source, field).and_then(Json::as_u64);
    let nanos = micros.and_then(|micros| micros.checked_mul(1_000));
    nanos
        .map(Timestamp::from_nanos)
        .ok_or_else(|| format!("`{field}` is no number of microseconds"))
}

/// Reads tags: those of a list, with types, and those of an object, whose keys have `@` for a dot.
fn tags(source: &Map<String, Json>, list: &str, object: &str) -> Result<Attributes, String> {
    let mut tags = Vec::new();
    for tag in objects(source, list)? {
        let key = text(tag, "key")?;
        let tagged = typed(&text(tag, "type")?, at(tag, "value").unwrap_or(&Json::Null));
        tags.push((key.clone(), tagged.ok_or_else(|| format!("the value of the tag `{key}`"))?));
    }
    if let Some(fields) = source.get(object).and_then(Json::as_object) {
        for (key, json) in fields {
            tags.push((key.replace('@', "."), value(json)?));
        }
    }
    Ok(tags)
}

/// Converts the value of a tag. Old versions write every value as a text.
fn typed(kind: &str, json: &Json) -> Option<Value> {
    let text = json.as_str();
    Some(match kind {
        "string" | "" => Value::Str(text?.to_owned()),
        "bool" => Value::Bool(json.as_bool().or_else(|| text?.parse().ok())?),
        "int64" => Value::Int(json.as_i64().or_else(|| text?.parse().ok())?),
        "float64" => Value::Double(json.as_f64().or_else(|| text?.parse().ok())?),
        "binary" => Value::Bytes(from_hex(text?)?),
        _ => return None,
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    if rest.is_empty() { bytes } else { None }
}

/// Removes the first tag of this key for which the function returns a value, and returns that value.
fn take<T>(tags: &mut Attributes, key: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    let found = |(known, value): &(String, Value)| if known == key { read(value) } else { None };
    let (ix, value) = tags.iter().enumerate().find_map(|(ix, tag)| Some((ix, found(tag)?)))?;
    tags.remove(ix);
    Some(value)
}

fn take_text(tags: &mut Attributes, key: &str) -> String {
    let text = |value: &Value| match value {
        Value::Str(text) => Some(text.clone()),
        _ => None,
    };
    take(tags, key, text).unwrap_or_default()
}

fn take_kind(tags: &mut Attributes) -> Kind {
    let kind = |value: &Value| match value {
        Value::Str(text) => super::otel::kind(text).ok(),
        _ => None,
    };
    take(tags, "span.kind", kind).unwrap_or_default()
}

/// The tag `error` overrides that of OpenTelemetry, as in Jaeger.
fn take_status(tags: &mut Attributes) -> Status {
    let is_true = |value: &Value| match value {
        Value::Bool(is_error) => *is_error,
        Value::Str(text) => text == "true",
        _ => false,
    };
    let error = take(tags, "error", |value| is_true(value).then_some(StatusCode::Error));
    let stated = take(tags, "otel.status_code", |value| match value {
        Value::Str(text) if text.eq_ignore_ascii_case("ok") => Some(StatusCode::Ok),
        Value::Str(text) if text.eq_ignore_ascii_case("error") => Some(StatusCode::Error),
        _ => None,
    });
    Status {
        code: error.or(stated).unwrap_or_default(),
        message: take_text(tags, "otel.status_description"),
    }
}

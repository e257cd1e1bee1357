//! What Zipkin keeps of an OpenTelemetry span in tags, endpoints and annotations.
//!
//! By the specification of OpenTelemetry's Zipkin exporters, and as its Collector writes them where that differs. A tag that cannot be read back stays an attribute.

use std::{collections::BTreeMap, time::Duration};

use model::{
    Timestamp,
    trace::{EventData, Kind, ScopeData, SpanData, Status, StatusCode, Value},
};
use serde_json::{Map, Value as Json};

use super::report::{Annotation, Endpoint, Report, ReportKind};

type Tags = BTreeMap<String, String>;

/// Returns a report as a span, with the ids of the report, and its scope.
pub(super) fn span(report: &Report) -> (SpanData, ScopeData) {
    let mut tags = report.tags.clone();
    let name = report.name.clone().unwrap_or_default();
    let mut span = SpanData::new(report.id, report.parent_id, name);
    span.kind = kind(report.kind, &mut tags);
    span.start = micros(report.timestamp.unwrap_or_default());
    span.end = span.start.plus(Duration::from_micros(report.duration.unwrap_or_default()));
    span.status = status(&mut tags);
    span.dropped_attributes = count(&mut tags, "otel.dropped_attributes_count");
    span.dropped_events = count(&mut tags, "otel.dropped_events_count");
    span.dropped_links = count(&mut tags, "otel.dropped_links_count");
    let scope = ScopeData {
        name: renamed(&mut tags, "otel.scope.name", "otel.library.name"),
        version: renamed(&mut tags, "otel.scope.version", "otel.library.version"),
        ..ScopeData::default()
    };
    if let Some(remote) = &report.remote_endpoint {
        if let Some(service) = &remote.service_name {
            tags.entry("peer.service".to_owned()).or_insert_with(|| service.clone());
        }
        address(&mut tags, remote, "network.peer");
    }
    if let Some(local) = &report.local_endpoint {
        address(&mut tags, local, "network.local");
    }
    span.attributes = tags.into_iter().map(|(key, value)| (key, Value::Str(value))).collect();
    span.events = report.annotations.iter().map(event).collect();
    (span, scope)
}

pub(super) fn text(text: &str) -> Value {
    Value::Str(text.to_owned())
}

fn micros(micros: u64) -> Timestamp {
    Timestamp::from_nanos(micros.saturating_mul(1_000))
}

/// Returns the kind. Zipkin has none for internal spans; the Collector adds a tag.
fn kind(kind: Option<ReportKind>, tags: &mut Tags) -> Kind {
    match kind {
        Some(ReportKind::Client) => Kind::Client,
        Some(ReportKind::Server) => Kind::Server,
        Some(ReportKind::Producer) => Kind::Producer,
        Some(ReportKind::Consumer) => Kind::Consumer,
        None if tags.get("span.kind").is_some_and(|kind| kind == "internal") => {
            tags.remove("span.kind");
            Kind::Internal
        }
        None => Kind::Unspecified,
    }
}

/// Removes the tags of the status, if an exporter of OpenTelemetry wrote them. Otherwise `error` is Zipkin's own tag of a failed span, which stays.
fn status(tags: &mut Tags) -> Status {
    let name = tags.get("otel.status_code").map(|code| code.to_ascii_uppercase());
    let code = match name.as_deref().map(|name| name.trim_start_matches("STATUS_CODE_")) {
        Some("OK") => StatusCode::Ok,
        Some("ERROR") => StatusCode::Error,
        _ => {
            return match tags.get("error").map(String::as_str) {
                None | Some("false") => Status::default(),
                Some("true") => Status { code: StatusCode::Error, message: String::new() },
                Some(message) => Status { code: StatusCode::Error, message: message.to_owned() },
            };
        }
    };
    tags.remove("otel.status_code");
    let description = tags.remove("otel.status_description");
    if code != StatusCode::Error {
        return Status { code, message: description.unwrap_or_default() };
    }
    // The Collector writes `true`, and the message as a description.
    let error = tags.remove("error").filter(|error| error != "true");
    Status { code, message: description.or(error).unwrap_or_default() }
}

/// Removes a tag that may also have an older name, and returns its value.
fn renamed(tags: &mut Tags, name: &str, old: &str) -> String {
    match tags.remove(name) {
        Some(value) => {
            if tags.get(old) == Some(&value) {
                tags.remove(old);
            }
            value
        }
        None => tags.remove(old).unwrap_or_default(),
    }
}

/// Removes a tag that is a number.
fn count(tags: &mut Tags, name: &str) -> u32 {
    let Some(count) = tags.get(name).and_then(|count| count.parse().ok()) else { return 0 };
    tags.remove(name);
    count
}

/// Adds the address of an endpoint, unless there are such tags.
fn address(tags: &mut Tags, endpoint: &Endpoint, prefix: &str) {
    let port = endpoint.port.map(|port| port.to_string());
    let ip = endpoint.ipv4.as_ref().or(endpoint.ipv6.as_ref());
    for (name, value) in [("address", ip), ("port", port.as_ref())] {
        if let Some(value) = value {
            tags.entry(format!("{prefix}.{name}")).or_insert_with(|| value.clone());
        }
    }
}

/// Returns an annotation as an event: `"name": {…}` by the specification, `name|{…}|dropped` by the Collector, or a name alone.
fn event(annotation: &Annotation) -> EventData {
    let value = annotation.value.as_str();
    let plain = || EventData { name: value.to_owned(), ..EventData::default() };
    let event = specified(value).or_else(|| piped(value)).unwrap_or_else(plain);
    EventData { at: micros(annotation.timestamp), ..event }
}

fn specified(value: &str) -> Option<EventData> {
    if !value.starts_with('"') {
        return None;
    }
    let object: Map<String, Json> = serde_json::from_str(&format!("{{{value}}}")).ok()?;
    let mut entries = object.into_iter();
    match (entries.next()?, entries.next()) {
        ((name, Json::Object(attributes)), None) => {
            let attributes = attributes_of(attributes);
            Some(EventData { name, attributes, ..EventData::default() })
        }
        _ => None,
    }
}

fn piped(value: &str) -> Option<EventData> {
    let (rest, dropped) = value.rsplit_once('|')?;
    let (name, attributes) = rest.split_once('|')?;
    let Json::Object(attributes) = serde_json::from_str(attributes).ok()? else { return None };
    Some(EventData {
        name: name.to_owned(),
        attributes: attributes_of(attributes),
        dropped_attributes: dropped.parse().ok()?,
        ..EventData::default()
    })
}

fn attributes_of(object: Map<String, Json>) -> Vec<(String, Value)> {
    let mut attributes: Vec<_> =
        object.into_iter().map(|(key, value)| (key, value_of(value))).collect();
    attributes.sort_by(|(one, _), (other, _)| one.cmp(other));
    attributes
}

fn value_of(json: Json) -> Value {
    match json {
        Json::Null => Value::Empty,
        Json::Bool(value) => Value::Bool(value),
        Json::String(value) => Value::Str(value),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Int(integer),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::Array(values) => Value::Array(values.into_iter().map(value_of).collect()),
        Json::Object(object) => Value::Map(attributes_of(object)),
    }
}

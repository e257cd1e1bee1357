//! From OTLP to the model.

use model::{
    Fault, Faulty, SpanId, Timestamp, Trace, TraceId,
    trace::{
        EntityData, EventData, Kind, LinkData, Pushed, ResourceData, ScopeData, SpanData, Status,
        StatusCode, TraceFull, Value,
    },
};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, EntityRef, InstrumentationScope, KeyValue, any_value},
    resource::v1::Resource,
    trace::v1::{
        Span, TracesData,
        span::{Event, Link},
    },
};
use prost::Message;
use thiserror::Error;

use crate::{
    split::is_parent,
    wire::{DecodeError, Fields},
};

/// Why spans could not be appended.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AppendError {
    /// They are not spans; those before the mistake may have been appended.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// There is no room for them; some may have been appended.
    #[error(transparent)]
    Full(#[from] TraceFull),
}

impl Faulty for AppendError {
    fn fault(&self) -> Fault {
        match self {
            Self::Decode(error) => error.fault(),
            Self::Full(error) => error.fault(),
        }
    }
}

/// Adds the spans of an OTLP `TracesData` message that belong to this trace, and says how many were new.
///
/// Spans of other traces are passed over, and so are spans whose own or whose parent's id is malformed: without its
/// parent such a span would stand as a root, which it is not. What is there already is not added again, so that a
/// sender may repeat itself.
pub fn append(trace: &mut Trace, bytes: &[u8]) -> Result<u64, AppendError> {
    let mut new = 0;
    // A message is the sum of its fields in protobuf, so each is read as a message of its own: the decoded form of
    // one resource's spans is all that stands in memory beside the trace.
    for field in Fields::new(bytes) {
        let mut data = TracesData::decode(field?.raw).map_err(DecodeError::from)?;
        retain_spans_of(trace.id(), &mut data);
        new += append_decoded(trace, data)?;
    }
    Ok(new)
}

fn append_decoded(trace: &mut Trace, data: TracesData) -> Result<u64, TraceFull> {
    let mut new = 0;
    for resource_spans in data.resource_spans {
        let resource = resource_data(resource_spans.resource, resource_spans.schema_url);
        let resource = trace.resource(resource)?;
        for scope_spans in resource_spans.scope_spans {
            let scope = trace.scope(scope_data(scope_spans.scope, scope_spans.schema_url))?;
            for span in scope_spans.spans {
                let Some(id) = span_id(&span.span_id) else { continue };
                match trace.push(resource, scope, span_data(id, span))? {
                    Pushed::New(_) | Pushed::Conflicting(_) => new += 1,
                    Pushed::Repeated(_) => {}
                }
            }
        }
    }
    Ok(new)
}

/// Leaves only spans of this trace, and only resources and scopes that have one.
fn retain_spans_of(trace_id: TraceId, data: &mut TracesData) {
    let is_ours = |span: &Span| {
        span.trace_id == trace_id.as_bytes()
            && span_id(&span.span_id).is_some()
            && is_parent(&span.parent_span_id)
    };
    for resource_spans in &mut data.resource_spans {
        for scope_spans in &mut resource_spans.scope_spans {
            scope_spans.spans.retain(is_ours);
        }
        resource_spans.scope_spans.retain(|scope_spans| !scope_spans.spans.is_empty());
    }
    data.resource_spans.retain(|resource_spans| !resource_spans.scope_spans.is_empty());
}

fn resource_data(resource: Option<Resource>, schema_url: String) -> ResourceData {
    let resource = resource.unwrap_or_default();
    ResourceData {
        attributes: attributes(resource.attributes),
        dropped_attributes: resource.dropped_attributes_count,
        entities: resource.entity_refs.into_iter().map(entity).collect(),
        schema_url,
    }
}

fn entity(entity: EntityRef) -> EntityData {
    EntityData {
        schema_url: entity.schema_url,
        kind: entity.r#type,
        id_keys: entity.id_keys,
        description_keys: entity.description_keys,
    }
}

fn scope_data(scope: Option<InstrumentationScope>, schema_url: String) -> ScopeData {
    let scope = scope.unwrap_or_default();
    ScopeData {
        name: scope.name,
        version: scope.version,
        attributes: attributes(scope.attributes),
        dropped_attributes: scope.dropped_attributes_count,
        schema_url,
    }
}

fn span_data(id: SpanId, span: Span) -> SpanData {
    let status = span.status.unwrap_or_default();
    SpanData {
        id,
        parent: span_id(&span.parent_span_id),
        trace_state: span.trace_state,
        flags: span.flags,
        name: span.name,
        kind: Kind::from_number(span.kind),
        start: Timestamp::from_nanos(span.start_time_unix_nano),
        end: Timestamp::from_nanos(span.end_time_unix_nano),
        attributes: attributes(span.attributes),
        dropped_attributes: span.dropped_attributes_count,
        events: span.events.into_iter().map(event).collect(),
        dropped_events: span.dropped_events_count,
        links: span.links.into_iter().map(link).collect(),
        dropped_links: span.dropped_links_count,
        status: Status { code: StatusCode::from_number(status.code), message: status.message },
    }
}

fn event(event: Event) -> EventData {
    EventData {
        at: Timestamp::from_nanos(event.time_unix_nano),
        name: event.name,
        attributes: attributes(event.attributes),
        dropped_attributes: event.dropped_attributes_count,
    }
}

/// A malformed id of a link is kept as none: the rest of the link still says something, and no verdict rests on it.
fn link(link: Link) -> LinkData {
    LinkData {
        trace_id: link.trace_id.try_into().ok().and_then(TraceId::from_bytes),
        span_id: span_id(&link.span_id),
        trace_state: link.trace_state,
        flags: link.flags,
        attributes: attributes(link.attributes),
        dropped_attributes: link.dropped_attributes_count,
    }
}

fn attributes(attributes: Vec<KeyValue>) -> Vec<(String, Value)> {
    attributes
        .into_iter()
        .map(|entry| (entry.key, value(entry.value.unwrap_or_default())))
        .collect()
}

/// Recursion is as deep as the message, which `prost` limits to 100.
fn value(any: AnyValue) -> Value {
    match any.value {
        // An index into the string table of profiles means nothing here; OTLP says to read it as absent.
        None | Some(any_value::Value::StringValueStrindex(_)) => Value::Empty,
        Some(any_value::Value::BoolValue(value)) => Value::Bool(value),
        Some(any_value::Value::IntValue(value)) => Value::Int(value),
        Some(any_value::Value::DoubleValue(value)) => Value::Double(value),
        Some(any_value::Value::StringValue(text)) => Value::Str(text),
        Some(any_value::Value::BytesValue(bytes)) => Value::Bytes(bytes),
        Some(any_value::Value::ArrayValue(array)) => {
            Value::Array(array.values.into_iter().map(value).collect())
        }
        Some(any_value::Value::KvlistValue(map)) => Value::Map(attributes(map.values)),
    }
}

fn span_id(bytes: &[u8]) -> Option<SpanId> {
    bytes.try_into().ok().and_then(SpanId::from_bytes)
}

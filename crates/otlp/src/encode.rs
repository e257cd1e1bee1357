//! From the model to OTLP.

use model::{
    Trace, TraceId,
    trace::{self, EntityData, EventData, LinkData, ResourceData, ScopeData, SpanData, Value},
};
use opentelemetry_proto::tonic::{
    common::v1::{
        AnyValue, ArrayValue, EntityRef, InstrumentationScope, KeyValue, KeyValueList, any_value,
    },
    resource::v1::Resource,
    trace::v1::{
        ResourceSpans, ScopeSpans, Span, Status,
        span::{Event, Link},
    },
};
use prost::Message;

use crate::wire::{RESOURCE_SPANS, SCOPE_SPANS, SPANS, write_field};

/// Writes a trace as an OTLP `TracesData` message.
///
/// Spans keep their order, so that appending the message to an empty trace gives this trace again. A resource is
/// therefore repeated where spans of several producers alternate, as it was when they came, and nowhere else.
pub fn encode(trace: &Trace) -> Vec<u8> {
    let spans: Vec<_> = trace.spans().collect();
    let mut bytes = Vec::new();
    for of_resource in spans.chunk_by(|a, b| a.resource_ix() == b.resource_ix()) {
        write_field(RESOURCE_SPANS, &resource_spans(trace.id(), of_resource), &mut bytes);
    }
    bytes
}

/// The `ResourceSpans` message of spans with one resource.
///
/// A message is the sum of its parts in protobuf, so the parts are written one after the other, in the order of their
/// numbers; of the spans, one at a time stands in memory in its decoded form.
fn resource_spans(trace_id: TraceId, spans: &[trace::Span<'_>]) -> Vec<u8> {
    let ResourceData { attributes, dropped_attributes, entities, schema_url } =
        spans[0].resource().to_data();
    let resource = Resource {
        attributes: key_values(attributes),
        dropped_attributes_count: dropped_attributes,
        entity_refs: entities.into_iter().map(entity_ref).collect(),
    };
    let head = ResourceSpans { resource: Some(resource), ..ResourceSpans::default() };
    let mut bytes = head.encode_to_vec();
    for of_scope in spans.chunk_by(|a, b| a.scope_ix() == b.scope_ix()) {
        write_field(SCOPE_SPANS, &scope_spans(trace_id, of_scope), &mut bytes);
    }
    let tail = ResourceSpans { schema_url, ..ResourceSpans::default() };
    bytes.append(&mut tail.encode_to_vec());
    bytes
}

/// The `ScopeSpans` message of spans with one scope.
fn scope_spans(trace_id: TraceId, spans: &[trace::Span<'_>]) -> Vec<u8> {
    let ScopeData { name, version, attributes, dropped_attributes, schema_url } =
        spans[0].scope().to_data();
    let scope = InstrumentationScope {
        name,
        version,
        attributes: key_values(attributes),
        dropped_attributes_count: dropped_attributes,
    };
    let head = ScopeSpans { scope: Some(scope), ..ScopeSpans::default() };
    let mut bytes = head.encode_to_vec();
    for one in spans {
        write_field(SPANS, &span(trace_id, one.to_data()).encode_to_vec(), &mut bytes);
    }
    let tail = ScopeSpans { schema_url, ..ScopeSpans::default() };
    bytes.append(&mut tail.encode_to_vec());
    bytes
}

fn entity_ref(entity: EntityData) -> EntityRef {
    EntityRef {
        schema_url: entity.schema_url,
        r#type: entity.kind,
        id_keys: entity.id_keys,
        description_keys: entity.description_keys,
    }
}

fn span(trace_id: TraceId, span: SpanData) -> Span {
    Span {
        trace_id: trace_id.as_bytes().to_vec(),
        span_id: span.id.as_bytes().to_vec(),
        trace_state: span.trace_state,
        parent_span_id: span.parent.map(|id| id.as_bytes().to_vec()).unwrap_or_default(),
        flags: span.flags,
        name: span.name,
        kind: span.kind.number(),
        start_time_unix_nano: span.start.as_nanos(),
        end_time_unix_nano: span.end.as_nanos(),
        attributes: key_values(span.attributes),
        dropped_attributes_count: span.dropped_attributes,
        events: span.events.into_iter().map(event).collect(),
        dropped_events_count: span.dropped_events,
        links: span.links.into_iter().map(link).collect(),
        dropped_links_count: span.dropped_links,
        status: Some(Status { message: span.status.message, code: span.status.code.number() }),
    }
}

fn event(event: EventData) -> Event {
    Event {
        time_unix_nano: event.at.as_nanos(),
        name: event.name,
        attributes: key_values(event.attributes),
        dropped_attributes_count: event.dropped_attributes,
    }
}

fn link(link: LinkData) -> Link {
    Link {
        trace_id: link.trace_id.map(|id| id.as_bytes().to_vec()).unwrap_or_default(),
        span_id: link.span_id.map(|id| id.as_bytes().to_vec()).unwrap_or_default(),
        trace_state: link.trace_state,
        attributes: key_values(link.attributes),
        dropped_attributes_count: link.dropped_attributes,
        flags: link.flags,
    }
}

fn key_values(attributes: Vec<(String, Value)>) -> Vec<KeyValue> {
    let entry = |(key, value)| KeyValue { key, value: Some(any_value(value)), key_strindex: 0 };
    attributes.into_iter().map(entry).collect()
}

fn any_value(value: Value) -> AnyValue {
    let value = match value {
        Value::Empty => None,
        Value::Bool(value) => Some(any_value::Value::BoolValue(value)),
        Value::Int(value) => Some(any_value::Value::IntValue(value)),
        Value::Double(value) => Some(any_value::Value::DoubleValue(value)),
        Value::Str(text) => Some(any_value::Value::StringValue(text)),
        Value::Bytes(bytes) => Some(any_value::Value::BytesValue(bytes)),
        Value::Array(values) => {
            let values = values.into_iter().map(any_value).collect();
            Some(any_value::Value::ArrayValue(ArrayValue { values }))
        }
        Value::Map(entries) => {
            let values = key_values(entries);
            Some(any_value::Value::KvlistValue(KeyValueList { values }))
        }
    };
    AnyValue { value }
}

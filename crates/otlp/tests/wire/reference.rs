//! The reference for `append`: `prost` decodes the complete message, and its result is pushed span by span.

use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{
        EntityData, EventData, Kind, LinkData, PushResult, ResourceData, ScopeData, SpanData,
        Status, StatusCode, Value,
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
use prost::{DecodeError, Message};

use crate::strategy::is_parent;

pub(crate) fn append(trace: &mut Trace, bytes: &[u8]) -> Result<u64, DecodeError> {
    let mut new = 0;
    for resource_spans in TracesData::decode(bytes)?.resource_spans {
        let resource = resource_data(resource_spans.resource, resource_spans.schema_url);
        for scope_spans in resource_spans.scope_spans {
            let scope = scope_data(scope_spans.scope, scope_spans.schema_url);
            for span in scope_spans.spans {
                let is_ours =
                    span.trace_id == trace.id().as_bytes() && is_parent(&span.parent_span_id);
                let Some(id) = span_id(&span.span_id).filter(|_| is_ours) else { continue };
                let resource = trace.resource(resource.clone()).expect("room");
                let scope = trace.scope(scope.clone()).expect("room");
                match trace.push(resource, scope, span_data(id, span)).expect("room") {
                    PushResult::New(_) | PushResult::Conflicting(_) => new += 1,
                    PushResult::Repeated(_) => {}
                }
            }
        }
    }
    Ok(new)
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

fn value(any: AnyValue) -> Value {
    match any.value {
        // An index into the string table of profiles has no meaning here; OTLP requires to treat it as absent.
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

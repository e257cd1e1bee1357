//! Encodes the model as OTLP: writes the rows of a trace in order.

use model::{
    Trace, TraceId,
    trace::{Attributes, Event, Link, ResourceData, ScopeData, Span, ValueRef},
};

use crate::message::Message;

/// Encodes a trace as an OTLP `TracesData` message.
///
/// Spans keep their order, so that appending the message to an empty trace results in the same trace. A resource is therefore
/// repeated if spans of several producers alternate, as they arrived, and nowhere else.
pub fn encode(trace: &Trace) -> Vec<u8> {
    let spans: Vec<_> = trace.spans().collect();
    let mut data = Message::default();
    for of_resource in spans.chunk_by(|a, b| a.resource_ix() == b.resource_ix()) {
        data.message(1, |out| resource_spans(out, trace.id(), of_resource));
    }
    data.bytes
}

/// Encodes the `ResourceSpans` message of spans with one resource.
fn resource_spans(out: &mut Message, trace_id: TraceId, spans: &[Span<'_>]) {
    let resource = spans[0].resource();
    let ResourceData { dropped_attributes, entities, schema_url, .. } = resource.to_data();
    out.message(1, |out| {
        attributes(out, 1, resource.attributes());
        out.some_number(2, dropped_attributes.into());
        for entity in &entities {
            out.message(3, |out| {
                out.some_bytes(1, entity.schema_url.as_bytes());
                out.some_bytes(2, entity.kind.as_bytes());
                entity.id_keys.iter().for_each(|key| out.bytes(3, key.as_bytes()));
                entity.description_keys.iter().for_each(|key| out.bytes(4, key.as_bytes()));
            });
        }
    });
    for of_scope in spans.chunk_by(|a, b| a.scope_ix() == b.scope_ix()) {
        out.message(2, |out| scope_spans(out, trace_id, of_scope));
    }
    out.some_bytes(3, schema_url.as_bytes());
}

/// Encodes the `ScopeSpans` message of spans with one scope.
fn scope_spans(out: &mut Message, trace_id: TraceId, spans: &[Span<'_>]) {
    let scope = spans[0].scope();
    let ScopeData { dropped_attributes, schema_url, .. } = scope.to_data();
    out.message(1, |out| {
        out.some_bytes(1, scope.name().as_bytes());
        out.some_bytes(2, scope.version().as_bytes());
        attributes(out, 3, scope.attributes());
        out.some_number(4, dropped_attributes.into());
    });
    for one in spans {
        out.message(2, |out| span(out, trace_id, *one));
    }
    out.some_bytes(3, schema_url.as_bytes());
}

fn span(out: &mut Message, trace_id: TraceId, span: Span<'_>) {
    out.bytes(1, trace_id.as_bytes());
    out.bytes(2, span.id().as_bytes());
    out.some_bytes(3, span.trace_state().as_bytes());
    if let Some(parent) = span.parent() {
        out.bytes(4, parent.as_bytes());
    }
    out.some_bytes(5, span.name().as_bytes());
    out.some_number(6, sign_extended(span.kind().number()));
    out.some_fixed64(7, span.start().as_nanos());
    out.some_fixed64(8, span.end().as_nanos());
    attributes(out, 9, span.attributes());
    out.some_number(10, span.dropped_attributes().into());
    for one in span.events() {
        out.message(11, |out| event(out, one));
    }
    out.some_number(12, span.dropped_events().into());
    for one in span.links() {
        out.message(13, |out| link(out, one));
    }
    out.some_number(14, span.dropped_links().into());
    out.message(15, |out| {
        out.some_bytes(2, span.status_message().as_bytes());
        out.some_number(3, sign_extended(span.status().number()));
    });
    out.some_fixed32(16, span.flags());
}

fn event(out: &mut Message, event: Event<'_>) {
    out.some_fixed64(1, event.at().as_nanos());
    out.some_bytes(2, event.name().as_bytes());
    attributes(out, 3, event.attributes());
    out.some_number(4, event.dropped_attributes().into());
}

fn link(out: &mut Message, link: Link<'_>) {
    if let Some(trace_id) = link.trace_id() {
        out.bytes(1, trace_id.as_bytes());
    }
    if let Some(span_id) = link.span_id() {
        out.bytes(2, span_id.as_bytes());
    }
    out.some_bytes(3, link.trace_state().as_bytes());
    attributes(out, 4, link.attributes());
    out.some_number(5, link.dropped_attributes().into());
    out.some_fixed32(6, link.flags());
}

fn attributes(out: &mut Message, tag: u32, attributes: Attributes<'_>) {
    for (key, one) in attributes.iter() {
        out.message(tag, |out| {
            out.some_bytes(1, key.as_bytes());
            out.message(2, |out| value(out, one));
        });
    }
}

/// Recursion is as deep as the value, and the code that wrote it into the trace limits its depth.
fn value(out: &mut Message, any: ValueRef<'_>) {
    match any {
        ValueRef::Empty => {}
        ValueRef::Str(text) => out.bytes(1, text.as_bytes()),
        ValueRef::Bool(value) => out.number(2, value.into()),
        ValueRef::Int(value) => out.number(3, value as u64),
        ValueRef::Double(value) => out.fixed64(4, value.to_bits()),
        ValueRef::Array(values) => out.message(5, |out| {
            for one in values.iter() {
                out.message(1, |out| value(out, one));
            }
        }),
        ValueRef::Map(entries) => out.message(6, |out| attributes(out, 1, entries)),
        ValueRef::Bytes(bytes) => out.bytes(7, bytes),
    }
}

/// Sign-extends the number of an enumeration, as protobuf encodes negative ones.
fn sign_extended(number: i32) -> u64 {
    i64::from(number) as u64
}

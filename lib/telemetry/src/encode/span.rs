//! Encodes a span.

use opentelemetry::trace::{Event, Link, SpanContext, SpanId, SpanKind, Status, TraceState};
use opentelemetry_sdk::trace::SpanData;

use super::{
    value::attribute,
    wire::{self, tag},
};

/// The flag that marks the next bit as valid: whether the context is remote.
const HAS_IS_REMOTE: u32 = 1 << 8;
const IS_REMOTE: u32 = 1 << 9;

/// The encoded size of the parent id, with tag and length.
const PARENT: usize = 10;

/// Appends the span as a field of `ScopeSpans`, without attributes that have the key `omit`.
pub(crate) fn span(out: &mut Vec<u8>, span: &SpanData, omit: Option<&str>) {
    let expected = 96 + 32 * span.attributes.len();
    out.reserve(expected + span.name.len());
    wire::message(out, tag::bytes(2), expected, |out| {
        out.extend_from_slice(&head(span));
        if span.parent_span_id == SpanId::INVALID {
            out.truncate(out.len() - PARENT);
        }
        trace_state(out, &span.span_context);
        wire::text(out, tag::bytes(5), &span.name);
        for pair in &span.attributes {
            if omit.is_none_or(|omit| omit != pair.key.as_str()) {
                attribute(out, tag::bytes(9), pair);
            }
        }
        wire::count(out, tag::varint(10), span.dropped_attributes_count);
        for event in span.events.iter() {
            put_event(out, event);
        }
        wire::count(out, tag::varint(12), span.events.dropped_count);
        for link in span.links.iter() {
            put_link(out, link);
        }
        wire::count(out, tag::varint(14), span.links.dropped_count);
        put_status(out, &span.status);
    });
}

/// Encodes the fields of fixed size: trace id, span id, kind, start, end and flags, which every span has, and last the
/// parent id.
#[inline]
fn head(span: &SpanData) -> [u8; 54 + PARENT] {
    let mut head = [0; 54 + PARENT];
    head[0..2].copy_from_slice(&[tag::bytes(1), 16]);
    head[2..18].copy_from_slice(&span.span_context.trace_id().to_bytes());
    head[18..20].copy_from_slice(&[tag::bytes(2), 8]);
    head[20..28].copy_from_slice(&span.span_context.span_id().to_bytes());
    head[28..30].copy_from_slice(&[tag::varint(6), kind(&span.span_kind)]);
    head[30] = tag::fixed64(7);
    head[31..39].copy_from_slice(&wire::nanos(span.start_time).to_le_bytes());
    head[39] = tag::fixed64(8);
    head[40..48].copy_from_slice(&wire::nanos(span.end_time).to_le_bytes());
    // Field 16, a fixed32: the only tag of two bytes.
    head[48..50].copy_from_slice(&[0x85, 0x01]);
    let flags = flags(&span.span_context, span.parent_span_is_remote);
    head[50..54].copy_from_slice(&flags.to_le_bytes());
    head[54..56].copy_from_slice(&[tag::bytes(4), 8]);
    head[56..64].copy_from_slice(&span.parent_span_id.to_bytes());
    head
}

fn kind(kind: &SpanKind) -> u8 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}

fn flags(context: &SpanContext, remote: bool) -> u32 {
    let remote = if remote { IS_REMOTE } else { 0 };
    u32::from(context.trace_flags().to_u8()) | HAS_IS_REMOTE | remote
}

/// Appends the trace state. The API builds its text on request; an empty trace state costs nothing.
fn trace_state(out: &mut Vec<u8>, context: &SpanContext) {
    if *context.trace_state() != TraceState::NONE {
        wire::text(out, tag::bytes(3), &context.trace_state().header());
    }
}

fn put_event(out: &mut Vec<u8>, event: &Event) {
    let expected = 13 + event.name.len() + 32 * event.attributes.len();
    wire::message(out, tag::bytes(11), expected, |out| {
        wire::time(out, tag::fixed64(1), event.timestamp);
        wire::text(out, tag::bytes(2), &event.name);
        for pair in &event.attributes {
            attribute(out, tag::bytes(3), pair);
        }
        wire::count(out, tag::varint(4), event.dropped_attributes_count);
    });
}

fn put_link(out: &mut Vec<u8>, link: &Link) {
    let context = &link.span_context;
    wire::message(out, tag::bytes(13), 33 + 32 * link.attributes.len(), |out| {
        wire::bytes(out, tag::bytes(1), &context.trace_id().to_bytes());
        wire::bytes(out, tag::bytes(2), &context.span_id().to_bytes());
        trace_state(out, context);
        for pair in &link.attributes {
            attribute(out, tag::bytes(4), pair);
        }
        wire::count(out, tag::varint(5), link.dropped_attributes_count);
        wire::fixed32(out, tag::fixed32(6), flags(context, context.is_remote()));
    });
}

/// Appends a status even if it is unset, like the SDK's own exporter.
fn put_status(out: &mut Vec<u8>, status: &Status) {
    const STATUS: u8 = tag::bytes(15);
    match status {
        Status::Unset => out.extend_from_slice(&[STATUS, 0]),
        Status::Ok => out.extend_from_slice(&[STATUS, 2, tag::varint(3), 1]),
        Status::Error { description } => {
            wire::message(out, STATUS, 5 + description.len(), |out| {
                wire::text(out, tag::bytes(2), description);
                out.extend_from_slice(&[tag::varint(3), 2]);
            });
        }
    }
}

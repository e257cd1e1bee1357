//! A request, taken apart by trace without decoding what nobody wants.
//!
//! Most spans that a server receives belong to no run. So only the two ids of each span are read; the spans of
//! wanted traces are copied as they stand, under the resource and scope that they came with, and only these copies
//! are decoded, to be sure that they can be. A mistake inside a span that nobody wants is never seen.

use bytes::Bytes;
use model::{SpanId, TraceId};
use opentelemetry_proto::tonic::trace::v1::TracesData;
use prost::Message;

use crate::wire::{DecodeError, Fields, write_field};

/// Spans of one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The trace that all of them belong to.
    pub trace_id: TraceId,
    /// An OTLP `TracesData` message that can be decoded.
    pub bytes: Bytes,
}

/// What was in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The wanted spans, one batch for each trace, ordered by trace id.
    pub batches: Vec<Batch>,
    /// Spans in the batches.
    pub kept: u64,
    /// Spans of traces that nobody wants.
    pub foreign: u64,
    /// Spans whose trace id or span id is not an id.
    pub invalid: u64,
}

// The same numbers in `TracesData`, `ResourceSpans` and `ScopeSpans`: what is inside, and the rest says about it.
const RESOURCE_SPANS: u8 = 1;
const SCOPE_SPANS: u8 = 2;
const SPANS: u8 = 2;
// Of `Span`.
const TRACE_ID: u64 = 1;
const SPAN_ID: u64 = 2;

/// A wanted span and the messages around it.
#[derive(Clone, Copy)]
struct Picked<'a> {
    trace_id: TraceId,
    resource_spans: &'a [u8],
    scope_spans: &'a [u8],
    span: &'a [u8],
}

/// Takes the spans of wanted traces out of an OTLP trace request.
pub fn split(request: &[u8], wanted: impl Fn(&TraceId) -> bool) -> Result<Split, DecodeError> {
    let mut split = Split::default();
    let mut picked = Vec::new();
    for resource_spans in children(request, RESOURCE_SPANS) {
        let resource_spans = resource_spans?;
        for scope_spans in children(resource_spans, SCOPE_SPANS) {
            let scope_spans = scope_spans?;
            for span in children(scope_spans, SPANS) {
                let span = span?;
                match trace_of(span)? {
                    None => split.invalid += 1,
                    Some(trace_id) if wanted(&trace_id) => {
                        picked.push(Picked { trace_id, resource_spans, scope_spans, span });
                    }
                    Some(_) => split.foreign += 1,
                }
            }
        }
    }
    split.kept = picked.len() as u64;
    // Stable, so that the spans of a trace stay in the order sent.
    picked.sort_by_key(|picked| picked.trace_id);
    for of_trace in picked.chunk_by(|a, b| a.trace_id == b.trace_id) {
        let bytes = traces_data(of_trace)?;
        TracesData::decode(bytes.as_slice())?;
        split.batches.push(Batch { trace_id: of_trace[0].trace_id, bytes: bytes.into() });
    }
    Ok(split)
}

/// The messages that a message holds under this number.
pub(crate) fn children(
    message: &[u8],
    tag: u8,
) -> impl Iterator<Item = Result<&[u8], DecodeError>> {
    Fields::new(message).filter_map(move |field| match field {
        Ok(field) if field.tag == u64::from(tag) => Some(field.content()),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

/// The trace of a span, if both of its ids are ids.
fn trace_of(span: &[u8]) -> Result<Option<TraceId>, DecodeError> {
    let mut trace_id = None;
    let mut span_id = None;
    // All fields are looked at, since the last of several is the one that counts.
    for field in Fields::new(span) {
        let field = field?;
        match field.tag {
            TRACE_ID => trace_id = field.content()?.try_into().ok().and_then(TraceId::from_bytes),
            SPAN_ID => span_id = field.content()?.try_into().ok().and_then(SpanId::from_bytes),
            _ => {}
        }
    }
    Ok(trace_id.filter(|_| span_id.is_some()))
}

fn traces_data(picked: &[Picked<'_>]) -> Result<Vec<u8>, DecodeError> {
    let mut data = Vec::new();
    // Messages are told apart by where they stand in the request: two equal resources may stay two.
    for of_resource in picked.chunk_by(|a, b| std::ptr::eq(a.resource_spans, b.resource_spans)) {
        let mut resource_spans = all_but(of_resource[0].resource_spans, SCOPE_SPANS)?;
        for of_scope in of_resource.chunk_by(|a, b| std::ptr::eq(a.scope_spans, b.scope_spans)) {
            let mut scope_spans = all_but(of_scope[0].scope_spans, SPANS)?;
            for picked in of_scope {
                write_field(SPANS, picked.span, &mut scope_spans);
            }
            write_field(SCOPE_SPANS, &scope_spans, &mut resource_spans);
        }
        write_field(RESOURCE_SPANS, &resource_spans, &mut data);
    }
    Ok(data)
}

/// A message without its fields of this number. Fields that are not known here are kept.
fn all_but(message: &[u8], tag: u8) -> Result<Vec<u8>, DecodeError> {
    let mut rest = Vec::new();
    for field in Fields::new(message) {
        let field = field?;
        if field.tag != u64::from(tag) {
            rest.extend_from_slice(field.raw);
        }
    }
    Ok(rest)
}

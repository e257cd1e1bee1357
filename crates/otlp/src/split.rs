//! A request, taken apart by trace without decoding what nobody wants.
//!
//! Most spans that a server receives belong to no run. So only the ids of each span are read; the spans of
//! wanted traces are copied as they stand, under the resource and scope that they came with, and only these copies
//! are decoded, to be sure that they can be. A mistake inside a span that nobody wants is never seen.

use bytes::Bytes;
use model::{SpanId, TraceId};
use opentelemetry_proto::tonic::trace::v1::TracesData;
use prost::Message;

use crate::wire::{DecodeError, Fields, RESOURCE_SPANS, SCOPE_SPANS, SPANS, write_field};

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
    /// Spans whose trace id or span id is not an id, or that name a parent by something else than an id.
    pub invalid: u64,
    /// The wanted traces that some of the invalid spans belong to, each once, ordered.
    pub damaged: Vec<TraceId>,
}

// Of `Span`.
const TRACE_ID: u64 = 1;
const SPAN_ID: u64 = 2;
const PARENT_SPAN_ID: u64 = 4;

// What the traces of a request share is copied for each of them. All batches together may have this many times the
// bytes of the request, and a small request some more: many runs at once behind one collector are no attack.
const COPY_FACTOR_MAX: usize = 4;
const COPY_BYTES_MIN: usize = 16 << 20;

/// A wanted span, and which of the messages around it stand in [`Wanted::around`].
#[derive(Clone, Copy)]
struct Picked<'a> {
    trace_id: TraceId,
    resource_spans: usize,
    scope_spans: usize,
    span: &'a [u8],
}

/// What the ids of a span tell.
struct Ids {
    trace_id: Option<TraceId>,
    /// Whether all of them are ids.
    are_valid: bool,
}

/// The wanted spans of a request.
#[derive(Default)]
struct Wanted<'a> {
    spans: Vec<Picked<'a>>,
    /// Each message around a wanted span, once, without what is inside.
    around: Vec<Vec<u8>>,
}

/// Takes the spans of wanted traces out of an OTLP trace request.
pub fn split(request: &[u8], wanted: impl Fn(&TraceId) -> bool) -> Result<Split, DecodeError> {
    let mut split = Split::default();
    let Wanted { mut spans, around } = pick(request, wanted, &mut split)?;
    split.kept = spans.len() as u64;
    split.damaged.sort_unstable();
    split.damaged.dedup();
    // Stable, so that the spans of a trace stay in the order sent.
    spans.sort_by_key(|picked| picked.trace_id);
    let mut room = request.len().saturating_mul(COPY_FACTOR_MAX).saturating_add(COPY_BYTES_MIN);
    for of_trace in spans.chunk_by(|a, b| a.trace_id == b.trace_id) {
        let bytes = traces_data(of_trace, &around, room)?;
        room = room.saturating_sub(bytes.len());
        split.batches.push(Batch { trace_id: of_trace[0].trace_id, bytes: bytes.into() });
    }
    Ok(split)
}

/// Finds the wanted spans, and counts the others. What is wanted and invalid is lost to its trace.
fn pick<'a>(
    request: &'a [u8],
    is_wanted: impl Fn(&TraceId) -> bool,
    split: &mut Split,
) -> Result<Wanted<'a>, DecodeError> {
    let mut wanted = Wanted::default();
    for resource_spans in children(request, RESOURCE_SPANS) {
        let resource_spans = resource_spans?;
        let mut resource_ix = None;
        for scope_spans in children(resource_spans, SCOPE_SPANS) {
            let scope_spans = scope_spans?;
            let mut scope_ix = None;
            for span in children(scope_spans, SPANS) {
                let span = span?;
                let Ids { trace_id, are_valid } = ids(span)?;
                match trace_id.filter(|trace_id| is_wanted(trace_id)) {
                    wanted if !are_valid => {
                        split.invalid += 1;
                        split.damaged.extend(wanted);
                    }
                    Some(trace_id) => {
                        let picked = Picked {
                            trace_id,
                            resource_spans: wanted.around(
                                &mut resource_ix,
                                resource_spans,
                                SCOPE_SPANS,
                            )?,
                            scope_spans: wanted.around(&mut scope_ix, scope_spans, SPANS)?,
                            span,
                        };
                        wanted.spans.push(picked);
                    }
                    None => split.foreign += 1,
                }
            }
        }
    }
    Ok(wanted)
}

impl Wanted<'_> {
    /// Where the message stands; it is put there for the first span that asks.
    fn around(
        &mut self,
        ix: &mut Option<usize>,
        message: &[u8],
        inside: u8,
    ) -> Result<usize, DecodeError> {
        if let Some(ix) = *ix {
            return Ok(ix);
        }
        self.around.push(all_but(message, inside)?);
        Ok(*ix.insert(self.around.len() - 1))
    }
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

fn ids(span: &[u8]) -> Result<Ids, DecodeError> {
    let mut trace_id = None;
    let mut span_id = None;
    let mut is_parent_valid = true;
    // All fields are looked at, since the last of several is the one that counts.
    for field in Fields::new(span) {
        let field = field?;
        match field.tag {
            TRACE_ID => trace_id = field.content()?.try_into().ok().and_then(TraceId::from_bytes),
            SPAN_ID => span_id = field.content()?.try_into().ok().and_then(SpanId::from_bytes),
            PARENT_SPAN_ID => is_parent_valid = is_parent(field.content()?),
            _ => {}
        }
    }
    Ok(Ids { trace_id, are_valid: trace_id.is_some() && span_id.is_some() && is_parent_valid })
}

/// Whether these bytes name a parent, or say that there is none: by nothing, or by zeros.
pub(crate) fn is_parent(id: &[u8]) -> bool {
    id.len() == 8 || id.iter().all(|byte| *byte == 0)
}

/// The message of one trace, which may have so many bytes.
fn traces_data(
    picked: &[Picked<'_>],
    around: &[Vec<u8>],
    room: usize,
) -> Result<Vec<u8>, DecodeError> {
    let mut data = Vec::new();
    // Messages are told apart by where they stand in the request: two equal resources may stay two.
    for of_resource in picked.chunk_by(|a, b| a.resource_spans == b.resource_spans) {
        let mut resource_spans = around[of_resource[0].resource_spans].clone();
        for of_scope in of_resource.chunk_by(|a, b| a.scope_spans == b.scope_spans) {
            let mut scope_spans = around[of_scope[0].scope_spans].clone();
            for picked in of_scope {
                write_field(SPANS, picked.span, &mut scope_spans);
            }
            write_field(SCOPE_SPANS, &scope_spans, &mut resource_spans);
        }
        let start = data.len();
        write_field(RESOURCE_SPANS, &resource_spans, &mut data);
        if data.len() > room {
            return Err(DecodeError::TooLarge);
        }
        // What was written last is a message of its own; all of them together need not be decoded at once.
        TracesData::decode(&data[start..])?;
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

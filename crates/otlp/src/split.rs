//! Splits a request by trace, without decoding spans that no run wants.
//!
//! Most spans that a server receives belong to no run. So only the ids of each span are decoded. The spans of wanted traces are
//! copied unchanged, with their resource and scope, and only the copied parts are validated, to be sure that they can be
//! decoded. An error inside a span that is not wanted is never detected; nor is a second trace id after the first, which no
//! encoder writes and which would count in protobuf.

use bytes::Bytes;
use model::{SpanId, TraceId};

use crate::{
    message::Message,
    schema::{
        Schema, check, check_all_but, resource_spans, scope_spans, span,
        traces_data::RESOURCE_SPANS,
    },
    wire::{DecodeError, Fields},
};

/// Spans of one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The trace that all of them belong to.
    pub trace_id: TraceId,
    /// The number of spans.
    pub spans: u32,
    /// An OTLP `TracesData` message that can be decoded.
    pub bytes: Bytes,
}

/// The content of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The wanted spans, one batch for each trace, ordered by trace id.
    pub batches: Vec<Batch>,
    /// Spans in the batches.
    pub kept: u64,
    /// Foreign spans: spans of traces that are not wanted.
    pub foreign: u64,
    /// Spans with an invalid trace id, span id or parent id.
    pub invalid: u64,
    /// Of these, spans with an unknown trace: they may belong to any trace.
    pub nameless: u64,
    /// The wanted traces of some of the invalid spans, each once, sorted.
    pub damaged: Vec<TraceId>,
}

// The shared resources and scopes of a request are copied for each trace. All batches together may have this many times the
// bytes of the request, and a small request some more: many concurrent runs behind one collector are no attack.
const COPY_FACTOR_MAX: usize = 4;
const COPY_BYTES_MIN: usize = 16 << 20;

/// A wanted span, and the indices of its resource and scope messages in [`WantedSpans::around`].
#[derive(Clone, Copy)]
struct SpanRef<'a> {
    trace_id: TraceId,
    resource_spans: usize,
    scope_spans: usize,
    span: &'a [u8],
}

/// The ids of a span. Of several values the last one counts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ids {
    trace_id: Option<TraceId>,
    span_id: Option<SpanId>,
    parent: Option<SpanId>,
    is_parent_malformed: bool,
}

/// The wanted spans of a request.
#[derive(Default)]
struct WantedSpans<'a> {
    spans: Vec<SpanRef<'a>>,
    /// Each resource and scope message of a wanted span, once, without its spans.
    around: Vec<Vec<u8>>,
}

/// Extracts the spans of wanted traces from an OTLP trace request.
pub fn split(request: &[u8], wanted: impl Fn(&TraceId) -> bool) -> Result<Split, DecodeError> {
    let mut split = Split::default();
    let WantedSpans { mut spans, around } = pick(request, wanted, &mut split)?;
    split.kept = spans.len() as u64;
    split.damaged.sort_unstable();
    split.damaged.dedup();
    // Stable, so that the spans of a trace stay in the order sent.
    spans.sort_by_key(|picked| picked.trace_id);
    let mut room = copy_bytes_max(request.len());
    for of_trace in spans.chunk_by(|a, b| a.trace_id == b.trace_id) {
        let bytes = traces_data(of_trace, &around, room)?;
        room = room.saturating_sub(bytes.len());
        let (trace_id, spans) = (of_trace[0].trace_id, of_trace.len() as u32);
        split.batches.push(Batch { trace_id, spans, bytes: bytes.into() });
    }
    Ok(split)
}

/// Extracts the spans of a trace for whose ids `is_kept` returns true.
pub fn only_ids(
    message: &[u8],
    trace: TraceId,
    mut is_kept: impl FnMut(SpanId) -> bool,
) -> Result<Batch, DecodeError> {
    only_new(message, trace, |id, _| is_kept(id))
}

/// Extracts the spans of a trace for which `is_new` returns true: it gets the id of a span, and the encoded resource, scope and span.
pub fn only_new(
    message: &[u8],
    trace: TraceId,
    mut is_new: impl FnMut(SpanId, [&[u8]; 3]) -> bool,
) -> Result<Batch, DecodeError> {
    let WantedSpans { mut spans, around } =
        pick(message, |id| *id == trace, &mut Split::default())?;
    spans.retain(|it| {
        let parts = [&*around[it.resource_spans], &*around[it.scope_spans], it.span];
        let ids = ids(Fields::new(it.span)).ok();
        ids.and_then(|ids| ids.span_id).is_some_and(|id| is_new(id, parts))
    });
    let bytes = traces_data(&spans, &around, copy_bytes_max(message.len()))?;
    Ok(Batch { trace_id: trace, spans: spans.len() as u32, bytes: bytes.into() })
}

/// Returns the upper bound of the bytes of all copies, for a request of this length.
pub(crate) fn copy_bytes_max(len: usize) -> usize {
    len.saturating_mul(COPY_FACTOR_MAX).saturating_add(COPY_BYTES_MIN)
}

/// Finds the wanted spans, and counts the others. A wanted span that is invalid is lost for its trace.
fn pick<'a>(
    request: &'a [u8],
    is_wanted: impl Fn(&TraceId) -> bool,
    split: &mut Split,
) -> Result<WantedSpans<'a>, DecodeError> {
    let mut wanted = WantedSpans::default();
    // Spans of one trace are mostly adjacent, and the result is the same for all of them.
    let mut last = None;
    let mut is_wanted = move |trace_id: &TraceId| match last {
        Some((known, answer)) if known == *trace_id => answer,
        _ => {
            let answer = is_wanted(trace_id);
            last = Some((*trace_id, answer));
            answer
        }
    };
    for of_resource in Fields::new(request).children(RESOURCE_SPANS) {
        let of_resource = of_resource?;
        let mut resource_ix = None;
        for of_scope in of_resource.children(resource_spans::SCOPE_SPANS) {
            let of_scope = of_scope?;
            let mut scope_ix = None;
            for span in of_scope.children(scope_spans::SPANS) {
                let span = span?;
                if leading_trace(span.rest()).is_some_and(|trace_id| !is_wanted(&trace_id)) {
                    split.foreign += 1;
                    continue;
                }
                let ids = ids(span.clone())?;
                match ids.trace_id.filter(|trace_id| is_wanted(trace_id)) {
                    wanted if !ids.are_valid() => {
                        split.invalid += 1;
                        split.nameless += u64::from(ids.trace_id.is_none());
                        split.damaged.extend(wanted);
                    }
                    Some(trace_id) => {
                        check(span.clone(), &span::SCHEMA)?;
                        let resource_spans = wanted.around(&mut resource_ix, || {
                            all_but(
                                resource_spans::SCOPE_SPANS,
                                &of_resource,
                                &resource_spans::SCHEMA,
                            )
                        })?;
                        let scope_spans = wanted.around(&mut scope_ix, || {
                            all_but(scope_spans::SPANS, &of_scope, &scope_spans::SCHEMA)
                        })?;
                        let span = span.rest();
                        wanted.spans.push(SpanRef { trace_id, resource_spans, scope_spans, span });
                    }
                    None => split.foreign += 1,
                }
            }
        }
    }
    Ok(wanted)
}

impl WantedSpans<'_> {
    /// Returns the index of the message; stores it for the first span that needs it.
    fn around(
        &mut self,
        ix: &mut Option<usize>,
        message: impl FnOnce() -> Result<Vec<u8>, DecodeError>,
    ) -> Result<usize, DecodeError> {
        if let Some(ix) = *ix {
            return Ok(ix);
        }
        self.around.push(message()?);
        Ok(*ix.insert(self.around.len() - 1))
    }
}

/// Returns the trace id of a span that starts with its ids, as every encoder writes them: fields in the order of their numbers.
///
/// A foreign span needs no more, so that almost none is read beyond its first bytes. Returns none if the ids are elsewhere or
/// one of them is invalid; then all fields must be read.
#[inline(always)]
fn leading_trace(span: &[u8]) -> Option<TraceId> {
    const TRACE: [u8; 2] = [span::TRACE_ID as u8, 16];
    const OWN: [u8; 2] = [span::SPAN_ID as u8, 8];
    const STATE: u8 = span::TRACE_STATE as u8;
    const PARENT: u8 = span::PARENT_SPAN_ID as u8;
    let (trace_id, rest) = span.strip_prefix(&TRACE)?.split_first_chunk()?;
    let (span_id, mut rest) = rest.strip_prefix(&OWN)?.split_first_chunk()?;
    if let [STATE, len @ 0..0x80, more @ ..] = rest {
        rest = more.get(usize::from(*len)..)?;
    }
    // After the parent id, or the field in its place if there is none, no id follows.
    let is_last_seen = match rest {
        [PARENT, len, more @ ..] => *len == 8 && more.len() >= 8,
        [key, ..] => *key > PARENT | 7,
        [] => true,
    };
    SpanId::from_bytes(*span_id).filter(|_| is_last_seen)?;
    TraceId::from_bytes(*trace_id)
}

/// Decodes the ids of a span.
pub(crate) fn ids(mut span: Fields<'_>) -> Result<Ids, DecodeError> {
    let mut ids = Ids::default();
    while let Some(key) = span.key()? {
        match key {
            span::TRACE_ID => ids.set_trace(span.bytes()?),
            span::SPAN_ID => ids.set_span(span.bytes()?),
            span::PARENT_SPAN_ID => ids.set_parent(span.bytes()?),
            _ if matches!(key >> 3, 1 | 2 | 4) => return Err(span.malformed("an id is no bytes")),
            _ => span.skip(key)?,
        }
    }
    Ok(ids)
}

impl Ids {
    pub(crate) fn set_trace(&mut self, id: &[u8]) {
        self.trace_id = id.try_into().ok().and_then(TraceId::from_bytes);
    }

    pub(crate) fn set_span(&mut self, id: &[u8]) {
        self.span_id = id.try_into().ok().and_then(SpanId::from_bytes);
    }

    /// Sets the parent; an empty id or zeros mean that there is no parent.
    pub(crate) fn set_parent(&mut self, id: &[u8]) {
        self.parent = id.try_into().ok().and_then(SpanId::from_bytes);
        self.is_parent_malformed = self.parent.is_none() && id.iter().any(|byte| *byte != 0);
    }

    pub(crate) fn trace_id(&self) -> Option<TraceId> {
        self.trace_id
    }

    /// Whether all ids are valid.
    pub(crate) fn are_valid(&self) -> bool {
        self.trace_id.is_some() && self.span_id.is_some() && !self.is_parent_malformed
    }

    /// Returns the ids of the span and of its parent, if all are valid and this is its trace.
    pub(crate) fn within(&self, trace_id: TraceId) -> Option<(SpanId, Option<SpanId>)> {
        let span_id = self.span_id.filter(|_| self.are_valid())?;
        (self.trace_id == Some(trace_id)).then_some((span_id, self.parent))
    }
}

/// Encodes the message of one trace, of at most this many bytes.
fn traces_data(
    picked: &[SpanRef<'_>],
    around: &[Vec<u8>],
    room: usize,
) -> Result<Vec<u8>, DecodeError> {
    let mut data = Message::default();
    // Messages are distinguished by their position in the request: two equal resources may stay two.
    for of_resource in picked.chunk_by(|a, b| a.resource_spans == b.resource_spans) {
        data.message(1, |out| {
            out.bytes.extend_from_slice(&around[of_resource[0].resource_spans]);
            for of_scope in of_resource.chunk_by(|a, b| a.scope_spans == b.scope_spans) {
                out.message(2, |out| {
                    out.bytes.extend_from_slice(&around[of_scope[0].scope_spans]);
                    of_scope.iter().for_each(|picked| out.bytes(2, picked.span));
                });
            }
        });
        if data.bytes.len() > room {
            return Err(DecodeError::TooLarge);
        }
    }
    Ok(data.bytes)
}

/// Returns a message without its fields of this key, after validating the others. Unknown fields are kept.
fn all_but(key: u32, message: &Fields<'_>, schema: &Schema) -> Result<Vec<u8>, DecodeError> {
    check_all_but(key, message.clone(), schema)?;
    let mut kept = Vec::new();
    let mut message = message.clone();
    let mut before = message.rest();
    while let Some(found) = message.key()? {
        message.skip(found)?;
        let after = message.rest();
        if found != key {
            kept.extend_from_slice(&before[..before.len() - after.len()]);
        }
        before = after;
    }
    Ok(kept)
}

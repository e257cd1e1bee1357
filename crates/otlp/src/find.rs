//! The spans with one id, out of all spans of a message.

use model::{SpanId, Trace};

use crate::{
    append::{AppendError, append},
    split::{only_ids, split},
};

/// Decodes the spans with this id out of a `TracesData` message of one trace; none if it has no such span. Others are only scanned,
/// so that the cost in memory is that of the message.
pub fn find(message: &[u8], id: SpanId) -> Result<Option<Trace>, AppendError> {
    let first = std::cell::Cell::new(None);
    split(message, |trace_id| {
        first.set(first.get().or(Some(*trace_id)));
        false
    })?;
    let Some(trace_id) = first.get() else { return Ok(None) };
    let batch = only_ids(message, trace_id, |span| span == id)?;
    let mut trace = Trace::new(trace_id);
    append(&mut trace, &batch.bytes)?;
    Ok((!trace.is_empty()).then_some(trace))
}

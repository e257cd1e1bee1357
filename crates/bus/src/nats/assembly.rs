//! Batches that arrive in several chunks.

use std::collections::HashMap;

use model::{Timestamp, TraceId};

use super::wire::{Chunk, PublisherId};

/// The upper bound of batches that are not complete.
const BATCHES_MAX: usize = 1024;

/// Batches that are not complete, within a bound of bytes.
#[derive(Debug)]
pub(super) struct Assembly {
    bytes_max: usize,
    bytes: usize,
    parts: HashMap<(PublisherId, u64), Parts>,
}

#[derive(Debug)]
struct Parts {
    trace: TraceId,
    at: Timestamp,
    chunks: Vec<Option<Vec<u8>>>,
    bytes: usize,
}

/// What a chunk leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AssemblyResult {
    /// The batch, if it is complete.
    pub(super) batch: Option<Vec<u8>>,
    /// The traces of batches for which there is no room.
    pub(super) lost: Vec<TraceId>,
}

impl Assembly {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, parts: HashMap::new() }
    }

    /// Adds a chunk.
    pub(super) fn add(&mut self, trace: TraceId, chunk: &Chunk, bytes: Vec<u8>) -> AssemblyResult {
        if chunk.count == 1 {
            return AssemblyResult { batch: Some(bytes), lost: Vec::new() };
        }
        let key = (chunk.publisher, chunk.number);
        let parts = self.parts.entry(key).or_insert_with(|| Parts {
            trace,
            at: chunk.at,
            chunks: vec![None; usize::from(chunk.count)],
            bytes: 0,
        });
        // A chunk that was sent again replaces itself.
        let Some(place) = parts.chunks.get_mut(usize::from(chunk.index)) else {
            return AssemblyResult { batch: None, lost: vec![trace] };
        };
        let before = place.replace(bytes).map_or(0, |before| before.len());
        let after = place.as_ref().map_or(0, Vec::len);
        parts.bytes = parts.bytes + after - before;
        self.bytes = self.bytes + after - before;
        if parts.chunks.iter().all(Option::is_some) {
            let whole = self.remove(&key).map(|parts| parts.chunks.into_iter().flatten().flatten());
            return AssemblyResult { batch: whole.map(Iterator::collect), lost: Vec::new() };
        }
        AssemblyResult { batch: None, lost: self.make_room() }
    }

    /// Discards the oldest batches until there is room, and returns their traces.
    fn make_room(&mut self) -> Vec<TraceId> {
        let mut lost = Vec::new();
        while self.bytes > self.bytes_max || self.parts.len() > BATCHES_MAX {
            let oldest = self.parts.iter().min_by_key(|(_, parts)| parts.at).map(|(key, _)| *key);
            let Some(parts) = oldest.and_then(|oldest| self.remove(&oldest)) else { break };
            lost.push(parts.trace);
        }
        lost
    }

    fn remove(&mut self, key: &(PublisherId, u64)) -> Option<Parts> {
        let parts = self.parts.remove(key)?;
        self.bytes -= parts.bytes;
        Some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::{Assembly, AssemblyResult};
    use crate::nats::wire::{Chunk, PublisherId};
    use model::{Timestamp, TraceId};

    fn chunk(number: u64, index: u16, count: u16) -> Chunk {
        let (publisher, at) = (PublisherId([1; 8]), Timestamp::from_nanos(number));
        Chunk { publisher, number, index, count, spans: 1, at }
    }

    fn trace() -> TraceId {
        TraceId::from_bytes([7; 16]).expect("not all zero")
    }

    #[test]
    fn chunks_make_a_batch_in_their_order_whenever_they_come() {
        let mut assembly = Assembly::new(100);
        let nothing = || AssemblyResult { batch: None, lost: Vec::new() };
        let mut add = |number, index, text: &str| {
            assembly.add(trace(), &chunk(number, index, 3), text.as_bytes().to_vec())
        };
        assert_eq!(add(1, 2, "c"), nothing());
        assert_eq!(add(2, 0, "x"), nothing(), "another batch");
        assert_eq!(add(1, 0, "a"), nothing());
        assert_eq!(add(1, 0, "a"), nothing(), "sent again");
        assert_eq!(add(1, 1, "b").batch.as_deref(), Some(&b"abc"[..]));
        assert_eq!(assembly.bytes, 1);
        let one = assembly.add(trace(), &chunk(9, 0, 1), b"one".to_vec());
        assert_eq!(one.batch.as_deref(), Some(&b"one"[..]));
    }

    #[test]
    fn the_oldest_gives_way_and_is_told() {
        let mut assembly = Assembly::new(10);
        assembly.add(trace(), &chunk(1, 0, 2), vec![0; 6]);
        let added = assembly.add(trace(), &chunk(2, 0, 2), vec![0; 6]);
        assert_eq!(added, AssemblyResult { batch: None, lost: vec![trace()] });
        assert_eq!((assembly.bytes, assembly.parts.len()), (6, 1));
        let outside = Chunk { index: 5, ..chunk(2, 0, 9) };
        assert_eq!(assembly.add(trace(), &outside, vec![0; 6]).lost, [trace()], "another count");
    }
}

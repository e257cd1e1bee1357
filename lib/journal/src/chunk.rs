//! Ranges of records in memory, and the buffers that store them.

use std::{
    fmt, mem,
    sync::{Arc, Mutex},
};

use crate::{settled_ranges::Mark, shared::lock};

/// The number of bytes of records that are collected before they become a chunk. Small enough that an allocator does
/// not fetch the buffer from the operating system page by page, and large enough that the cost per chunk is negligible
/// per record.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// The approximate memory overhead of a chunk, besides its records.
pub(crate) const CHUNK_COST: u64 = 128;

/// The maximum number of spare buffers in the pool.
const SPARE_MAX: usize = 16;

/// A pool of used buffers that are still warm, so that appending neither allocates nor touches new pages.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Vec<u8>>>);

impl Pool {
    /// Returns an empty buffer with a capacity of at least `bytes`.
    pub(crate) fn take(&self, bytes: usize) -> Vec<u8> {
        let spare = if bytes <= CHUNK_BYTES { lock(&self.0).pop() } else { None };
        spare.filter(|spare| spare.capacity() >= bytes).unwrap_or_else(|| Vec::with_capacity(bytes))
    }

    fn give(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() == CHUNK_BYTES {
            let mut spare = lock(&self.0);
            if spare.len() < SPARE_MAX {
                buffer.clear();
                spare.push(buffer);
            }
        }
    }
}

/// Complete, consecutive records, each with its header. Immutable.
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    pool: Arc<Pool>,
}

impl Chunk {
    pub(crate) fn new(bytes: Vec<u8>, pool: &Arc<Pool>) -> Arc<Self> {
        Arc::new(Self { bytes, pool: Arc::clone(pool) })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.pool.give(mem::take(&mut self.bytes));
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} bytes)", self.bytes.len())
    }
}

/// A chunk and its position in the journal.
#[derive(Clone, Debug)]
pub(crate) struct ChunkRange {
    pub(crate) from: Mark,
    pub(crate) to: Mark,
    pub(crate) chunk: Arc<Chunk>,
}

impl ChunkRange {
    /// The bytes that the chunk takes in memory, with its overhead.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.to.at - self.from.at + CHUNK_COST
    }

    /// Returns the bytes between two positions. Positions outside of the chunk are clamped to it.
    pub(crate) fn slice(&self, from: u64, to: u64) -> &[u8] {
        let bytes = self.chunk.bytes();
        let index =
            |at: u64| (at.max(self.from.at) - self.from.at).min(bytes.len() as u64) as usize;
        &bytes[index(from)..index(to)]
    }
}

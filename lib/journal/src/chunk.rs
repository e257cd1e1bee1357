//! Stretches of records in memory, and the buffers that they are made of.

use std::{
    fmt, mem,
    sync::{Arc, Mutex},
};

use crate::{settled_ranges::Mark, shared::lock};

/// How many bytes of records are collected before they become a chunk. Below what an allocator takes from the
/// operating system page by page, large enough that what happens once per chunk costs nothing per record.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// What a chunk takes in memory besides its records, about.
pub(crate) const CHUNK_COST: u64 = 128;

/// How many buffers wait for their next use.
const SPARE_MAX: usize = 16;

/// Buffers that were in use and are still warm, so that appending neither allocates nor touches new pages.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Vec<u8>>>);

impl Pool {
    /// An empty buffer for at least so many bytes.
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

/// Whole records behind one another, each with its header, that do not change any more.
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

/// A chunk and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct ChunkRange {
    pub(crate) from: Mark,
    pub(crate) to: Mark,
    pub(crate) chunk: Arc<Chunk>,
}

impl ChunkRange {
    /// What it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.to.at - self.from.at + CHUNK_COST
    }

    /// What stands between the two positions; outside of the chunk there is nothing.
    pub(crate) fn slice(&self, from: u64, to: u64) -> &[u8] {
        let bytes = self.chunk.bytes();
        let index =
            |at: u64| (at.max(self.from.at) - self.from.at).min(bytes.len() as u64) as usize;
        &bytes[index(from)..index(to)]
    }
}

//! A segment of a journal: records under one head, in one file if there is a directory.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    chunk::ChunkRange,
    format::{PREFIX_BYTES, Slot},
    settled_ranges::Mark,
};

/// The allocation unit of a file system; `du` counts in these blocks.
const BLOCK_BYTES: u64 = 4096;

/// Whether a segment has a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDisk {
    Absent,
    /// A file of that name may exist, but it has no readable content.
    Begun,
    Ready,
}

/// A segment of a journal.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) id: u64,
    pub(crate) head: Arc<[u8]>,
    pub(crate) first: Mark,
    /// The end of its last chunk. In the last segment, the open chunk of the journal follows.
    pub(crate) end: Mark,
    /// The chunks in memory: a contiguous tail of the segment. Records before them are in the file or acknowledged.
    pub(crate) chunks: VecDeque<ChunkRange>,
    pub(crate) on_disk: OnDisk,
    /// Up to this position the file contains records and gaps without a hole. Settled records behind it may never be
    /// written.
    pub(crate) filled: Mark,
    /// The acknowledgement slot that is in the file.
    pub(crate) slot: Slot,
    /// Bytes of the file behind its last valid record, which recovery ignores.
    pub(crate) tail: u64,
}

impl Segment {
    pub(crate) fn new(id: u64, head: Arc<[u8]>, first: Mark) -> Self {
        let slot = Slot { sequence: 1, offset: 0 };
        let chunks = VecDeque::new();
        let (filled, on_disk) = (first, OnDisk::Absent);
        Self { id, head, first, end: first, chunks, on_disk, filled, slot, tail: 0 }
    }

    /// The file offset of the first record.
    pub(crate) fn records_at(&self) -> u64 {
        (PREFIX_BYTES + self.head.len()) as u64
    }

    /// The length of the file when it contains the records up to `end`.
    pub(crate) fn length(&self, end: u64) -> u64 {
        self.records_at() + (end - self.first.at) + self.tail
    }

    /// The memory that its head takes in addition to the head of its successor.
    pub(crate) fn head_bytes(&self, next: &Self) -> u64 {
        if Arc::ptr_eq(&self.head, &next.head) { 0 } else { self.head.len() as u64 }
    }

    /// The position from which on records are in memory.
    pub(crate) fn resident(&self) -> Mark {
        self.chunks.front().map_or(self.end, |placed| placed.from)
    }
}

/// The disk space that a file of this length takes.
pub(crate) fn on_disk_bytes(length: u64) -> u64 {
    length.next_multiple_of(BLOCK_BYTES)
}

/// The maximum length of a file that takes at most `bytes` on disk.
pub(crate) fn length_within(bytes: u64) -> u64 {
    bytes / BLOCK_BYTES * BLOCK_BYTES
}

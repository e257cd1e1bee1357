//! One stretch of a journal: records under one head, in one file if there is a directory.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    chunk::ChunkRange,
    format::{PREFIX_BYTES, Slot},
    settled_ranges::Mark,
};

/// What a file system gives out at the least; `du` counts these.
const BLOCK_BYTES: u64 = 4096;

/// Whether a segment has a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDisk {
    Absent,
    /// Something of that name may be there, but nothing that could be read.
    Begun,
    Ready,
}

/// One stretch of a journal.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) id: u64,
    pub(crate) head: Arc<[u8]>,
    pub(crate) first: Mark,
    /// The end of its last chunk; the journal's open chunk follows in the last segment.
    pub(crate) end: Mark,
    /// What is in memory: a contiguous tail of the segment. What is before it is in the file or acknowledged.
    pub(crate) chunks: VecDeque<ChunkRange>,
    pub(crate) on_disk: OnDisk,
    /// Up to here the file holds records and gaps without a hole; what is settled behind it may never get there.
    pub(crate) filled: Mark,
    /// The acknowledgement that is in the file.
    pub(crate) slot: Slot,
    /// Bytes of the file behind its last record, which were cut.
    pub(crate) tail: u64,
}

impl Segment {
    pub(crate) fn new(id: u64, head: Arc<[u8]>, first: Mark) -> Self {
        let slot = Slot { sequence: 1, offset: 0 };
        let chunks = VecDeque::new();
        let (filled, on_disk) = (first, OnDisk::Absent);
        Self { id, head, first, end: first, chunks, on_disk, filled, slot, tail: 0 }
    }

    /// Where in the file the first record begins.
    pub(crate) fn records_at(&self) -> u64 {
        (PREFIX_BYTES + self.head.len()) as u64
    }

    /// The length that the file has when records up to `end` are in it.
    pub(crate) fn length(&self, end: u64) -> u64 {
        self.records_at() + (end - self.first.at) + self.tail
    }

    /// What its head takes in memory besides that of its successor.
    pub(crate) fn head_bytes(&self, next: &Self) -> u64 {
        if Arc::ptr_eq(&self.head, &next.head) { 0 } else { self.head.len() as u64 }
    }

    /// Where what is in memory begins.
    pub(crate) fn resident(&self) -> Mark {
        self.chunks.front().map_or(self.end, |placed| placed.from)
    }
}

/// What a file of so many bytes takes on disk.
pub(crate) fn on_disk_bytes(length: u64) -> u64 {
    length.next_multiple_of(BLOCK_BYTES)
}

/// How long a file may be that takes no more than so many bytes on disk.
pub(crate) fn length_within(bytes: u64) -> u64 {
    bytes / BLOCK_BYTES * BLOCK_BYTES
}

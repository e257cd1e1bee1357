//! The group of records to write next: records that are in no file yet, up to an upper bound.

use std::{io, mem, sync::Arc};

use crate::{chunk::ChunkRange, format, segment::OnDisk, settled_ranges::Mark, state::State};

/// The upper bound of the bytes of closed chunks that are written at once.
const GROUP_BYTES: u64 = 1024 * 1024;

/// Consecutive records of one segment, to be written to its file.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: u64,
    pub(crate) head: Arc<[u8]>,
    pub(crate) on_disk: OnDisk,
    /// The file offset of the position `first`; the offset of any other position follows from it.
    records_at: u64,
    first: u64,
    /// The position at which the file ends; a gap follows up to the first chunk.
    filled: u64,
    /// The position at which the records of this group begin.
    from: u64,
    chunks: Vec<ChunkRange>,
    /// A copy of the unwritten part of the open chunk; it begins at position `open_from`.
    open: Vec<u8>,
    open_from: u64,
    pub(crate) to: Mark,
}

impl Group {
    /// Calls `write` with each byte slice and its file offset, in order.
    pub(crate) fn writes(
        &self,
        mut write: impl FnMut(&[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let offset = |at: u64| self.records_at + (at - self.first);
        if self.from > self.filled {
            // The gap header comes first: without it, recovery sees the end of the file here.
            write(&format::gap_header(self.from - self.filled), offset(self.filled))?;
        }
        for placed in &self.chunks {
            write(placed.slice(self.from, u64::MAX), offset(placed.from.at.max(self.from)))?;
        }
        if self.open.is_empty() { Ok(()) } else { write(&self.open, offset(self.open_from)) }
    }

    /// Returns the buffer, for the next group.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.open
    }
}

impl State {
    /// Returns the oldest records of one segment that are in no file, or `None`. `buffer` receives the copy of the open
    /// chunk.
    ///
    /// Settled records that are gone from memory are not written: the group records the length of the gap that they
    /// leave.
    pub(crate) fn next_group(&mut self, buffer: &mut Vec<u8>) -> Option<Group> {
        while self.written.at < self.end.at {
            let last = self.segments.len() - 1;
            let index = self
                .segments
                .partition_point(|segment| segment.end.at <= self.written.at)
                .min(last);
            let segment = &self.segments[index];
            let from = self.written.max(segment.filled);
            let behind = segment.chunks.partition_point(|placed| placed.to.at <= from.at);
            let mut to = from;
            let mut bytes = 0;
            let mut chunks = Vec::new();
            for placed in segment.chunks.range(behind..) {
                if bytes >= GROUP_BYTES {
                    break;
                }
                bytes += placed.to.at - placed.from.at;
                to = placed.to;
                chunks.push(placed.clone());
            }
            let reaches_open = index == last && behind + chunks.len() == segment.chunks.len();
            let mut open = mem::take(buffer);
            open.clear();
            let open_from = self.open_from.at.max(from.at);
            if reaches_open && !self.open.is_empty() {
                open.extend_from_slice(&self.open[(open_from - self.open_from.at) as usize..]);
                to = self.end;
            }
            if chunks.is_empty() && open.is_empty() {
                // All of these records are settled and gone from memory.
                *buffer = open;
                self.written = if index == last { self.end } else { self.segments[index].end };
                continue;
            }
            if to.at == self.end.at {
                self.unwritten_since = None;
            }
            self.writing = Some(segment.id);
            return Some(Group {
                id: segment.id,
                head: Arc::clone(&segment.head),
                on_disk: segment.on_disk,
                records_at: segment.records_at(),
                first: segment.first.at,
                filled: segment.filled.at,
                from: chunks.first().map_or(open_from, |placed| placed.from.at.max(from.at)),
                chunks,
                open,
                open_from,
                to,
            });
        }
        None
    }

    /// Records whether a group was written to its file.
    pub(crate) fn finish_group(&mut self, group: &Group, is_written: bool) {
        self.writing = None;
        if let Some(segment) = self.segment_mut(group.id) {
            if is_written {
                segment.on_disk = OnDisk::Ready;
                segment.filled = segment.filled.max(group.to);
            } else if segment.on_disk == OnDisk::Absent {
                segment.on_disk = OnDisk::Begun;
            }
        }
        if is_written {
            self.written = group.to;
            self.refused_until = None;
            self.tally.last_write_error = None;
        }
        self.release();
    }
}

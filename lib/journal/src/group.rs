//! What is written next: the records that are not in a file yet, up to a bound.

use std::{io, mem, sync::Arc};

use crate::{chunk::ChunkRange, format, segment::OnDisk, settled_ranges::Mark, state::State};

/// How much of closed chunks is written at once.
const GROUP_BYTES: u64 = 1024 * 1024;

/// Records of one segment, to be written behind one another.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: u64,
    pub(crate) head: Arc<[u8]>,
    pub(crate) on_disk: OnDisk,
    /// Where in the file a position stands: there and so much behind.
    records_at: u64,
    first: u64,
    /// Where the file ends; what follows is a gap up to the first chunk.
    filled: u64,
    /// Where the records of this group begin.
    from: u64,
    chunks: Vec<ChunkRange>,
    /// A copy of the open chunk's unwritten part, and where it stands.
    open: Vec<u8>,
    open_from: u64,
    pub(crate) to: Mark,
}

impl Group {
    /// What must be written where, in this order.
    pub(crate) fn writes(
        &self,
        mut write: impl FnMut(&[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let offset = |at: u64| self.records_at + (at - self.first);
        if self.from > self.filled {
            // Before all else: until it is there, the file ends here for whoever recovers it.
            write(&format::gap_header(self.from - self.filled), offset(self.filled))?;
        }
        for placed in &self.chunks {
            write(placed.slice(self.from, u64::MAX), offset(placed.from.at.max(self.from)))?;
        }
        if self.open.is_empty() { Ok(()) } else { write(&self.open, offset(self.open_from)) }
    }

    /// The buffer, for the next group.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.open
    }
}

impl State {
    /// The oldest records that are in no file, of one segment, or nothing; `buffer` is for the copy of the open chunk.
    ///
    /// What is settled and gone from memory needs no writing: the group says how long the gap is that it leaves.
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
                // All of it is settled, and gone from memory.
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

    /// A group is in its file, or is not.
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

//! Reads unread records: from memory if they are there, otherwise from files.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    sync::Arc,
};

use crate::{
    batch::{Batch, Max},
    chunk::{CHUNK_BYTES, Chunk, ChunkRange, Pool},
    folder::Folder,
    format::{HEADER_BYTES, Header, RECORD_BYTES_MAX},
    settled_ranges::Mark,
    shared::{SharedJournal, lock},
    state::State,
};

/// The number of bytes that are read from a file at once, unless one record is longer.
const BLOCK_BYTES: u64 = 1024 * 1024;

/// The error of `read(2)` for a broken device, which has no name in std.
const EIO: i32 = 5;

/// The data under the reader lock.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pool: Arc<Pool>,
    file: Option<(u64, File)>,
    /// The last block that was read from a file: validated, complete records.
    block: Option<ChunkRange>,
}

/// The location of the next records.
struct ReadRange {
    head: Arc<[u8]>,
    from: Mark,
    /// The end of the range that one batch may contain.
    stop: Mark,
    place: Place,
}

enum Place {
    Memory(Vec<ChunkRange>),
    File { id: u64, offset: u64 },
}

/// Why a file could not be read.
enum Damage {
    /// One record is damaged: its bytes and its items.
    Record(u64, u64),
    /// The start of the next record is unknown, so the rest of the range is lost.
    Rest,
    /// A temporary error: a later read may succeed.
    Later(io::Error),
}

impl SharedJournal {
    /// Returns the next unread records.
    pub(crate) fn read(&self, max: Max) -> Option<Batch> {
        let mut reader = lock(&self.reader);
        loop {
            let unread = lock(&self.state).next_unread(max)?;
            let stretch = (unread.from, unread.stop);
            let batch = match unread.place {
                Place::Memory(chunks) => {
                    reader.block = None;
                    Batch::cut(unread.head, &chunks, stretch, max)
                }
                Place::File { id, offset } => match reader.block(self, id, offset, stretch) {
                    Ok(block) => Batch::cut(unread.head, &[block], stretch, max),
                    Err(Damage::Later(error)) => {
                        let mut state = lock(&self.state);
                        state.tally.last_write_error = Some(error.to_string());
                        state.ready.found_nothing(unread.from);
                        return None;
                    }
                    Err(Damage::Record(bytes, items)) => {
                        let at = unread.from.at + bytes;
                        self.give_up(unread.from, Mark { at, items: unread.from.items + items });
                        continue;
                    }
                    Err(Damage::Rest) => {
                        self.give_up(unread.from, unread.stop);
                        continue;
                    }
                },
            };
            let mut state = lock(&self.state);
            state.reader = batch.to();
            let (position, end) = (state.reader, state.end);
            let _known = state.ready.moved(position, end);
            return Some(batch);
        }
    }

    fn give_up(&self, from: Mark, to: Mark) {
        lock(&self.state).give_up(from, to);
        self.after_settling();
    }
}

impl State {
    fn next_unread(&mut self, max: Max) -> Option<ReadRange> {
        let from = self.settled.next_open(self.reader);
        self.reader = from;
        if self.closed || from.at >= self.end.at {
            self.ready.found_nothing(from);
            return None;
        }
        let last = self.segments.len() - 1;
        let index = self.segments.partition_point(|segment| segment.end.at <= from.at).min(last);
        // A batch counts no header bytes. With tiny records it is therefore smaller than it could be.
        let wanted = (max.bytes as u64).saturating_add(max.bytes as u64 / 2 + CHUNK_BYTES as u64);
        let limit = from.at.saturating_add(wanted);
        let is_near = self.open_from.items.saturating_sub(from.items) <= max.items
            && self.open_from.at <= limit;
        if index == last && is_near {
            self.freeze();
        }
        let segment = &self.segments[index];
        let settled = self.settled.next_settled(from).unwrap_or(segment.end);
        let stop = settled.min(segment.end);
        let head = Arc::clone(&segment.head);
        let resident = segment.resident();
        if from.at < resident.at {
            let offset = segment.records_at() + (from.at - segment.first.at);
            let place = Place::File { id: segment.id, offset };
            return Some(ReadRange { head, from, stop: stop.min(resident), place });
        }
        let behind = segment.chunks.partition_point(|placed| placed.to.at <= from.at);
        let near = segment.chunks.range(behind..).take_while(|placed| {
            let is_wanted = placed.from.items.saturating_sub(from.items) <= max.items;
            is_wanted && placed.from.at < stop.at && placed.from.at <= limit
        });
        let place = Place::Memory(near.cloned().collect());
        Some(ReadRange { head, from, stop, place })
    }
}

impl Reader {
    /// Returns the block with the record at the start of the range, which is at this offset of the file.
    fn block(
        &mut self,
        shared: &SharedJournal,
        id: u64,
        offset: u64,
        stretch: (Mark, Mark),
    ) -> Result<ChunkRange, Damage> {
        let (from, stop) = stretch;
        if let Some(block) = &self.block
            && block.from.at <= from.at
            && from.at < block.to.at
        {
            return Ok(block.clone());
        }
        self.block = None;
        let folder = shared.folder.as_ref().ok_or(Damage::Rest)?;
        let file = self.open(folder, id)?;
        let mut bytes = read_at(file, offset, BLOCK_BYTES.min(stop.at - from.at))?;
        let first = Header::parse(&bytes).filter(|header| !header.is_gap);
        let first = first
            .filter(|header| header.record_bytes() <= RECORD_BYTES_MAX.min(stop.at - from.at))
            .ok_or(Damage::Rest)?;
        if first.record_bytes() > bytes.len() as u64 {
            bytes = read_at(file, offset, first.record_bytes())?;
        }
        let mut to = from;
        while let Some(header) = good_record(&bytes[(to.at - from.at) as usize..]) {
            to.at += header.record_bytes();
            to.items += u64::from(header.items);
        }
        if to.at == from.at {
            return Err(Damage::Record(first.record_bytes(), u64::from(first.items)));
        }
        bytes.truncate((to.at - from.at) as usize);
        let chunk = Chunk::new(bytes, &self.pool);
        let block = ChunkRange { from, to, chunk };
        self.block = Some(block.clone());
        Ok(block)
    }

    /// Closes the file, so that the next read opens it again.
    pub(crate) fn close_file(&mut self) {
        self.file = None;
    }

    fn open(&mut self, folder: &Folder, id: u64) -> Result<&File, Damage> {
        let file = match self.file.take() {
            Some((open, file)) if open == id => file,
            _ => folder.open(id, OpenOptions::new().read(true)).map_err(damage)?,
        };
        Ok(&self.file.insert((id, file)).1)
    }
}

/// Parses the header of the record at the start of these bytes, if the record is complete and its checksums match.
fn good_record(bytes: &[u8]) -> Option<Header> {
    let header = Header::parse(bytes).filter(|header| !header.is_gap)?;
    let payload = bytes.get(HEADER_BYTES..header.record_bytes() as usize)?;
    (crc32fast::hash(payload) == header.checksum).then_some(header)
}

fn read_at(file: &File, offset: u64, length: u64) -> Result<Vec<u8>, Damage> {
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset).map_err(damage)?;
    Ok(bytes)
}

/// Classifies an I/O error: a missing file or data is permanent, but a lack of file descriptors is temporary.
fn damage(error: io::Error) -> Damage {
    let is_gone = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof);
    if is_gone || error.raw_os_error() == Some(EIO) { Damage::Rest } else { Damage::Later(error) }
}

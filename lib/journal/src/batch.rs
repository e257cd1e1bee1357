//! The batch that the reader gets: consecutive records under one head.

use std::{fmt, mem, ops::Range, sync::Arc};

use crate::{
    chunk::{Chunk, ChunkRange},
    format::{HEADER_BYTES, Header},
    settled_ranges::{Mark, Stretch},
};

/// Consecutive records, all under one head. Cheap to clone.
#[derive(Clone)]
pub struct Batch(Arc<Inner>);

struct Inner {
    head: Arc<[u8]>,
    pieces: Vec<(Arc<Chunk>, Range<usize>)>,
    bytes: usize,
    from: Mark,
    to: Mark,
}

/// One record, as it was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The number of items that the record represents.
    pub items: u32,
    /// Its payload.
    pub bytes: &'a [u8],
}

impl Batch {
    /// The head that the records were appended under.
    pub fn head(&self) -> &[u8] {
        &self.0.head
    }

    /// The number of items that the records represent.
    pub fn items(&self) -> u64 {
        self.0.to.items - self.0.from.items
    }

    /// The number of payload bytes of the records.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// The records, oldest first.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.0.pieces.iter().flat_map(|(chunk, range)| Records(&chunk.bytes()[range.clone()]))
    }

    /// The records, oldest first, each with its position in the journal.
    pub fn placed(&self) -> impl Iterator<Item = (Stretch, Record<'_>)> {
        let mut from = self.0.from;
        self.records().map(move |record| {
            let at = from.at + (HEADER_BYTES + record.bytes.len()) as u64;
            let to = Mark { at, items: from.items + u64::from(record.items) };
            (Stretch { from: mem::replace(&mut from, to), to }, record)
        })
    }

    /// The position of the batch in the journal.
    pub fn stretch(&self) -> Stretch {
        Stretch { from: self.0.from, to: self.0.to }
    }

    pub(crate) fn to(&self) -> Mark {
        self.0.to
    }

    /// Cuts a batch from the start of the range: as many records as the limits allow, and at least one. The chunks are
    /// contiguous, and the first chunk contains the start position.
    pub(crate) fn cut(
        head: Arc<[u8]>,
        chunks: &[ChunkRange],
        stretch: (Mark, Mark),
        max: Max,
    ) -> Self {
        let (from, stop) = stretch;
        let mut to = from;
        let mut bytes = 0;
        let mut pieces = Vec::with_capacity(chunks.len());
        for placed in chunks {
            let slice = placed.slice(to.at, stop.at);
            let start = (to.at - placed.from.at) as usize;
            let mut length = 0;
            for record in Records(slice) {
                let items = to.items + u64::from(record.items) - from.items;
                let is_over = items > max.items || bytes + record.bytes.len() > max.bytes;
                if is_over && to.at > from.at {
                    break;
                }
                bytes += record.bytes.len();
                length += HEADER_BYTES + record.bytes.len();
                to.items += u64::from(record.items);
                to.at += (HEADER_BYTES + record.bytes.len()) as u64;
            }
            if length > 0 {
                pieces.push((Arc::clone(&placed.chunk), start..start + length));
            }
            if length < slice.len() {
                break;
            }
        }
        Self(Arc::new(Inner { head, pieces, bytes, from, to }))
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("from", &self.0.from.at)
            .field("items", &self.items())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

/// The upper bounds of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Max {
    pub(crate) items: u64,
    pub(crate) bytes: usize,
}

/// Iterates over the records of a byte range that is known to contain only complete records.
struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let header = Header::trusted(self.0)?;
        let (record, rest) = self.0.split_at_checked(header.record_bytes() as usize)?;
        self.0 = rest;
        Some(Record { items: header.items, bytes: &record[HEADER_BYTES..] })
    }
}

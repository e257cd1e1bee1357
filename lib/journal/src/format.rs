//! The bytes of a segment's file, version 1. All numbers are little endian.
//!
//! | at | what |
//! | --- | --- |
//! | 0 | magic, 7 bytes, and the version, 1 byte |
//! | 8, 32 | two slots: sequence u64, offset u64, checksum of these u32, zero u32 |
//! | 56 | head: length u32, checksum u32, then its bytes |
//! | behind | records: length u32, items u32, checksum of the payload u32, checksum of these u32, payload |
//!
//! The slot with the higher sequence says how many bytes of records are acknowledged; they are written in turn, so
//! that a torn one leaves the other. A record whose length has the highest bit set is a gap: so many bytes were
//! acknowledged before they had to be written.

/// What a version 1 file begins with.
pub(crate) const MAGIC: [u8; 8] = *b"JOURNAL\x01";
/// What stands before the bytes of the head.
pub(crate) const PREFIX_BYTES: usize = 64;
/// What stands before the payload of a record.
pub(crate) const HEADER_BYTES: usize = 16;
/// The largest record: even the gap of a segment that holds nothing else leaves the bit free that marks it.
pub(crate) const RECORD_BYTES_MAX: u64 = 1 << 30;

/// The largest head.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// No file is as long: a segment beyond its bound holds one record.
pub(crate) const FILE_BYTES_MAX: u64 = 2 << 30;

const SLOT_BYTES: usize = 24;
const SLOTS_AT: usize = 8;
const GAP: u32 = 1 << 31;

/// What stands before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) length: u32,
    pub(crate) items: u32,
    pub(crate) checksum: u32,
    pub(crate) is_gap: bool,
}

impl Header {
    /// The bytes of the record with its header.
    pub(crate) fn record_bytes(self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.length)
    }

    /// The header, if its checksum is right.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let header = Self::trusted(bytes)?;
        (crc32fast::hash(&bytes[..12]) == u32_at(bytes, 12)).then_some(header)
    }

    /// The header of a record that never left memory, or was checked before.
    #[inline]
    pub(crate) fn trusted(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
        let length = u32_at(bytes, 0);
        Some(Self {
            length: length & !GAP,
            items: u32_at(bytes, 4),
            checksum: u32_at(bytes, 8),
            is_gap: length & GAP != 0,
        })
    }
}

/// The header of a record that may go to disk.
#[inline]
pub(crate) fn checked_header(items: u32, payload: &[u8]) -> [u8; HEADER_BYTES] {
    sealed(payload.len() as u32, items, crc32fast::hash(payload))
}

/// The header of a record that never leaves memory.
#[inline]
pub(crate) fn unchecked_header(items: u32, payload: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[4..8].copy_from_slice(&items.to_le_bytes());
    header
}

/// The header that stands for `bytes` bytes, itself included, which are not there: one record at the least, so that it
/// fits.
pub(crate) fn gap_header(bytes: u64) -> [u8; HEADER_BYTES] {
    sealed((bytes as u32 - HEADER_BYTES as u32) | GAP, 0, 0)
}

#[inline]
fn sealed(length: u32, items: u32, checksum: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4..8].copy_from_slice(&items.to_le_bytes());
    header[8..12].copy_from_slice(&checksum.to_le_bytes());
    let seal = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&seal.to_le_bytes());
    header
}

/// How far a segment is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) sequence: u64,
    /// Bytes of records.
    pub(crate) offset: u64,
}

impl Slot {
    /// Where in the file this one goes.
    pub(crate) fn at(self) -> u64 {
        (SLOTS_AT + SLOT_BYTES * (self.sequence % 2) as usize) as u64
    }

    pub(crate) fn bytes(self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..16]);
        bytes[16..20].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The last one that was written whole; the beginning if neither was.
    pub(crate) fn last(prefix: &[u8; PREFIX_BYTES]) -> Self {
        let slot = |at: usize| {
            let bytes = &prefix[at..at + SLOT_BYTES];
            let slot = Self { sequence: u64_at(bytes, 0), offset: u64_at(bytes, 8) };
            // The last sequence has no successor; we never get there.
            (slot.bytes() == bytes && slot.sequence < u64::MAX).then_some(slot)
        };
        let slots = [slot(SLOTS_AT), slot(SLOTS_AT + SLOT_BYTES)];
        slots.into_iter().flatten().max_by_key(|slot| slot.sequence).unwrap_or_default()
    }
}

/// All that stands before the records, nothing of them acknowledged.
pub(crate) fn beginning(head: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; PREFIX_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    for sequence in 0..2 {
        let slot = Slot { sequence, offset: 0 };
        let at = slot.at() as usize;
        bytes[at..at + SLOT_BYTES].copy_from_slice(&slot.bytes());
    }
    bytes[56..60].copy_from_slice(&(head.len() as u32).to_le_bytes());
    bytes[60..64].copy_from_slice(&crc32fast::hash(head).to_le_bytes());
    bytes.extend_from_slice(head);
    bytes
}

/// The length and the checksum of the head.
pub(crate) fn head_of(prefix: &[u8; PREFIX_BYTES]) -> (u32, u32) {
    (u32_at(prefix, 56), u32_at(prefix, 60))
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

//! The bytes of a segment's file, version 1. All numbers are little endian.
//!
//! | offset | content |
//! | --- | --- |
//! | 0 | magic, 7 bytes, and the version, 1 byte |
//! | 8, 32 | two slots: sequence u64, offset u64, checksum of these u32, zero u32 |
//! | 56 | head: length u32, checksum u32, then its bytes |
//! | then | records: length u32, items u32, checksum of the payload u32, checksum of these u32, payload |
//!
//! The slot with the higher sequence states how many bytes of records are acknowledged. The two slots are written in
//! turn, so that a torn write of one leaves the other intact. A record with the highest bit of its length set is a gap:
//! that many bytes were acknowledged before they had to be written.

/// The first bytes of a version 1 file.
pub(crate) const MAGIC: [u8; 8] = *b"JOURNAL\x01";
/// The number of bytes before the bytes of the head.
pub(crate) const PREFIX_BYTES: usize = 64;
/// The number of bytes before the payload of a record.
pub(crate) const HEADER_BYTES: usize = 16;
/// The maximum size of a record. Even a gap that covers an entire segment leaves the bit free that marks a gap.
pub(crate) const RECORD_BYTES_MAX: u64 = 1 << 30;

/// The maximum size of a head.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The upper bound of a file's length: a segment beyond its limit contains a single record.
pub(crate) const FILE_BYTES_MAX: u64 = 2 << 30;

const SLOT_BYTES: usize = 24;
const SLOTS_AT: usize = 8;
const GAP: u32 = 1 << 31;

/// The header before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) length: u32,
    pub(crate) items: u32,
    pub(crate) checksum: u32,
    pub(crate) is_gap: bool,
}

impl Header {
    /// The number of bytes of the record, header included.
    pub(crate) fn record_bytes(self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.length)
    }

    /// Parses the header. Returns `None` if its checksum is wrong.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let header = Self::trusted(bytes)?;
        (crc32fast::hash(&bytes[..12]) == u32_at(bytes, 12)).then_some(header)
    }

    /// Parses the header of a record that never left memory or was validated before, without the checksum.
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

/// Encodes the header of a record that may be written to disk.
#[inline]
pub(crate) fn checked_header(items: u32, payload: &[u8]) -> [u8; HEADER_BYTES] {
    sealed(payload.len() as u32, items, crc32fast::hash(payload))
}

/// Encodes the header of a record that never leaves memory.
#[inline]
pub(crate) fn unchecked_header(items: u32, payload: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[4..8].copy_from_slice(&items.to_le_bytes());
    header
}

/// Encodes the header of a gap: it replaces `bytes` missing bytes, the header included. A gap covers at least one
/// record, so the header always fits.
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
    /// The acknowledged bytes of records.
    pub(crate) offset: u64,
}

impl Slot {
    /// The offset of this slot in the file.
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

    /// Returns the last slot that was written completely, or the zero slot if neither is valid.
    pub(crate) fn last(prefix: &[u8; PREFIX_BYTES]) -> Self {
        let slot = |at: usize| {
            let bytes = &prefix[at..at + SLOT_BYTES];
            let slot = Self { sequence: u64_at(bytes, 0), offset: u64_at(bytes, 8) };
            // The last sequence has no successor; no journal reaches it.
            (slot.bytes() == bytes && slot.sequence < u64::MAX).then_some(slot)
        };
        let slots = [slot(SLOTS_AT), slot(SLOTS_AT + SLOT_BYTES)];
        slots.into_iter().flatten().max_by_key(|slot| slot.sequence).unwrap_or_default()
    }
}

/// Encodes the bytes before the records, with no record acknowledged.
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

/// Returns the length and the checksum of the head.
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

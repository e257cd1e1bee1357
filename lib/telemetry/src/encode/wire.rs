//! The protobuf wire format, as far as OTLP needs it.
//!
//! A message comes after its length, which is known only once the message is encoded. So the encoder reserves room for
//! a length of the expected size, and fills it in afterwards. If the expectation was wrong, the message moves by a byte
//! or two. Deliberately absent: a separate pass that only measures, and fields with a default value, which protobuf
//! omits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tags of fields up to 15, which are one byte each.
pub(super) mod tag {
    pub(in crate::encode) const fn varint(field: u8) -> u8 {
        field << 3
    }

    pub(in crate::encode) const fn fixed64(field: u8) -> u8 {
        field << 3 | 1
    }

    pub(in crate::encode) const fn bytes(field: u8) -> u8 {
        field << 3 | 2
    }

    pub(in crate::encode) const fn fixed32(field: u8) -> u8 {
        field << 3 | 5
    }
}

/// Appends a message of about `expected` bytes, encoded by `body`.
#[inline]
pub(super) fn message(
    out: &mut Vec<u8>,
    tag: u8,
    expected: usize,
    body: impl FnOnce(&mut Vec<u8>),
) {
    let room = varint_len(expected as u64);
    match room {
        1 => out.extend_from_slice(&[tag, 0]),
        2 => out.extend_from_slice(&[tag, 0, 0]),
        _ => out.resize(out.len() + 1 + room, tag),
    }
    let start = out.len();
    body(out);
    let length = out.len() - start;
    match room {
        1 if length < 0x80 => out[start - 1] = length as u8,
        2 if (0x80..0x4000).contains(&length) => {
            out[start - 2..start].copy_from_slice(&[length as u8 | 0x80, (length >> 7) as u8]);
        }
        _ => fill_in(out, start, room),
    }
}

/// Writes the length of the message that begins at `start` into the `room` before it.
fn fill_in(out: &mut Vec<u8>, start: usize, room: usize) {
    let end = out.len();
    let mut length = (end - start) as u64;
    let needed = varint_len(length);
    let moved = start - room + needed;
    if needed > room {
        out.resize(end + needed - room, 0);
    }
    if needed != room {
        out.copy_within(start..end, moved);
        out.truncate(end - start + moved);
    }
    for byte in &mut out[start - room..moved - 1] {
        *byte = length as u8 | 0x80;
        length >>= 7;
    }
    out[moved - 1] = length as u8;
}

/// Appends bytes, even if they are empty.
#[inline]
pub(super) fn bytes(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    if value.len() < 0x80 {
        out.extend_from_slice(&[tag, value.len() as u8]);
    } else {
        out.push(tag);
        varint(out, value.len() as u64);
    }
    out.extend_from_slice(value);
}

/// Appends a text, unless it is empty.
#[inline]
pub(super) fn text(out: &mut Vec<u8>, tag: u8, value: &str) {
    if !value.is_empty() {
        bytes(out, tag, value.as_bytes());
    }
}

/// Appends a number, unless it is zero.
#[inline]
pub(super) fn count(out: &mut Vec<u8>, tag: u8, value: u32) {
    if value != 0 {
        out.push(tag);
        varint(out, u64::from(value));
    }
}

#[inline]
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub(super) const fn varint_len(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

/// Returns the nanoseconds since 1970: zero for an earlier time, and the maximum for a time beyond the range.
pub(super) fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(since.subsec_nanos()))
}

/// Appends a point in time, which is a fixed64 in OTLP.
#[inline]
pub(super) fn time(out: &mut Vec<u8>, tag: u8, time: SystemTime) {
    let mut field = [tag; 9];
    field[1..].copy_from_slice(&nanos(time).to_le_bytes());
    out.extend_from_slice(&field);
}

#[inline]
pub(super) fn fixed32(out: &mut Vec<u8>, tag: u8, value: u32) {
    let mut field = [tag; 5];
    field[1..].copy_from_slice(&value.to_le_bytes());
    out.extend_from_slice(&field);
}

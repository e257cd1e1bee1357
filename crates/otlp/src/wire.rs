//! The protobuf wire format: reads the fields of one message as the caller requests them.
//!
//! It accepts and refuses the same input as `prost`, down to the nesting limit. Deliberately absent: groups as values, since
//! proto3 has none; like all unknown fields they are skipped.

use model::{Fault, Faulty};
use thiserror::Error;

use crate::schema::Schema;

// The wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const GROUP: u32 = 3;
const GROUP_END: u32 = 4;
const FIXED32: u32 = 5;

/// The maximum nesting of messages below the outermost one.
const NESTING_MAX: u8 = 100;

/// The error of bytes that are not OTLP protobuf, or that exceed the limits.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// They have another format, or are truncated.
    #[error("not OTLP protobuf: {reason}, at byte {at}")]
    Malformed {
        /// The error.
        reason: String,
        /// The offset of the error in bytes.
        at: usize,
    },
    /// The resources and scopes that the traces share would have to be copied too often.
    #[error("too many traces share large resources: send the spans of fewer traces in one request")]
    TooLarge,
}

/// The rest of a message: a field is its key, followed by its content in the wire type of the key.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    /// All bytes up to the end of the message, so that an offset here is one in the outermost message.
    upto: &'a [u8],
    at: usize,
    nesting_left: u8,
}

impl Faulty for DecodeError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

/// Returns the key of a varint.
pub const fn varint(number: u32) -> u32 {
    number << 3 | VARINT
}

/// Returns the key of a number of eight bytes.
pub(crate) const fn fixed64(number: u32) -> u32 {
    number << 3 | FIXED64
}

/// Returns the key of a number of four bytes.
pub(crate) const fn fixed32(number: u32) -> u32 {
    number << 3 | FIXED32
}

/// Returns the key of bytes, a text or a message.
pub const fn bytes(number: u32) -> u32 {
    number << 3 | BYTES
}

impl<'a> Fields<'a> {
    /// Returns the fields of an outermost message.
    pub fn new(message: &'a [u8]) -> Self {
        Self { upto: message, at: 0, nesting_left: NESTING_MAX }
    }

    /// Returns the remaining bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.upto[self.at..]
    }

    /// Reads the key of the next field, if there is one. The caller must read or skip its content before the next key.
    #[inline(always)]
    pub fn key(&mut self) -> Result<Option<u32>, DecodeError> {
        if self.at == self.upto.len() {
            return Ok(None);
        }
        let start = self.at;
        match self.varint()? {
            key @ 8..=0xffff_ffff => Ok(Some(key as u32)),
            key => Err(malformed(start, format_args!("no field has number {}", key >> 3))),
        }
    }

    /// Reads the content of a varint field.
    #[inline(always)]
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        // Most numbers are a key or a length of one byte, or the length of a span, of two.
        let number;
        match self.upto[self.at..] {
            [byte, ..] if byte < 0x80 => {
                number = u64::from(byte);
                self.at += 1;
            }
            [low, high, ..] if high < 0x80 => {
                number = u64::from(low & 0x7f) | u64::from(high) << 7;
                self.at += 2;
            }
            _ => (number, self.at) = long_varint(self.upto, self.at)?,
        }
        Ok(number)
    }

    /// Reads the content of a field that is a number of eight bytes.
    #[inline(always)]
    pub(crate) fn fixed64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads the content of a field that is a number of four bytes.
    #[inline(always)]
    pub(crate) fn fixed32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads the content of a field that is bytes or a text.
    #[inline(always)]
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.varint()?;
        let start = self.at;
        self.advance(len)?;
        Ok(&self.upto[start..self.at])
    }

    /// Reads the content of a field that is a message.
    #[inline(always)]
    pub(crate) fn message(&mut self) -> Result<Self, DecodeError> {
        let Some(nesting_left) = self.nesting_left.checked_sub(1) else {
            return Err(too_deep(self.at));
        };
        let len = self.varint()?;
        let at = self.at;
        self.advance(len)?;
        Ok(Self { upto: &self.upto[..self.at], at, nesting_left })
    }

    /// Skips the content of a field that has this key, whatever it is.
    #[inline(always)]
    pub fn skip(&mut self, key: u32) -> Result<(), DecodeError> {
        match key & 7 {
            VARINT => drop(self.varint()?),
            FIXED64 => self.advance(8)?,
            BYTES => drop(self.bytes()?),
            FIXED32 => self.advance(4)?,
            GROUP => self.at = group_end(key, self.clone())?,
            _ => return Err(wrong_way(key, self.at)),
        }
        Ok(())
    }

    /// Skips a field that is unknown to this schema. A field with a known number is an error, since its content has another
    /// wire type.
    #[inline(always)]
    pub(crate) fn pass(&mut self, key: u32, schema: &Schema) -> Result<(), DecodeError> {
        if schema.has_number(key >> 3) {
            return Err(wrong_way(key, self.at));
        }
        if self.nesting_left == 0 {
            return Err(too_deep(self.at));
        }
        self.skip(key)
    }

    /// Returns the nested messages under this key.
    pub(crate) fn children(
        &self,
        child: u32,
    ) -> impl Iterator<Item = Result<Self, DecodeError>> + use<'a> {
        let mut rest = self.clone();
        std::iter::from_fn(move || rest.child(child).transpose())
    }

    #[inline(always)]
    fn child(&mut self, child: u32) -> Result<Option<Self>, DecodeError> {
        while let Some(key) = self.key()? {
            if key == child {
                return self.message().map(Some);
            }
            if key >> 3 == child >> 3 {
                return Err(wrong_way(key, self.at));
            }
            self.skip(key)?;
        }
        Ok(None)
    }

    /// Returns the error for an invalid message, at its start.
    pub(crate) fn malformed(&self, reason: &str) -> DecodeError {
        malformed(self.at, format_args!("{reason}"))
    }

    /// Returns the error for a text that was just read and is not UTF-8.
    #[inline(always)]
    pub(crate) fn not_text(&self, key: u32) -> DecodeError {
        malformed(self.at, format_args!("field {} is not UTF-8", key >> 3))
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.upto[self.at..].first_chunk() {
            Some(array) => {
                self.at += N;
                Ok(*array)
            }
            None => Err(cut_off(self.upto, self.at, N as u64)),
        }
    }

    #[inline(always)]
    fn advance(&mut self, len: u64) -> Result<(), DecodeError> {
        if len <= (self.upto.len() - self.at) as u64 {
            self.at += len as usize;
            Ok(())
        } else {
            Err(cut_off(self.upto, self.at, len))
        }
    }
}

// Rare cases are separate functions that change no `Fields`, so that its offsets can stay in registers.

/// Reads a varint from this offset, and returns the offset after it.
fn long_varint(upto: &[u8], start: usize) -> Result<(u64, usize), DecodeError> {
    let mut value = 0u64;
    for (at, shift) in (start..).zip((0..64).step_by(7)) {
        let Some(byte) = upto.get(at) else {
            return Err(malformed(start, format_args!("a number is cut off")));
        };
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            break;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok((value, at + 1));
        }
    }
    Err(malformed(start, format_args!("a number has more than 64 bits")))
}

/// Returns the offset after the group that starts with this key. Recursion is as deep as the remaining nesting.
#[cold]
fn group_end(group: u32, mut fields: Fields<'_>) -> Result<usize, DecodeError> {
    let Some(nesting_left) = fields.nesting_left.checked_sub(1) else {
        return Err(too_deep(fields.at));
    };
    fields.nesting_left = nesting_left;
    while let Some(key) = fields.key()? {
        if key == group - GROUP + GROUP_END {
            return Ok(fields.at);
        }
        if nesting_left == 0 {
            return Err(too_deep(fields.at));
        }
        fields.skip(key)?;
    }
    Err(malformed(fields.at, format_args!("group {} is cut off", group >> 3)))
}

#[cold]
fn wrong_way(key: u32, at: usize) -> DecodeError {
    malformed(at, format_args!("field {} has wire type {}", key >> 3, key & 7))
}

#[cold]
fn cut_off(upto: &[u8], at: usize, announced: u64) -> DecodeError {
    malformed(at, format_args!("{announced} bytes announced, {} there", upto.len() - at))
}

#[cold]
fn malformed(at: usize, reason: std::fmt::Arguments<'_>) -> DecodeError {
    DecodeError::Malformed { reason: reason.to_string(), at }
}

#[cold]
fn too_deep(at: usize) -> DecodeError {
    malformed(at, format_args!("messages nest deeper than {NESTING_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::{Fields, bytes, fixed32, fixed64, varint};

    #[test]
    fn fields_are_read_as_they_are_written() {
        let mut message = vec![0x08, 0x96, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1d, 1, 2, 3, 4];
        message.extend([0x22, 0xac, 0x02]);
        message.extend([7; 300]);
        message.extend([0x2b, 0x08, 1, 0x2c, 0x32, 0]);
        let mut fields = Fields::new(&message);
        assert_eq!(fields.key(), Ok(Some(varint(1))));
        assert_eq!(fields.varint(), Ok(150));
        assert_eq!(fields.key(), Ok(Some(fixed64(2))));
        assert_eq!(fields.fixed64(), Ok(0x0807_0605_0403_0201));
        assert_eq!(fields.key(), Ok(Some(fixed32(3))));
        assert_eq!(fields.fixed32(), Ok(0x0403_0201));
        assert_eq!(fields.key(), Ok(Some(bytes(4))));
        assert_eq!(fields.bytes(), Ok(&[7; 300][..]));
        let group = fields.key().expect("a key").expect("a field");
        assert_eq!((group >> 3, fields.skip(group)), (5, Ok(())));
        assert_eq!(fields.key(), Ok(Some(bytes(6))));
        assert_eq!(fields.message().expect("a message").key(), Ok(None));
        assert_eq!(fields.key(), Ok(None));
    }

    #[test]
    fn what_is_broken_is_said_with_its_place() {
        let cases: [(&[u8], &str); 10] = [
            (&[0x00, 0x00], "no field has number 0, at byte 0"),
            (&[0x0e], "field 1 has wire type 6, at byte 1"),
            (&[0x0c], "field 1 has wire type 4, at byte 1"),
            (&[0x0b, 0x14], "field 2 has wire type 4, at byte 2"),
            (&[0x0b, 0x08, 1], "group 1 is cut off, at byte 3"),
            (&[0x80], "a number is cut off, at byte 0"),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], "more than 64 bits"),
            (&[0x0a, 5, 1], "5 bytes announced, 1 there, at byte 2"),
            (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], "announced"),
            (&[0x0d, 1], "4 bytes announced, 1 there, at byte 1"),
        ];
        for (bytes, expected) in cases {
            let mut fields = Fields::new(bytes);
            let read = fields.key().and_then(|key| fields.skip(key.expect("a field")));
            let error = read.expect_err("an error").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

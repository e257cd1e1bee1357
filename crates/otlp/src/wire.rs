//! Protobuf as it stands on the wire: the fields of one message, none of them decoded.
//!
//! Deliberately absent: groups, which proto3 does not have; they are refused.

use model::{Fault, Faulty};
use thiserror::Error;

// The same numbers in `TracesData`, `ResourceSpans` and `ScopeSpans`: what is inside, and the rest says about it.
pub(crate) const RESOURCE_SPANS: u8 = 1;
pub(crate) const SCOPE_SPANS: u8 = 2;
pub(crate) const SPANS: u8 = 2;

/// Bytes that are not OTLP protobuf, or are more than can be taken apart.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// They are something else, or cut off.
    #[error("not OTLP protobuf: {reason}")]
    Malformed {
        /// What is wrong with them.
        reason: String,
    },
    /// The resources and scopes that the traces share would have to be copied too often.
    #[error("too many traces share large resources: send the spans of fewer traces in one request")]
    TooLarge,
}

/// The fields of a message, in the order written. It ends at the first mistake.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) tag: u64,
    /// Key and content, as written: a message may be put together anew from these.
    pub(crate) raw: &'a [u8],
    content: Option<&'a [u8]>,
}

impl Faulty for DecodeError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

impl DecodeError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self::Malformed { reason: reason.into() }
    }
}

impl From<prost::DecodeError> for DecodeError {
    fn from(error: prost::DecodeError) -> Self {
        Self::new(error.to_string())
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn field(&mut self) -> Result<Field<'a>, DecodeError> {
        let whole = self.rest;
        let key = self.varint()?;
        let tag = key >> 3;
        if tag == 0 {
            return Err(DecodeError::new("a field with number 0"));
        }
        let content = match key & 7 {
            0 => self.varint().map(|_| None)?,
            1 => self.take(8).map(|_| None)?,
            2 => {
                let len = self.varint()?;
                Some(self.take(len)?)
            }
            5 => self.take(4).map(|_| None)?,
            kind => return Err(DecodeError::new(format!("field {tag} has wire type {kind}"))),
        };
        let raw = &whole[..whole.len() - self.rest.len()];
        Ok(Field { tag, raw, content })
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let Some((byte, rest)) = self.rest.split_first() else {
                return Err(DecodeError::new("a number is cut off"));
            };
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::new("a number has more than 64 bits"))
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], DecodeError> {
        let taken = usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len));
        let Some((taken, rest)) = taken else {
            let left = self.rest.len();
            return Err(DecodeError::new(format!("{len} bytes announced, {left} there")));
        };
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'a> Field<'a> {
    /// The bytes of a field that must be a message, a text or bytes.
    pub(crate) fn content(&self) -> Result<&'a [u8], DecodeError> {
        let number = || DecodeError::new(format!("field {} is a number", self.tag));
        self.content.ok_or_else(number)
    }
}

/// Writes a field whose content is these bytes.
pub(crate) fn write_field(tag: u8, content: &[u8], out: &mut Vec<u8>) {
    // Tags below 16 with their wire type fit into one byte, and OTLP's messages use no others here.
    out.push(tag << 3 | 2);
    let mut len = content.len();
    while len >= 0x80 {
        out.push((len & 0x7f) as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::{Fields, write_field};

    #[test]
    fn fields_are_found_with_their_bytes() {
        let mut message = vec![0x08, 0x96, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1d, 1, 2, 3, 4];
        write_field(4, &[7; 300], &mut message);
        let fields: Vec<_> = Fields::new(&message).map(|field| field.expect("a field")).collect();
        let seen: Vec<_> = fields.iter().map(|field| (field.tag, field.raw.len())).collect();
        assert_eq!(seen, [(1, 3), (2, 9), (3, 5), (4, 303)]);
        assert_eq!(fields[3].content().map(<[u8]>::len), Ok(300));
        assert!(fields[0].content().is_err(), "a number has no bytes");
    }

    #[test]
    fn what_is_broken_is_said_once() {
        let cases: [(&[u8], &str); 7] = [
            (&[0x00, 0x00], "a field with number 0"),
            (&[0x0b], "field 1 has wire type 3"),
            (&[0x80], "a number is cut off"),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], "more than 64 bits"),
            (&[0x0a, 5, 1], "5 bytes announced, 1 there"),
            (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], "announced"),
            (&[0x0d, 1], "4 bytes announced, 1 there"),
        ];
        for (bytes, expected) in cases {
            let mut fields = Fields::new(bytes);
            let error = fields.next().expect("an answer").expect_err("an error").to_string();
            assert!(error.contains(expected), "{error}");
            assert!(fields.next().is_none(), "{error}");
        }
    }
}

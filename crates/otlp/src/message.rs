//! A protobuf encoder, field by field: a message grows at its end, and its length is inserted when it is complete.

// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

/// A message that is being encoded. Fields are expected in the order of their numbers.
#[derive(Debug, Default)]
pub struct Message {
    /// What has been encoded.
    pub bytes: Vec<u8>,
}

impl Message {
    /// Writes a nested message.
    pub fn message(&mut self, tag: u32, write: impl FnOnce(&mut Self)) {
        self.key(tag, BYTES);
        let start = self.bytes.len();
        write(self);
        // The length is known now, and is moved before the content.
        let end = self.bytes.len();
        self.varint((end - start) as u64);
        let added = self.bytes.len() - end;
        self.bytes[start..].rotate_right(added);
    }

    /// Writes bytes or a text.
    pub fn bytes(&mut self, tag: u32, content: &[u8]) {
        self.key(tag, BYTES);
        self.varint(content.len() as u64);
        self.bytes.extend_from_slice(content);
    }

    /// Writes bytes or a text, unless they are empty.
    pub(crate) fn some_bytes(&mut self, tag: u32, content: &[u8]) {
        if !content.is_empty() {
            self.bytes(tag, content);
        }
    }

    /// Writes a varint.
    pub fn number(&mut self, tag: u32, number: u64) {
        self.key(tag, VARINT);
        self.varint(number);
    }

    /// The same, unless the number is zero.
    pub(crate) fn some_number(&mut self, tag: u32, number: u64) {
        if number != 0 {
            self.number(tag, number);
        }
    }

    /// Writes a number of eight bytes.
    pub(crate) fn fixed64(&mut self, tag: u32, number: u64) {
        self.key(tag, FIXED64);
        self.bytes.extend(number.to_le_bytes());
    }

    /// The same, unless the number is zero.
    pub(crate) fn some_fixed64(&mut self, tag: u32, number: u64) {
        if number != 0 {
            self.fixed64(tag, number);
        }
    }

    /// Writes a number of four bytes, unless it is zero.
    pub(crate) fn some_fixed32(&mut self, tag: u32, number: u32) {
        if number != 0 {
            self.key(tag, FIXED32);
            self.bytes.extend(number.to_le_bytes());
        }
    }

    fn key(&mut self, tag: u32, wire_type: u32) {
        self.varint(u64::from(tag << 3 | wire_type));
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

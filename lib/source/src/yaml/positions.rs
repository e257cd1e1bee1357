//! Converts the parser's positions, which count characters, to bytes.

/// The byte offset of every character, unless every character is one byte.
pub(super) struct Positions {
    bytes: Option<Vec<u32>>,
    length: usize,
}

impl Positions {
    /// The text is smaller than [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX), so that an offset fits into 32 bits.
    pub(super) fn new(source: &str) -> Self {
        let bytes = (!source.is_ascii())
            .then(|| source.char_indices().map(|(at, _)| u32::try_from(at).unwrap_or(u32::MAX)))
            .map(Iterator::collect);
        Self { bytes, length: source.len() }
    }

    /// Returns the byte offset of a character; a position past the end counts as the end.
    pub(super) fn byte_of(&self, char: usize) -> usize {
        match &self.bytes {
            Some(bytes) => bytes.get(char).map_or(self.length, |byte| *byte as usize),
            None => char.min(self.length),
        }
    }

    /// Returns the index of the character at a byte offset.
    pub(super) fn char_of(&self, byte: usize) -> usize {
        match &self.bytes {
            Some(bytes) => bytes.partition_point(|at| (*at as usize) < byte),
            None => byte,
        }
    }
}

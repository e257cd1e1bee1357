//! Interned strings: each distinct string of a trace, stored once.

use std::{
    hash::{BuildHasher, Hasher},
    ops::Range,
};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::TraceFull;

/// A string of a trace, by its number. The default is the empty string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text(pub(super) u32);

/// All strings, concatenated. The empty one is the first, and not in the table.
#[derive(Clone, Debug)]
pub(super) struct Strings {
    bytes: String,
    /// The start offset of each string, and the end offset of the last.
    bounds: Vec<u32>,
    numbers: HashTable<Text>,
    // Seeded per process, so that no sender can choose strings that collide.
    hasher: DefaultHashBuilder,
}

impl Strings {
    pub(super) fn new() -> Self {
        Self {
            bytes: String::new(),
            bounds: vec![0, 0],
            numbers: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Returns the number of this text, and stores it if it is new; none if it is not UTF-8.
    pub(super) fn intern(&mut self, text: &[u8]) -> Result<Option<Text>, TraceFull> {
        if text.is_empty() {
            return Ok(Some(Text::default()));
        }
        let hash = hash(&self.hasher, text);
        if let Some(known) = self.find_hashed(hash, text) {
            return Ok(Some(known));
        }
        // Known strings are UTF-8, so only a new one is validated.
        let Ok(text) = str::from_utf8(text) else { return Ok(None) };
        let end = u32::try_from(self.bytes.len() + text.len()).map_err(|_| TraceFull)?;
        let number = u32::try_from(self.bounds.len() - 1).map_err(|_| TraceFull)?;
        self.bytes.push_str(text);
        self.bounds.push(end);
        let Self { bytes, bounds, numbers, hasher } = self;
        let rehash = |text: &Text| self::hash(hasher, &bytes.as_bytes()[range(bounds, *text)]);
        numbers.insert_unique(hash, Text(number), rehash);
        Ok(Some(Text(number)))
    }

    /// Returns the number of `text`, if any span uses it.
    pub(super) fn find(&self, text: &str) -> Option<Text> {
        if text.is_empty() {
            return Some(Text::default());
        }
        self.find_hashed(hash(&self.hasher, text.as_bytes()), text.as_bytes())
    }

    /// Returns the string with this number.
    pub(super) fn get(&self, text: Text) -> &str {
        &self.bytes[range(&self.bounds, text)]
    }

    /// Whether the string with this number equals this one.
    #[inline]
    pub(super) fn is(&self, known: Text, text: &[u8]) -> bool {
        self.bytes.as_bytes()[range(&self.bounds, known)] == *text
    }

    /// Returns all strings, concatenated.
    pub(super) fn joined(&self) -> &[u8] {
        self.bytes.as_bytes()
    }

    fn find_hashed(&self, hash: u64, text: &[u8]) -> Option<Text> {
        self.numbers.find(hash, |known| self.is(*known, text)).copied()
    }
}

fn hash(hasher: &DefaultHashBuilder, text: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write(text);
    state.finish()
}

#[inline]
fn range(bounds: &[u32], Text(number): Text) -> Range<usize> {
    let number = number as usize;
    bounds[number] as usize..bounds[number + 1] as usize
}

#[cfg(test)]
mod tests {
    use super::Strings;

    #[test]
    fn a_string_is_stored_once() {
        let mut strings = Strings::new();
        let words = ["", "GET", "übung", "GET", "", "shop"];
        let numbers = words.map(|word| {
            strings.intern(word.as_bytes()).expect("there is room").expect("it is UTF-8")
        });
        assert_eq!(numbers[1], numbers[3]);
        assert_eq!(numbers[0], numbers[4]);
        assert_eq!(strings.bytes, "GETübungshop");
        for (word, number) in words.iter().zip(numbers) {
            assert_eq!(strings.get(number), *word);
            assert_eq!(strings.find(word), Some(number));
        }
        assert_eq!(strings.find("nobody"), None);
        assert_eq!(strings.intern(b"\xffhop"), Ok(None));
        assert_eq!(strings.bytes, "GETübungshop");
    }
}

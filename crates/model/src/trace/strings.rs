//! Each distinct string of a trace, stored once.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::TraceFull;

/// A string of a trace, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text(u32);

/// All strings end to end, and where each one ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    bytes: String,
    ends: Vec<u32>,
    numbers: HashTable<u32>,
    // Seeded by the process, so that no sender can choose strings that collide.
    hasher: DefaultHashBuilder,
}

impl Strings {
    /// The number of `text`, which is stored if it is new.
    pub(super) fn intern(&mut self, text: &str) -> Result<Text, TraceFull> {
        if let Some(known) = self.find(text) {
            return Ok(known);
        }
        let number = u32::try_from(self.ends.len()).map_err(|_| TraceFull)?;
        let end = u32::try_from(self.bytes.len() + text.len()).map_err(|_| TraceFull)?;
        self.bytes.push_str(text);
        self.ends.push(end);
        let Self { bytes, ends, numbers, hasher } = self;
        let rehash = |number: &u32| hasher.hash_one(slice(bytes, ends, *number));
        numbers.insert_unique(hasher.hash_one(text), number, rehash);
        Ok(Text(number))
    }

    /// The number of `text`, if any span uses it.
    pub(super) fn find(&self, text: &str) -> Option<Text> {
        let same = |number: &u32| slice(&self.bytes, &self.ends, *number) == text;
        self.numbers.find(self.hasher.hash_one(text), same).copied().map(Text)
    }

    /// The string with this number.
    pub(super) fn get(&self, text: Text) -> &str {
        slice(&self.bytes, &self.ends, text.0)
    }
}

fn slice<'a>(bytes: &'a str, ends: &[u32], number: u32) -> &'a str {
    let number = number as usize;
    let start = number.checked_sub(1).map_or(0, |before| ends[before] as usize);
    &bytes[start..ends[number] as usize]
}

#[cfg(test)]
mod tests {
    use super::Strings;

    #[test]
    fn a_string_is_stored_once() {
        let mut strings = Strings::default();
        let words = ["", "GET", "übung", "GET", "", "shop"];
        let numbers: Vec<_> =
            words.iter().map(|word| strings.intern(word).expect("there is room")).collect();
        assert_eq!(numbers[1], numbers[3]);
        assert_eq!(numbers[0], numbers[4]);
        assert_eq!(strings.bytes, "GETübungshop");
        for (word, number) in words.iter().zip(numbers) {
            assert_eq!(strings.get(number), *word);
        }
        assert_eq!(strings.find("nobody"), None);
    }
}

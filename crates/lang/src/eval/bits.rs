//! A bit set of positions: selectors are evaluated with it, a word of 64 spans at a time.

use std::ops::Range;

/// A set of integers below its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    pub(crate) fn none(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    pub(crate) fn all(len: usize) -> Self {
        let mut bits = Self { words: vec![u64::MAX; len.div_ceil(64)], len };
        bits.trim();
        bits
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        8 * self.words.len() as u64
    }

    pub(crate) fn set(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
    }

    /// Sets the members from `64 * word` on; discards those beyond the length.
    pub(crate) fn set_word(&mut self, word: usize, members: u64) {
        self.words[word] = members;
        if (word + 1) * 64 > self.len {
            self.trim();
        }
    }

    pub(crate) fn put(&mut self, at: usize, is_in: bool) {
        let mask = 1 << (at % 64);
        if is_in {
            self.words[at / 64] |= mask;
        } else {
            self.words[at / 64] &= !mask;
        }
    }

    pub(crate) fn has(&self, at: usize) -> bool {
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Intersects the set with another one.
    pub(crate) fn keep(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    pub(crate) fn remove(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= !other);
    }

    pub(crate) fn ones(&self) -> impl Iterator<Item = usize> {
        self.ones_in(0..self.len)
    }

    /// Returns the members in a range, in order.
    pub(crate) fn ones_in(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let end = range.end.min(self.len);
        let (first, last) = (range.start / 64, end.div_ceil(64));
        let start = range.start;
        self.words.get(first..last).unwrap_or_default().iter().enumerate().flat_map(
            move |(at, word)| {
                let base = (first + at) * 64;
                let mut word = *word;
                if base < start {
                    word &= u64::MAX << (start - base);
                }
                if end < base + 64 {
                    word &= (1 << (end - base)) - 1;
                }
                Ones(word).map(move |bit| base + bit)
            },
        )
    }

    /// Returns the number of members before each word, to count the members of a range without iterating.
    pub(crate) fn ranks(&self) -> Ranks {
        let mut before = Vec::with_capacity(self.words.len() + 1);
        let mut total = 0;
        for word in &self.words {
            before.push(total);
            total += word.count_ones();
        }
        before.push(total);
        Ranks { before }
    }

    fn trim(&mut self) {
        if !self.len.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << (self.len % 64)) - 1;
        }
    }
}

/// The number of members of a set before each of its words.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    before: Vec<u32>,
}

impl Ranks {
    /// Returns the number of members of `bits` in a range. The ranks must be those of `bits`.
    pub(crate) fn count_in(&self, bits: &Bits, range: Range<usize>) -> usize {
        self.before(bits, range.end) - self.before(bits, range.start.min(range.end))
    }

    fn before(&self, bits: &Bits, at: usize) -> usize {
        let rest = match at % 64 {
            0 => 0,
            bit => (bits.words[at / 64] & ((1 << bit) - 1)).count_ones(),
        };
        (self.before[at / 64] + rest) as usize
    }
}

/// An iterator over the indexes of the set bits of a word.
struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    use super::Bits;

    proptest! {
        #[test]
        fn a_set_is_what_was_put_in(members in prop::collection::vec(any::<bool>(), 0..200), a in 0usize..220, b in 0usize..220) {
            let len = members.len();
            let mut bits = Bits::none(len);
            (0..len).filter(|at| members[*at]).for_each(|at| bits.set(at));
            let expected: Vec<usize> = (0..len).filter(|at| members[*at]).collect();
            prop_assert_eq!(bits.ones().collect::<Vec<_>>(), expected.clone());
            let in_range: Vec<usize> = expected.iter().copied().filter(|at| (a..b).contains(at)).collect();
            prop_assert_eq!(bits.ones_in(a..b).collect::<Vec<_>>(), in_range.clone());
            if a <= b && b <= len {
                prop_assert_eq!(bits.ranks().count_in(&bits, a..b), in_range.len());
            }
            let mut rest = Bits::all(len);
            rest.remove(&bits);
            prop_assert_eq!(rest.count() + bits.count(), len);
            rest.add(&bits);
            prop_assert_eq!(rest, Bits::all(len));
        }
    }
}

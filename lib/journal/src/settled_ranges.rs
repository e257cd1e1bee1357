//! Positions in a journal, and the ranges that are settled: the reader does not need them again.

use std::collections::BTreeMap;

/// A position between two records: the number of bytes and items before it, counted over all segments. The number of
/// items in a range is therefore a subtraction, independent of the batches in which it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) at: u64,
    pub(crate) items: u64,
}

/// The position of one or more records in an open journal. Earlier positions compare as less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch {
    pub(crate) from: Mark,
    pub(crate) to: Mark,
}

/// The settled ranges: everything before the cursor, and optionally ranges behind it.
#[derive(Debug, Default)]
pub(crate) struct SettledRanges {
    cursor: Mark,
    /// Keyed by their start. They neither overlap nor touch one another, nor the cursor.
    stretches: BTreeMap<u64, (Mark, Mark)>,
}

impl SettledRanges {
    pub(crate) fn cursor(&self) -> Mark {
        self.cursor
    }

    /// Settles a range, and returns how many of its items were not settled before. If another process changed a file,
    /// these numbers can be wrong, but nothing else breaks: hence the saturating subtractions.
    pub(crate) fn settle(&mut self, from: Mark, to: Mark) -> u64 {
        let from = from.max(self.cursor);
        if to.at <= from.at {
            return 0;
        }
        let (mut first, mut last) = (from, to);
        let mut fresh = 0;
        // The range between this position and `to` is already processed.
        let mut seen = to;
        while let Some((_, &(start, end))) = self.stretches.range(..=to.at).next_back() {
            if end.at < from.at {
                break;
            }
            self.stretches.remove(&start.at);
            if end.at < seen.at {
                fresh += seen.items.saturating_sub(end.items);
            }
            seen = seen.min(start);
            first = first.min(start);
            last = last.max(end);
        }
        if from.at < seen.at {
            fresh += seen.items.saturating_sub(from.items);
        }
        if first.at <= self.cursor.at {
            self.cursor = last;
        } else {
            self.stretches.insert(first.at, (first, last));
        }
        fresh
    }

    /// Returns the first position from `from` on that is not settled.
    pub(crate) fn next_open(&self, from: Mark) -> Mark {
        let from = from.max(self.cursor);
        match self.stretches.range(..=from.at).next_back() {
            Some((_, &(_, end))) if end.at > from.at => end,
            _ => from,
        }
    }

    /// Returns the start of the next settled range behind this position.
    pub(crate) fn next_settled(&self, from: Mark) -> Option<Mark> {
        self.stretches.range(from.at + 1..).next().map(|(_, &(start, _))| start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn mark(at: u64) -> Mark {
        Mark { at, items: at * 3 }
    }

    proptest! {
        /// Compares against a set of single positions.
        #[test]
        fn settles_like_a_set(steps in vec((0u64..40, 0u64..12), 0..40)) {
            let mut settled = SettledRanges::default();
            let mut set = [false; 64];
            for (from, length) in steps {
                let to = from + length;
                let fresh = (from..to).filter(|&at| !set[at as usize]).count() as u64 * 3;
                prop_assert_eq!(settled.settle(mark(from), mark(to)), fresh);
                set[from as usize..to as usize].fill(true);
                let cursor = set.iter().position(|&is| !is).unwrap_or(set.len()) as u64;
                prop_assert_eq!(settled.cursor(), mark(cursor));
                for at in cursor..60 {
                    let open = (at..64).find(|&at| !set[at as usize]).unwrap_or(64);
                    prop_assert_eq!(settled.next_open(mark(at)), mark(open));
                    if open == at {
                        let next = (at..64).find(|&at| set[at as usize]);
                        prop_assert_eq!(settled.next_settled(mark(at)), next.map(mark));
                    }
                }
            }
        }
    }
}

//! Positions in a journal, and which stretches of it nobody will ask for again.

use std::collections::BTreeMap;

/// A position between two records: so many bytes and so many items are before it, counted over all segments. The
/// number of items in a stretch is therefore a subtraction, whatever batches it was read in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) at: u64,
    pub(crate) items: u64,
}

/// Where one or more records stand in a journal that is open. Earlier ones are less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch {
    pub(crate) from: Mark,
    pub(crate) to: Mark,
}

/// Everything before the cursor is settled, and perhaps stretches behind it.
#[derive(Debug, Default)]
pub(crate) struct SettledRanges {
    cursor: Mark,
    /// By where they begin; neither overlapping nor touching one another, nor the cursor.
    stretches: BTreeMap<u64, (Mark, Mark)>,
}

impl SettledRanges {
    pub(crate) fn cursor(&self) -> Mark {
        self.cursor
    }

    /// Settles a stretch, and says how many of its items were not settled before. A file that was changed behind our
    /// back can make these numbers wrong, and nothing worse: hence the subtractions that stop at zero.
    pub(crate) fn settle(&mut self, from: Mark, to: Mark) -> u64 {
        let from = from.max(self.cursor);
        if to.at <= from.at {
            return 0;
        }
        let (mut first, mut last) = (from, to);
        let mut fresh = 0;
        // What lies between here and `to` has been looked at.
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

    /// The first position from here on that is not settled.
    pub(crate) fn next_open(&self, from: Mark) -> Mark {
        let from = from.max(self.cursor);
        match self.stretches.range(..=from.at).next_back() {
            Some((_, &(_, end))) if end.at > from.at => end,
            _ => from,
        }
    }

    /// Where the next settled stretch behind this position begins.
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
        /// Against a set of single positions.
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

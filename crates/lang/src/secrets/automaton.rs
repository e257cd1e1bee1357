//! Many texts, found in another one in one walk over it, by Aho and Corasick.
//!
//! Written here since nothing at hand answers the two questions that masking has in one step a byte, whatever the texts are:
//! how far back the longest of them that ends here begins, and how much of one of them has been seen so far. A search that
//! tells every match costs as many steps as there are matches, and whoever writes the texts can make them many.

use std::{collections::VecDeque, ops::Range};

/// A node of the tree of all texts. Those that follow it lie side by side.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The byte that leads here.
    byte: u8,
    /// How many follow, and the first of them.
    children: u16,
    child: u32,
    /// Where a walk goes on if its byte follows nowhere: at the longest end of what leads here that begins a text.
    otherwise: u32,
    /// How many bytes lead here.
    depth: u32,
    /// Bytes of the longest text that ends here; zero where none does.
    longest: u32,
}

/// All texts, ready to be found.
#[derive(Debug)]
pub(super) struct Automaton {
    nodes: Vec<Node>,
    /// What follows the root, by its byte: most of what is read leads nowhere.
    first: Box<[u32; 256]>,
    depth_max: usize,
}

/// Where a walk is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place(u32);

impl Automaton {
    pub(super) fn new(mut texts: Vec<&[u8]>) -> Self {
        texts.sort_unstable();
        texts.dedup();
        let depth_max = texts.iter().map(|text| text.len()).max().unwrap_or_default();
        let nodes = vec![Node::default()];
        let mut automaton = Self { nodes, first: Box::new([0; 256]), depth_max };
        // Level by level: where a walk goes on is always nearer to the root.
        let mut waiting = VecDeque::from([(0, 0..texts.len())]);
        while let Some((node, of)) = waiting.pop_front() {
            automaton.follow(node, of, &texts, &mut waiting);
        }
        automaton
    }

    /// Adds what follows a node, of which these texts go through it.
    fn follow(
        &mut self,
        node: u32,
        of: Range<usize>,
        texts: &[&[u8]],
        waiting: &mut VecDeque<(u32, Range<usize>)>,
    ) {
        let Node { depth, otherwise, .. } = self.nodes[node as usize];
        let child = self.nodes.len() as u32;
        // A text that ends here is the first of them, since they are sorted.
        let mut from = of.start
            + usize::from(
                texts[of.start..of.end].first().is_some_and(|text| text.len() == depth as usize),
            );
        while from < of.end {
            let byte = texts[from][depth as usize];
            let same = texts[from..of.end].partition_point(|text| text[depth as usize] == byte);
            let otherwise = if node == 0 { Place(0) } else { self.step(Place(otherwise), byte) };
            let is_end = texts[from].len() == depth as usize + 1;
            let own = if is_end { depth + 1 } else { 0 };
            let longest = own.max(self.nodes[otherwise.0 as usize].longest);
            let new = self.nodes.len() as u32;
            if node == 0 {
                self.first[usize::from(byte)] = new;
            }
            let otherwise = otherwise.0;
            let node = Node { byte, otherwise, depth: depth + 1, longest, ..Node::default() };
            self.nodes.push(node);
            waiting.push_back((new, from..from + same));
            from += same;
        }
        let children = self.nodes.len() as u32 - child;
        let node = &mut self.nodes[node as usize];
        (node.child, node.children) = (child, children as u16);
    }

    /// One byte further.
    pub(super) fn step(&self, Place(mut at): Place, byte: u8) -> Place {
        while at != 0 {
            let Node { child, children, otherwise, .. } = self.nodes[at as usize];
            let following = &self.nodes[child as usize..child as usize + usize::from(children)];
            if let Ok(index) = following.binary_search_by_key(&byte, |node| node.byte) {
                return Place(child + index as u32);
            }
            at = otherwise;
        }
        Place(self.first[usize::from(byte)])
    }

    /// Bytes of the longest text that ends here.
    pub(super) fn ended(&self, Place(at): Place) -> Option<usize> {
        let longest = self.nodes[at as usize].longest;
        (longest > 0).then_some(longest as usize)
    }

    /// How many bytes of one of the texts have been seen.
    pub(super) fn begun(&self, Place(at): Place) -> usize {
        self.nodes[at as usize].depth as usize
    }

    /// Bytes of the longest text.
    pub(super) fn depth_max(&self) -> usize {
        self.depth_max
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Automaton, Place};

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

        #[test]
        fn the_longest_text_that_ends_at_a_byte_is_found(
            texts in prop::collection::vec("[ab]{1,6}", 0..8),
            read in "[abc]{0,40}",
        ) {
            let automaton = Automaton::new(texts.iter().map(|text| text.as_bytes()).collect());
            let mut place = Place::default();
            for (at, byte) in read.bytes().enumerate() {
                place = automaton.step(place, byte);
                let seen = &read[..=at];
                let ended = texts.iter().filter(|text| seen.ends_with(&***text)).map(String::len);
                prop_assert_eq!(automaton.ended(place), ended.max());
                let begins = |length: &usize| {
                    texts.iter().any(|text| text.starts_with(&seen[seen.len() - length..]))
                };
                let begun = (0..=seen.len()).rev().find(begins).unwrap_or_default();
                prop_assert_eq!(automaton.begun(place), begun);
            }
        }
    }
}

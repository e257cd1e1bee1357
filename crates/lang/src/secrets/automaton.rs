//! Finds many texts in another text in one pass (Aho-Corasick).
//!
//! Implemented here since no available library gives the two results that masking needs in one step a byte, whatever the texts
//! are: how far back the longest text that ends here begins, and how much of a text has been matched so far. A search that
//! reports every match costs as many steps as there are matches, and the author of the texts can make them many.

use std::{collections::VecDeque, ops::Range};

/// A node of the trie of all texts. The children of a node are adjacent.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The byte on the edge to this node.
    byte: u8,
    /// The number of children, and the index of the first one.
    children: u16,
    child: u32,
    /// The failure link: the node of the longest suffix of this path that is a prefix of a text.
    otherwise: u32,
    /// The length of the path to this node in bytes.
    depth: u32,
    /// The length in bytes of the longest text that ends here; zero if none does.
    longest: u32,
}

/// The automaton of all texts.
#[derive(Debug)]
pub(super) struct Automaton {
    nodes: Vec<Node>,
    /// The child of the root for each byte: most bytes of the input match nothing.
    first: Box<[u32; 256]>,
    depth_max: usize,
}

/// The state of a pass: a node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place(u32);

impl Automaton {
    pub(super) fn new(mut texts: Vec<&[u8]>) -> Self {
        texts.sort_unstable();
        texts.dedup();
        let depth_max = texts.iter().map(|text| text.len()).max().unwrap_or_default();
        let nodes = vec![Node::default()];
        let mut automaton = Self { nodes, first: Box::new([0; 256]), depth_max };
        // Breadth first: a failure link always points to a node nearer to the root.
        let mut waiting = VecDeque::from([(0, 0..texts.len())]);
        while let Some((node, of)) = waiting.pop_front() {
            automaton.follow(node, of, &texts, &mut waiting);
        }
        automaton
    }

    /// Adds the children of a node; `of` are the texts with a path through it.
    fn follow(
        &mut self,
        node: u32,
        of: Range<usize>,
        texts: &[&[u8]],
        waiting: &mut VecDeque<(u32, Range<usize>)>,
    ) {
        let Node { depth, otherwise, .. } = self.nodes[node as usize];
        let child = self.nodes.len() as u32;
        // A text that ends here is the first one, since the texts are sorted.
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

    /// Advances by one byte.
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

    /// Returns the length in bytes of the longest text that ends here.
    pub(super) fn ended(&self, Place(at): Place) -> Option<usize> {
        let longest = self.nodes[at as usize].longest;
        (longest > 0).then_some(longest as usize)
    }

    /// Returns how many bytes of a text have been matched.
    pub(super) fn begun(&self, Place(at): Place) -> usize {
        self.nodes[at as usize].depth as usize
    }

    /// Returns the length in bytes of the longest text.
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

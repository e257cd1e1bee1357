//! Assigns the nodes of a trace to the nodes of a shape.
//!
//! A node of the shape expects a number of nodes; a found node can be assigned to any expected node that allows it. If several
//! allow the same one, the assignment is a maximum flow from the found to the expected nodes: first up to their minimum, then up
//! to their maximum. So the result does not depend on the order of lines.

use std::collections::VecDeque;

use crate::{Attribute, Node, What};

/// The maximum number of comparisons of two nodes. A thousand nearly equal spans need a million.
const COMPARISONS_MAX: u64 = 20_000_000;

/// The remaining budget of comparisons.
pub(crate) struct Work {
    left: u64,
}

/// The assignment of found nodes to expected nodes.
pub(crate) struct Assignment {
    /// For each expected node: the number of assigned nodes.
    pub(crate) taken: Vec<u64>,
    /// For each found node: the number of unassigned ones.
    pub(crate) left: Vec<u64>,
    /// For each found node: the expected nodes that allow it.
    pub(crate) allowed: Vec<Vec<usize>>,
}

impl Default for Work {
    fn default() -> Self {
        Self { left: COMPARISONS_MAX }
    }
}

impl Work {
    /// Whether the budget is exceeded, so that the results must be discarded.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }
}

/// Whether a found node with all its descendants matches the expected node, ignoring the counts of the two.
pub(crate) fn covers(asked: &Node, found: &Node, work: &mut Work) -> bool {
    work.left = work.left.saturating_sub(1);
    if work.is_over() || !allows(&asked.what, &found.what) {
        return false;
    }
    if asked.children == found.children {
        return true;
    }
    let assigned = assign(&asked.children, &found.children, work);
    assigned.left.iter().all(|left| *left == 0)
        && asked.children.iter().zip(&assigned.taken).all(|(node, taken)| node.count.allows(*taken))
}

/// Whether an expected line allows a found one: equal, except for values that may be anything.
pub(crate) fn allows(asked: &What, found: &What) -> bool {
    let attributes = |asked: &[Attribute], found: &[Attribute]| {
        asked.len() == found.len()
            && asked.iter().zip(found).all(|(a, b)| a.key == b.key && a.value.allows(&b.value))
    };
    match (asked, found) {
        (What::Event(asked), What::Event(found)) => {
            asked.name == found.name && attributes(&asked.attributes, &found.attributes)
        }
        (What::Link(asked), What::Link(found)) => asked == found,
        (What::Span(asked), What::Span(found)) => {
            (&asked.service, &asked.name, asked.kind) == (&found.service, &found.name, found.kind)
                && (asked.status, asked.is_orphan) == (found.status, found.is_orphan)
                && attributes(&asked.attributes, &found.attributes)
        }
        _ => false,
    }
}

/// Assigns as many found nodes to expected nodes as possible.
pub(crate) fn assign(asked: &[Node], found: &[Node], work: &mut Work) -> Assignment {
    let mut allowed = Vec::with_capacity(found.len());
    for one in found {
        let who = asked.iter().enumerate().filter(|(_, node)| covers(node, one, work));
        allowed.push(who.map(|(at, _)| at).collect::<Vec<_>>());
    }
    let mut flow = Flow {
        taken: vec![0; asked.len()],
        left: found.iter().map(|node| node.count.min).collect(),
        units: allowed.iter().map(|who| vec![0; who.len()]).collect(),
        allowed,
    };
    flow.fill(&asked.iter().map(|node| node.count.min).collect::<Vec<_>>());
    flow.fill(&asked.iter().map(|node| node.count.max.unwrap_or(u64::MAX)).collect::<Vec<_>>());
    Assignment { taken: flow.taken, left: flow.left, allowed: flow.allowed }
}

struct Flow {
    taken: Vec<u64>,
    left: Vec<u64>,
    allowed: Vec<Vec<usize>>,
    /// For each found node, parallel to `allowed`: the number assigned to each expected node.
    units: Vec<Vec<u64>>,
}

impl Flow {
    /// Assigns nodes to expected nodes with capacity until no more fit. The count of an expected node never decreases.
    fn fill(&mut self, room: &[u64]) {
        for from in 0..self.left.len() {
            while self.left[from] > 0 && self.give(from, room) {}
        }
    }

    /// Finds an augmenting path from an unassigned node to an expected node with capacity, through nodes that can be reassigned.
    fn give(&mut self, from: usize, room: &[u64]) -> bool {
        // For each expected node: the found node that reached it. For each found node: the assignment that it would give up.
        let mut reached_from: Vec<Option<usize>> = vec![None; self.taken.len()];
        let mut gives_up: Vec<Option<usize>> = vec![None; self.left.len()];
        let mut open = VecDeque::from([from]);
        while let Some(found) = open.pop_front() {
            for at in 0..self.allowed[found].len() {
                let asked = self.allowed[found][at];
                if reached_from[asked].is_some() {
                    continue;
                }
                reached_from[asked] = Some(found);
                if self.taken[asked] < room[asked] {
                    self.shift((from, asked), &reached_from, &gives_up, room);
                    return true;
                }
                for (other, given_up) in gives_up.iter_mut().enumerate() {
                    let is_new = other != from && given_up.is_none();
                    if is_new && self.units(other, asked) > 0 {
                        *given_up = Some(asked);
                        open.push_back(other);
                    }
                }
            }
        }
        false
    }

    /// Moves as many nodes as fit along the path.
    fn shift(
        &mut self,
        (from, to): (usize, usize),
        reached_from: &[Option<usize>],
        gives_up: &[Option<usize>],
        room: &[u64],
    ) {
        let mut units = self.left[from].min(room[to] - self.taken[to]);
        let mut steps = Vec::new();
        let mut asked = to;
        while let Some(found) = reached_from[asked] {
            let given_up = if found == from { None } else { gives_up[found] };
            steps.push((found, asked, given_up));
            let Some(given_up) = given_up else { break };
            units = units.min(self.units(found, given_up));
            asked = given_up;
        }
        for (found, asked, given_up) in steps {
            *self.units_mut(found, asked) += units;
            if let Some(given_up) = given_up {
                *self.units_mut(found, given_up) -= units;
            }
        }
        self.left[from] -= units;
        self.taken[to] += units;
    }

    fn edge(&self, found: usize, asked: usize) -> Option<usize> {
        self.allowed[found].binary_search(&asked).ok()
    }

    fn units(&self, found: usize, asked: usize) -> u64 {
        self.edge(found, asked).map_or(0, |edge| self.units[found][edge])
    }

    fn units_mut(&mut self, found: usize, asked: usize) -> &mut u64 {
        let edge = self.edge(found, asked).expect("a way leads along what is allowed");
        &mut self.units[found][edge]
    }
}

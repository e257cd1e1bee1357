//! Describes how a trace differs from a shape, in the way a person would.
//!
//! Nodes that match the shape are assigned first. Of the rest, nodes with the same service and name count as changed. The
//! remaining ones are missing or extra, or moved, if the same node is missing in one position and extra in another.

use std::fmt;

use model::{Fault, Faulty};
use thiserror::Error;

use crate::{
    Attribute, Count, Node, Shape, Span, What,
    cover::{Assignment, Work, allows, assign, covers},
    write::{label, line},
};

/// The maximum number of ancestors to name.
const ABOVE_MAX: usize = 3;

/// A difference between a trace and a shape. `under` has the labels of the ancestors, the outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The shape expects the node, but the trace does not have it.
    Missing {
        /// The line of the node.
        what: String,
        /// The labels of its ancestors.
        under: Vec<String>,
        /// The number of spans below it, which are missing too.
        below: usize,
    },
    /// The trace has the node, but the shape does not expect it.
    Extra {
        /// The line of the node.
        what: String,
        /// The labels of its ancestors.
        under: Vec<String>,
        /// The number of spans below it, which are extra too.
        below: usize,
    },
    /// The trace has the node in another position.
    Moved {
        /// The line of the node.
        what: String,
        /// The expected ancestors.
        from: Vec<String>,
        /// The actual ancestors.
        to: Vec<String>,
    },
    /// The trace has the node with other content.
    Changed {
        /// The service and name.
        what: String,
        /// The labels of its ancestors.
        under: Vec<String>,
        /// The changed part: `status`, `kind`, `attribute http.route`.
        part: String,
        /// The expected value; `None` if it was absent.
        from: Option<String>,
        /// The actual value; `None` if it is absent.
        to: Option<String>,
    },
    /// The trace has the node more often or less often.
    Count {
        /// The service and name.
        what: String,
        /// The labels of its ancestors.
        under: Vec<String>,
        /// The expected count.
        from: Count,
        /// The actual count.
        to: u64,
    },
}

/// An error for two shapes with too many similar siblings to match them with each other.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "too many siblings are nearly alike to be compared: keep fewer attributes, so that more of them are the same"
)]
pub struct TooMuch;

impl Faulty for TooMuch {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

/// Returns all differences; empty if the trace matches the shape.
pub fn diff(asked: &Shape, found: &Shape) -> Result<Vec<Difference>, TooMuch> {
    let mut compared = NodeComparison::default();
    compared.siblings(&asked.roots, &found.roots, &mut Vec::new());
    compared.find_moved();
    if compared.work.is_over() {
        return Err(TooMuch);
    }
    Ok(compared.into_differences())
}

/// A node that the other side does not have in this position.
struct Alone<'a> {
    node: &'a Node,
    /// The labels of its ancestors. In the list, the nodes of a lost subtree follow their top node.
    under: Vec<String>,
    count: Count,
    /// The index of the top node of its subtree, which is reported for the complete subtree.
    top: usize,
    is_moved: bool,
}

#[derive(Default)]
struct NodeComparison<'a> {
    work: Work,
    differences: Vec<Difference>,
    missing: Vec<Alone<'a>>,
    extra: Vec<Alone<'a>>,
}

impl<'a> NodeComparison<'a> {
    fn siblings(&mut self, asked: &'a [Node], found: &'a [Node], under: &mut Vec<String>) {
        let Assignment { mut taken, mut left, allowed } = assign(asked, found, &mut self.work);
        // More of the same node.
        for (at, node) in asked.iter().enumerate() {
            let more: u64 = (0..found.len())
                .filter(|it| allowed[*it].first() == Some(&at))
                .map(|it| left[it])
                .sum();
            if more > 0 {
                self.count(node, taken[at] + more, under);
                taken[at] = node.count.min.max(taken[at]);
            }
        }
        for (at, who) in allowed.iter().enumerate() {
            if !who.is_empty() {
                left[at] = 0;
            }
        }
        self.changed((asked, &mut taken), (found, &mut left), under);
        for (node, taken) in asked.iter().zip(&taken).filter(|(node, it)| **it < node.count.min) {
            match taken {
                0 => alone(&mut self.missing, node, node.count, under),
                some => self.count(node, *some, under),
            }
        }
        for (node, left) in found.iter().zip(&left).filter(|(_, left)| **left > 0) {
            alone(&mut self.extra, node, Count::exactly(*left), under);
        }
    }

    /// Pairs nodes with the same service and name, the most similar first, and records their differences.
    fn changed(
        &mut self,
        (asked, taken): (&'a [Node], &mut [u64]),
        (found, left): (&'a [Node], &mut [u64]),
        under: &mut Vec<String>,
    ) {
        let lacking = (0..asked.len()).filter(|at| taken[*at] < asked[*at].count.min);
        let spare: Vec<_> = (0..found.len()).filter(|at| left[*at] > 0).collect();
        let mut pairs = Vec::new();
        for at in lacking {
            for other in spare.iter().copied() {
                let (node, with) = (&asked[at], &found[other]);
                if is_same_one(&node.what, &with.what) {
                    let changes = changes(&node.what, &with.what).len();
                    let is_as_often = node.count.allows(left[other]);
                    pairs.push((changes, !is_as_often, at, other));
                }
            }
        }
        pairs.sort_unstable();
        for (_, _, at, other) in pairs {
            let node = &asked[at];
            if taken[at] >= node.count.min || left[other] == 0 {
                continue;
            }
            let with = &found[other];
            let room = node.count.max.unwrap_or(u64::MAX) - taken[at];
            let units = left[other].min(room);
            taken[at] += units;
            left[other] -= units;
            for (part, from, to) in changes(&node.what, &with.what) {
                let (what, under) = (name(&node.what), under.clone());
                self.differences.push(Difference::Changed { what, under, part, from, to });
            }
            under.push(name(&node.what));
            self.siblings(&node.children, &with.children, under);
            under.pop();
        }
    }

    fn count(&mut self, node: &Node, to: u64, under: &[String]) {
        let (what, under) = (name(&node.what), under.to_vec());
        self.differences.push(Difference::Count { what, under, from: node.count, to });
    }

    /// A node that is missing in one position and extra in another was moved; so was a node below a missing or an extra one.
    fn find_moved(&mut self) {
        let Self { work, differences, missing, extra, .. } = self;
        for is_extra_whole in [true, false] {
            for e in 0..extra.len() {
                let m = (0..missing.len()).find(|m| {
                    let (gone, come) = (&missing[*m], &extra[e]);
                    let is_top = if is_extra_whole { come.top == e } else { gone.top == *m };
                    is_top
                        && !gone.is_moved
                        && !come.is_moved
                        && matches!(gone.node.what, What::Span(_))
                        && gone.count.allows(come.count.min)
                        && covers(gone.node, come.node, work)
                });
                let Some(m) = m else { continue };
                let what = line(&Node { children: Vec::new(), ..extra[e].node.clone() });
                let (from, to) = (missing[m].under.clone(), extra[e].under.clone());
                differences.push(Difference::Moved { what, from, to });
                mark(missing, m);
                mark(extra, e);
            }
        }
    }

    fn into_differences(self) -> Vec<Difference> {
        let Self { mut differences, missing, extra, .. } = self;
        for (what, under, below) in tops(&missing) {
            differences.push(Difference::Missing { what, under, below });
        }
        for (what, under, below) in tops(&extra) {
            differences.push(Difference::Extra { what, under, below });
        }
        differences
    }
}

/// Appends a node, followed by all its descendants.
fn alone<'a>(all: &mut Vec<Alone<'a>>, node: &'a Node, count: Count, under: &[String]) {
    let top = all.len();
    let mut open = vec![(node, count, under.to_vec())];
    while let Some((node, count, under)) = open.pop() {
        for child in node.children.iter().rev() {
            let below = under.iter().cloned().chain([name(&node.what)]).collect();
            open.push((child, child.count, below));
        }
        all.push(Alone { node, under, count, top, is_moved: false });
    }
}

/// Marks a node and its descendants as moved.
fn mark(all: &mut [Alone<'_>], at: usize) {
    let size = size(all[at].node);
    for alone in &mut all[at..at + size] {
        alone.is_moved = true;
    }
}

fn size(node: &Node) -> usize {
    1 + node.children.iter().map(size).sum::<usize>()
}

/// Returns the report of each lost subtree: its top node, and the number of spans below it that are lost with it.
fn tops(all: &[Alone<'_>]) -> Vec<(String, Vec<String>, usize)> {
    let mut told = Vec::new();
    for (at, alone) in all.iter().enumerate().filter(|(at, it)| it.top == *at && !it.is_moved) {
        let under = &all[at + 1..at + size(alone.node)];
        let is_span = |it: &&Alone<'_>| matches!(it.node.what, What::Span(_)) && !it.is_moved;
        let what = line(&Node { count: alone.count, ..Node::new(alone.node.what.clone()) });
        told.push((what, alone.under.clone(), under.iter().filter(is_span).count()));
    }
    told
}

/// Whether two lines describe the same node, apart from status, kind and attributes.
pub(crate) fn is_same_one(asked: &What, found: &What) -> bool {
    match (asked, found) {
        (What::Span(a), What::Span(b)) => (&a.service, &a.name) == (&b.service, &b.name),
        (What::Event(a), What::Event(b)) => a.name == b.name,
        _ => false,
    }
}

type Change = (String, Option<String>, Option<String>);

/// Returns the differences between two lines that describe the same node.
fn changes(asked: &What, found: &What) -> Vec<Change> {
    if allows(asked, found) {
        return Vec::new();
    }
    match (asked, found) {
        (What::Span(a), What::Span(b)) => {
            let mut changes = of_spans(a, b);
            changes.extend(of_attributes(&a.attributes, &b.attributes));
            changes
        }
        (What::Event(a), What::Event(b)) => of_attributes(&a.attributes, &b.attributes),
        _ => Vec::new(),
    }
}

fn of_spans(a: &Span, b: &Span) -> Vec<Change> {
    let parent = |span: &Span| if span.is_orphan { "absent" } else { "there" };
    let parts = [
        ("kind", a.kind.as_str(), b.kind.as_str()),
        ("status", a.status.as_str(), b.status.as_str()),
        ("parent", parent(a), parent(b)),
    ];
    let changed = parts.into_iter().filter(|(_, a, b)| a != b);
    changed.map(|(part, a, b)| (part.to_owned(), Some(a.to_owned()), Some(b.to_owned()))).collect()
}

fn of_attributes(a: &[Attribute], b: &[Attribute]) -> Vec<Change> {
    let mut keys: Vec<_> = a.iter().chain(b).map(|attribute| &attribute.key).collect();
    keys.sort();
    keys.dedup();
    let mut changes = Vec::new();
    for key in keys {
        let of = |all: &[Attribute]| {
            all.iter().find(|it| it.key == *key).map(|attribute| attribute.value.clone())
        };
        let (from, to) = (of(a), of(b));
        let is_allowed = match (&from, &to) {
            (Some(from), Some(to)) => from.allows(to),
            _ => false,
        };
        if !is_allowed {
            let text = |value: Option<crate::literal::Literal>| value.map(|it| it.to_string());
            changes.push((format!("attribute {key}"), text(from), text(to)));
        }
    }
    changes
}

/// Returns the short name of a line.
pub(crate) fn name(what: &What) -> String {
    match what {
        What::Span(span) => label(span.service.as_deref(), &span.name),
        other => line(&Node::new(other.clone())),
    }
}

impl Difference {
    /// Returns the kind of difference in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::Extra { .. } => "extra",
            Self::Moved { .. } => "moved",
            Self::Changed { .. } => "changed",
            Self::Count { .. } => "count",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { what, under, below } => {
                write!(f, "missing: {what}{}, {}", with(*below), place(under))
            }
            Self::Extra { what, under, below } => {
                write!(f, "extra: {what}{}, {}", with(*below), place(under))
            }
            Self::Moved { what, from, to } => {
                write!(f, "moved: {what}, from {} to {}", place(from), place(to))
            }
            Self::Changed { what, under, part, from, to } => {
                let value = |it: &Option<String>| it.clone().unwrap_or_else(|| "none".to_owned());
                let (from, to) = (value(from), value(to));
                write!(f, "{part} changed: {from} → {to}, on {what}, {}", place(under))
            }
            Self::Count { what, under, from, to } => {
                let from = from.to_string();
                let from = from.trim_start_matches('×');
                write!(f, "count {from} → {to}: {what}, {}", place(under))
            }
        }
    }
}

fn with(below: usize) -> String {
    match below {
        0 => String::new(),
        1 => " and 1 span under it".to_owned(),
        more => format!(" and {more} spans under it"),
    }
}

fn place(under: &[String]) -> String {
    if under.is_empty() {
        return "at the top".to_owned();
    }
    let shown = &under[under.len().saturating_sub(ABOVE_MAX)..];
    let more = if shown.len() < under.len() { "… > " } else { "" };
    format!("under {more}{}", shown.join(" > "))
}

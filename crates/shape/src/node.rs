//! The data types: a shape is a tree of spans, events and links.

use std::{cmp::Ordering, fmt};

use model::trace::{Kind, StatusCode};

use crate::{Keep, literal::Literal};

/// The shape of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The attributes to keep.
    pub keep: Keep,
    /// The notes that a person wrote at its head.
    pub notes: Vec<String>,
    /// The top-level nodes.
    pub roots: Vec<Node>,
}

/// A span, an event or a link, with its count and its children.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// The span, event or link.
    pub what: What,
    /// The children, in canonical order.
    pub children: Vec<Node>,
    /// The number of identical siblings.
    pub count: Count,
    /// The notes that a person wrote above it.
    pub notes: Vec<String>,
}

/// The content of a line of a shape. The derived order is the order of the lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// An event of the span above.
    Event(Event),
    /// A link of the span above.
    Link(Link),
    /// A span.
    Span(Span),
}

/// A span without volatile values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The service, if the resource names one.
    pub service: Option<String>,
    /// The name, with ids replaced.
    pub name: String,
    /// The span kind.
    pub kind: Kind,
    /// The status code.
    pub status: StatusCode,
    /// Whether the parent of the span is not in the trace.
    pub is_orphan: bool,
    /// The kept attributes, sorted.
    pub attributes: Vec<Attribute>,
}

/// An event without volatile values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// The name, with ids replaced.
    pub name: String,
    /// The kept attributes, sorted.
    pub attributes: Vec<Attribute>,
}

/// The target of a link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// A span of the same trace.
    Span {
        /// The service, if the resource names one.
        service: Option<String>,
        /// The name, with ids replaced.
        name: String,
    },
    /// A span of the same trace that is absent.
    Absent,
    /// A span of another trace.
    Elsewhere,
}

/// A kept attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attribute {
    /// The key.
    pub key: String,
    /// The value, with ids replaced.
    pub value: Literal,
}

/// The number of occurrences: exact, or a range that a person wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    /// The minimum.
    pub min: u64,
    /// The maximum; `None` for unbounded.
    pub max: Option<u64>,
}

impl Node {
    /// Returns a node with the count one and no children.
    pub fn new(what: What) -> Self {
        Self { what, children: Vec::new(), count: Count::exactly(1), notes: Vec::new() }
    }
}

/// Sorts siblings into canonical order, and folds equal ones.
pub(crate) fn fold(siblings: &mut Vec<Node>) {
    siblings.sort();
    siblings.dedup_by(|later, first| {
        let is_same = later.what == first.what && later.children == first.children;
        if is_same {
            first.count = first.count.and(later.count);
            first.notes.append(&mut later.notes);
        }
        is_same
    });
}

impl Count {
    /// Returns an exact count.
    pub fn exactly(count: u64) -> Self {
        Self { min: count, max: Some(count) }
    }

    /// Whether the range contains `count`.
    pub fn allows(self, count: u64) -> bool {
        self.min <= count && self.max.is_none_or(|max| count <= max)
    }

    /// Returns the sum of both.
    fn and(self, other: Self) -> Self {
        let max = self.max.zip(other.max).map(|(a, b)| a.saturating_add(b));
        Self { min: self.min.saturating_add(other.min), max }
    }

    /// Parses the text after `×` or `x`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = |digits: &str| {
            let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| digits.parse().ok()).flatten()
        };
        let Some((min, max)) = text.split_once("..") else {
            return number(text).map(Self::exactly);
        };
        let min = number(min)?;
        let max = if max.is_empty() { None } else { Some(number(max)?) };
        max.is_none_or(|max| min <= max).then_some(Self { min, max })
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { min, max: Some(max) } if min == max => write!(f, "×{min}"),
            Self { min, max: Some(max) } => write!(f, "×{min}..{max}"),
            Self { min, max: None } => write!(f, "×{min}.."),
        }
    }
}

impl Span {
    fn key(&self) -> impl Ord {
        let Self { service, name, kind, status, is_orphan, attributes } = self;
        (service, name, kind.number(), status.number(), is_orphan, attributes)
    }
}

impl PartialOrd for Span {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Span {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

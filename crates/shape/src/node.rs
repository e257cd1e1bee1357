//! The nouns: a shape is a tree of spans, events and links.

use std::{cmp::Ordering, fmt};

use model::trace::{Kind, StatusCode};

use crate::{Keep, literal::Literal};

/// What a trace looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Which attributes are in it.
    pub keep: Keep,
    /// What a person wrote at its head.
    pub notes: Vec<String>,
    /// What stands at the top.
    pub roots: Vec<Node>,
}

/// A span, an event or a link, so many times, and what stands under it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// What it is.
    pub what: What,
    /// What stands under it, in the one order.
    pub children: Vec<Node>,
    /// How often it is there, next to others that are just the same.
    pub count: Count,
    /// What a person wrote above it.
    pub notes: Vec<String>,
}

/// What a line of a shape speaks of. The order is that of the lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Something that happened in the span above.
    Event(Event),
    /// What the span above refers to.
    Link(Link),
    /// A span.
    Span(Span),
}

/// A span without its accidents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The service that made it, if it says.
    pub service: Option<String>,
    /// Its name, ids replaced.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// How it ended.
    pub status: StatusCode,
    /// Whether it names a parent that is not in the trace.
    pub is_orphan: bool,
    /// The attributes that are kept, sorted.
    pub attributes: Vec<Attribute>,
}

/// An event without its accidents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Its name, ids replaced.
    pub name: String,
    /// The attributes that are kept, sorted.
    pub attributes: Vec<Attribute>,
}

/// What a link refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// A span of the same trace.
    Span {
        /// Its service, if it says.
        service: Option<String>,
        /// Its name, ids replaced.
        name: String,
    },
    /// A span of the same trace that is not there.
    Absent,
    /// Another trace.
    Elsewhere,
}

/// An attribute that is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attribute {
    /// Its key.
    pub key: String,
    /// Its value, ids replaced.
    pub value: Literal,
}

/// How often something is there: a number, or a range that a person gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    /// At the least.
    pub min: u64,
    /// At the most; none for any number.
    pub max: Option<u64>,
}

impl Node {
    /// One of these, with nothing under it.
    pub fn new(what: What) -> Self {
        Self { what, children: Vec::new(), count: Count::exactly(1), notes: Vec::new() }
    }
}

/// Puts siblings into the one order, and folds those that are the same.
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
    /// Just so many.
    pub fn exactly(count: u64) -> Self {
        Self { min: count, max: Some(count) }
    }

    /// Whether it allows so many.
    pub fn allows(self, count: u64) -> bool {
        self.min <= count && self.max.is_none_or(|max| count <= max)
    }

    /// Both together.
    fn and(self, other: Self) -> Self {
        let max = self.max.zip(other.max).map(|(a, b)| a.saturating_add(b));
        Self { min: self.min.saturating_add(other.min), max }
    }

    /// What stands behind `×` or `x` in a text.
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

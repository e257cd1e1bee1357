//! JSON paths (RFC 9535), with its five functions.
//!
//! Implemented here since the available libraries neither bound their work nor keep document order, and work on numbers that are
//! already rounded. Extensions for files written for Tracetest: a path may omit its `$` (`name`, `.name`, `@.name`), and a name
//! after a dot may contain `-`. Results are in document order.

mod find;
mod parse;

use super::{Json, Literal, Number};
pub(crate) use find::find;
use find::pattern_source;
pub(crate) use parse::parse;

/// `$.a[0]`: the start of a path, and the segments after it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    start: Start,
    segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// `$`
    Document,
    /// `@`: the current value of a filter.
    This,
}

#[derive(Clone, Debug, PartialEq)]
struct Segment {
    /// `..`: from here and from all descendants.
    is_deep: bool,
    selectors: Vec<PathSelector>,
}

#[derive(Clone, Debug, PartialEq)]
enum PathSelector {
    Name(String),
    Wildcard,
    /// Counted from the end if negative.
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Filter(Condition),
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Or(Vec<Self>),
    And(Vec<Self>),
    Not(Box<Self>),
    Exists(Query),
    Compare {
        left: Operand,
        comparison: Comparison,
        right: Operand,
    },
    /// `match(…)` and `search(…)`.
    Matches {
        text: Operand,
        pattern: Operand,
        is_whole: bool,
        /// The pattern, if it is a literal.
        compiled: Option<Literal>,
    },
}

/// An operand with at most one value.
#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Literal(Json),
    /// A query with at most one result.
    Query(Query),
    Length(Box<Self>),
    Count(Query),
    /// The value of the result, if there is exactly one.
    Value(Query),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Query {
    /// Whether the query has at most one result for every document.
    pub(crate) fn is_singular(&self) -> bool {
        self.segments.iter().all(|segment| {
            !segment.is_deep
                && matches!(
                    segment.selectors.as_slice(),
                    [PathSelector::Name(_) | PathSelector::Index(_)]
                )
        })
    }
}

#[cfg(test)]
mod tests;

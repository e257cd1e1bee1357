//! JSON paths, by RFC 9535, with its five functions.
//!
//! Written here since what is at hand neither bounds its work nor keeps the order of the document, and works on numbers that
//! are rounded already. Beyond the RFC, as files written for Tracetest have it: a path may do without its `$` (`name`,
//! `.name`, `@.name`), and a name behind a point may hold `-`. Results come in the order of the document.

mod find;
mod parse;

use super::{Json, Literal, Number};
pub(crate) use find::find;
use find::pattern_source;
pub(crate) use parse::parse;

/// `$.a[0]`: where it begins and what is followed from there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    start: Start,
    segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// `$`
    Document,
    /// `@`: what a filter looks at.
    This,
}

#[derive(Clone, Debug, PartialEq)]
struct Segment {
    /// `..`: from here and from everything below.
    is_deep: bool,
    selectors: Vec<PathSelector>,
}

#[derive(Clone, Debug, PartialEq)]
enum PathSelector {
    Name(String),
    Wildcard,
    /// From the end where it is negative.
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
        /// The pattern, where it is a literal.
        compiled: Option<Literal>,
    },
}

/// What has one value, or none.
#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Literal(Json),
    /// A query that finds one thing at the most.
    Query(Query),
    Length(Box<Self>),
    Count(Query),
    /// The value of what is found, if that is one thing.
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
    /// Whether it finds one thing at the most, whatever the document is.
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

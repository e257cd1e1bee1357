//! Trace stores that are queried for one trace.
//!
//! A [`Store`] makes one attempt at one query. [`poll`] queries it until the run has what it needs, and makes
//! [`Arrivals`](crate::Arrivals) of the answers: a store adds evidence of presence, and proves absence only by a complete answer
//! that began late enough.
//!
//! Deliberately absent so far: the stores themselves, and the message of a query that failed or was refused: it becomes a reason of
//! the settlement with the first store.

mod limit;
mod poll;

use std::time::Duration;

use bytes::Bytes;
use model::{Timestamp, TraceId};

pub use limit::QueryLimit;
pub use poll::poll;

/// A trace store.
pub trait Store: Send + Sync + 'static {
    /// Returns what is known of the store before it is queried.
    fn profile(&self) -> &StoreProfile;

    /// Queries the spans of a trace that began after `since`: one attempt, with a timeout of its own, without a retry.
    fn query(&self, trace: TraceId, since: Timestamp) -> impl Future<Output = QueryResult> + Send;
}

/// What is known of a store before it is queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreProfile {
    /// The longest time between two queries of one trace.
    pub pause_max: Duration,
}

/// The result of one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryResult {
    /// The store has no such trace: not yet, or never.
    Nothing,
    /// The store has spans of the trace.
    Spans {
        /// The spans, in OTLP `TracesData` messages.
        otlp: Vec<Bytes>,
        /// Whether these are all that the store has.
        completeness: Completeness,
    },
    /// The store refuses the query, and would refuse it again.
    Refused {
        /// The reason.
        message: String,
    },
    /// The query failed; another may succeed.
    Failed {
        /// The reason.
        message: String,
        /// The earliest time for the next query, if the store states one.
        retry_after: Option<Duration>,
    },
}

/// Whether an answer has all spans of a trace that the store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It has.
    Complete,
    /// It may not have, for this reason.
    Partial(String),
}

//! Calls that have both a span and a metric: requests that were served, and queries of the database.

use model::{Fault, SpanId, Timestamp};

use super::traceparent::TraceParent;

/// An HTTP request that was served.
pub(crate) struct HttpSpan<'a> {
    pub(crate) context: TraceParent,
    pub(crate) parent: Option<SpanId>,
    pub(crate) method: &'a str,
    /// The route of the router; `None` for a path that matches no route.
    pub(crate) route: Option<&'a str>,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    /// The fault of the response, if it has one.
    pub(crate) fault: Option<Fault>,
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
}

/// A database call: the operation, and its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call(pub(crate) &'static str, pub(crate) &'static str);

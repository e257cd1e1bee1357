//! Trace stores that are queried for one trace.
//!
//! A [`Store`] makes one attempt at one query. [`poll`] queries it until the run has what it needs, and reports the answers as
//! [`Arrivals`](crate::Arrivals): a store adds evidence of presence, and proves absence only by a complete answer that began late
//! enough.
//!
//! [`StoreDialer`] opens the stores that documents configure.

mod clickhouse;
mod connection;
mod dialer;
mod jaeger;
mod limit;
mod poll;
mod probe;
mod search;
mod tempo;
mod zipkin;

use std::{fmt, pin::Pin, time::Duration};

use bytes::Bytes;
use model::{SpanDetail, Timestamp, TraceId};
use otlp::ReadError;

use crate::arrivals::Lag;

pub use dialer::{InvalidStore, StoreDialer, profiles};
pub use limit::QueryLimit;
pub use poll::poll;
pub use probe::ProbeStep;

/// A trace store.
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns what is known of the store before it is queried.
    fn profile(&self) -> &StoreProfile;

    /// Returns the lag that users and earlier runs do not know better, as far as the store itself is known by now.
    fn lag(&self) -> Duration {
        self.profile().lag
    }

    /// Returns what the store does not keep of spans, as far as it is known by now.
    fn lacks(&self) -> Vec<SpanDetail> {
        self.profile().lacks.to_vec()
    }

    /// Queries the spans of a trace that began after `since`: one attempt, with a timeout of its own, without a retry.
    fn query(&self, trace: TraceId, since: Option<Timestamp>) -> Query<'_>;
}

/// A query that is under way.
pub type Query<'a> = Pin<Box<dyn Future<Output = QueryResult> + Send + 'a>>;

/// A store as a run uses it.
#[derive(Debug)]
pub struct StoreClient {
    /// The name that the user gave it.
    pub name: String,
    /// How long after its arrival at the store a span may be missing from complete answers, if the user states it.
    pub declared_lag: Option<Duration>,
    /// The store.
    pub store: Box<dyn Store>,
    /// The limit of its queries, over all runs.
    pub limit: QueryLimit,
}

impl StoreClient {
    /// Returns how long after its arrival at the store a span may be missing from complete answers.
    pub fn lag(&self) -> Lag {
        self.declared_lag.map_or_else(|| Lag::Usual(self.store.lag()), Lag::Declared)
    }
}

/// What is known of a store before it is queried. `docs/stores.md` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreProfile {
    /// Its name.
    pub name: &'static str,
    /// The API that is queried.
    pub api: &'static str,
    /// The version that its tests ran against.
    pub version: &'static str,
    /// What its tests ran against.
    pub evidence: Evidence,
    /// What it does not keep of spans.
    pub lacks: &'static [SpanDetail],
    /// What else it changes in spans.
    pub changes: &'static str,
    /// The lag, if neither the user nor earlier runs know it.
    pub lag: Duration,
    /// The longest time between two queries of one trace.
    pub pause_max: Duration,
    /// From how many spans on an answer may lack some without a sign.
    pub spans_max: Option<u64>,
}

/// What the tests of a store run against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The store itself.
    RealProcess,
    /// The engine of the store, behind a server of the tests.
    RealEngine,
    /// Documents and answers that the vendor describes.
    Contract,
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

/// Returns the spans of a trace in a JSON answer, in OTLP `TracesData` messages.
fn from_json(body: &[u8], trace: TraceId) -> Result<Vec<Bytes>, String> {
    let traces = otlp::read(body).map_err(|error| match error {
        ReadError::Unknown { found } => format!("not an answer of its API: {found}"),
        other => other.to_string(),
    })?;
    let of_trace = traces.iter().filter(|it| it.id() == trace);
    Ok(of_trace.map(|trace| otlp::encode(trace).into()).collect())
}

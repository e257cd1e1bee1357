//! Zipkin, by `GET /api/v2/trace/{id}`.
//!
//! Zipkin stores reports and not spans: a span may be reported in several parts, client and server may report the same id, and the answer has every
//! report as it came. [`half`] merges the reports of one side, and [`tree`] makes one span of each side. What Zipkin holds of an OpenTelemetry span in tags is
//! read back by [`tags`].
//!
//! A span that may still change is withheld, and the answer is partial: otherwise a run would count its first and its final version as two spans.
//! Deliberately absent: links and trace states. The specification of OpenTelemetry's Zipkin exporters has no place for them.

mod half;
mod report;
mod tags;
mod tree;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use http::StatusCode;
use model::{SpanDetail, Timestamp, TraceId};

use super::{
    Completeness, Evidence, Query, QueryResult, Store, StoreProfile,
    connection::{StoreConnection, StoreResponse},
};
use report::Report;
use tree::{SharedIds, Tree};

pub(super) const PROFILE: StoreProfile = StoreProfile {
    name: "Zipkin",
    api: "`/api/v2/trace`, by HTTP",
    version: "3.5.1, in memory; written as OpenTelemetry specifies for Zipkin exporters",
    evidence: Evidence::RealProcess,
    lacks: &[
        SpanDetail::Links,
        SpanDetail::ValueTypes,
        SpanDetail::ScopeAttributes,
        SpanDetail::Resource,
        SpanDetail::Nanoseconds,
        SpanDetail::Flags,
        SpanDetail::TraceState,
        SpanDetail::NameCase,
        SpanDetail::Kinds,
    ],
    changes: "a span shorter than 1 µs lasts 1 µs; where client and server share an id, the server's span gets one of its own",
    // In memory at once; over Elasticsearch after a refresh of the index, by default every second.
    lag: Duration::from_secs(5),
    pause_max: Duration::from_secs(1),
    // Over Elasticsearch, Zipkin requests one page of this size.
    spans_max: Some(10_000),
};

#[derive(Debug)]
pub(super) struct Zipkin {
    connection: StoreConnection,
    /// Whether a client and a server are known to have shared an id.
    is_sharing: AtomicBool,
}

pub(super) fn open(connection: StoreConnection) -> Box<dyn Store> {
    Box::new(Zipkin { connection, is_sharing: AtomicBool::new(false) })
}

impl Store for Zipkin {
    fn profile(&self) -> &StoreProfile {
        &PROFILE
    }

    fn query(&self, trace: TraceId, _since: Option<Timestamp>) -> Query<'_> {
        Box::pin(async move { self.spans(trace).await.unwrap_or_else(|failure| failure) })
    }
}

impl Zipkin {
    async fn spans(&self, trace: TraceId) -> Result<QueryResult, QueryResult> {
        let path = format!("/api/v2/trace/{trace}");
        let response = self.connection.get(&path, "application/json").await?;
        match response.status {
            StatusCode::OK => read(&response.body, trace, &self.is_sharing)
                .map_err(|why| self.connection.failed(format!("not an answer of Zipkin: {why}"))),
            StatusCode::NOT_FOUND if is_unknown(&response, trace) => Ok(QueryResult::Nothing),
            _ => Err(self.connection.without_trace(&response)),
        }
    }
}

/// Translates an answer; remembers if it has shared ids.
fn read(body: &[u8], trace: TraceId, is_sharing: &AtomicBool) -> Result<QueryResult, String> {
    let mut reports: Vec<Report> =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let answered = reports.len() as u64;
    reports.retain(|report| report.is_of(trace));
    if reports.iter().any(|report| report.shared) {
        is_sharing.store(true, Ordering::Relaxed);
    }
    let ids = match is_sharing.load(Ordering::Relaxed) {
        true => SharedIds::Possible,
        false => SharedIds::Unknown,
    };
    let Tree { trace, withheld } = tree::build(trace, reports, ids)?;
    let completeness = match PROFILE.spans_max {
        Some(max) if answered >= max => Completeness::Partial(format!(
            "it answered with {answered} reports of spans, and over Elasticsearch it leaves out all beyond {max} without a sign"
        )),
        _ => withheld.map_or(Completeness::Complete, Completeness::Partial),
    };
    if trace.is_empty() && completeness == Completeness::Complete {
        return Ok(QueryResult::Nothing);
    }
    Ok(QueryResult::Spans { otlp: vec![otlp::encode(&trace).into()], completeness })
}

/// Whether Zipkin itself reports that it does not know the trace. A server without its API has another body.
fn is_unknown(response: &StoreResponse, trace: TraceId) -> bool {
    let id = trace.to_string();
    // It repeats an id without the upper half if that is zero.
    let short = id.strip_prefix(&"0".repeat(16));
    let is_id =
        |text: &[u8]| text == id.as_bytes() || short.is_some_and(|id| text == id.as_bytes());
    response.body.trim_ascii().strip_suffix(b" not found").is_some_and(is_id)
}

#[cfg(test)]
mod tests;

//! Jaeger, by its API v3: `GetTrace` by gRPC, or `GET /api/v3/traces/{id}`.
//!
//! Both are queried for raw traces: otherwise Jaeger corrects the times of spans, and what is judged is not what was sent.
//!
//! Over Elasticsearch, Jaeger pages by start time alone: beyond 10,000 spans it loses or repeats spans without a sign
//! (jaeger#1739). An answer with that many is partial.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use model::{Timestamp, TraceId};
use otlp::proto::Message;

use super::{
    Completeness, Evidence, Query, QueryResult, Store, StoreProfile, connection::StoreConnection,
    from_json,
};

pub(super) const PROFILE: StoreProfile = StoreProfile {
    name: "Jaeger",
    api: "API v3, by gRPC or HTTP",
    version: "2 (module v1.76.0), in memory",
    evidence: Evidence::RealProcess,
    lacks: &[],
    changes: "a span that does not end after it starts gets an end 1 ns later and an attribute `@jaeger@warnings`",
    lag: Duration::from_secs(2),
    pause_max: Duration::from_secs(1),
    spans_max: Some(10_000),
};

/// The method of its gRPC API.
const GET_TRACE: &str = "/jaeger.api_v3.QueryService/GetTrace";

#[derive(Debug)]
pub(super) struct Jaeger {
    connection: StoreConnection,
    is_grpc: bool,
}

pub(super) fn open(connection: StoreConnection, is_grpc: bool) -> Box<dyn Store> {
    Box::new(Jaeger { connection, is_grpc })
}

impl Store for Jaeger {
    fn profile(&self) -> &StoreProfile {
        &PROFILE
    }

    fn query(&self, trace: TraceId, since: Option<Timestamp>) -> Query<'_> {
        Box::pin(async move {
            let answer = match self.is_grpc {
                true => self.by_grpc(trace, since).await,
                false => self.by_http(trace, since).await,
            };
            answer.map_or_else(|failure| failure, |messages| found(messages, trace))
        })
    }
}

impl Jaeger {
    async fn by_grpc(
        &self,
        trace: TraceId,
        since: Option<Timestamp>,
    ) -> Result<Vec<Bytes>, QueryResult> {
        self.connection.call(GET_TRACE, &request(trace, since)).await
    }

    async fn by_http(
        &self,
        trace: TraceId,
        since: Option<Timestamp>,
    ) -> Result<Vec<Bytes>, QueryResult> {
        let since = since.map_or_else(String::new, |since| format!("&start_time={since}"));
        let path = format!("/api/v3/traces/{trace}?raw_traces=true{since}");
        let response = self.connection.get(&path, "application/json").await?;
        match response.status {
            StatusCode::OK => {
                from_json(&response.body, trace).map_err(|why| self.connection.failed(why))
            }
            // A server that does not know the path has another body.
            StatusCode::NOT_FOUND if response.body.trim_ascii_start().starts_with(b"{") => {
                Ok(Vec::new())
            }
            _ => Err(self.connection.without_trace(&response)),
        }
    }
}

/// Returns what an answer with these messages means.
fn found(otlp: Vec<Bytes>, trace: TraceId) -> QueryResult {
    // What cannot be decoded is found where it is passed on.
    let count = |message: &Bytes| otlp::split(message, |id| *id == trace).map_or(0, |it| it.kept);
    let spans: u64 = otlp.iter().map(count).sum();
    let completeness = match PROFILE.spans_max {
        _ if otlp.iter().all(Bytes::is_empty) => return QueryResult::Nothing,
        Some(max) if spans >= max => Completeness::Partial(format!(
            "it answered with {spans} spans, and over Elasticsearch it loses spans beyond {max} without a sign"
        )),
        _ => Completeness::Complete,
    };
    QueryResult::Spans { otlp, completeness }
}

/// Encodes a `GetTraceRequest`.
fn request(trace: TraceId, since: Option<Timestamp>) -> Vec<u8> {
    let mut request = Message::default();
    request.bytes(1, trace.to_string().as_bytes());
    if let Some(since) = since {
        request.message(2, |start| {
            start.number(1, since.as_secs());
            start.number(2, since.as_nanos() % 1_000_000_000);
        });
    }
    // raw_traces
    request.number(4, 1);
    request.bytes
}

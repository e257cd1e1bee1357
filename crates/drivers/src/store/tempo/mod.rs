//! Grafana Tempo, by `GET /api/v2/traces/{id}`, and `/api/traces/{id}` where that is unknown.
//!
//! `start` and `end` are never sent: they cut traces. Tempo forgets the flags of spans when a trace leaves the memory of the ingester,
//! and a span would come in two versions; so they are removed from every answer. Deliberately absent: gRPC. The only service that Tempo offers to clients
//! cannot fetch a trace by its id, and what the predecessor called is internal to Tempo.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;
use model::{SpanDetail, Timestamp, Trace, TraceId, trace::Value};
use otlp::{
    DecodeError,
    proto::{self, Fields},
};

use super::{
    Completeness, Evidence, Query, QueryResult, Store, StoreProfile, connection::StoreConnection,
};

pub(super) const PROFILE: StoreProfile = StoreProfile {
    name: "Tempo",
    api: "`/api/v2/traces`, by HTTP; `/api/traces` where that is unknown",
    version: "a commit after 2.6",
    evidence: Evidence::RealProcess,
    lacks: &[SpanDetail::Flags],
    changes: "",
    lag: Duration::from_secs(5),
    pause_max: Duration::from_secs(1),
    spans_max: None,
};

const PROTOBUF: &str = "application/protobuf";

#[derive(Debug)]
pub(super) struct Tempo {
    connection: StoreConnection,
    /// Whether it is known to have no second version of the API.
    is_old: AtomicBool,
}

pub(super) fn open(connection: StoreConnection) -> Box<dyn Store> {
    Box::new(Tempo { connection, is_old: AtomicBool::new(false) })
}

impl Store for Tempo {
    fn profile(&self) -> &StoreProfile {
        &PROFILE
    }

    fn query(&self, trace: TraceId, _since: Option<Timestamp>) -> Query<'_> {
        Box::pin(async move {
            let answer = match self.is_old.load(Ordering::Relaxed) {
                false => self.by_second(trace).await,
                true => self.by_first(trace).await,
            };
            match answer.unwrap_or_else(|failure| failure) {
                QueryResult::Spans { otlp, completeness } => {
                    // What cannot be decoded is found where it is passed on.
                    let stable = |message: Bytes| stable(&message, trace).unwrap_or(message);
                    QueryResult::Spans {
                        otlp: otlp.into_iter().map(stable).collect(),
                        completeness,
                    }
                }
                other => other,
            }
        })
    }
}

impl Tempo {
    async fn by_second(&self, trace: TraceId) -> Result<QueryResult, QueryResult> {
        let response = self.connection.get(&format!("/api/v2/traces/{trace}"), PROTOBUF).await?;
        match response.status {
            StatusCode::OK => read(&response.body).map_err(|error| {
                self.connection.failed(format!("not an answer of Tempo: {error}"))
            }),
            StatusCode::NOT_FOUND => {
                self.is_old.store(true, Ordering::Relaxed);
                self.by_first(trace).await
            }
            _ => Err(self.connection.without_trace(&response)),
        }
    }

    async fn by_first(&self, trace: TraceId) -> Result<QueryResult, QueryResult> {
        let response = self.connection.get(&format!("/api/traces/{trace}"), PROTOBUF).await?;
        match response.status {
            StatusCode::OK => {
                let (otlp, completeness) = (vec![response.body], Completeness::Complete);
                Ok(QueryResult::Spans { otlp, completeness })
            }
            // A server that does not know the path has a body.
            StatusCode::NOT_FOUND if response.body.is_empty() => Ok(QueryResult::Nothing),
            _ => Err(self.connection.without_trace(&response)),
        }
    }
}

/// Returns the spans of a message as they are in every answer, wherever Tempo has them: without flags, and with sorted attributes.
fn stable(message: &[u8], trace: TraceId) -> Option<Bytes> {
    let mut read = Trace::new(trace);
    otlp::append(&mut read, message).ok()?;
    let mut stable = Trace::new(trace);
    let (mut resources, mut scopes) = (HashMap::new(), HashMap::new());
    for span in read.spans() {
        let resource = match resources.entry(span.resource_ix()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let mut resource = span.resource().to_data();
                sort(&mut resource.attributes);
                *new.insert(stable.resource(resource).ok()?)
            }
        };
        let scope = match scopes.entry(span.scope_ix()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let mut scope = span.scope().to_data();
                sort(&mut scope.attributes);
                *new.insert(stable.scope(scope).ok()?)
            }
        };
        let mut span = span.to_data();
        span.flags = 0;
        sort(&mut span.attributes);
        span.events.iter_mut().for_each(|event| sort(&mut event.attributes));
        for link in &mut span.links {
            link.flags = 0;
            sort(&mut link.attributes);
        }
        stable.push(resource, scope, span).ok()?;
    }
    Some(otlp::encode(&stable).into())
}

fn sort(attributes: &mut [(String, Value)]) {
    attributes.sort_by(|(one, _), (other, _)| one.cmp(other));
}

/// Decodes a `TraceByIDResponse`: the trace, the status and its reason.
fn read(body: &Bytes) -> Result<QueryResult, DecodeError> {
    const TRACE: u32 = proto::bytes(1);
    const STATUS: u32 = proto::varint(3);
    const MESSAGE: u32 = proto::bytes(4);
    const PARTIAL: u64 = 1;
    let (mut trace, mut status, mut reason): (&[u8], _, &[u8]) = (&[], 0, &[]);
    let mut fields = Fields::new(body);
    while let Some(key) = fields.key()? {
        match key {
            TRACE => trace = fields.bytes()?,
            STATUS => status = fields.varint()?,
            MESSAGE => reason = fields.bytes()?,
            other => fields.skip(other)?,
        }
    }
    let completeness = match status {
        PARTIAL => Completeness::Partial(match String::from_utf8_lossy(reason).trim() {
            "" => "its answer has the status PARTIAL".to_owned(),
            reason => reason.to_owned(),
        }),
        _ => Completeness::Complete,
    };
    Ok(match (trace, &completeness) {
        ([], Completeness::Complete) => QueryResult::Nothing,
        (trace, _) => QueryResult::Spans { otlp: vec![body.slice_ref(trace)], completeness },
    })
}

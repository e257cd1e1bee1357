//! Traces that are sent to a store, and a form in which what comes back can be compared.

use std::{env, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use drivers::{
    append,
    store::{QueryResult, StoreClient, StoreDialer},
};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use model::{
    SpanDetail, SpanId, StoreConfig, Timestamp, Tls, Trace, TraceId,
    trace::{
        DROPPED_UNKNOWN, EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status,
        StatusCode as Code, Value,
    },
};
use net::{HttpClient, HttpVersion, grpc, tls};

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Returns the address of a store, if it is installed.
pub(crate) fn address(variable: &str) -> Option<String> {
    let address = env::var(variable).ok();
    if address.is_none() {
        println!("skipped: `{variable}` is not set, because the store is not installed");
    }
    address
}

/// Returns how to query a store of this type by HTTP.
pub(crate) fn config(kind: &str, url: impl Into<String>) -> StoreConfig {
    StoreConfig {
        name: "prod".to_owned(),
        kind: kind.to_owned(),
        url: url.into(),
        is_grpc: false,
        headers: Vec::new(),
        tls: Tls::default(),
        index: None,
        lag: None,
    }
}

/// Opens a store, without network rules.
pub(crate) fn open(config: &StoreConfig) -> StoreClient {
    StoreDialer::new(&[], None).open(config).expect("it can be queried")
}

/// Returns a trace id that no other test uses.
pub(crate) fn fresh() -> TraceId {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    TraceId::from_random(bytes)
}

/// A time of today: a store may not accept older spans.
pub(crate) fn now() -> Timestamp {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).expect("the clock is right");
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).expect("before 2554"))
}

pub(crate) fn id(number: u64) -> SpanId {
    SpanId::from_random((number + 1).to_be_bytes())
}

/// Makes a trace of a root and as many children as it takes.
pub(crate) fn flat(trace: TraceId, spans: u64) -> Trace {
    let mut made = Trace::new(trace);
    let resource = made.resource(service("shop")).expect("room");
    let scope = made.scope(ScopeData::default()).expect("room");
    let start = now();
    for number in 0..spans {
        let parent = (number > 0).then(|| id(0));
        let mut span = SpanData::new(id(number), parent, format!("span {number}"));
        // Zipkin's memory gets slow if many spans begin in the same millisecond.
        span.start = start.plus(Duration::from_nanos(number * 1_001));
        span.end = span.start.plus(Duration::from_millis(1));
        made.push(resource, scope, span).expect("room");
    }
    made
}

/// Makes a trace with everything that a span can hold.
pub(crate) fn full(trace: TraceId) -> Trace {
    let mut made = Trace::new(trace);
    let resource = made.resource(service("shop")).expect("room");
    let scope = ScopeData {
        name: "shop.checkout".to_owned(),
        version: "1.2.3".to_owned(),
        attributes: vec![("scope.key".to_owned(), Value::Bool(true))],
        ..ScopeData::default()
    };
    let scope = made.scope(scope).expect("room");
    let start = Timestamp::from_nanos(now().as_nanos() / 1_000 * 1_000 + 123);
    let attributes = || {
        vec![
            ("text".to_owned(), Value::Str("Grüße \"quoted\"".to_owned())),
            ("integer".to_owned(), Value::Int(-7)),
            ("large".to_owned(), Value::Int(9_007_199_254_740_993)),
            ("double".to_owned(), Value::Double(0.1)),
            ("boolean".to_owned(), Value::Bool(false)),
            ("bytes".to_owned(), Value::Bytes(vec![0, 255])),
            ("list".to_owned(), Value::Array(vec![Value::Int(1), Value::Str("two".to_owned())])),
            ("map".to_owned(), Value::Map(vec![("inner".to_owned(), Value::Int(3))])),
        ]
    };
    let mut root = SpanData::new(id(0), None, "POST /Orders");
    root.kind = Kind::Server;
    (root.start, root.end) = (start, start.plus(Duration::from_nanos(1_000_007)));
    root.attributes = attributes();
    root.trace_state = "vendor=1".to_owned();
    root.flags = 0x101;
    root.status = Status { code: Code::Error, message: "out of stock".to_owned() };
    root.events = vec![EventData {
        at: start.plus(Duration::from_nanos(5)),
        name: "reserved".to_owned(),
        attributes: attributes(),
        ..EventData::default()
    }];
    root.links = vec![LinkData {
        trace_id: TraceId::from_bytes([9; 16]),
        span_id: SpanId::from_bytes([8; 8]),
        attributes: vec![("why".to_owned(), Value::Str("batch".to_owned()))],
        ..LinkData::default()
    }];
    made.push(resource, scope, root).expect("room");
    for (number, kind) in
        [Kind::Client, Kind::Producer, Kind::Consumer, Kind::Internal].into_iter().enumerate()
    {
        let mut child = SpanData::new(id(number as u64 + 1), Some(id(0)), format!("{kind:?}"));
        child.kind = kind;
        child.start = start.plus(Duration::from_nanos(9));
        child.end = child.start;
        child.status.code = Code::Ok;
        made.push(resource, scope, child).expect("room");
    }
    made
}

fn service(name: &str) -> ResourceData {
    ResourceData {
        attributes: vec![
            ("service.name".to_owned(), Value::Str(name.to_owned())),
            ("host.cpus".to_owned(), Value::Int(2)),
        ],
        ..ResourceData::default()
    }
}

/// Sends a trace by OTLP over gRPC.
pub(crate) async fn send(address: &str, trace: &Trace) {
    let tls = tls::anonymous(std::sync::Arc::new(tls::RootCertStore::empty()), &[]);
    let client = HttpClient::new(tls, HttpVersion::Http2, Duration::ZERO);
    let mut request = Request::new(Full::new(Bytes::from(grpc::frame(&otlp::encode(trace)))));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = format!("http://{address}{EXPORT}").parse().expect("a URL");
    grpc::add_headers(request.headers_mut(), Duration::from_secs(30));
    let response = client.send(request).await.expect("the store accepts OTLP");
    let (head, body) = response.into_parts();
    let body = body.collect().await.expect("an answer");
    let status = grpc::Status::of(&head.headers, body.trailers()).expect("a status");
    assert_eq!((head.status, status.code), (StatusCode::OK, 0), "{}", status.message);
}

/// Every span with its resource and scope, in an order that does not depend on how they were sent.
pub(crate) type Content = Vec<SpanParts>;

/// A span, its resource and its scope.
pub(crate) type SpanParts = (SpanData, ResourceData, ScopeData);

pub(crate) fn content(trace: &Trace) -> Content {
    let mut content: Vec<_> = trace
        .spans()
        .map(|span| (span.to_data(), span.resource().to_data(), span.scope().to_data()))
        .collect();
    for (span, resource, scope) in &mut content {
        for attributes in [&mut span.attributes, &mut resource.attributes, &mut scope.attributes] {
            attributes.sort_by(|one, other| one.0.cmp(&other.0));
        }
        for event in &mut span.events {
            event.attributes.sort_by(|one, other| one.0.cmp(&other.0));
        }
    }
    content.sort_by_key(|(span, ..)| (span.id, span.name.clone()));
    content
}

/// Returns a value as a store shows it that has texts only: by the rule of OpenTelemetry for backends without types.
pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        Value::Bytes(bytes) => BASE64_STANDARD.encode(bytes),
        other => as_json(other).to_string(),
    }
}

pub(crate) fn as_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Array(values) => values.iter().map(as_json).collect(),
        Value::Map(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), as_json(value))).collect()
        }
        Value::Int(number) => (*number).into(),
        Value::Double(number) => (*number).into(),
        Value::Bool(is_true) => (*is_true).into(),
        Value::Empty => serde_json::Value::Null,
        text => as_text(text).into(),
    }
}

/// Removes from spans what a store without a detail does not keep.
pub(crate) fn remove(detail: SpanDetail, content: &mut Content) {
    for (span, resource, scope) in content {
        match detail {
            SpanDetail::Links => span.links.clear(),
            SpanDetail::EventAttributes => {
                span.events.iter_mut().for_each(|event| event.attributes.clear());
            }
            SpanDetail::ValueTypes => {
                let events = span.events.iter_mut().map(|event| &mut event.attributes);
                let links = span.links.iter_mut().map(|link| &mut link.attributes);
                let all = [&mut span.attributes, &mut resource.attributes, &mut scope.attributes];
                all.into_iter().chain(events).chain(links).flatten().for_each(|(_, value)| {
                    *value = Value::Str(as_text(value));
                });
            }
            SpanDetail::Scope => *scope = ScopeData::default(),
            SpanDetail::ScopeAttributes => scope.attributes.clear(),
            SpanDetail::Resource => {
                resource.attributes.retain(|(key, _)| key == "service.name");
                resource.schema_url.clear();
            }
            SpanDetail::StatusMessage => span.status.message.clear(),
            SpanDetail::Nanoseconds => {
                let events = span.events.iter_mut().map(|event| &mut event.at);
                for time in [&mut span.start, &mut span.end].into_iter().chain(events) {
                    *time = Timestamp::from_nanos(time.as_nanos() / 1_000 * 1_000);
                }
            }
            SpanDetail::Flags => {
                span.flags = 0;
                span.links.iter_mut().for_each(|link| link.flags = 0);
            }
            SpanDetail::TraceState => {
                span.trace_state.clear();
                span.links.iter_mut().for_each(|link| link.trace_state.clear());
            }
            SpanDetail::NameCase => {
                span.name = span.name.to_lowercase();
                for (key, value) in &mut resource.attributes {
                    if let ("service.name", Value::Str(name)) = (key.as_str(), value) {
                        *name = name.to_lowercase();
                    }
                }
            }
            SpanDetail::Kinds => {
                if span.kind == Kind::Internal {
                    span.kind = Kind::Unspecified;
                }
            }
        }
    }
}

/// Decodes the spans of an answer.
pub(crate) fn decoded(trace: TraceId, result: &QueryResult) -> Content {
    let QueryResult::Spans { otlp, .. } = result else { return Vec::new() };
    let mut decoded = Trace::new(trace);
    for message in otlp {
        append(&mut decoded, message).expect("spans");
    }
    let mut content = content(&decoded);
    content.iter_mut().for_each(unmark);
    content
}

/// Removes the marks of what the store may not keep.
fn unmark((span, resource, scope): &mut SpanParts) {
    let counts = [&mut span.dropped_events, &mut span.dropped_links, &mut scope.dropped_attributes];
    let links = span.links.iter_mut().map(|link| &mut link.dropped_attributes);
    for count in counts.into_iter().chain([&mut resource.dropped_attributes]).chain(links) {
        if *count == DROPPED_UNKNOWN {
            *count = 0;
        }
    }
}

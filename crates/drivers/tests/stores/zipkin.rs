//! Zipkin, a real one. It takes no OTLP, so the tests write spans as OpenTelemetry specifies for Zipkin exporters.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use crate::{
    conformance::{self, Intake, Subject, told},
    sample::{self, Content, address, as_json, as_text, decoded, fresh, id, now},
};
use bytes::Bytes;
use drivers::store::{Completeness, QueryResult, StoreClient};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use model::{
    SpanId, TraceId,
    trace::{EventData, Kind, Span, StatusCode as Code, Value},
};
use net::{HttpClient, HttpVersion, tls};
use serde_json::{Map, Value as Json, json};
use tokio::time::{Instant, sleep};

const VARIABLE: &str = "QUALITYTRACE_TEST_ZIPKIN";

fn open(url: String) -> StoreClient {
    sample::open(&sample::config("zipkin", url))
}

fn intake(url: String) -> Intake {
    Intake::Api(Box::new(move |trace| {
        let (url, spans) = (url.clone(), trace.spans().map(exported).collect());
        let id = trace.id().to_string();
        Box::pin(async move { report(&url, &id, spans).await })
    }))
}

/// Returns the installed Zipkin.
fn subject() -> Option<Subject> {
    let url = address(VARIABLE)?;
    Some(Subject { client: open(url.clone()), intake: intake(url), changes })
}

/// A span shorter than a microsecond gets longer.
fn changes(content: &mut Content) {
    for (span, ..) in content {
        if span.end.since(span.start) <= Duration::from_micros(1) {
            span.end = span.start;
        }
    }
}

/// Sends spans of a trace to the API.
async fn report(url: &str, trace: &str, mut spans: Vec<Json>) {
    for span in &mut spans {
        span["traceId"] = trace.into();
    }
    let tls = tls::anonymous(Arc::new(tls::RootCertStore::empty()), &[]);
    let client = HttpClient::new(tls, HttpVersion::Http1, Duration::ZERO);
    let mut request = Request::new(Full::new(Bytes::from(Json::from(spans).to_string())));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = format!("{url}/api/v2/spans").parse().expect("a URL");
    let json = http::HeaderValue::from_static("application/json");
    request.headers_mut().insert(http::header::CONTENT_TYPE, json);
    let response = client.send(request).await.expect("Zipkin accepts spans");
    let (head, body) = response.into_parts();
    let body = body.collect().await.expect("an answer").to_bytes();
    assert_eq!(head.status, StatusCode::ACCEPTED, "{}", String::from_utf8_lossy(&body));
}

/// Translates a span by the rules of OpenTelemetry's specification for Zipkin exporters. What it leaves open (resources, links, trace states) is not sent.
fn exported(span: Span<'_>) -> Json {
    let (resource, scope, data) =
        (span.resource().to_data(), span.scope().to_data(), span.to_data());
    let mut tags = Map::new();
    for (key, value) in &data.attributes {
        tags.insert(key.clone(), as_text(value).into());
    }
    let names = [("name", &scope.name), ("version", &scope.version)];
    for (key, value) in names.into_iter().filter(|(_, value)| !value.is_empty()) {
        for prefix in ["otel.scope", "otel.library"] {
            tags.insert(format!("{prefix}.{key}"), value.as_str().into());
        }
    }
    match data.status.code {
        Code::Error => {
            tags.insert("otel.status_code".to_owned(), "ERROR".into());
            tags.insert("error".to_owned(), data.status.message.as_str().into());
        }
        Code::Ok => drop(tags.insert("otel.status_code".to_owned(), "OK".into())),
        _ => {}
    }
    let mut report = json!({
        "id": data.id.to_string(),
        "name": data.name,
        "timestamp": data.start.as_nanos() / 1_000,
        // Zipkin's API wants a shorter one rounded up.
        "duration": data.end.since(data.start).as_micros().max(1) as u64,
        "tags": tags,
    });
    if let Some(parent) = data.parent {
        report["parentId"] = parent.to_string().into();
    }
    let kinds = [
        (Kind::Client, "CLIENT"),
        (Kind::Server, "SERVER"),
        (Kind::Producer, "PRODUCER"),
        (Kind::Consumer, "CONSUMER"),
    ];
    if let Some((_, kind)) = kinds.iter().find(|(kind, _)| *kind == data.kind) {
        report["kind"] = (*kind).into();
    }
    let service = resource.attributes.iter().find(|(key, _)| key == "service.name");
    if let Some((_, Value::Str(name))) = service {
        report["localEndpoint"] = json!({"serviceName": name});
    }
    report["annotations"] = data.events.iter().map(annotation).collect();
    report
}

/// Translates an event: its attributes become a part of its name.
fn annotation(event: &EventData) -> Json {
    let attributes: Map<_, _> =
        event.attributes.iter().map(|(key, value)| (key.clone(), as_json(value))).collect();
    let value = match attributes.is_empty() {
        true => event.name.clone(),
        false => format!("{}: {}", Json::from(event.name.as_str()), Json::from(attributes)),
    };
    json!({"timestamp": event.at.as_nanos() / 1_000, "value": value})
}

#[tokio::test]
async fn zipkin_gives_back_what_it_was_sent() {
    let Some(subject) = subject() else { return };
    conformance::an_unknown_trace(&subject).await;
    conformance::what_was_sent(&subject).await;
    conformance::a_trace_that_grows(&subject).await;
    conformance::answers_that_repeat(&subject, Duration::from_secs(1)).await;
}

#[tokio::test]
async fn zipkin_gives_back_a_large_trace() {
    let Some(subject) = subject() else { return };
    conformance::a_large_trace(&subject).await;
}

#[tokio::test]
async fn an_answer_of_zipkin_that_is_cut_or_held_is_no_answer() {
    let Some(url) = address(VARIABLE) else { return };
    let query = url.trim_start_matches("http://").parse().expect("an address");
    conformance::cut_answers((query, intake(url)), |at: SocketAddr| open(format!("http://{at}")))
        .await;
}

/// One service's report of a finished span.
fn finished(number: u64, service: &str, more: Json) -> Json {
    let mut report = open_report(number, service, more);
    report["duration"] = 1_000.into();
    report
}

fn open_report(number: u64, service: &str, more: Json) -> Json {
    let mut report = json!({
        "id": id(number).to_string(),
        "name": format!("Span {number}"),
        "timestamp": now().as_nanos() / 1_000,
        "localEndpoint": {"serviceName": service},
    });
    let Json::Object(more) = more else { unreachable!("fields") };
    report.as_object_mut().expect("an object").extend(more);
    report
}

/// The spans of an answer as name, service and parent's name, and whether they are all.
fn shape(
    trace: TraceId,
    result: &QueryResult,
) -> (Vec<(String, String, String)>, Option<Completeness>) {
    let completeness = match result {
        QueryResult::Spans { completeness, .. } => Some(completeness.clone()),
        _ => None,
    };
    let spans = decoded(trace, result);
    let label = |id: SpanId| {
        let found = spans.iter().find(|(span, ..)| span.id == id);
        found.map_or("absent".to_owned(), |(span, ..)| format!("{} {:?}", span.name, span.kind))
    };
    let mut shape: Vec<_> = spans
        .iter()
        .map(|(span, resource, _)| {
            let service = resource.attributes.iter().map(|(_, value)| as_text(value)).collect();
            (label(span.id), service, span.parent.map_or("none".to_owned(), label))
        })
        .collect();
    shape.sort();
    (shape, completeness)
}

/// Queries until the answer has this shape: Zipkin stores what it accepted a little later.
async fn shown(
    client: &StoreClient,
    trace: TraceId,
    expected: (&[(&str, &str, &str)], Completeness),
) -> QueryResult {
    let end = Instant::now() + Duration::from_secs(20);
    let expected = (rows(expected.0), Some(expected.1));
    loop {
        let result = client.store.query(trace, None).await;
        let found = shape(trace, &result);
        if found == expected {
            return result;
        }
        if Instant::now() > end {
            assert_eq!(found, expected);
        }
        // The store decides when it shows what it accepted, and reports nothing.
        sleep(Duration::from_millis(20)).await;
    }
}

fn rows(rows: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    rows.iter()
        .map(|(name, service, parent)| {
            ((*name).to_owned(), (*service).to_owned(), (*parent).to_owned())
        })
        .collect()
}

#[tokio::test]
async fn client_and_server_of_a_shared_id_are_two_spans_and_children_hang_below_their_service() {
    let Some(url) = address(VARIABLE) else { return };
    let (client, trace) = (open(url.clone()), fresh());
    let below = |number, kind: Option<&str>, shared: bool| json!({"parentId": id(number).to_string(), "kind": kind, "shared": shared});
    // The client's report comes last.
    let server = finished(1, "Stock", below(0, Some("SERVER"), true));
    let child = finished(2, "stock", below(1, None, false));
    report(&url, &trace.to_string(), vec![server, child]).await;
    let local = ("span 2 Unspecified", "stock", "span 1 Server");
    let expected = [("span 1 Server", "stock", "absent"), local];
    let early = shown(&client, trace, (&expected, Completeness::Complete)).await;

    let caller = finished(1, "shop", below(0, Some("CLIENT"), false));
    let root = finished(0, "shop", json!({"kind": "SERVER"}));
    let other = finished(3, "shop", below(1, None, false));
    report(&url, &trace.to_string(), vec![caller, root, other]).await;
    let expected = [
        ("span 0 Server", "shop", "none"),
        ("span 1 Client", "shop", "span 0 Server"),
        ("span 1 Server", "stock", "span 1 Client"),
        local,
        ("span 3 Unspecified", "shop", "span 1 Client"),
    ];
    let late = shown(&client, trace, (&expected, Completeness::Complete)).await;
    // No span of the first answer changed.
    let (early, late) = (decoded(trace, &early), decoded(trace, &late));
    assert!(early.iter().all(|span| late.contains(span)), "{early:?}");
}

#[tokio::test]
async fn a_span_without_duration_makes_the_answer_partial_until_it_has_one() {
    let Some(url) = address(VARIABLE) else { return };
    let (client, trace) = (open(url.clone()), fresh());
    let begun = open_report(0, "shop", json!({"tags": {"a": "1"}}));
    let started = begun["timestamp"].clone();
    report(&url, &trace.to_string(), vec![begun, finished(1, "shop", json!({}))]).await;
    let why = format!("span `span 0` of `shop` ({}) has no duration yet", id(0));
    let second = ("span 1 Unspecified", "shop", "none");
    shown(&client, trace, (&[second], Completeness::Partial(why))).await;

    // More about it, and then the rest of it, twice.
    let more = json!({"id": id(0).to_string(), "tags": {"c": "3"}});
    let rest = finished(0, "shop", json!({"tags": {"b": "2"}, "timestamp": started}));
    report(&url, &trace.to_string(), vec![more, rest.clone(), rest]).await;
    let expected = [("span 0 Unspecified", "shop", "none"), second];
    let result = shown(&client, trace, (&expected, Completeness::Complete)).await;
    let spans = decoded(trace, &result);
    let keys: Vec<_> = spans[0].0.attributes.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["a", "b", "c"]);
}

#[tokio::test]
async fn halves_that_are_not_marked_and_contradictions_are_withheld() {
    let Some(url) = address(VARIABLE) else { return };
    let client = open(url.clone());
    let mut longer = finished(0, "shop", json!({}));
    longer["duration"] = 2_000.into();
    let cases = [
        (
            finished(0, "shop", json!({"kind": "CLIENT"})),
            finished(0, "stock", json!({"kind": "SERVER"})),
            "has the id of another span, and neither is marked as shared, and 1 more spans are not final",
        ),
        (finished(0, "shop", json!({})), longer, "was reported with two different ends"),
    ];
    for (one, other, why) in cases {
        let trace = fresh();
        report(&url, &trace.to_string(), vec![one, other]).await;
        let why = format!("span `span 0` of `shop` ({}) {why}", id(0));
        shown(&client, trace, (&[], Completeness::Partial(why))).await;
    }
}

#[tokio::test]
async fn a_trace_id_of_64_bits_is_found() {
    let Some(url) = address(VARIABLE) else { return };
    let client = open(url.clone());
    let mut bytes = *fresh().as_bytes();
    bytes[..8].fill(0);
    let trace = TraceId::from_random(bytes);
    assert_eq!(client.store.query(trace, None).await, QueryResult::Nothing);
    // Zipkin shows either form as 16 digits.
    let long = trace.to_string();
    report(&url, &long[16..], vec![finished(0, "shop", json!({}))]).await;
    report(&url, &long, vec![finished(1, "shop", json!({}))]).await;
    let expected = [("span 0 Unspecified", "shop", "none"), ("span 1 Unspecified", "shop", "none")];
    shown(&client, trace, (&expected, Completeness::Complete)).await;
    // By default it is strict: another upper half is another trace.
    bytes[..8].fill(7);
    let other = client.store.query(TraceId::from_random(bytes), None).await;
    assert_eq!(other, QueryResult::Nothing);
}

#[tokio::test]
async fn the_path_of_the_user_interface_is_an_address_and_another_is_refused() {
    let Some(url) = address(VARIABLE) else { return };
    let result = open(format!("{url}/zipkin")).store.query(fresh(), None).await;
    assert_eq!(result, QueryResult::Nothing);
    let result = open(format!("{url}/elsewhere")).store.query(fresh(), None).await;
    assert!(matches!(result, QueryResult::Refused { .. }), "{}", told(&result));
}

//! Translations that a single real Zipkin does not show: other settings, other exporters, and unusual orders.

use model::trace::{Kind, SpanData, StatusCode, Value};
use serde_json::{Value as Json, json};

use super::*;

const TRACE: &str = "aaaaaaaaaaaaaaaa0000000000000001";

fn trace() -> TraceId {
    TRACE.parse().expect("an id")
}

/// A report of a finished span, with more or other fields.
fn report(id: u64, service: &str, more: Json) -> Json {
    let mut report = json!({
        "traceId": TRACE,
        "id": format!("{id:016x}"),
        "name": format!("span {id}"),
        "timestamp": 1_000_000,
        "duration": 5,
        "localEndpoint": {"serviceName": service},
    });
    let Json::Object(more) = more else { unreachable!("fields") };
    report.as_object_mut().expect("an object").extend(more);
    report
}

fn below(parent: u64) -> Json {
    json!({"parentId": format!("{parent:016x}")})
}

fn server(parent: u64) -> Json {
    json!({"parentId": format!("{parent:016x}"), "kind": "SERVER", "shared": true})
}

fn read_once(reports: &[Json]) -> Result<QueryResult, String> {
    read(Json::from(reports).to_string().as_bytes(), trace(), &AtomicBool::new(false))
}

/// Returns the spans of an answer, and why it is partial.
fn spans(reports: &[Json]) -> (Vec<SpanData>, Option<String>) {
    let result = read_once(reports).expect("an answer");
    let QueryResult::Spans { otlp, completeness } = result else { return (Vec::new(), None) };
    let mut decoded = model::Trace::new(trace());
    for bytes in &otlp {
        otlp::append(&mut decoded, bytes).expect("spans");
    }
    let why = match completeness {
        Completeness::Complete => None,
        Completeness::Partial(why) => Some(why),
    };
    (decoded.spans().map(|span| span.to_data()).collect(), why)
}

/// Returns the names of spans, each with that of its parent.
fn parents(reports: &[Json]) -> (Vec<(String, String)>, Option<String>) {
    let (spans, why) = spans(reports);
    let label = |span: &SpanData| format!("{} {:?}", span.name, span.kind);
    let parent = |span: &SpanData| {
        let found = spans.iter().find(|other| Some(other.id) == span.parent);
        found.map_or_else(String::new, label)
    };
    let mut parents: Vec<_> = spans.iter().map(|span| (label(span), parent(span))).collect();
    parents.sort();
    (parents, why)
}

#[test]
fn an_answer_by_the_lower_half_of_the_id_has_other_traces_too() {
    // So it answers with `STRICT_TRACE_ID=false`: an id that was cut to 64 bits is of this trace, another upper half is not.
    let ids = ["0000000000000001", "bbbbbbbbbbbbbbbb0000000000000001", TRACE];
    let reports: Vec<_> =
        (1..).zip(ids).map(|(number, id)| report(number, "shop", json!({"traceId": id}))).collect();
    let (found, why) = spans(&reports);
    let names: Vec<_> = found.iter().map(|span| span.name.as_str()).collect();
    assert_eq!((names, why), (vec!["span 1", "span 3"], None));
    assert_eq!(read_once(&reports[1..2]), Ok(QueryResult::Nothing));
}

#[test]
fn the_order_of_an_answer_does_not_matter() {
    let mut reports = vec![
        report(1, "shop", json!({"kind": "CLIENT", "tags": {"a": "1", "b": "2"}})),
        report(1, "stock", server(9)),
        report(1, "shop", json!({"duration": null, "name": "early", "tags": {"b": "0", "c": "3"}})),
        json!({"traceId": TRACE, "id": "0000000000000001", "tags": {"d": "4"}}),
        report(2, "stock", below(1)),
    ];
    let first = read_once(&reports);
    let (found, why) = spans(&reports);
    let client = found.iter().find(|span| span.kind == Kind::Client).expect("the client");
    let attributes: String =
        client.attributes.iter().map(|(key, value)| format!("{key}{value:?} ")).collect();
    let expected = r#"aStr("1") bStr("2") cStr("3") dStr("4") "#;
    assert_eq!((client.name.as_str(), attributes.as_str(), why), ("span 1", expected, None));
    for _ in 0..reports.len() {
        reports.rotate_left(1);
        assert_eq!(read_once(&reports), first);
        reports.swap(0, 2);
        assert_eq!(read_once(&reports), first);
    }
}

#[test]
fn a_span_below_a_shared_id_waits_for_the_half_of_its_service() {
    let pair = |name: &str, parent: &str| (name.to_owned(), parent.to_owned());
    let joined = report(1, "stock", server(9));
    let child = report(2, "stock", below(1));
    // Nothing shows that ids are shared.
    assert_eq!(parents(std::slice::from_ref(&child)), (vec![pair("span 2 Unspecified", "")], None));
    // Another service shares ids, and the own service of the span has not reported its parent.
    let elsewhere = report(3, "mail", server(9));
    let (found, why) = parents(&[child.clone(), elsewhere.clone()]);
    assert_eq!(found, [pair("span 3 Server", "")]);
    let expected = "span `span 2` of `stock` (0000000000000002) is below a span that its service has not reported yet";
    assert_eq!(why.as_deref(), Some(expected));
    let (found, why) = parents(&[child, elsewhere, joined.clone()]);
    let expected = [
        pair("span 1 Server", ""),
        pair("span 2 Unspecified", "span 1 Server"),
        pair("span 3 Server", ""),
    ];
    assert_eq!((found.as_slice(), why), (expected.as_slice(), None));
    // A server's span that is not shared names the client as its parent.
    let mut called = report(4, "mail", below(5));
    called["kind"] = "SERVER".into();
    let (found, why) = parents(&[joined, called]);
    assert_eq!((found, why), (vec![pair("span 1 Server", ""), pair("span 4 Server", "")], None));
}

#[test]
fn two_servers_of_one_id_are_two_spans() {
    let at = |ip: &str, more: Json| {
        let mut report = report(1, "stock", more);
        report["localEndpoint"]["ipv4"] = ip.into();
        report
    };
    let mut child = at("10.0.0.2", below(1));
    child["id"] = "0000000000000002".into();
    let (one, other) = (at("10.0.0.1", server(9)), at("10.0.0.2", server(9)));
    let (found, why) = spans(&[one.clone(), other.clone(), child.clone()]);
    let child_found = found.iter().find(|span| span.kind == Kind::Unspecified).expect("the child");
    let parent = found.iter().find(|span| Some(span.id) == child_found.parent).expect("its parent");
    let ip = ("network.local.address".to_owned(), Value::Str("10.0.0.2".to_owned()));
    assert!(found.len() == 3 && parent.attributes.contains(&ip) && why.is_none(), "{found:?}");
    // It does not show which of them is its parent.
    child["localEndpoint"] = json!({"serviceName": "stock"});
    let (found, why) = spans(&[one, other, child]);
    assert_eq!(found.len(), 2);
    assert!(why.is_some_and(|why| why.ends_with("below one of several servers with the same id")));
}

#[test]
fn the_status_is_read_as_exporters_write_it() {
    let cases = [
        (json!({}), StatusCode::Unset, "", 0),
        (json!({"otel.status_code": "OK"}), StatusCode::Ok, "", 0),
        (json!({"otel.status_code": "ERROR", "error": "full"}), StatusCode::Error, "full", 0),
        (json!({"otel.status_code": "ERROR", "error": ""}), StatusCode::Error, "", 0),
        // The Collector.
        (
            json!({"otel.status_code": "Error", "error": "true", "otel.status_description": "full"}),
            StatusCode::Error,
            "full",
            0,
        ),
        (
            json!({"otel.status_code": "STATUS_CODE_ERROR", "error": "true"}),
            StatusCode::Error,
            "",
            0,
        ),
        // Tracers of Zipkin, whose own tag stays.
        (json!({"error": "full"}), StatusCode::Error, "full", 1),
        (json!({"error": "false"}), StatusCode::Unset, "", 1),
        (json!({"otel.status_code": "fine"}), StatusCode::Unset, "", 1),
    ];
    for (tags, code, message, left) in cases {
        let (found, _) = spans(&[report(1, "shop", json!({"tags": tags.clone()}))]);
        let SpanData { status, attributes, .. } = &found[0];
        let read = (status.code, status.message.as_str(), attributes.len());
        assert_eq!(read, (code, message, left), "{tags}");
    }
}

#[test]
fn other_tags_and_endpoints_become_attributes() {
    let tags = json!({"span.kind": "internal", "otel.dropped_events_count": "3", "peer.service": "Mail", "otlp.link.0": "a|b"});
    let remote = json!({"serviceName": "smtp", "ipv6": "::1", "port": 25});
    let (found, _) = spans(&[report(1, "shop", json!({"tags": tags, "remoteEndpoint": remote}))]);
    let SpanData { kind, dropped_events, attributes, .. } = &found[0];
    let texts: Vec<_> = attributes
        .iter()
        .map(|(key, value)| match value {
            Value::Str(text) => format!("{key}={text}"),
            other => unreachable!("{other:?}"),
        })
        .collect();
    let expected = [
        "network.peer.address=::1",
        "network.peer.port=25",
        "otlp.link.0=a|b",
        "peer.service=Mail",
    ];
    assert_eq!(
        (*kind, *dropped_events, texts.as_slice()),
        (Kind::Internal, 3, &expected.map(str::to_owned)[..])
    );
}

#[test]
fn an_annotation_is_an_event_with_attributes_where_it_has_their_form() {
    let cases = [
        ("cache miss", "cache miss", "[]", 0),
        ("\"put\": {\"n\": 7, \"x\": 0.5}", "put", r#"[("n", Int(7)), ("x", Double(0.5))]"#, 0),
        ("put|{\"n\":[true,\"a|b\"]}|2", "put", r#"[("n", Array([Bool(true), Str("a|b")]))]"#, 2),
        ("\"put\": 7", "\"put\": 7", "[]", 0),
        ("a|b|c", "a|b|c", "[]", 0),
        ("\"a\": {}, \"b\": {}", "\"a\": {}, \"b\": {}", "[]", 0),
    ];
    for (value, name, attributes, dropped) in cases {
        let annotations = json!([{"timestamp": 1_000_001, "value": value}]);
        let (found, _) = spans(&[report(1, "shop", json!({"annotations": annotations}))]);
        let event = &found[0].events[0];
        let read =
            (event.name.as_str(), format!("{:?}", event.attributes), event.dropped_attributes);
        assert_eq!(read, (name, attributes.to_owned(), dropped), "{value}");
        assert_eq!(event.at, Timestamp::from_nanos(1_000_001_000));
    }
}

#[test]
fn what_is_not_known_is_named() {
    let cases = [
        (json!({"links": []}), "unknown field `links`"),
        (json!({"kind": "INTERNAL"}), "unknown variant `INTERNAL`"),
        (json!({"id": "zz"}), "`zz` is not a span id"),
        (json!({"traceId": "zz"}), "is not a trace id"),
        (json!({"tags": {"a": 1}}), "invalid type: integer `1`, expected a string"),
    ];
    for (more, expected) in cases {
        let error = read_once(&[report(1, "shop", more)]).expect_err("it is no answer");
        assert!(error.contains(expected), "{error}");
    }
}

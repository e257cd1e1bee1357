//! OTLP in JSON, as the specification defines it and as senders write it.

use drivers::{
    append,
    receiver::{Config, Counts, start},
};
use model::{
    Trace,
    trace::{Kind, StatusCode, ValueRef},
};

use crate::{WANTED, config, http::send, receiver, told};

const JSON: &str = "content-type: application/json; charset=utf-8\r\n";

/// A span of the wanted trace with all fields, in the forms that the specification allows.
const WHOLE: &str = r#"{"resourceSpans":[{
  "resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}],"droppedAttributesCount":1},
  "scopeSpans":[{
    "scope":{"name":"library","version":"1","attributes":[{"key":"a","value":{"boolValue":false}}]},
    "spans":[{
      "traceId":"07070707070707070707070707070707","spanId":"0102030405060708","parentSpanId":"","traceState":"a=b",
      "name":"GET /","kind":2,"startTimeUnixNano":"1780000000000000001","endTimeUnixNano":1780000000000000002,
      "flags":257,"notInTheProtocol":{"is":["passed over"]},
      "attributes":[
        {"key":"text","value":{"stringValue":""}},
        {"key":"int","value":{"intValue":"-9007199254740993"}},
        {"key":"small","value":{"intValue":7}},
        {"key":"double","value":{"doubleValue":0.5}},
        {"key":"nan","value":{"doubleValue":"NaN"}},
        {"key":"bytes","value":{"bytesValue":"AP8="}},
        {"key":"list","value":{"arrayValue":{"values":[{"intValue":"1"},{"stringValue":"x"}]}}},
        {"key":"map","value":{"kvlistValue":{"values":[{"key":"k","value":{"boolValue":true}}]}}},
        {"key":"none","value":{}}],
      "events":[{"timeUnixNano":"5","name":"event","attributes":[{"key":"e","value":{"intValue":"3"}}]}],
      "links":[{"traceId":"0909090909090909090909090909090A","spanId":"0909090909090909","flags":1}],
      "status":{"code":"STATUS_CODE_ERROR","message":"broken"}
    }],"schemaUrl":"scope-schema"
  }],"schemaUrl":"resource-schema"
}]}"#;

#[tokio::test]
async fn a_span_arrives_with_everything() {
    let sink = told(false, 9);
    let receiver = receiver(&sink).await;
    let answer = send(receiver.addresses()[0], "POST /v1/traces", JSON, WHOLE.as_bytes()).await;
    assert!(answer.head.starts_with("HTTP/1.1 200 "), "{}", answer.head);
    assert!(answer.head.contains("content-type: application/json\r\n"), "{}", answer.head);
    assert_eq!(answer.body, b"{}");
    let taken = sink.taken.lock().expect("no panic").clone();
    let mut trace = Trace::new(taken[0].trace_id);
    append(&mut trace, &taken[0].bytes).expect("protobuf");
    let span = trace.spans().next().expect("the span");
    assert_eq!(*span.id().as_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!((span.parent(), span.trace_state(), span.name()), (None, "a=b", "GET /"));
    assert_eq!((span.kind(), span.flags()), (Kind::Server, 257));
    assert_eq!(span.start().as_nanos(), 1_780_000_000_000_000_001);
    assert_eq!(span.end().as_nanos(), 1_780_000_000_000_000_002);
    assert_eq!((span.status(), span.status_message()), (StatusCode::Error, "broken"));
    assert_eq!(span.resource().to_data().dropped_attributes, 1);
    assert_eq!(span.resource().to_data().schema_url, "resource-schema");
    assert_eq!((span.scope().name(), span.scope().version()), ("library", "1"));
    assert_eq!(span.scope().to_data().schema_url, "scope-schema");
    let value = |key| span.attributes().get(key).expect(key);
    assert!(matches!(value("text"), ValueRef::Str("")));
    assert!(matches!(value("int"), ValueRef::Int(-9_007_199_254_740_993)));
    assert!(matches!(value("small"), ValueRef::Int(7)));
    assert!(matches!(value("double"), ValueRef::Double(0.5)));
    assert!(matches!(value("nan"), ValueRef::Double(number) if number.is_nan()));
    assert!(matches!(value("bytes"), ValueRef::Bytes([0, 255])));
    assert!(matches!(value("list"), ValueRef::Array(_)));
    assert!(matches!(value("map"), ValueRef::Map(_)));
    assert!(matches!(value("none"), ValueRef::Empty));
    let event = span.events().next().expect("the event");
    assert_eq!((event.name(), event.at().as_nanos()), ("event", 5));
    let link = span.links().next().expect("the link");
    assert_eq!(link.span_id().map(|id| *id.as_bytes()), Some([9; 8]));
    assert_eq!(receiver.shutdown().await, Counts { kept: 1, ..Counts::default() });
}

fn spans(ids: &[(&str, &str)]) -> String {
    let spans: Vec<_> = ids
        .iter()
        .map(|(trace, span)| {
            format!(r#"{{"traceId":"{trace}","spanId":"{span}","kind":"SPAN_KIND_CLIENT"}}"#)
        })
        .collect();
    format!(r#"{{"resource_spans":[{{"scope_spans":[{{"spans":[{}]}}]}}]}}"#, spans.join(","))
}

#[tokio::test]
async fn spans_are_kept_foreign_or_invalid() {
    let sink = told(false, 9);
    let receiver = receiver(&sink).await;
    let wanted = "07".repeat(16);
    let body = spans(&[
        (&wanted, "0101010101010101"),
        (&"08".repeat(16), "0101010101010101"),
        (&wanted, "01"),
        // Sixteen characters are not sixteen bytes.
        ("0707070707070707", "0101010101010101"),
        ("", "0101010101010101"),
        ("not hexadecimal", "0101010101010101"),
    ]);
    let answer = send(receiver.addresses()[1], "POST /v1/traces", JSON, body.as_bytes()).await;
    assert!(answer.head.starts_with("HTTP/1.1 200 "), "{}", answer.head);
    let said = String::from_utf8(answer.body).expect("text");
    assert!(said.starts_with(r#"{"partialSuccess":{"#), "{said}");
    assert!(said.contains(r#""errorMessage":"4 spans whose ids are malformed""#), "{said}");
    assert!(said.contains(r#""rejectedSpans":"4""#), "{said}");
    assert_eq!(sink.lost.lock().expect("no panic").len(), 1, "one was of the wanted trace");
    assert_eq!(*sink.taken.lock().expect("no panic")[0].trace_id.as_bytes(), WANTED);
    let foreign = receiver.seen().foreign;
    assert_eq!(foreign.len(), 1);
    let expected = Counts { kept: 1, foreign: 1, invalid: 4, ..Counts::default() };
    assert_eq!(receiver.shutdown().await, expected);
}

#[tokio::test]
async fn logs_and_metrics_are_counted() {
    let receiver = receiver(&told(false, 0)).await;
    let logs = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{},{"body":{"stringValue":"a"}}]},{"logRecords":[{}]}]}]}"#;
    let metrics = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
        {"name":"a","sum":{"dataPoints":[{"asInt":"1"},{"asDouble":1}],"isMonotonic":true}},
        {"name":"b","exponentialHistogram":{"dataPoints":[{}]}}]}]}]}"#;
    for (line, body) in [("POST /v1/logs", logs), ("POST /v1/metrics", metrics)] {
        let answer = send(receiver.addresses()[0], line, JSON, body.as_bytes()).await;
        assert!(answer.head.starts_with("HTTP/1.1 200 "), "{}", answer.head);
        assert_eq!(answer.body, b"{}");
    }
    assert_eq!(receiver.shutdown().await, Counts { logs: 3, metrics: 3, ..Counts::default() });
}

#[tokio::test]
async fn a_mistake_is_told_in_json_with_its_place() {
    let receiver = receiver(&told(false, 0)).await;
    let deep = format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"value":{}{}}}]}}}}]}}"#,
        r#"{"arrayValue":{"values":["#.repeat(200),
        "]}}".repeat(200)
    );
    #[rustfmt::skip]
    let cases = [
        ("POST /v1/traces", "", "EOF while parsing"),
        ("POST /v1/traces", "noise", "line 1 column 2"),
        ("POST /v1/traces", "[]", "expected an object, found an array"),
        ("POST /v1/traces", r#"{"resourceSpans":{}}"#, "at `resourceSpans`"),
        ("POST /v1/traces", r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"SERVER"}]}]}]}"#, "at `resourceSpans[0].scopeSpans[0].spans[0].kind`"),
        ("POST /v1/traces", &deep, "recursion limit"),
        ("POST /v1/logs", r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":7}]}]}"#, "expected an array"),
        ("POST /v1/metrics", r#"{"resourceMetrics":[7]}"#, "expected an object"),
    ];
    for (line, body, words) in cases {
        let answer = send(receiver.addresses()[0], line, JSON, body.as_bytes()).await;
        assert!(answer.head.starts_with("HTTP/1.1 400 "), "{body}: {}", answer.head);
        let said = String::from_utf8(answer.body).expect("text");
        assert!(said.starts_with(r#"{"code":3,"message":"not an export in JSON: "#), "{said}");
        assert!(said.contains(words), "{body}: {said}");
    }
    assert_eq!(receiver.seen().refusals.len(), 8);
    assert_eq!(receiver.shutdown().await, Counts::default());
}

/// Seven bytes of an object need hundreds of bytes when parsed.
#[tokio::test]
async fn json_counts_with_what_it_takes_to_read() {
    let config = Config { buffered_bytes_max: 100_000, ..config() };
    let receiver = start(config, told(false, 0)).await.expect("started");
    for (objects, status) in [(100, 200), (200, 413)] {
        let body = format!(r#"{{"x":[{}{{}}]}}"#, "{},".repeat(objects));
        let answer = send(receiver.addresses()[0], "POST /v1/traces", JSON, body.as_bytes()).await;
        assert!(answer.head.starts_with(&format!("HTTP/1.1 {status} ")), "{}", answer.head);
        let said = String::from_utf8(answer.body).expect("text");
        assert_eq!(status == 413, said.contains("send smaller batches, or protobuf"), "{said}");
    }
}

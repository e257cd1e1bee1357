//! Recognises the writer of a document by its fields.

use model::{SpanDetail, TraceId, trace::DROPPED_UNKNOWN};
use serde_json::{Map, Value as Json};

use super::{
    jaeger, otel,
    source::{StoredSpan, at},
};

/// The writer of a document, as far as its fields show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// Jaeger.
    Jaeger,
    /// Data Prepper, or the Collector's exporter to OpenSearch.
    OpenSearch,
    /// The OTel mode of the Collector's exporter to Elasticsearch.
    Elasticsearch,
}

impl Writer {
    /// Returns what its documents do not keep of spans, where the span itself cannot state it.
    pub(super) fn lacks(self) -> &'static [SpanDetail] {
        match self {
            Self::Jaeger => &[SpanDetail::ValueTypes, SpanDetail::Nanoseconds],
            Self::OpenSearch => &[SpanDetail::ValueTypes],
            Self::Elasticsearch => &[],
        }
    }

    /// Marks what may be missing from a span.
    fn mark(self, StoredSpan { scope, span, .. }: &mut StoredSpan) {
        match self {
            Self::Jaeger => {
                scope.dropped_attributes = DROPPED_UNKNOWN;
                span.links.iter_mut().for_each(|it| it.dropped_attributes = DROPPED_UNKNOWN);
            }
            // Data Prepper keeps none, the exporter all of them.
            Self::OpenSearch if scope.attributes.is_empty() => {
                scope.dropped_attributes = DROPPED_UNKNOWN;
            }
            Self::OpenSearch => {}
            // They are in another data stream.
            Self::Elasticsearch => span.dropped_events = DROPPED_UNKNOWN,
        }
    }
}

/// Reads the span of a document. The error is the reason why it is none that can be read.
pub(super) fn read(source: &Json, trace: TraceId) -> Result<(StoredSpan, Writer), String> {
    let source = source.as_object().ok_or("it is not an object")?;
    type Read = fn(&Map<String, Json>, TraceId) -> Result<StoredSpan, String>;
    let (writer, read): (_, Read) = match () {
        () if has(source, ["traceID", "spanID", "startTime", "duration"]) => {
            (Writer::Jaeger, jaeger::read)
        }
        () if has(source, ["traceId", "spanId", "startTime", "endTime"]) => {
            (Writer::OpenSearch, otel::read_camel)
        }
        () if has(source, ["trace_id", "span_id", "@timestamp", "duration"]) => {
            (Writer::Elasticsearch, otel::read_snake)
        }
        () => {
            return Err(
                "it is no span as Jaeger, Data Prepper or an OpenTelemetry exporter writes one"
                    .to_owned(),
            );
        }
    };
    let mut span = read(source, trace)?;
    span.sort();
    writer.mark(&mut span);
    Ok((span, writer))
}

fn has(source: &Map<String, Json>, fields: [&str; 4]) -> bool {
    fields.into_iter().all(|field| at(source, field).is_some())
}

#[cfg(test)]
mod tests {
    use model::{
        Timestamp,
        trace::{Kind, StatusCode, Value},
    };
    use serde_json::json;

    use super::*;

    fn trace() -> TraceId {
        "000000000000000000000000000000ab".parse().expect("an id")
    }

    fn text(text: &str) -> Value {
        Value::Str(text.to_owned())
    }

    /// Old versions write ids without leading zeros, values as texts, and the parent without a reference.
    #[test]
    fn a_document_of_an_old_jaeger_is_read() {
        let source = json!({
            "traceID": "ab", "spanID": "1", "parentSpanID": "2", "operationName": "get",
            "references": null, "startTime": 1_000_001, "duration": 5,
            "tags": [
                { "key": "size", "type": "int64", "value": "-7" },
                { "key": "ratio", "type": "float64", "value": "0.5" },
                { "key": "hit", "type": "bool", "value": "true" },
                { "key": "raw", "type": "binary", "value": "00ff" },
            ],
            "tag": { "span@kind": "client", "error": "true", "http@code": 200 },
            "logs": null, "process": { "serviceName": "shop", "tags": null, "tag": { "host@name": "a" } },
        });
        let (StoredSpan { resource, span, .. }, _) = read(&source, trace()).expect("a span");
        assert_eq!(span.parent, "0000000000000002".parse().ok());
        assert_eq!((span.kind, span.status.code), (Kind::Client, StatusCode::Error));
        assert_eq!(span.start, Timestamp::from_nanos(1_000_001_000));
        assert_eq!(span.end, Timestamp::from_nanos(1_000_006_000));
        let expected = [
            ("hit", Value::Bool(true)),
            ("http.code", Value::Int(200)),
            ("ratio", Value::Double(0.5)),
            ("raw", Value::Bytes(vec![0, 255])),
            ("size", Value::Int(-7)),
        ];
        assert_eq!(span.attributes, expected.map(|(key, value)| (key.to_owned(), value)));
        let expected = [("host.name", text("a")), ("service.name", text("shop"))];
        assert_eq!(resource.attributes, expected.map(|(key, value)| (key.to_owned(), value)));
    }

    /// The newer form of Data Prepper has objects, with plain keys.
    #[test]
    fn a_document_with_objects_is_read_and_the_trace_group_is_not() {
        let mut source = json!({
            "traceId": trace(), "spanId": "0000000000000001", "parentSpanId": "", "name": "get",
            "kind": "SPAN_KIND_SERVER", "startTime": "1970-01-01T00:00:01.000000007Z",
            "endTime": "1970-01-01T00:00:02Z", "serviceName": "shop",
            "status": { "code": 2, "message": "no" },
            "attributes": { "user@host": "a", "http.code": 200 },
            "resource": { "attributes": { "service.name": "shop" }, "droppedAttributesCount": 0, "schemaUrl": "u" },
            "instrumentationScope": { "name": "lib", "version": "1", "attributes": { "a": true } },
            "events": [{ "name": "e", "time": "1970-01-01T00:00:01.5Z", "attributes": { "n": 1 } }],
            "links": [{ "traceId": trace(), "spanId": "0000000000000002", "traceState": "a=1" }],
        });
        let (first, writer) = read(&source, trace()).expect("a span");
        assert_eq!(first.span.attributes[1].0, "user@host");
        assert_eq!((first.scope.name.as_str(), first.resource.schema_url.as_str()), ("lib", "u"));
        assert_eq!(first.resource.attributes, [("service.name".to_owned(), text("shop"))]);
        assert_eq!(first.span.start, Timestamp::from_nanos(1_000_000_007));
        assert_eq!((first.span.events.len(), first.span.links.len()), (1, 1));
        source["traceGroup"] = json!("GET /");
        source["traceGroupFields"] = json!({ "statusCode": 2 });
        assert_eq!(
            read(&source, trace()),
            Ok((first, writer)),
            "what is added later is no part of a span"
        );
    }

    #[test]
    fn a_time_of_the_otel_mode_has_nanoseconds_without_leading_zeros() {
        let read = |time: &str| {
            let source = json!({
                "@timestamp": time, "trace_id": trace(), "span_id": "0000000000000001", "duration": 3,
                "kind": "Internal", "resource": {}, "scope": {},
            });
            read(&source, trace()).map(|(it, _)| it.span.end.as_nanos())
        };
        assert_eq!(read("7.5"), Ok(7_000_008));
        assert_eq!(read("7"), Ok(7_000_003));
        assert_eq!(read("1970-01-01T00:00:00.007Z"), Ok(7_000_003));
        assert_eq!(read("then"), Err("`@timestamp`: `\"then\"` is not a time".to_owned()));
    }

    #[test]
    fn a_document_that_cannot_be_read_has_a_reason() {
        let span = |field: &str, value: Json| {
            let mut source = json!({
                "traceId": trace(), "spanId": "1", "startTime": "1970-01-01T00:00:01Z",
                "endTime": "1970-01-01T00:00:02Z",
            });
            source[field] = value;
            source
        };
        let cases = [
            (json!([]), "it is not an object"),
            (
                json!({ "traceId": trace(), "spanId": "1", "body": "a log" }),
                "it is no span as Jaeger, Data Prepper or an OpenTelemetry exporter writes one",
            ),
            (span("traceId", json!("ac")), "its trace is `ac`"),
            (span("spanId", json!("0")), "its span id is zero"),
            (span("spanId", json!("x")), "`x` is not a span id"),
            (span("kind", json!("SPAN_KIND_NEW")), "`SPAN_KIND_NEW` is not a kind of span"),
            (span("status", json!({ "code": 3 })), "`3` is not a status code"),
            (span("events", json!("none")), "`events` is not a list of objects"),
            (
                span("attributes", json!({ "n": u64::MAX })),
                "`18446744073709551615` is not a number of 64 bits",
            ),
            (span("droppedLinksCount", json!(-1)), "`droppedLinksCount` is not a count"),
        ];
        for (source, expected) in cases {
            assert_eq!(read(&source, trace()), Err(expected.to_owned()));
        }
    }
}

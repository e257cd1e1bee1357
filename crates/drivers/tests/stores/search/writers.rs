//! The documents of writers that cannot be run here, made from what their sources and index templates state.

use model::{
    Timestamp, Trace,
    trace::{EventData, LinkData, ResourceData, ScopeData, SpanData, Value},
};
use serde_json::{Map, Value as Json, json};

use base64::{Engine, prelude::BASE64_STANDARD};

use crate::{
    conformance::Intake,
    sample::{Content, SpanParts, as_text, content, remove},
};
use model::SpanDetail;

use super::node::{SearchNode, unique};

/// A writer of documents.
#[derive(Clone, Copy)]
pub(crate) struct DocumentWriter {
    /// The name of its indices, without the last part.
    pub(crate) index: &'static str,
    pub(crate) mapping: fn() -> Json,
    document: fn(&SpanParts, &Trace) -> Json,
    /// What it changes, each with a name.
    pub(crate) changes: &'static [ContentChange],
}

pub(crate) type ContentChange = (&'static str, fn(&mut Content));

/// Data Prepper.
pub(crate) const DATA_PREPPER: DocumentWriter = DocumentWriter {
    index: "otel-v1-apm-span",
    mapping: || {
        let dynamic = |name: &str| json!({ name: { "path_match": format!("{name}.attributes.*"), "mapping": { "type": "keyword" } } });
        json!({
            "date_detection": false,
            "dynamic_templates": [dynamic("span"), dynamic("resource")],
            "properties": {
                "traceId": { "type": "keyword", "ignore_above": 256 },
                "spanId": { "type": "keyword", "ignore_above": 256 },
                "startTime": { "type": "date_nanos" },
                "endTime": { "type": "date_nanos" },
                "events": { "type": "nested", "properties": { "time": { "type": "date_nanos" } } },
                "links": { "type": "nested" },
            },
        })
    },
    document: data_prepper,
    changes: &[
        ("bytes are refused", without_bytes),
        ("lists and maps become JSON", composed_as_text),
        ("scope attributes", without_scope_attributes),
        ("flags", |content| remove(SpanDetail::Flags, content)),
    ],
};

/// The Simple Schema for Observability, by the Collector's exporter to OpenSearch.
pub(crate) const SIMPLE_SCHEMA: DocumentWriter = DocumentWriter {
    index: "ss4o_traces",
    mapping: || {
        let flat = json!({ "type": "flat_object" });
        json!({ "properties": {
            "attributes": flat,
            "resource": flat,
            "instrumentationScope": { "properties": { "attributes": flat } },
            "events": { "properties": { "attributes": flat } },
            "links": { "properties": { "attributes": flat } },
        } })
    },
    document: simple_schema,
    changes: &[
        ("bytes become base64", |content| bytes_as_text(content, |it| BASE64_STANDARD.encode(it))),
        ("resource values become texts", |content| {
            for (_, resource, _) in content {
                for (_, value) in &mut resource.attributes {
                    *value = Value::Str(as_text(value));
                }
            }
        }),
        ("flags", |content| remove(SpanDetail::Flags, content)),
    ],
};

/// The OTel mode of the Collector's exporter to Elasticsearch.
pub(crate) const OTEL_MODE: DocumentWriter = DocumentWriter {
    index: "traces-generic.otel",
    mapping: || {
        json!({
            "date_detection": false,
            "dynamic": false,
            "properties": {
                "@timestamp": { "type": "date_nanos" },
                "trace_id": { "type": "keyword" },
                "span_id": { "type": "keyword" },
            },
        })
    },
    document: otel_mode,
    changes: &[
        ("events are in another data stream", |content| {
            content.iter_mut().for_each(|(span, ..)| span.events.clear());
        }),
        ("bytes become hexadecimal", |content| {
            bytes_as_text(content, |it| it.iter().map(|byte| format!("{byte:02x}")).collect());
        }),
        ("flags", |content| remove(SpanDetail::Flags, content)),
    ],
};

impl DocumentWriter {
    /// Makes an index of this writer, and returns its name.
    pub(crate) async fn make_index(self, node: SearchNode) -> String {
        let name = unique(self.index);
        let settings = json!({ "number_of_shards": 2, "number_of_replicas": 0 });
        node.put(&name, &json!({ "settings": settings, "mappings": (self.mapping)() })).await;
        name
    }

    /// Makes all its changes.
    pub(crate) fn change(self, content: &mut Content) {
        self.changes.iter().for_each(|(_, change)| change(content));
    }

    pub(crate) fn documents(self, trace: &Trace) -> Vec<Json> {
        content(trace).iter().map(|parts| (self.document)(parts, trace)).collect()
    }

    pub(crate) fn intake(self, node: SearchNode, index: String) -> Intake {
        Intake::Api(Box::new(move |trace| {
            let (documents, index) = (self.documents(trace), index.clone());
            Box::pin(async move { node.add(&index, &documents).await })
        }))
    }
}

fn data_prepper((span, resource, scope): &SpanParts, trace: &Trace) -> Json {
    let at = |key: &str| key.replace('.', "@");
    // Lists and maps are written as JSON, and spans with bytes are not written at all.
    let value = |value: &Value| match value {
        Value::Array(_) | Value::Map(_) => Json::String(as_text(value)),
        other => json_of(other, |_| String::new()),
    };
    let object = |attributes: &[(String, Value)]| -> Map<String, Json> {
        let kept = attributes.iter().filter(|(_, it)| !matches!(it, Value::Bytes(_)));
        kept.map(|(key, it)| (at(key), value(it))).collect()
    };
    let event = |it: &EventData| json!({ "name": it.name, "time": it.at, "attributes": object(&it.attributes), "droppedAttributesCount": 0 });
    let link = |it: &LinkData| json!({ "traceId": it.trace_id, "spanId": it.span_id, "traceState": it.trace_state, "attributes": object(&it.attributes), "droppedAttributesCount": 0 });
    let kind = format!("SPAN_KIND_{}", format!("{:?}", span.kind).to_uppercase());
    let mut document = json!({
        "traceId": trace.id(), "spanId": span.id, "parentSpanId": parent(span),
        "traceState": span.trace_state, "name": span.name, "kind": kind,
        "startTime": span.start, "endTime": span.end,
        "durationInNanos": nanos(span), "serviceName": "shop",
        "events": span.events.iter().map(event).collect::<Vec<_>>(),
        "links": span.links.iter().map(link).collect::<Vec<_>>(),
        "droppedAttributesCount": 0, "droppedEventsCount": 0, "droppedLinksCount": 0,
        // Written by a later stage: no part of the span.
        "traceGroup": "POST /Orders", "traceGroupFields.statusCode": 2,
        "status.code": span.status.code.number(), "status.message": span.status.message,
        "instrumentationScope.name": scope.name, "instrumentationScope.version": scope.version,
    });
    for (prefix, attributes) in [("span", &span.attributes), ("resource", &resource.attributes)] {
        for (key, value) in object(attributes) {
            document[format!("{prefix}.attributes.{key}")] = value;
        }
    }
    document
}

fn simple_schema((span, resource, scope): &SpanParts, trace: &Trace) -> Json {
    let object =
        |attributes: &[(String, Value)]| object_of(attributes, |it| BASE64_STANDARD.encode(it));
    let event = |it: &EventData| json!({ "name": it.name, "@timestamp": it.at, "attributes": object(&it.attributes), "droppedAttributesCount": 0 });
    let link = |it: &LinkData| json!({ "traceId": it.trace_id, "spanId": it.span_id, "attributes": object(&it.attributes) });
    let texts: Map<_, _> = resource
        .attributes
        .iter()
        .map(|(key, value)| (key.clone(), as_text(value).into()))
        .collect();
    let mut attributes = object(&span.attributes);
    attributes.insert(
        "data_stream".to_owned(),
        json!({ "dataset": "default", "namespace": "namespace", "type": "span" }),
    );
    json!({
        "traceId": trace.id(), "spanId": span.id, "parentSpanId": parent(span),
        "traceState": span.trace_state, "name": span.name, "kind": format!("{:?}", span.kind),
        "startTime": span.start, "endTime": span.end,
        // The exporter does not set it.
        "@timestamp": "0001-01-01T00:00:00Z",
        "status": { "code": format!("{:?}", span.status.code), "message": span.status.message },
        "attributes": attributes,
        "events": span.events.iter().map(event).collect::<Vec<_>>(),
        "links": span.links.iter().map(link).collect::<Vec<_>>(),
        "resource": texts,
        "instrumentationScope": scope_of(scope, "schemaUrl", &object(&scope.attributes)),
        "droppedAttributesCount": 0, "droppedEventsCount": 0, "droppedLinksCount": 0,
    })
}

fn otel_mode((span, resource, scope): &SpanParts, trace: &Trace) -> Json {
    let hex = |it: &[u8]| it.iter().map(|byte| format!("{byte:02x}")).collect();
    let object = |attributes: &[(String, Value)]| object_of(attributes, hex);
    let link = |it: &LinkData| json!({ "trace_id": it.trace_id, "span_id": it.span_id, "attributes": object(&it.attributes) });
    let ResourceData { attributes, .. } = resource;
    let mut document = json!({
        "@timestamp": millis(span.start), "trace_id": trace.id(), "span_id": span.id,
        "data_stream": { "type": "traces", "dataset": "generic.otel", "namespace": "default" },
        "name": span.name, "kind": format!("{:?}", span.kind), "duration": nanos(span),
        "attributes": object(&span.attributes),
        "links": span.links.iter().map(link).collect::<Vec<_>>(),
        "status": { "code": format!("{:?}", span.status.code) },
        "resource": { "attributes": object(attributes) },
        "scope": scope_of(scope, "schema_url", &object(&scope.attributes)),
    });
    // Empty texts are left out.
    if let Some(parent) = span.parent {
        document["parent_span_id"] = json!(parent);
    }
    if !span.trace_state.is_empty() {
        document["trace_state"] = json!(span.trace_state);
    }
    if !span.status.message.is_empty() {
        document["status"]["message"] = json!(span.status.message);
    }
    document
}

fn scope_of(scope: &ScopeData, schema_url: &str, attributes: &Map<String, Json>) -> Json {
    json!({ "name": scope.name, "version": scope.version, schema_url: "", "attributes": attributes })
}

fn parent(span: &SpanData) -> String {
    span.parent.map_or_else(String::new, |parent| parent.to_string())
}

fn nanos(span: &SpanData) -> u64 {
    span.end.as_nanos() - span.start.as_nanos()
}

/// Milliseconds, and the nanoseconds since them, as the exporter writes them: without leading zeros.
fn millis(time: Timestamp) -> String {
    format!("{}.{}", time.as_nanos() / 1_000_000, time.as_nanos() % 1_000_000)
}

fn object_of(
    attributes: &[(String, Value)],
    bytes: impl Fn(&[u8]) -> String + Copy,
) -> Map<String, Json> {
    attributes.iter().map(|(key, value)| (key.clone(), json_of(value, bytes))).collect()
}

fn json_of(value: &Value, bytes: impl Fn(&[u8]) -> String + Copy) -> Json {
    match value {
        Value::Empty => Json::Null,
        Value::Str(text) => json!(text),
        Value::Bool(is_true) => json!(is_true),
        Value::Int(number) => json!(number),
        Value::Double(number) => json!(number),
        Value::Bytes(content) => json!(bytes(content)),
        Value::Array(list) => list.iter().map(|it| json_of(it, bytes)).collect(),
        Value::Map(entries) => Json::Object(object_of(entries, bytes)),
    }
}

/// Applies a function to all attributes of spans, and of events and links.
fn each_list(content: &mut Content, change: impl Fn(&mut Vec<(String, Value)>)) {
    for (span, ..) in content {
        change(&mut span.attributes);
        span.events.iter_mut().for_each(|event| change(&mut event.attributes));
        span.links.iter_mut().for_each(|link| change(&mut link.attributes));
    }
}

fn without_bytes(content: &mut Content) {
    each_list(content, |list| list.retain(|(_, value)| !matches!(value, Value::Bytes(_))));
}

fn bytes_as_text(content: &mut Content, text: fn(&[u8]) -> String) {
    each_list(content, |list| {
        for (_, value) in list {
            if let Value::Bytes(bytes) = value {
                *value = Value::Str(text(bytes));
            }
        }
    });
}

/// Lists and maps become JSON.
pub(crate) fn composed_as_text(content: &mut Content) {
    each_list(content, |list| {
        for (_, value) in list {
            if matches!(value, Value::Array(_) | Value::Map(_)) {
                *value = Value::Str(as_text(value));
            }
        }
    });
}

pub(crate) fn without_scope_attributes(content: &mut Content) {
    content.iter_mut().for_each(|(.., scope)| scope.attributes.clear());
}

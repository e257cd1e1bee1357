//! Documents in the words of OpenTelemetry.
//!
//! In camel case: Data Prepper (`otel-v1-apm-span-*`), whose attributes are keys of the document with `@` for each dot or, in its
//! newer form, objects; and the Simple Schema for Observability (`ss4o_traces-*`) of the Collector's exporter to OpenSearch. In
//! snake case: the OTel mode of the Collector's exporter to Elasticsearch (`traces-*.otel-*`).
//!
//! Deliberately not read: `traceGroup` and what else Data Prepper adds later, which would make two versions of one span; and fields
//! that are no part of a span, such as those of ingest pipelines.

use model::{
    SpanId, Timestamp, TraceId,
    trace::{
        EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode, Value,
    },
};
use serde_json::{Map, Value as Json};

use super::source::{
    Attributes, StoredSpan, at, attributes, count, objects, span_id, text, time, trace_id,
};

type Object = Map<String, Json>;

/// The names of fields.
struct FieldNames {
    trace: &'static str,
    span: &'static str,
    parent: &'static str,
    trace_state: &'static str,
    schema_url: &'static str,
    dropped_attributes: &'static str,
    dropped_events: &'static str,
    dropped_links: &'static str,
}

const CAMEL: FieldNames = FieldNames {
    trace: "traceId",
    span: "spanId",
    parent: "parentSpanId",
    trace_state: "traceState",
    schema_url: "schemaUrl",
    dropped_attributes: "droppedAttributesCount",
    dropped_events: "droppedEventsCount",
    dropped_links: "droppedLinksCount",
};

const SNAKE: FieldNames = FieldNames {
    trace: "trace_id",
    span: "span_id",
    parent: "parent_span_id",
    trace_state: "trace_state",
    schema_url: "schema_url",
    dropped_attributes: "dropped_attributes_count",
    dropped_events: "dropped_events_count",
    dropped_links: "dropped_links_count",
};

/// How the keys of attributes are written.
#[derive(Clone, Copy)]
enum KeyForm {
    Plain,
    /// With `@` for each dot.
    At,
}

impl KeyForm {
    fn key(self, key: &str) -> String {
        match self {
            Self::Plain => key.to_owned(),
            Self::At => key.replace('@', "."),
        }
    }

    fn attributes(self, object: &Object, path: &str) -> Result<Attributes, String> {
        match at(object, path) {
            None => Ok(Vec::new()),
            Some(Json::Object(found)) => {
                let renamed = |(key, value): (String, Value)| (self.key(&key), value);
                Ok(attributes(found)?.into_iter().map(renamed).collect())
            }
            Some(_) => Err(format!("`{path}` is not an object")),
        }
    }
}

/// Reads a document of Data Prepper or of the Simple Schema.
pub(super) fn read_camel(source: &Object, trace: TraceId) -> Result<StoredSpan, String> {
    let keys = if is_flat(source) { KeyForm::At } else { KeyForm::Plain };
    let mut span = span(source, trace, (&CAMEL, keys))?;
    (span.start, span.end) = (time_at(source, "startTime")?, time_at(source, "endTime")?);
    let own = match keys {
        KeyForm::At => prefixed(source, "span.attributes.")?,
        KeyForm::Plain => keys.attributes(source, "attributes")?,
    };
    // The exporter adds the name of the data stream to each span.
    let is_stream =
        |(key, value): &(String, Value)| key == "data_stream" && matches!(value, Value::Map(_));
    span.attributes = own.into_iter().filter(|it| !is_stream(it)).collect();
    for event in objects(source, "events")? {
        let when = at(event, "time").or_else(|| at(event, "@timestamp"));
        span.events.push(EventData {
            at: when.map_or(Ok(Timestamp::from_nanos(0)), time)?,
            name: text(event, "name")?,
            attributes: keys.attributes(event, "attributes")?,
            dropped_attributes: count(event, CAMEL.dropped_attributes)?,
        });
    }
    let library = text(source, "instrumentationLibrary.name")?;
    let scope = match library.as_str() {
        "" => scope(source, "instrumentationScope", &CAMEL)?,
        _ => scope(source, "instrumentationLibrary", &CAMEL)?,
    };
    Ok(StoredSpan { resource: camel_resource(source, keys)?, scope, span })
}

/// Reads a document of the OTel mode.
pub(super) fn read_snake(source: &Object, trace: TraceId) -> Result<StoredSpan, String> {
    let mut span = span(source, trace, (&SNAKE, KeyForm::Plain))?;
    let nanos = at(source, "duration").and_then(Json::as_u64);
    let nanos = nanos.ok_or("`duration` is no number of nanoseconds")?;
    span.start = time_at(source, "@timestamp")?;
    span.end = Timestamp::from_nanos(span.start.as_nanos().saturating_add(nanos));
    span.attributes = KeyForm::Plain.attributes(source, "attributes")?;
    let resource = resource(source, KeyForm::Plain, &SNAKE)?;
    Ok(StoredSpan { resource, scope: scope(source, "scope", &SNAKE)?, span })
}

/// Whether attributes are keys of the document, as Data Prepper writes them.
fn is_flat(source: &Object) -> bool {
    let is_flat = |key: &String| {
        key == "status.code"
            || key.starts_with("span.attributes.")
            || key.starts_with("resource.attributes.")
    };
    source.keys().any(is_flat)
}

fn prefixed(source: &Object, prefix: &str) -> Result<Attributes, String> {
    let own = |(key, json): (&String, &Json)| {
        Some((KeyForm::At.key(key.strip_prefix(prefix)?), json.clone()))
    };
    attributes(&source.iter().filter_map(own).collect())
}

/// Reads what both forms have in common.
fn span(
    source: &Object,
    trace: TraceId,
    (names, keys): (&FieldNames, KeyForm),
) -> Result<SpanData, String> {
    let found = text(source, names.trace)?;
    if trace_id(&found)? != Some(trace) {
        return Err(format!("its trace is `{found}`"));
    }
    let id = span_id(&text(source, names.span)?)?.ok_or("its span id is zero")?;
    let parent: Option<SpanId> = span_id(&text(source, names.parent)?)?;
    let mut span = SpanData::new(id, parent, text(source, "name")?);
    span.kind = kind(&text(source, "kind")?)?;
    span.trace_state = text(source, names.trace_state)?;
    span.dropped_attributes = count(source, names.dropped_attributes)?;
    span.dropped_events = count(source, names.dropped_events)?;
    span.dropped_links = count(source, names.dropped_links)?;
    span.status = Status {
        code: at(source, "status.code").map_or(Ok(StatusCode::Unset), status)?,
        message: text(source, "status.message")?,
    };
    for link in objects(source, "links")? {
        span.links.push(LinkData {
            trace_id: trace_id(&text(link, names.trace)?)?,
            span_id: span_id(&text(link, names.span)?)?,
            trace_state: text(link, names.trace_state)?,
            flags: 0,
            attributes: keys.attributes(link, "attributes")?,
            dropped_attributes: count(link, names.dropped_attributes)?,
        });
    }
    Ok(span)
}

fn camel_resource(source: &Object, keys: KeyForm) -> Result<ResourceData, String> {
    let flat = at(source, "resource").and_then(Json::as_object);
    // The Simple Schema has the attributes without an object of their own.
    let is_simple = |object: &&Object| {
        !["attributes", CAMEL.schema_url, CAMEL.dropped_attributes]
            .into_iter()
            .any(|key| object.contains_key(key))
    };
    let mut resource = match (keys, flat.filter(is_simple)) {
        (KeyForm::At, _) => ResourceData {
            attributes: prefixed(source, "resource.attributes.")?,
            ..ResourceData::default()
        },
        (KeyForm::Plain, Some(flat)) => {
            ResourceData { attributes: attributes(flat)?, ..ResourceData::default() }
        }
        (KeyForm::Plain, None) => resource(source, keys, &CAMEL)?,
    };
    let service = text(source, "serviceName")?;
    let has_service = resource.attributes.iter().any(|(key, _)| key == "service.name");
    if !has_service && !service.is_empty() {
        resource.attributes.push(("service.name".to_owned(), Value::Str(service)));
    }
    Ok(resource)
}

fn resource(source: &Object, keys: KeyForm, names: &FieldNames) -> Result<ResourceData, String> {
    Ok(ResourceData {
        attributes: keys.attributes(source, "resource.attributes")?,
        dropped_attributes: count(source, &format!("resource.{}", names.dropped_attributes))?,
        schema_url: text(source, &format!("resource.{}", names.schema_url))?,
        ..ResourceData::default()
    })
}

fn scope(source: &Object, prefix: &str, names: &FieldNames) -> Result<ScopeData, String> {
    let path = |name: &str| format!("{prefix}.{name}");
    Ok(ScopeData {
        name: text(source, &path("name"))?,
        version: text(source, &path("version"))?,
        attributes: KeyForm::Plain.attributes(source, &path("attributes"))?,
        dropped_attributes: count(source, &path(names.dropped_attributes))?,
        schema_url: text(source, &path(names.schema_url))?,
    })
}

fn time_at(source: &Object, field: &str) -> Result<Timestamp, String> {
    time(at(source, field).unwrap_or(&Json::Null)).map_err(|why| format!("`{field}`: {why}"))
}

/// Parses a kind, in the words of OTLP or of the Collector.
pub(super) fn kind(text: &str) -> Result<Kind, String> {
    let word = text.to_ascii_lowercase();
    Ok(match word.strip_prefix("span_kind_").unwrap_or(&word) {
        "" | "unspecified" => Kind::Unspecified,
        "internal" => Kind::Internal,
        "server" => Kind::Server,
        "client" => Kind::Client,
        "producer" => Kind::Producer,
        "consumer" => Kind::Consumer,
        _ => return Err(format!("`{text}` is not a kind of span")),
    })
}

fn status(json: &Json) -> Result<StatusCode, String> {
    let word = json.as_str().map(str::to_ascii_lowercase);
    let word = word.as_deref().map(|word| word.strip_prefix("status_code_").unwrap_or(word));
    Ok(match (json.as_u64(), word) {
        (Some(0), _) | (_, Some("" | "0" | "unset")) => StatusCode::Unset,
        (Some(1), _) | (_, Some("1" | "ok")) => StatusCode::Ok,
        (Some(2), _) | (_, Some("2" | "error")) => StatusCode::Error,
        _ => return Err(format!("`{json}` is not a status code")),
    })
}

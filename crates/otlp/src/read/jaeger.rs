//! Converts responses of Jaeger to OTLP.
//!
//! Jaeger stores data without a field of its own as tags. Here they are moved back to the fields of OTLP, as the Collector's
//! own translation does. Deliberately absent: guesses, such as a status from the code of an HTTP response.

use std::collections::{BTreeMap, btree_map::Entry};

use model::{
    SpanId, Timestamp, TraceId,
    trace::{
        EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode, Value,
    },
};
use serde_json::Value as Json;

use super::{
    Problem,
    json::{Mistake, Node},
    lanes::{Lane, Lanes},
    otlp,
    traces::{Around, Traces},
};

/// Reads a response: a list of traces under `data`, a single trace, or the response of version 3 of the API, which is OTLP
/// under `result`.
pub(super) fn read(object: &Node<'_>, lanes: &mut Lanes) -> Result<(), Mistake> {
    otlp::read(&object.get("result")?, lanes)?;
    let data = object.get("data")?;
    for trace in data.items()? {
        read_trace(&trace, lanes)?;
    }
    if data.is_absent()
        && let Some(error) = object.get("errors")?.items()?.next()
    {
        return Err(error.get("msg")?.expected("traces instead of an error"));
    }
    read_trace(object, lanes)
}

fn read_trace(trace: &Node<'_>, lanes: &mut Lanes) -> Result<(), Mistake> {
    let processes = trace.get("processes")?;
    let around = Processes {
        path: processes.path(),
        processes: processes.to_value(),
        arounds: BTreeMap::new(),
    };
    lanes.add(&trace.get("spans")?, Lane::Jaeger(Box::new(around)))
}

/// The processes of a trace: the resources and scopes of its spans.
pub(super) struct Processes {
    processes: Json,
    path: String,
    /// By the process, and the name and version of the scope.
    arounds: BTreeMap<(String, String, String), Around>,
}

impl Processes {
    /// Reads a span into its trace.
    pub(super) fn read_span(&mut self, one: &Node<'_>, traces: &mut Traces) -> Result<(), Problem> {
        let trace_id = one.get("traceID")?;
        let id = trace_id.short_trace_id()?;
        let id = id.ok_or_else(|| trace_id.expected("the id of a trace"))?;
        let mut tags = Tags::read(&one.get("tags")?)?;
        let name = tags.take_text(&["otel.scope.name", "otel.library.name"]);
        let version = tags.take_text(&["otel.scope.version", "otel.library.version"]);
        let process_id = one.get("processID")?;
        let key = (process_id.text()?.to_owned(), name.clone(), version.clone());
        let around = match self.arounds.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let resource = resource(&Node::at(&self.path, &self.processes), &process_id)?;
                let scope = ScopeData { name, version, ..ScopeData::default() };
                new.insert(Around::new(resource, scope))
            }
        };
        traces.push(around, id, span(one, id, tags)?)
    }
}

fn resource(processes: &Node<'_>, process_id: &Node<'_>) -> Result<ResourceData, Mistake> {
    if process_id.is_absent() {
        return Ok(ResourceData::default());
    }
    let process = processes.entry(process_id.text()?);
    let process = process.ok_or_else(|| process_id.expected("a key of `processes`"))?;
    let service_name = process.get("serviceName")?.text()?.to_owned();
    let mut attributes = vec![("service.name".to_owned(), Value::Str(service_name))];
    attributes.extend(Tags::read(&process.get("tags")?)?.0);
    Ok(ResourceData { attributes, ..ResourceData::default() })
}

fn span(span: &Node<'_>, trace_id: TraceId, mut tags: Tags) -> Result<SpanData, Mistake> {
    let id = span.get("spanID")?;
    let References { parent, links } = references(span, trace_id)?;
    let mut events = Vec::new();
    for log in span.get("logs")?.items()? {
        let mut fields = Tags::read(&log.get("fields")?)?;
        events.push(EventData {
            at: Timestamp::from_nanos(nanos(&log.get("timestamp")?)?),
            name: fields.take_text(&["event"]),
            attributes: fields.0,
            ..EventData::default()
        });
    }
    let start = nanos(&span.get("startTime")?)?;
    Ok(SpanData {
        trace_state: tags.take_text(&["w3c.tracestate"]),
        flags: span.get("flags")?.whole()?,
        kind: tags.take_kind(),
        start: Timestamp::from_nanos(start),
        end: Timestamp::from_nanos(start.saturating_add(nanos(&span.get("duration")?)?)),
        status: tags.take_status(),
        attributes: tags.0,
        events,
        links,
        ..SpanData::new(
            id.short_span_id()?.ok_or_else(|| id.expected("the id of a span"))?,
            parent,
            span.get("operationName")?.text()?,
        )
    })
}

/// Converts a time to nanoseconds: Jaeger uses microseconds.
fn nanos(time: &Node<'_>) -> Result<u64, Mistake> {
    let micros: u64 = time.whole()?;
    micros.checked_mul(1_000).ok_or_else(|| time.expected("microseconds before the year 2554"))
}

/// The references of a span.
struct References {
    parent: Option<SpanId>,
    links: Vec<LinkData>,
}

/// Reads the references. The parent is the first `CHILD_OF` reference to the same trace, and without one, the first
/// `FOLLOWS_FROM` reference: Jaeger renders it like that. All others are links.
fn references(span: &Node<'_>, trace_id: TraceId) -> Result<References, Mistake> {
    let mut links = Vec::new();
    for reference in span.get("references")?.items()? {
        let kind = reference.get("refType")?;
        let attributes = match kind.text()? {
            // The convention for a link with a reference type.
            "CHILD_OF" => {
                vec![("opentracing.ref_type".to_owned(), Value::Str("child_of".to_owned()))]
            }
            "FOLLOWS_FROM" => Vec::new(),
            _ => return Err(kind.expected("`CHILD_OF` or `FOLLOWS_FROM`")),
        };
        links.push(LinkData {
            trace_id: reference.get("traceID")?.short_trace_id()?,
            span_id: reference.get("spanID")?.short_span_id()?,
            attributes,
            ..LinkData::default()
        });
    }
    let is_own = |link: &LinkData| link.trace_id == Some(trace_id) && link.span_id.is_some();
    let is_child = |link: &LinkData| is_own(link) && !link.attributes.is_empty();
    let parent = links.iter().position(is_child).or_else(|| links.iter().position(is_own));
    let parent = match parent {
        Some(ix) => links.remove(ix).span_id,
        // The older format without references.
        None => span.get("parentSpanID")?.short_span_id()?,
    };
    Ok(References { parent, links })
}

/// Keys and values, in the order sent.
struct Tags(Vec<(String, Value)>);

impl Tags {
    fn read(list: &Node<'_>) -> Result<Self, Mistake> {
        let mut tags = Vec::new();
        for tag in list.items()? {
            let (kind, value) = (tag.get("type")?, tag.get("value")?);
            let value = match kind.text()? {
                "string" => Value::Str(value.text()?.to_owned()),
                "bool" => Value::Bool(value.bool()?),
                "int64" => Value::Int(value.whole()?),
                "float64" => Value::Double(value.double()?),
                "binary" => Value::Bytes(value.bytes()?),
                _ => {
                    let kinds = "`string`, `bool`, `int64`, `float64` or `binary`";
                    return Err(kind.expected(kinds));
                }
            };
            tags.push((tag.get("key")?.text()?.to_owned(), value));
        }
        Ok(Self(tags))
    }

    /// Removes the first tag for which the function returns a value, and returns that value.
    fn take<T>(&mut self, key: &str, mut something: impl FnMut(&Value) -> Option<T>) -> Option<T> {
        for (ix, (known, value)) in self.0.iter().enumerate() {
            if known == key
                && let Some(found) = something(value)
            {
                self.0.remove(ix);
                return Some(found);
            }
        }
        None
    }

    /// Returns the text of the first of these keys that has one; empty if none has.
    fn take_text(&mut self, keys: &[&str]) -> String {
        let text = |value: &Value| match value {
            Value::Str(text) => Some(text.clone()),
            _ => None,
        };
        keys.iter().find_map(|key| self.take(key, text)).unwrap_or_default()
    }

    fn take_kind(&mut self) -> Kind {
        let kind = |value: &Value| match value {
            Value::Str(text) => match text.as_str() {
                "internal" => Some(Kind::Internal),
                "server" => Some(Kind::Server),
                "client" => Some(Kind::Client),
                "producer" => Some(Kind::Producer),
                "consumer" => Some(Kind::Consumer),
                _ => None,
            },
            _ => None,
        };
        self.take("span.kind", kind).unwrap_or_default()
    }

    /// The tag `error` overrides OTLP's own tag, as in Jaeger.
    fn take_status(&mut self) -> Status {
        let is_true = |value: &Value| match value {
            Value::Bool(is_error) => *is_error,
            Value::Str(text) => text == "true",
            _ => false,
        };
        let error = self.take("error", |value| is_true(value).then_some(StatusCode::Error));
        let told = self.take("otel.status_code", |value| match value {
            Value::Str(text) if text.eq_ignore_ascii_case("ok") => Some(StatusCode::Ok),
            Value::Str(text) if text.eq_ignore_ascii_case("error") => Some(StatusCode::Error),
            _ => None,
        });
        Status {
            code: error.or(told).unwrap_or_default(),
            message: self.take_text(&["otel.status_description"]),
        }
    }
}

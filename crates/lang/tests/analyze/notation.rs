//! A small notation for traces.
//!
//! ```text
//! # a remark
//! @orders {"host.id": "h1"}                   the service, and the resource, of the spans that follow
//! GET /orders/{id} [server 0..180ms error] {"http.method": "GET"}
//!   SELECT [client] {"db.system": "redis"}    two more blanks: a child of the span above; without times 0..1ms
//!   ? lost [internal]                         names a parent that is not there
//! = twin [internal]                           has the id of the span before
//! ! exception {"message": "no"}               an event of the span before
//! ~ 01                                        a link of the span before, to the first span
//! ```

#![expect(clippy::panic, reason = "a case that cannot be read is a broken test")]

use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, StatusCode, Value},
};
use serde_json::Value as Json;

const KINDS: &[(&str, Kind)] = &[
    ("unspecified", Kind::Unspecified),
    ("internal", Kind::Internal),
    ("server", Kind::Server),
    ("client", Kind::Client),
    ("producer", Kind::Producer),
    ("consumer", Kind::Consumer),
];

/// Parses a trace. Its spans have the ids 1, 2, 3 and so on.
pub(crate) fn trace(text: &str) -> Trace {
    let mut spans: Vec<(ResourceData, SpanData)> = Vec::new();
    let mut resource = ResourceData::default();
    // The open spans, with their indentation.
    let mut open: Vec<(usize, SpanId)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let depth = line.len() - line.trim_start().len();
        let line = line.trim_start();
        let mark = line.split(' ').next().unwrap_or_default();
        let rest = line.get(2..).unwrap_or_default();
        match mark {
            "!" => {
                let (name, attributes) = attributes(rest);
                let name = name.to_owned();
                last(&mut spans).events.push(EventData { name, attributes, ..Default::default() });
            }
            "~" => {
                let number = rest.trim().parse().expect("the number of a span");
                let (trace_id, span_id) = (Some(trace_id()), Some(id(number)));
                last(&mut spans).links.push(LinkData { trace_id, span_id, ..Default::default() });
            }
            _ if line.starts_with('@') => resource = service(line),
            _ => {
                open.retain(|(other, _)| *other < depth);
                let mut one = span(line.trim_start_matches(['?', '=']).trim_start());
                one.id = if mark == "=" { last(&mut spans).id } else { id(spans.len() as u64 + 1) };
                let above = open.last().map(|(_, id)| *id);
                one.parent = if mark == "?" { Some(id(u64::MAX)) } else { above };
                open.push((depth, one.id));
                spans.push((resource.clone(), one));
            }
        }
    }
    let mut trace = Trace::new(trace_id());
    for (resource, span) in spans {
        let resource = trace.resource(resource).expect("it fits");
        let scope = trace.scope(ScopeData::default()).expect("it fits");
        trace.push(resource, scope, span).expect("it fits");
    }
    trace
}

pub(crate) fn trace_id() -> TraceId {
    TraceId::from_random([7; 16])
}

pub(crate) fn id(number: u64) -> SpanId {
    SpanId::from_bytes(number.to_be_bytes()).expect("not zero")
}

fn last(spans: &mut [(ResourceData, SpanData)]) -> &mut SpanData {
    &mut spans.last_mut().expect("a span stands before").1
}

fn service(line: &str) -> ResourceData {
    let (name, more) = attributes(&line[1..]);
    let name = ("service.name".to_owned(), Value::Str(name.to_owned()));
    ResourceData {
        attributes: std::iter::once(name).chain(more).collect(),
        ..ResourceData::default()
    }
}

/// Parses `name [kind 0..5ms error] {…}`.
fn span(line: &str) -> SpanData {
    let starts = KINDS.iter().filter_map(|(word, _)| line.find(&format!(" [{word}")));
    let start = starts.min().unwrap_or_else(|| panic!("no kind: {line}"));
    let (name, rest) = line.split_at(start);
    let (inner, rest) = rest[2..].split_once(']').unwrap_or_else(|| panic!("no end: {line}"));
    let mut span = SpanData::new(id(1), None, name);
    span.end = Timestamp::from_nanos(1_000_000);
    for word in inner.split(' ') {
        if let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == word) {
            span.kind = *kind;
        } else if word == "error" {
            span.status.code = StatusCode::Error;
        } else if let Some((from, to)) = word.trim_end_matches("ms").split_once("..") {
            let at =
                |ms: &str| Timestamp::from_nanos(ms.parse::<u64>().expect("a time") * 1_000_000);
            (span.start, span.end) = (at(from), at(to));
        } else {
            panic!("what is `{word}`: {line}");
        }
    }
    span.attributes = attributes(rest).1;
    span
}

/// Returns the text before the first `{`, and the attributes from there on.
fn attributes(text: &str) -> (&str, Vec<(String, Value)>) {
    let (before, json) = text.split_at(text.find('{').unwrap_or(text.len()));
    let attributes = match json {
        "" => Vec::new(),
        json => match value(
            serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}")),
        ) {
            Value::Map(entries) => entries,
            other => panic!("{other:?} is no map"),
        },
    };
    (before.trim(), attributes)
}

fn value(json: Json) -> Value {
    match json {
        Json::Null => Value::Empty,
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Double(number.as_f64().expect("a number")),
        },
        Json::String(text) => Value::Str(text),
        Json::Array(values) => Value::Array(values.into_iter().map(value).collect()),
        Json::Object(entries) => {
            Value::Map(entries.into_iter().map(|(key, inner)| (key, value(inner))).collect())
        }
    }
}

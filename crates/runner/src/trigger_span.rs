//! The trigger's own span: the root of the trace under test.
//!
//! It begins when the request was sent. A resumed run knows only when the attempt was recorded, shortly before: there it begins
//! then. Its id was minted with the trace id. Deliberately absent: exporting it.

use std::time::Duration;

use model::{
    Answer, Attempt, Body, Request, Timestamp,
    trace::{Kind, ResourceData, ScopeData, SpanData, Value},
};

/// The name by which a selector matches it. `Tracetest trigger` selects it too.
pub const TRIGGER_SPAN_NAME: &str = "Qualitytrace trigger";

/// The attribute that holds the end of a command's standard error.
const STDERR: &str = "qualitytrace.response.stderr";

/// Builds the span of this attempt and its answer; none if nothing was fired.
pub fn trigger_span(
    (attempt, fired_at): (&Attempt, Timestamp),
    request: &Request,
    answer: &Answer,
) -> Option<SpanData> {
    if !request.is_fired() {
        return None;
    }
    let mut span = SpanData::new(attempt.span_id, None, TRIGGER_SPAN_NAME);
    let mut add = |key: &str, value| span.attributes.push((key.to_owned(), value));
    let text = |text: &str| Value::Str(text.to_owned());
    for (key, value) in request.span_attributes() {
        add(key, text(value));
    }
    match answer {
        Answer::Response(response) => {
            add("http.response.status_code", Value::Int(i64::from(response.status)));
            add("tracetest.response.status", Value::Int(i64::from(response.status)));
            add("tracetest.response.body", body(&response.body));
            let headers = response.headers.iter().map(|(key, value)| (key.clone(), text(value)));
            add("tracetest.response.headers", Value::Map(headers.collect()));
        }
        Answer::Exit(exit) => {
            add("process.exit.code", Value::Int(i64::from(exit.code)));
            add("tracetest.response.status", Value::Int(i64::from(exit.code)));
            add("tracetest.response.body", body(&exit.stdout));
            add(STDERR, text(&exit.stderr));
        }
        Answer::Reply(reply) => {
            add("tracetest.response.status", Value::Int(i64::from(reply.status)));
            add("tracetest.response.body", body(&reply.body));
            let headers = reply.headers.iter().map(|(key, value)| (key.clone(), text(value)));
            add("tracetest.response.headers", Value::Map(headers.collect()));
        }
        // A missing response is no error of the system: the outcome of the request is unknown.
        Answer::NotFired | Answer::NoAnswer(_) => {}
    }
    span.kind = Kind::Client;
    span.flags = 1;
    span.start = fired_at;
    // The measured duration of the exchange. For a missing response the duration is unknown after a restart.
    let nanos = answer.duration_ns().unwrap_or(0);
    span.end = fired_at.plus(Duration::from_nanos(nanos));
    Some(span)
}

fn body(body: &Body) -> Value {
    Value::Str(String::from_utf8_lossy(body.as_bytes()).into_owned())
}

pub(crate) fn resource() -> ResourceData {
    let name = ("service.name".to_owned(), Value::Str("qualitytrace".to_owned()));
    ResourceData { attributes: vec![name], ..ResourceData::default() }
}

pub(crate) fn scope() -> ScopeData {
    ScopeData { name: "qualitytrace".to_owned(), ..ScopeData::default() }
}

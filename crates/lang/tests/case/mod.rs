//! A small notation for evidence and judgements.
//!
//! ```text
//! answer 200 {"id": 7}                        or: answer none timeout
//! settled whole                               or any of the reasons, by a word each; or: settled not
//! POST /checkout [server 180ms] {"http.method": "POST"}
//!   GET [client 9ms]                          two more blanks: a child of the span above
//!   ? lost [internal 1ms]                     names a parent that never came
//! = twin [internal 1ms]                       has the id of the trigger span
//! ```
//!
//! The trigger span stands above all of these. Each span starts a millisecond after the one before.

#![expect(clippy::panic, reason = "a case that cannot be read is a broken test")]

use lang::{Document, Evidence, Vars, compile, judge as judge_run, read, resolve};
use model::{
    Answer, Body, Judgement, NoAnswer, NoAnswerKind, Response, Settlement, SpanId, Timestamp,
    Trace, TraceId, Unsettled,
    trace::{Kind, ResourceData, ScopeData, SpanData, Status, StatusCode, Value},
};
use source::{Colour, Text, draw};

/// The judgement of `specs` (the inner part of a test) over `evidence`, as text.
pub(crate) fn judge(evidence: &str, specs: &str) -> String {
    let specs: String = specs.lines().map(|line| format!("  {line}\n")).collect();
    let yaml = format!(
        "type: Test\nspec:\n  name: case\n  trigger: {{type: http, httpRequest: {{url: http://x}}}}\n{specs}"
    );
    let (documents, mut found) = read(&Text::new("case", yaml));
    let [Document::Test(test)] = documents.as_slice() else { panic!("{}", pictures(&found)) };
    let (plan, more) = compile(test);
    found.extend(more);
    let plan = plan.unwrap_or_else(|| panic!("{}", pictures(&found)));
    let resolved = resolve(&plan, &Vars::default()).expect("there is nothing to resolve");
    let given = Given::read(evidence);
    let evidence = Evidence {
        trace: given.settlement.as_ref().map(|_| &given.trace),
        trigger: trigger(),
        answer: &given.answer,
        settlement: given.settlement.as_ref(),
    };
    let judgement = judge_run(&resolved, &evidence);
    assert_eq!(judgement, judge_run(&resolved, &evidence), "the same evidence, the same judgement");
    show(&judgement)
}

fn pictures(found: &[source::Diagnostic]) -> String {
    draw(found, Colour::Never)
}

pub(crate) fn trigger() -> SpanId {
    id(0xff)
}

fn id(number: usize) -> SpanId {
    SpanId::from_bytes((number as u64).to_be_bytes()).expect("numbers start at 1")
}

struct Given {
    trace: Trace,
    answer: Answer,
    settlement: Option<Settlement>,
}

impl Given {
    fn read(text: &str) -> Self {
        let trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
        let answer = Answer::Response(response(200, ""));
        let mut given = Self { trace, answer, settlement: None };
        let mut trigger_span = SpanData::new(trigger(), None, "Qualitytrace trigger");
        trigger_span.end = Timestamp::from_nanos(200_000_000);
        given.push(trigger_span, Vec::new());
        let mut above: Vec<SpanId> = Vec::new();
        for (number, line) in (1..).zip(text.lines().filter(|line| !line.starts_with('#'))) {
            if let Some(answer) = line.strip_prefix("answer ") {
                given.answer = read_answer(answer);
            } else if let Some(settled) = line.strip_prefix("settled ") {
                given.settlement = read_settlement(settled);
            } else {
                let depth = (line.len() - line.trim_start().len()) / 2;
                above.truncate(depth);
                let parent = above.last().copied().unwrap_or(trigger());
                let (span, resource) = read_span(line.trim_start(), number, parent);
                above.push(span.id);
                given.push(span, resource);
            }
        }
        given
    }

    fn push(&mut self, span: SpanData, attributes: Vec<(String, Value)>) {
        let resource = ResourceData { attributes, ..ResourceData::default() };
        let resource = self.trace.resource(resource).expect("room");
        let scope = self.trace.scope(ScopeData::default()).expect("room");
        self.trace.push(resource, scope, span).expect("room");
    }
}

fn response(status: u16, body: &str) -> Response {
    let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    Response { status, headers, body: Body::Text(body.to_owned()), duration_ns: 150_000_000 }
}

fn read_answer(text: &str) -> Answer {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    match first.parse() {
        Ok(status) => Answer::Response(response(status, rest)),
        Err(_) => {
            Answer::NoAnswer(NoAnswer { kind: NoAnswerKind::Timeout, message: rest.to_owned() })
        }
    }
}

fn read_settlement(text: &str) -> Option<Settlement> {
    let unsettled = match text {
        "not" => return None,
        "whole" => vec![],
        "no-telemetry" => vec![Unsettled::NoTelemetry],
        "not-answered" => vec![Unsettled::NotAnswered],
        "parents-absent" => vec![Unsettled::ParentsAbsent(vec![id(1)])],
        "not-quiet" => vec![Unsettled::NotQuiet],
        "lost-and-large" => vec![Unsettled::SpansLost, Unsettled::TooLarge],
        other => panic!("no such settlement: {other}"),
    };
    Some(Settlement { unsettled, spans: 0, waited_ns: 0, silent_ns: None, quiet_ns: 0 })
}

/// A span and the attributes of its resource, which stand under `resource`.
fn read_span(line: &str, number: usize, parent: SpanId) -> (SpanData, Vec<(String, Value)>) {
    let (name, rest) = line.split_once(" [").expect("a span has brackets");
    let (inside, attributes) = rest.split_once(']').expect("a span has brackets");
    let (name, parent) = match name.strip_prefix("? ") {
        Some(name) => (name, id(0xdead)),
        None => (name, parent),
    };
    let (name, id) = match name.strip_prefix("= ") {
        Some(name) => (name, trigger()),
        None => (name, id(number)),
    };
    let mut span = SpanData::new(id, Some(parent), name);
    for word in inside.split(' ') {
        let kinds = (0..=5).map(Kind::from_number);
        if let Some(kind) = kinds.into_iter().find(|kind| kind.as_str() == word) {
            span.kind = kind;
        } else if word == "error" {
            span.status = Status { code: StatusCode::Error, message: "boom".to_owned() };
        } else {
            let millis: u64 = word.trim_end_matches("ms").parse().expect("milliseconds");
            span.start = Timestamp::from_nanos(number as u64 * 1_000_000);
            span.end = Timestamp::from_nanos((number as u64 + millis) * 1_000_000);
        }
    }
    let mut resource = Vec::new();
    if !attributes.trim().is_empty() {
        let json: serde_json::Value = serde_json::from_str(attributes).expect("attributes in JSON");
        let Value::Map(entries) = value(&json) else { panic!("attributes in an object") };
        span.attributes = entries;
        if let Some(at) = span.attributes.iter().position(|(key, _)| key == "resource")
            && let (_, Value::Map(entries)) = span.attributes.remove(at)
        {
            resource = entries;
        }
    }
    (span, resource)
}

fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Empty,
        serde_json::Value::Bool(bool) => Value::Bool(*bool),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Double(number.as_f64().expect("a double")),
        },
        serde_json::Value::String(text) => Value::Str(text.clone()),
        serde_json::Value::Array(items) => Value::Array(items.iter().map(value).collect()),
        serde_json::Value::Object(entries) => {
            Value::Map(entries.iter().map(|(key, json)| (key.clone(), value(json))).collect())
        }
    }
}

fn show(judgement: &Judgement) -> String {
    let mut shown = format!("{}\n", judgement.verdict.as_str());
    for spec in &judgement.specs {
        let name = spec.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        let selector = spec.selector.trim_end().replace('\n', " ");
        let place = format!("{}:{}", spec.place.line, spec.place.column);
        shown.push_str(&format!(
            "- {name}{selector} ({place}): {}, {} matched\n",
            spec.verdict.as_str(),
            spec.matched
        ));
        for assertion in &spec.assertions {
            let decided = format!("{:?}", assertion.decided).to_lowercase();
            let verdict = assertion.verdict.as_str();
            shown.push_str(&format!("  - {}: {verdict} by {decided}\n", assertion.assertion));
            if let Some(reason) = &assertion.reason {
                shown.push_str(&format!("    reason: {reason}\n"));
            }
            for span in &assertion.spans {
                let id =
                    span.span_id.map_or(String::new(), |id| format!(" {}", &id.to_string()[14..]));
                let name =
                    if span.name.is_empty() { String::new() } else { format!(" {}", span.name) };
                shown.push_str(&format!(
                    "    {}{id}{name}: {}\n",
                    span.verdict.as_str(),
                    span.found
                ));
            }
            if assertion.more_spans > 0 {
                shown.push_str(&format!("    and {} more\n", assertion.more_spans));
            }
        }
    }
    for output in &judgement.outputs {
        let value = match (&output.value, &output.reason) {
            (Some(value), None) => format!("{value:?}"),
            (None, Some(reason)) => format!("nothing, {reason}"),
            other => panic!("a value or a reason: {other:?}"),
        };
        shown.push_str(&format!("output {}: {value}\n", output.name));
    }
    shown
}

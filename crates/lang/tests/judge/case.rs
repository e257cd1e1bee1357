//! A small notation for evidence and judgements.
//!
//! ```text
//! answer 200 {"id": 7}                        or: answer none timeout; or: answer recorded (nothing was fired)
//! answer 200 caf\xe9                          `\xNN` is a byte, of a body that is not UTF-8 if it is none of a character
//! header content-encoding: gzip               one more header of the answer above
//! settled whole                               or any of the reasons, by a word each; or: settled not
//! settled whole, 2 logs                       and so many log records of the trace came
//! silent callee                               the settlement above names a peer that was called and sent nothing
//! trigger client                              the trigger span has its kind
//! POST /checkout [server @0 180ms] {"http.method": "POST"}
//!   GET [client 9ms]                          two more blanks: a child of the span above
//!   ? lost [internal 1ms]                     names a parent that never came
//! = twin [internal 1ms]                       has the id of the trigger span
//! + GET [client 9ms]                          has the id of the span above that has one of its own
//! ```
//!
//! The trigger span is above all of these, unless the trace was recorded. After `@` is the start in milliseconds; by default a
//! span starts a millisecond after the previous one. Among the attributes, `resource` has those of the resource, `events` a list
//! of events with their names, `links` the numbers of the linked spans, from 1, and `again` attributes with repeated keys.
//! `{"double": "NaN"}` is a double that JSON cannot represent.
//!
//! ```text
//! POST /orders [server 9ms no-end]            its end is 0; so `no-start`
//! POST /orders [server 9ms early-end]         it ends before it starts
//! GET [client 9ms dropped=5,3,2,0]            it dropped so many attributes, events and links, its resource so many attributes
//! ```
//!
//! After the inner part of the test and a line `===` the documents of the gates may follow, with such lines between.

#![expect(clippy::panic, reason = "a case that cannot be read is a broken test")]

use lang::{
    Document, Evidence, Gates, ResolvedPlan, Seed, Vars, compile, judge as judge_run, read, resolve,
};
use model::{
    Answer, Body, DecisionBasis, Exit, Judgement, NoAnswer, NoAnswerKind, Response, Settlement,
    SpanEvidence, SpanId, StatementEvidence, Timestamp, Trace, TraceId, UnansweredPeer,
    UnsettledReason, Verdict,
    trace::{
        EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode, Value,
    },
};
use source::{Colour, Text, draw};

/// The start of traces: a span that starts at 0 has no start.
const BEGIN_NANOS: u64 = 1_000_000_000;

/// Judges `specs` (the inner part of a test) on `evidence` and renders the judgement as text.
pub(crate) fn judge(evidence: &str, specs: &str) -> String {
    let resolved = resolved(specs);
    let given = Given::read(evidence);
    let judgement = given.judge(&resolved);
    assert_eq!(judgement, given.judge(&resolved), "the same evidence, the same judgement");
    show(&judgement)
}

/// Judges `specs` on `evidence` and returns each statement with its verdict and its evidence.
pub(crate) fn statements(evidence: &str, specs: &str) -> Vec<StatementResult> {
    let Judgement { specs, claims, .. } = Given::read(evidence).judge(&resolved(specs));
    let assertions = specs.into_iter().flat_map(|spec| {
        let selector = spec.selector.trim_end().replace('\n', " ");
        let of_spec = move |it: model::AssertionJudgement| StatementResult {
            written: format!("{selector}: {}", it.assertion),
            verdict: it.verdict,
            evidence: it.evidence,
        };
        spec.assertions.into_iter().map(of_spec)
    });
    let claims = claims.into_iter().map(|it| StatementResult {
        written: it.claim,
        verdict: it.verdict,
        evidence: it.evidence,
    });
    assertions.chain(claims).collect()
}

/// A statement with its result.
pub(crate) struct StatementResult {
    pub(crate) written: String,
    pub(crate) verdict: Verdict,
    pub(crate) evidence: Option<StatementEvidence>,
}

/// Compiles and resolves the inner part of a test.
pub(crate) fn resolved(specs: &str) -> ResolvedPlan {
    let (specs, beside) = specs.split_once("\n===\n").unwrap_or((specs, ""));
    let specs: String = specs.lines().map(|line| format!("  {line}\n")).collect();
    let yaml = format!(
        "type: Test\nspec:\n  name: case\n  trigger: {{type: http, httpRequest: {{url: http://x}}}}\n{specs}"
    );
    let (documents, mut found) = read(&Text::new("case", yaml));
    let [Document::Test(test)] = documents.as_slice() else { panic!("{}", pictures(&found)) };
    let (plan, more) = compile(test);
    found.extend(more);
    let mut plan = plan.unwrap_or_else(|| panic!("{}", pictures(&found)));
    plan.require(gates(beside));
    let vars = Vars {
        variables: [("ITEM", "tea"), ("TOKEN", "s3cr3t-t0ken")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        secrets: ["TOKEN".to_owned()].into(),
        ..Vars::default()
    };
    let seed = Seed { now: Timestamp::from_nanos(0), random: [7; 32] };
    resolve(&plan, &vars, &seed).expect("all variables are there")
}

/// Returns the gates from the documents next to a test.
fn gates(documents: &str) -> Gates {
    let (documents, found) = read(&Text::new("gates", documents.replace("\n===\n", "\n---\n")));
    assert!(!found.iter().any(source::Diagnostic::is_error), "{}", pictures(&found));
    let (mut analyzer, mut runner) = (None, None);
    for document in documents {
        match document {
            Document::Analyzer(one) => analyzer = Some(one),
            Document::QualityGate(one) => runner = Some(one),
            other => panic!("no gate: {other:?}"),
        }
    }
    Gates::new(analyzer.as_ref(), runner.as_ref())
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

pub(crate) struct Given {
    pub(crate) trace: Trace,
    /// `None` if no request was sent.
    answer: Option<Answer>,
    settlement: Option<Settlement>,
}

impl Given {
    pub(crate) fn read(text: &str) -> Self {
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
        let answer = Some(Answer::Response(response(200, "")));
        let mut given = Self { trace, answer, settlement: None };
        let is_recorded = lines.contains(&"answer recorded");
        if !is_recorded {
            let mut trigger_span = SpanData::new(trigger(), None, "Qualitytrace trigger");
            // As in a run; most cases are only about other spans.
            if lines.contains(&"trigger client") {
                trigger_span.kind = Kind::Client;
            }
            trigger_span.start = Timestamp::from_nanos(BEGIN_NANOS);
            trigger_span.end = Timestamp::from_nanos(BEGIN_NANOS + 200_000_000);
            given.push(trigger_span, ResourceData::default());
        }
        let heads = ["answer ", "header ", "settled ", "silent ", "trigger "];
        let is_head = |line: &&str| heads.iter().any(|head| line.starts_with(head));
        let heads = lines.iter().filter(|line| is_head(line)).count();
        let mut above: Vec<SpanId> = Vec::new();
        let mut own = 0;
        for (number, line) in (1..).zip(lines) {
            if let Some(answer) = line.strip_prefix("answer ") {
                given.answer = read_answer(answer);
            } else if let Some(header) = line.strip_prefix("header ") {
                let (key, value) = header.split_once(": ").expect("a header has a value");
                let Some(Answer::Response(response)) = &mut given.answer else {
                    panic!("a header belongs to a response")
                };
                response.headers.push((key.to_owned(), value.to_owned()));
            } else if let Some(peer) = line.strip_prefix("silent ") {
                let settlement = given.settlement.as_mut().expect("the settlement stands above");
                settlement.unanswered.push(UnansweredPeer {
                    service: "sys".to_owned(),
                    peer: peer.to_owned(),
                    calls: 1,
                    declared: false,
                });
            } else if line.starts_with("trigger ") {
                continue;
            } else if let Some(settled) = line.strip_prefix("settled ") {
                given.settlement = read_settlement(settled);
            } else {
                let depth = (line.len() - line.trim_start().len()) / 2;
                above.truncate(depth);
                let parent = above.last().copied().or((!is_recorded).then(trigger));
                let copy = line.trim_start().strip_prefix("+ ");
                own = if copy.is_some() { own } else { number };
                let (mut span, resource) =
                    read_span(copy.unwrap_or(line.trim_start()), own, parent);
                for link in &mut span.links {
                    let shifted = link.span_id.map_or(0, |id| u64::from_be_bytes(*id.as_bytes()));
                    link.span_id = Some(id(shifted as usize + heads));
                }
                above.push(span.id);
                given.push(span, resource);
            }
        }
        given
    }

    pub(crate) fn judge(&self, resolved: &ResolvedPlan) -> Judgement {
        let is_fired = self.answer.is_some();
        let evidence = Evidence {
            trace: self.settlement.as_ref().map(|_| &self.trace),
            trigger: is_fired.then(trigger),
            answer: self.answer.as_ref(),
            settlement: self.settlement.as_ref(),
        };
        judge_run(resolved, &evidence)
    }

    fn push(&mut self, span: SpanData, resource: ResourceData) {
        let resource = self.trace.resource(resource).expect("room");
        let scope = self.trace.scope(ScopeData::default()).expect("room");
        self.trace.push(resource, scope, span).expect("room");
    }
}

fn response(status: u16, body: &str) -> Response {
    let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    Response { status, headers, body: read_body(body), duration_ns: 150_000_000 }
}

fn read_body(text: &str) -> Body {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (byte, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(byte, 16).expect("two hexadecimal digits"));
        bytes.extend(rest.as_bytes());
    }
    Body::from_bytes(bytes)
}

fn read_answer(text: &str) -> Option<Answer> {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    match (first, first.parse()) {
        ("recorded", _) => None,
        ("not-fired", _) => Some(Answer::NotFired),
        ("exit", _) => {
            let (code, said) = rest.split_once(' ').unwrap_or((rest, ""));
            Some(Answer::Exit(Exit {
                code: code.parse().expect("a code"),
                stdout: read_body(said),
                stderr: String::new(),
                duration_ns: 150_000_000,
            }))
        }
        (_, Ok(status)) => Some(Answer::Response(response(status, rest))),
        (_, Err(_)) => Some(Answer::NoAnswer(NoAnswer {
            kind: NoAnswerKind::Timeout,
            message: rest.to_owned(),
        })),
    }
}

fn read_settlement(text: &str) -> Option<Settlement> {
    let (text, logs) = match text.split_once(", ") {
        Some((text, logs)) => {
            let count = logs.strip_suffix(" logs").and_then(|count| count.parse().ok());
            (text, count.expect("a number of logs"))
        }
        None => (text, 0),
    };
    let unsettled = match text {
        "not" => return None,
        "whole" => vec![],
        "no-telemetry" => vec![UnsettledReason::NoTelemetry],
        "not-answered" => vec![UnsettledReason::NotAnswered],
        "parents-absent" => vec![UnsettledReason::ParentsAbsent(vec![id(1)])],
        "not-quiet" => vec![UnsettledReason::NotQuiet],
        "not-waited" => vec![UnsettledReason::NotWaited],
        "partial" => vec![UnsettledReason::Partial],
        "other-servers" => vec![UnsettledReason::OtherServers(vec!["quality-2:11633".to_owned()])],
        "lost-and-large" => vec![UnsettledReason::SpansLost, UnsettledReason::TooLarge],
        other => panic!("no such settlement: {other}"),
    };
    Some(Settlement { unsettled, logs, ..Settlement::default() })
}

/// Parses a span and its resource, with its attributes under `resource`.
fn read_span(line: &str, number: usize, parent: Option<SpanId>) -> (SpanData, ResourceData) {
    let (name, rest) = line.split_once(" [").expect("a span has brackets");
    let (inside, attributes) = rest.split_once(']').expect("a span has brackets");
    let (name, parent) = match name.strip_prefix("? ") {
        Some(name) => (name, Some(id(0xdead))),
        None => (name, parent),
    };
    let (name, id) = match name.strip_prefix("= ") {
        Some(name) => (name, trigger()),
        None => (name, id(number)),
    };
    let mut span = SpanData::new(id, parent, name);
    let mut resource = ResourceData::default();
    let mut start = number as u64;
    for word in inside.split(' ') {
        let kinds = (0..=5).map(Kind::from_number);
        if let Some(kind) = kinds.into_iter().find(|kind| kind.as_str() == word) {
            span.kind = kind;
        } else if word == "error" {
            span.status = Status { code: StatusCode::Error, message: "boom".to_owned() };
        } else if let Some(at) = word.strip_prefix('@') {
            start = at.parse().expect("milliseconds");
        } else if let Some(counts) = word.strip_prefix("dropped=") {
            let counts: Vec<u32> =
                counts.split(',').map(|count| count.parse().expect("a count")).collect();
            span.dropped_attributes = counts[0];
            span.dropped_events = counts[1];
            span.dropped_links = counts[2];
            resource.dropped_attributes = counts[3];
        } else if word == "no-end" {
            span.end = Timestamp::default();
        } else if word == "no-start" {
            span.start = Timestamp::default();
        } else if word == "early-end" {
            span.end = Timestamp::from_nanos(span.start.as_nanos() - 1);
        } else {
            let lasted = source::parse_duration(word).expect("a duration");
            span.start = Timestamp::from_nanos(BEGIN_NANOS + start * 1_000_000);
            span.end = span.start.plus(lasted);
        }
    }
    let mut again = Vec::new();
    if !attributes.trim().is_empty() {
        let json: serde_json::Value = serde_json::from_str(attributes).expect("attributes in JSON");
        let Value::Map(entries) = value(&json) else { panic!("attributes in an object") };
        for (key, value) in entries {
            match (key.as_str(), value) {
                ("resource", Value::Map(entries)) => resource.attributes = entries,
                ("again", Value::Map(entries)) => again = entries,
                ("events", Value::Array(events)) => {
                    span.events = events.into_iter().map(event).collect();
                }
                ("links", Value::Array(links)) => {
                    span.links = links.into_iter().map(|value| link(&value)).collect();
                }
                (_, value) => span.attributes.push((key, value)),
            }
        }
    }
    span.attributes.extend(again);
    (span, resource)
}

fn event(value: Value) -> EventData {
    let Value::Map(mut attributes) = value else { panic!("an event is an object") };
    let at = attributes.iter().position(|(key, _)| key == "name").expect("an event has a name");
    let (_, Value::Str(name)) = attributes.remove(at) else { panic!("a name is a text") };
    EventData { name, attributes, ..EventData::default() }
}

fn link(value: &Value) -> LinkData {
    let Value::Int(number) = *value else { panic!("a link is the number of a span") };
    LinkData { span_id: Some(id(number as usize)), ..LinkData::default() }
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
        serde_json::Value::Object(entries) if spelled_double(entries).is_some() => {
            Value::Double(spelled_double(entries).unwrap_or_default())
        }
        serde_json::Value::Object(entries) => {
            Value::Map(entries.iter().map(|(key, json)| (key.clone(), value(json))).collect())
        }
    }
}

fn spelled_double(entries: &serde_json::Map<String, serde_json::Value>) -> Option<f64> {
    entries.get("double").filter(|_| entries.len() == 1)?.as_str()?.parse().ok()
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
            let (verdict, decided) = (assertion.verdict, assertion.decided);
            let head = format!("  - {}", assertion.assertion);
            let reason = assertion.reason.as_deref();
            told(&mut shown, &head, (verdict, decided, reason), &assertion.spans);
            if assertion.more_spans > 0 {
                shown.push_str(&format!("    and {} more\n", assertion.more_spans));
            }
        }
    }
    for claim in &judgement.claims {
        let name = claim.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        let place = format!("{}:{}", claim.place.line, claim.place.column);
        let head = format!("- {name}{} ({place})", claim.claim);
        let reason = claim.reason.as_deref();
        told(&mut shown, &head, (claim.verdict, claim.decided, reason), &claim.spans);
        if claim.more_spans > 0 {
            shown.push_str(&format!("    and {} more\n", claim.more_spans));
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

fn told(
    shown: &mut String,
    head: &str,
    (verdict, decided, reason): (Verdict, DecisionBasis, Option<&str>),
    spans: &[SpanEvidence],
) {
    let decided = format!("{decided:?}").to_lowercase();
    shown.push_str(&format!("{head}: {} by {decided}\n", verdict.as_str()));
    if let Some(reason) = reason {
        shown.push_str(&format!("    reason: {reason}\n"));
    }
    for span in spans {
        let id = span.span_id.map_or(String::new(), |id| format!(" {}", &id.to_string()[14..]));
        let name = if span.name.is_empty() { String::new() } else { format!(" {}", span.name) };
        shown.push_str(&format!("    {}{id}{name}: {}\n", span.verdict.as_str(), span.found));
    }
}

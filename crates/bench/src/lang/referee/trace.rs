//! The referee's own traces: the true events, recorded by hosts with different clocks, and encoded as OTLP.
//!
//! A trace is generated in true time, so that causality holds in it; then each host records the times of its clock, and some data
//! is lost as in reality: ends, parents, attributes.

use std::collections::HashSet;

use serde_json::{Value as Json, json};

use super::{super::chance::Dice, RefereeRule, RuleChoice, value::RefereeValue};

const MS: u64 = 1_000_000;
const HOUR_NS: u64 = 3_600_000 * MS;
/// The start of the true time.
const EPOCH_NS: u64 = 1_700_000_000_000 * MS;
const TRACE_ID: &str = "0102030405060708090a0b0c0d0e0f10";
const OTHER_TRACE_ID: &str = "0f0e0d0c0b0a09080706050403020100";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefereeKind {
    Internal = 1,
    Server = 2,
    Client = 3,
    Producer = 4,
    Consumer = 5,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Unset = 0,
    Ok = 1,
    Error = 2,
}

/// A span as its host recorded it.
#[derive(Clone, Debug)]
pub(super) struct RefereeSpan {
    pub(super) id: u64,
    pub(super) parent: Option<u64>,
    pub(super) name: String,
    pub(super) kind: RefereeKind,
    pub(super) status: Status,
    pub(super) start: u64,
    /// None where it never ended, or ended before it started.
    pub(super) end: Option<u64>,
    pub(super) ends_before_start: bool,
    pub(super) service: String,
    pub(super) host: String,
    pub(super) scope: String,
    pub(super) resource: Vec<(String, RefereeValue)>,
    pub(super) dropped_resource: u32,
    pub(super) attributes: Vec<(String, RefereeValue)>,
    pub(super) dropped_attributes: u32,
    pub(super) events: Vec<Event>,
    pub(super) dropped_events: u32,
    pub(super) links: Vec<Link>,
    pub(super) dropped_links: u32,
}

impl RefereeSpan {
    /// Whether it leaves something about itself unknown.
    pub(super) fn withholds(&self) -> bool {
        let dropped = [
            self.dropped_resource,
            self.dropped_attributes,
            self.dropped_events,
            self.dropped_links,
        ];
        self.end.is_none() || dropped.iter().any(|count| *count > 0)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, RefereeValue)>,
    pub(super) dropped_attributes: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) is_of_this_trace: bool,
    pub(super) span: u64,
}

impl Link {
    pub(super) fn trace_id(&self) -> &'static str {
        if self.is_of_this_trace { TRACE_ID } else { OTHER_TRACE_ID }
    }
}

pub(super) fn id_text(id: u64) -> String {
    format!("{id:016x}")
}

/// An interval of true time.
#[derive(Clone, Copy)]
struct Stretch {
    start: u64,
    end: u64,
}

/// The service and the host of a span.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    service: usize,
    host: usize,
}

/// Generates one trace.
struct Play<'a> {
    dice: &'a mut Dice,
    drawn: RuleChoice,
    spans: Vec<RefereeSpan>,
    spans_max: usize,
    hosts: usize,
    /// The offset of a clock to the true time, shifted so that it is never negative.
    ahead: Vec<u64>,
    starts: HashSet<(usize, u64)>,
}

/// Generates a trace of at least one span.
pub(super) fn draw(dice: &mut Dice, drawn: RuleChoice) -> Vec<RefereeSpan> {
    let hosts = if dice.once_in(3) { 1 } else { 2 + dice.below(3) };
    let ahead = (0..hosts)
        .map(|_| match dice.below(4) {
            0 => HOUR_NS * 5,
            1 => HOUR_NS * 5 + dice.below(40 * MS as usize) as u64 - 20 * MS,
            2 => HOUR_NS * 5 + dice.below(4_000 * MS as usize) as u64 - 2_000 * MS,
            _ => HOUR_NS * (1 + dice.below(9) as u64),
        })
        .collect();
    let spans_max = if dice.once_in(3) { 1 + dice.below(40) } else { 1 + dice.below(10) };
    let mut play =
        Play { dice, drawn, spans: Vec::new(), spans_max, hosts, ahead, starts: HashSet::new() };
    play.fill();
    let Play { dice, mut spans, .. } = play;
    lose(dice, drawn, &mut spans);
    for index in (1..spans.len()).rev() {
        spans.swap(index, dice.below(index + 1));
    }
    spans
}

impl Play<'_> {
    fn fill(&mut self) {
        let mut start = EPOCH_NS;
        loop {
            let end = start + (20 + self.dice.below(200) as u64) * MS;
            let place = self.place();
            let kind = [RefereeKind::Server, RefereeKind::Internal, RefereeKind::Client]
                [self.dice.below(3)];
            self.work(None, kind, place, Stretch { start, end });
            if self.spans.len() >= self.spans_max || self.dice.once_in(2) {
                break;
            }
            start = end + self.dice.below(20) as u64 * MS;
        }
    }

    fn place(&mut self) -> Place {
        let service = self.dice.below(3);
        // Most services are on one host.
        let host =
            if self.dice.once_in(6) { self.dice.below(self.hosts) } else { service % self.hosts };
        Place { service, host }
    }

    /// Generates a span over the interval, and the spans that it causes.
    fn work(
        &mut self,
        parent: Option<u64>,
        kind: RefereeKind,
        place: Place,
        at: Stretch,
    ) -> Option<u64> {
        if self.spans.len() >= self.spans_max || at.end < at.start + 20_000 {
            return None;
        }
        let at = self.distinct(place.host, at);
        let id = self.push(parent, kind, place, at);
        match kind {
            RefereeKind::Client => self.serve(id, place, at),
            RefereeKind::Producer => self.consume(id, at),
            RefereeKind::Internal | RefereeKind::Server | RefereeKind::Consumer => {
                for _ in 0..self.dice.below(4) {
                    self.cause(id, place, at);
                }
            }
        }
        Some(id)
    }

    /// Returns a random part of an interval.
    fn part(&mut self, of: Stretch) -> Stretch {
        let length = (of.end - of.start) as usize;
        let step = if self.dice.once_in(2) { MS as usize } else { 1 };
        let draw = |dice: &mut Dice, below: usize| (dice.below(below.max(1)) / step * step) as u64;
        let start = of.start + draw(self.dice, length);
        let end = start + draw(self.dice, (of.end - start) as usize);
        Stretch { start, end: end.max(start + 1_000).min(of.end) }
    }

    fn cause(&mut self, id: u64, place: Place, at: Stretch) {
        let mut inner = self.part(at);
        if self.dice.once_in(12) {
            // The work continues after its parent has ended.
            inner.end += at.end - at.start;
        }
        let (kind, place) = match self.dice.below(8) {
            0..3 => (RefereeKind::Internal, place),
            3..6 => (RefereeKind::Client, place),
            6 => (RefereeKind::Producer, place),
            // The caller sends no spans of its own.
            _ => (
                [RefereeKind::Server, RefereeKind::Internal, RefereeKind::Consumer]
                    [self.dice.below(3)],
                self.place(),
            ),
        };
        self.work(Some(id), kind, place, inner);
    }

    /// Generates the server span of a client, inside it unless the client failed.
    fn serve(&mut self, client: u64, place: Place, at: Stretch) {
        if self.dice.once_in(4) {
            return;
        }
        let mut inner = self.part(at);
        let server = self.place();
        if self.drawn.has(RefereeRule::FailedClient) && self.dice.once_in(6) {
            inner.end += at.end - at.start;
            let reason = self.dice.below(3);
            if let Some(span) = self.spans.iter_mut().find(|span| span.id == client) {
                match reason {
                    0 => span.status = Status::Error,
                    1 => span
                        .attributes
                        .push(("error.type".to_owned(), RefereeValue::text("timeout"))),
                    // The only sign is that the server took longer.
                    _ => inner.end = inner.start + (at.end - at.start) + 1,
                }
            }
        }
        self.work(Some(client), RefereeKind::Server, server, inner);
        if self.dice.once_in(10) {
            let again = self.part(at);
            self.work(Some(client), RefereeKind::Internal, place, again);
        }
    }

    /// Generates the consumer of a message: a child of the producer, linked to it, or both.
    fn consume(&mut self, producer: u64, at: Stretch) {
        if self.dice.once_in(4) {
            return;
        }
        let start = at.start + self.dice.below(30 * MS as usize) as u64;
        let end = start + (1 + self.dice.below(20) as u64) * MS;
        let place = self.place();
        let is_below = !self.dice.once_in(3);
        let parent = is_below.then_some(producer);
        if let Some(id) = self.work(parent, RefereeKind::Consumer, place, Stretch { start, end })
            && (!is_below || self.dice.once_in(2))
            && let Some(span) = self.spans.iter_mut().find(|span| span.id == id)
        {
            span.links.push(Link { is_of_this_trace: true, span: producer });
        }
    }

    /// Returns an interval with a unique start on its host: the starts alone determine the order of spans.
    fn distinct(&mut self, host: usize, mut at: Stretch) -> Stretch {
        while !self.starts.insert((host, at.start)) {
            at.start += 1;
        }
        Stretch { start: at.start, end: at.end.max(at.start + 1_000) }
    }

    fn push(&mut self, parent: Option<u64>, kind: RefereeKind, place: Place, at: Stretch) -> u64 {
        let id = self.spans.len() as u64 + 1;
        let dice = &mut *self.dice;
        let ahead = self.ahead[place.host];
        let may_fail = kind != RefereeKind::Client || self.drawn.has(RefereeRule::FailedClient);
        let status = match dice.below(6) {
            0 if may_fail => Status::Error,
            1 => Status::Ok,
            _ => Status::Unset,
        };
        let mut resource = Vec::new();
        if dice.once_in(3) {
            resource.push(("region".to_owned(), RefereeValue::text(dice.pick(&["eu", "us"]))));
        }
        if dice.once_in(8) {
            resource.push(("txt".to_owned(), RefereeValue::text("cat")));
        }
        let drops = |dice: &mut Dice| {
            if self.drawn.has(RefereeRule::Dropped) && dice.once_in(12) { 2 } else { 0 }
        };
        let events = if dice.once_in(4) { 1 + dice.below(2) } else { 0 };
        let events = (0..events)
            .map(|_| Event {
                name: dice.pick(&["exception", "retry"]).to_owned(),
                attributes: attributes(dice, 3),
                dropped_attributes: drops(dice),
            })
            .collect();
        let mut links = Vec::new();
        if dice.once_in(10) {
            let span = 1 + dice.below(self.spans_max + 2) as u64;
            links.push(Link { is_of_this_trace: !dice.once_in(4), span });
        }
        self.spans.push(RefereeSpan {
            id,
            parent,
            name: dice.pick(&["a", "b", "c", "d"]).to_owned(),
            kind,
            status,
            start: at.start + ahead,
            end: Some(at.end + ahead),
            ends_before_start: false,
            service: format!("s{}", place.service),
            host: format!("h{}", place.host),
            scope: dice.pick(&["lib", "app"]).to_owned(),
            resource,
            dropped_resource: drops(dice),
            attributes: attributes(dice, 2),
            dropped_attributes: drops(dice),
            events,
            dropped_events: drops(dice),
            links,
            dropped_links: drops(dice),
        });
        id
    }
}

/// Generates attributes, each with a probability of one in `times`.
fn attributes(dice: &mut Dice, times: usize) -> Vec<(String, RefereeValue)> {
    let mut all = Vec::new();
    for name in ["num", "dbl", "txt", "flag", "doc", "tags", "mix"] {
        if dice.once_in(times) {
            all.push((name.to_owned(), attribute(dice, name)));
        }
    }
    all
}

/// Generates a value that the attribute of this name may have.
pub(super) fn attribute(dice: &mut Dice, name: &str) -> RefereeValue {
    match name {
        "num" => RefereeValue::Int([-1, 0, 1, 2, 3, 9_007_199_254_740_993][dice.below(6)]),
        "dbl" => {
            RefereeValue::Double([-0.5, 0.0, 1.0, 1.5, 2.0, 9_007_199_254_740_992.0][dice.below(6)])
        }
        "flag" => RefereeValue::Bool(dice.once_in(2)),
        "doc" => RefereeValue::text(dice.pick(&[
            r#"{"id":1,"total":2.5,"lines":[{"sku":"tea"},{"sku":"cup"}]}"#,
            r#"{"id":2,"lines":[],"note":"cat"}"#,
            r#"{"id":"x5","nested":{"id":1},"lines":[{"sku":"cup"}]}"#,
            "no json",
        ])),
        "tags" => {
            let items =
                (0..dice.below(3)).map(|_| RefereeValue::text(dice.pick(&["web", "eu", "cat"])));
            RefereeValue::List(items.collect())
        }
        "mix" if dice.once_in(2) => RefereeValue::Int(dice.below(3) as i64),
        "mix" => RefereeValue::text(dice.pick(&["1", "2", "007", "1.50", "cat", "+2"])),
        _ => RefereeValue::text(dice.pick(&["", "cat", "dog", "x15", "Q"])),
    }
}

/// Removes spans and data as if they were lost, and sends some twice.
fn lose(dice: &mut Dice, drawn: RuleChoice, spans: &mut Vec<RefereeSpan>) {
    if dice.once_in(3) && spans.len() > 2 {
        for _ in 0..=dice.below(2) {
            let index = dice.below(spans.len());
            spans.remove(index);
            if spans.len() == 1 {
                break;
            }
        }
    }
    for span in spans {
        if drawn.has(RefereeRule::NoEnd) && dice.once_in(15) {
            span.end = None;
            span.ends_before_start = dice.once_in(3);
        }
        if drawn.has(RefereeRule::RepeatedKey)
            && dice.once_in(8)
            && let Some((name, _)) = span.attributes.first().cloned()
        {
            span.attributes.push((name.clone(), attribute(dice, &name)));
        }
    }
}

/// Encodes the trace as OTLP in JSON, each span with its own resource.
pub(super) fn otlp(spans: &[RefereeSpan]) -> Json {
    let spans: Vec<_> = spans.iter().map(resource_spans).collect();
    json!({ "resourceSpans": spans })
}

fn resource_spans(span: &RefereeSpan) -> Json {
    let mut resource = vec![
        ("service.name".to_owned(), RefereeValue::Text(span.service.clone())),
        ("host.name".to_owned(), RefereeValue::Text(span.host.clone())),
    ];
    resource.extend(span.resource.iter().cloned());
    let end = if span.ends_before_start { span.start - 1 } else { span.end.unwrap_or(0) };
    let mut of_resource = json!({"attributes": key_values(&resource)});
    put(&mut of_resource, "droppedAttributesCount", span.dropped_resource);
    let mut json = json!({
        "traceId": TRACE_ID,
        "spanId": id_text(span.id),
        "name": span.name,
        "kind": span.kind as i32,
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": end.to_string(),
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = json!(id_text(parent));
    }
    if span.status != Status::Unset {
        json["status"] = json!({"code": span.status as i32});
    }
    let events = span.events.iter().map(|event| {
        let mut json = json!({
            "name": event.name,
            "timeUnixNano": span.start.to_string(),
            "attributes": key_values(&event.attributes),
        });
        put(&mut json, "droppedAttributesCount", event.dropped_attributes);
        json
    });
    let links = span
        .links
        .iter()
        .map(|link| json!({"traceId": link.trace_id(), "spanId": id_text(link.span)}));
    for (key, items) in [
        ("attributes", key_values(&span.attributes)),
        ("events", events.collect()),
        ("links", links.collect()),
    ] {
        if !items.is_empty() {
            json[key] = Json::Array(items);
        }
    }
    put(&mut json, "droppedAttributesCount", span.dropped_attributes);
    put(&mut json, "droppedEventsCount", span.dropped_events);
    put(&mut json, "droppedLinksCount", span.dropped_links);
    json!({
        "resource": of_resource,
        "scopeSpans": [{"scope": {"name": span.scope}, "spans": [json]}],
    })
}

fn put(json: &mut Json, key: &str, count: u32) {
    if count > 0 {
        json[key] = json!(count);
    }
}

fn key_values(attributes: &[(String, RefereeValue)]) -> Vec<Json> {
    attributes.iter().map(|(key, value)| json!({"key": key, "value": any_value(value)})).collect()
}

fn any_value(value: &RefereeValue) -> Json {
    match value {
        RefereeValue::Bool(bool) => json!({"boolValue": bool}),
        RefereeValue::Int(int) => json!({"intValue": int.to_string()}),
        RefereeValue::Double(double) => json!({"doubleValue": double}),
        RefereeValue::Text(text) => json!({"stringValue": text}),
        RefereeValue::List(items) => {
            let items: Vec<_> = items.iter().map(any_value).collect();
            json!({"arrayValue": {"values": items}})
        }
        RefereeValue::Null | RefereeValue::Duration(_) | RefereeValue::Map(_) => json!({}),
    }
}

//! A builder for the observations of a run.

use std::time::Duration;

use bytes::Bytes;
use drivers::receiver::{Counts, Foreign, ReceiverSnapshot, Refusal};
use model::{
    Answer, Attempt, Body, Diagnosis, HttpRequest, Key, KeyRing, ProcessQuiet, Propagator, Request,
    Response, Settlement, SpanId, Timestamp, Tls, Trace, TraceId, UnsettledReason, Verdict,
    trace::{Kind, LinkData, ResourceData, ScopeData, SpanData, Value},
};
use runner::{
    StartedProcesses,
    diagnosis::{Case, FiredTrigger, Process, diagnose},
};
use tokio::time::Instant;

const FIRED: u64 = 1_794_708_000_000_000_000;
const TRIGGER: u8 = 200;

/// A span with its service.
#[derive(Clone)]
pub(crate) struct Drawn {
    service: String,
    data: SpanData,
    is_parentless: bool,
}

pub(crate) struct Scene {
    verdict: Verdict,
    request: Request,
    answer: Option<Answer>,
    spans: Vec<Drawn>,
    settlement: Settlement,
    headers: Vec<(String, String)>,
    seen: Option<ReceiverSnapshot>,
    began: Instant,
    started: Option<StartedProcesses>,
    processes: Vec<Process>,
}

/// Returns a span that started 2 ms after the trigger and took 5 ms. The parent 0 is the trigger in our trace, and no parent in
/// another trace.
pub(crate) fn span(id: u8, above: u8, name: &str, service: &str) -> Drawn {
    let above = (above != 0).then(|| parent(above));
    let data = SpanData::new(parent(id), above, name);
    Drawn { service: service.to_owned(), data, is_parentless: false }.at(2, 5)
}

/// Returns the id of the span with this number.
pub(crate) fn parent(id: u8) -> SpanId {
    SpanId::from_bytes([id; 8]).expect("not zero")
}

fn after(millis: i64) -> Timestamp {
    Timestamp::from_nanos(FIRED.saturating_add_signed(millis * 1_000_000))
}

fn ours() -> TraceId {
    TraceId::from_bytes([0xab; 16]).expect("not zero")
}

impl Drawn {
    pub(crate) fn at(mut self, millis: i64, takes: i64) -> Self {
        (self.data.start, self.data.end) = (after(millis), after(millis + takes));
        self
    }

    pub(crate) fn kind(mut self, kind: Kind) -> Self {
        self.data.kind = kind;
        self
    }

    pub(crate) fn flags(mut self, flags: u32) -> Self {
        self.data.flags = flags;
        self
    }

    pub(crate) fn attribute(mut self, key: &str, value: &str) -> Self {
        self.data.attributes.push((key.to_owned(), Value::Str(value.to_owned())));
        self
    }

    pub(crate) fn dropped(mut self, attributes: u32, events: u32) -> Self {
        (self.data.dropped_attributes, self.data.dropped_events) = (attributes, events);
        self
    }

    /// Removes the parent: the span is not even a child of the trigger.
    pub(crate) fn parentless(mut self) -> Self {
        self.is_parentless = true;
        self
    }

    pub(crate) fn linked(mut self, to: u8) -> Self {
        let (trace_id, span_id) = (Some(ours()), Some(parent(to)));
        self.data.links.push(LinkData { trace_id, span_id, ..LinkData::default() });
        self
    }
}

impl Scene {
    /// A complete trace without spans, for a request that got a response, and a receiver without connections.
    pub(crate) fn new(verdict: Verdict) -> Self {
        let last_at = Some(after(5_000));
        Self {
            verdict,
            request: Request::Http(http()),
            answer: None,
            spans: Vec::new(),
            settlement: Settlement { last_at, ..Settlement::default() },
            headers: Vec::new(),
            seen: Some(ReceiverSnapshot::default()),
            began: Instant::now() + Duration::from_secs(3600),
            started: None,
            processes: Vec::new(),
        }
    }

    /// A run that received no telemetry.
    pub(crate) fn silent() -> Self {
        Self::new(Verdict::Inconclusive).unsettled(UnsettledReason::NoTelemetry)
    }

    pub(crate) fn asked(mut self, request: Request) -> Self {
        self.request = request;
        self
    }

    pub(crate) fn fired(mut self, request: Request, answer: Answer) -> Self {
        self.answer = Some(answer);
        self.asked(request)
    }

    pub(crate) fn unsettled(mut self, why: UnsettledReason) -> Self {
        self.settlement.unsettled.push(why);
        self
    }

    pub(crate) fn spans(mut self, spans: impl IntoIterator<Item = Drawn>) -> Self {
        self.spans.extend(spans);
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        let value = value.replace("{trace}", &ours().to_string());
        self.headers.push((name.to_owned(), value));
        self
    }

    pub(crate) fn unseen(mut self) -> Self {
        self.seen = None;
        self
    }

    pub(crate) fn started(mut self) -> Self {
        let (marker, batch_delay) = ("t0ken".to_owned(), Duration::from_millis(5));
        self.started = Some(StartedProcesses { marker, batch_delay });
        self
    }

    pub(crate) fn process(mut self, process: Process) -> Self {
        self.processes.push(process);
        self
    }

    pub(crate) fn process_quiet(mut self, quiet: ProcessQuiet) -> Self {
        self.settlement.processes.push(quiet);
        self
    }

    pub(crate) fn connections(mut self, connections: u64, requests: u64) -> Self {
        let seen = self.seen();
        (seen.connections, seen.requests) = (connections, requests);
        self
    }

    pub(crate) fn counts(mut self, counts: Counts) -> Self {
        self.seen().counts = counts;
        self.connections(1, 1)
    }

    /// Adds a refusal this many milliseconds after the trigger.
    pub(crate) fn refusal(mut self, millis: i64, what: &str) -> Self {
        let (at, what) = (self.moment(millis), what.to_owned());
        self.seen().refusals.push(Refusal { at, what });
        self.connections(1, 1)
    }

    /// Adds an export of a foreign trace this many milliseconds after the trigger.
    pub(crate) fn foreign(mut self, millis: i64, spans: impl IntoIterator<Item = Drawn>) -> Self {
        let at = self.moment(millis);
        let number = self.seen().foreign.len() as u16 + 1;
        let mut id = [0xee; 16];
        id[..2].copy_from_slice(&number.to_be_bytes());
        let trace = trace(TraceId::from_bytes(id).expect("not zero"), spans.into_iter().collect());
        self.seen().foreign.push(Foreign { at, bytes: Bytes::from(otlp::encode(&trace)) });
        self.connections(1, 1)
    }

    pub(crate) fn diagnose(&self) -> Vec<Diagnosis> {
        let attempt = Attempt { trace_id: ours(), span_id: parent(TRIGGER), at: after(0) };
        let mut spans = self.spans.clone();
        for span in &mut spans {
            if !span.is_parentless {
                span.data.parent.get_or_insert(parent(TRIGGER));
            }
        }
        let mut trigger = span(TRIGGER, 0, "Qualitytrace trigger", "qualitytrace").at(0, 50);
        trigger.data.kind = Kind::Client;
        spans.push(trigger);
        let answer = self.answer.clone().unwrap_or_else(|| {
            Answer::Response(Response {
                status: 200,
                headers: self.headers.clone(),
                body: Body::Text("".into()),
                duration_ns: 50_000_000,
            })
        });
        diagnose(&Case {
            fired: FiredTrigger {
                attempt: &attempt,
                request: &self.request,
                answer: &answer,
                began: self.began,
            },
            verdict: self.verdict,
            settlement: &self.settlement,
            trace: &trace(ours(), spans),
            keys: &KeyRing::new(Key::from_bytes([7; 16]), Vec::new()),
            seen: self.seen.as_ref(),
            started: self.started.as_ref(),
            processes: &self.processes,
        })
    }

    /// Formats the diagnoses as in a golden file.
    pub(crate) fn shown(found: &[Diagnosis]) -> String {
        let mut text = String::new();
        for Diagnosis { cause, says, spans, advice } in found {
            let cause = format!("{cause:?}");
            let spans: Vec<_> = spans.iter().map(|span| format!(" {span}")).collect();
            text.push_str(&format!(
                "{cause}: {says}\n  spans:{}\n  do: {advice}\n",
                spans.concat()
            ));
        }
        text
    }

    fn moment(&self, millis: i64) -> Instant {
        let distance = Duration::from_millis(millis.unsigned_abs());
        if millis < 0 { self.began - distance } else { self.began + distance }
    }

    fn seen(&mut self) -> &mut ReceiverSnapshot {
        self.seen.as_mut().expect("somebody knows")
    }
}

pub(crate) fn http() -> HttpRequest {
    HttpRequest {
        secret_headers: Vec::new(),
        is_body_secret: false,
        method: "GET".to_owned(),
        url: "http://shop/cart?id=1".to_owned(),
        headers: Vec::new(),
        auth: None,
        body: Body::Text("".into()),
        timeout: Duration::from_secs(1),
        propagation: vec![Propagator::W3c],
        tls: Tls::default(),
        redirects_max: 0,
    }
}

fn trace(id: TraceId, spans: Vec<Drawn>) -> Trace {
    let mut trace = Trace::new(id);
    for Drawn { service, data, .. } in spans {
        let name = ("service.name".to_owned(), Value::Str(service));
        let resource = ResourceData { attributes: vec![name], ..ResourceData::default() };
        let resource = trace.resource(resource).expect("room");
        let scope = trace.scope(ScopeData::default()).expect("room");
        trace.push(resource, scope, data).expect("room");
    }
    trace
}

//! Large traces: they are judged completely and correctly, and the cost of an arrival depends only on the new spans.

use std::time::Duration;

use bytes::Bytes;
use drivers::arrivals::{Arrival, Arrivals};
use model::{
    Answer, Attempt, Body, Key, KeyRing, LearnedProfile, Progress, Request, Response, RunEvent,
    RunId, SpanId, Timestamp, Trace, TraceId, Verdict,
    trace::{Kind, ResourceData, ScopeData, SpanData, Value},
};
use runner::{Job, LeaseLost, Limits, Ports, run};
use tokio::{sync::mpsc, time::Instant};

use crate::stage::plan;

/// The number of spans of an export request, as SDKs send them.
const REQUEST_SPANS: u64 = 512;

/// A system that sends one large trace at once.
struct Large {
    spans: u64,
    began: Instant,
}

const EPOCH: Timestamp = Timestamp::from_nanos(1_000_000_000_000_000_000);

impl Ports for Large {
    fn now(&self) -> Timestamp {
        EPOCH.plus(self.began.elapsed())
    }

    fn random(&self) -> [u8; 32] {
        [7; 32]
    }

    fn keys(&self) -> &KeyRing {
        static KEYS: std::sync::LazyLock<KeyRing> =
            std::sync::LazyLock::new(|| KeyRing::new(Key::from_bytes([9; 16]), Vec::new()));
        &KEYS
    }

    async fn spans(&self, trace: TraceId) -> Arrivals {
        let (sender, receiver) = mpsc::channel(1);
        let (spans, began) = (self.spans, self.began);
        let mut feeding = tokio::task::JoinSet::new();
        feeding.spawn(async move {
            // Children arrive before their parents, as they end before them.
            for first in (0..spans).step_by(REQUEST_SPANS as usize) {
                let numbers = (first..spans.min(first + REQUEST_SPANS)).map(|n| spans - n);
                let bytes = request(trace, numbers, EPOCH.plus(began.elapsed()));
                if sender.send(Arrival::pushed(bytes)).await.is_err() {
                    return;
                }
            }
            sender.closed().await;
        });
        feeding.detach_all();
        Arrivals::new(receiver)
    }

    fn has_lost_spans(&self, _trace: TraceId) -> bool {
        false
    }

    async fn attempted(&self, _attempt: &Attempt) -> Result<(), LeaseLost> {
        Ok(())
    }

    async fn fire(&self, _request: &Request, _attempt: &Attempt) -> Result<Answer, LeaseLost> {
        let body = Body::Text("".into());
        Ok(Answer::Response(Response { status: 200, headers: Vec::new(), body, duration_ns: 1 }))
    }

    async fn answered(&self, _answer: &Answer) -> Result<(), LeaseLost> {
        Ok(())
    }

    fn tell(&self, _event: RunEvent) {}
}

/// Builds spans in families of eight: a server span, and its work, which calls and is called in turn.
fn request(trace_id: TraceId, numbers: impl Iterator<Item = u64>, now: Timestamp) -> Bytes {
    let mut trace = Trace::new(trace_id);
    let name = |text: &str| (text.to_owned(), Value::Str("shop".to_owned()));
    let resource = ResourceData { attributes: vec![name("service.name")], ..Default::default() };
    let resource = trace.resource(resource).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    for number in numbers {
        let id = |number: u64| SpanId::from_bytes((number + 0x1000).to_be_bytes());
        let parent = if number == 1 { SpanId::from_bytes([7; 8]) } else { id(number / 8 + 1) };
        let mut span = SpanData::new(id(number).expect("not zero"), parent, "work");
        span.kind = if number % 8 == 1 { Kind::Server } else { Kind::Internal };
        (span.start, span.end) = (now, now);
        span.attributes.push(("item".to_owned(), Value::Int(number as i64)));
        span.attributes.push(("url.path".to_owned(), Value::Str(format!("/items/{number}"))));
        trace.push(resource, scope, span).expect("room");
    }
    Bytes::from(otlp::encode(&trace))
}

/// Runs a test on a trace of this many spans, and returns the time from the last export request to the verdict.
async fn judged(spans: u64, claim: &str) -> Duration {
    let plan = plan(&format!("settle: {{flush: 20ms, timeout: 60s}}\n  trace: ['{claim}']"));
    let world = Large { spans, began: Instant::now() };
    let job = Job {
        run_id: RunId::new(Timestamp::from_nanos(0), [1; 10]),
        plan: &plan,
        vars: &lang::Vars::default(),
        files: &lang::Files::default(),
        progress: Progress::New,
        limits: Limits { spans_max: 2_000_000, trace_bytes_max: 1 << 30 },
        learned: &LearnedProfile::default(),
        started: None,
        timeout: None,
    };
    let finished = run(job, &world).await.expect("a verdict");
    let judged = world.now();
    let settlement = finished.outcome.settlement.as_ref().expect("a trace was asked for");
    assert!(settlement.is_whole(), "{settlement:?}");
    assert_eq!(settlement.spans, spans);
    assert_eq!(finished.outcome.verdict, Verdict::Passed);
    judged.since(settlement.last_at.expect("spans came"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_trace_in_small_requests_is_whole_and_right() {
    for spans in [10_000] {
        judged(spans, &format!("count(span[name=\"work\"]) = {spans}")).await;
        judged(spans, &format!("count(span[name=\"work\"]) <= {spans}")).await;
    }
}

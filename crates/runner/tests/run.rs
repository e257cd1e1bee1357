//! The life cycle of a run, with a clock and an environment that the test controls.
//!
//! The ports are written by hand: a real system cannot be made to respond at one exact time and to send its spans at another.
//! `crates/cli/tests/thread.rs` tests a complete run with real parts.

use std::{sync::Mutex, time::Duration};

use bytes::Bytes;
use drivers::arrivals::{Arrival, Arrivals};
use lang::{Document, Files, Plan, Vars};
use model::{
    Answer, Attempt, Body, Key, KeyRing, LearnedProfile, NoAnswer, NoAnswerKind, Progress, Request,
    Response, RunEvent, RunId, SpanId, Timestamp, Trace, TraceId, UnsettledReason, Verdict, What,
    trace::{ResourceData, ScopeData, SpanData, Value},
};
use runner::{FinishedRun, Job, LeaseLost, Limits, Ports, RunError, run};
use source::Text;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

/// An environment that the test controls.
struct World {
    began: Instant,
    answer: Answer,
    /// Spans as (milliseconds after the trigger's response, id, parent, name); the parent 0 is the trigger.
    spans: Vec<(u64, u8, u8, &'static str)>,
    lease: Result<(), LeaseLost>,
    record: Result<(), LeaseLost>,
    /// How long the record of the attempt takes.
    records_in: Duration,
    refused: bool,
    others: Result<Vec<String>, LeaseLost>,
    log: Mutex<Vec<String>>,
    attempt: Mutex<Option<Attempt>>,
}

impl World {
    fn new(spans: &[(u64, u8, u8, &'static str)]) -> Self {
        Self {
            began: Instant::now(),
            answer: answered(),
            spans: spans.to_vec(),
            lease: Ok(()),
            record: Ok(()),
            records_in: Duration::ZERO,
            refused: false,
            others: Ok(Vec::new()),
            log: Mutex::default(),
            attempt: Mutex::default(),
        }
    }

    fn say(&self, word: impl Into<String>) {
        self.log.lock().expect("one thread").push(word.into());
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().expect("one thread").clone()
    }

    async fn run(&self, progress: Progress) -> Result<FinishedRun, RunError> {
        let plan = plan("span[name=\"cart\"]", "attr:items = 3");
        let job = Job {
            run_id: RunId::new(Timestamp::from_nanos(0), [1; 10]),
            plan: &plan,
            vars: &Vars::default(),
            files: &Files::default(),
            progress,
            limits: Limits::default(),
            learned: &LearnedProfile::default(),
            started: None,
            timeout: None,
        };
        run(job, self).await
    }
}

impl Ports for World {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(1_000_000_000_000_000_000).plus(self.began.elapsed())
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
        self.say("listens");
        let (sender, receiver) = mpsc::channel(64);
        let spans = self.spans.clone();
        let trigger =
            self.attempt.lock().expect("one thread").map_or([7; 8], |a| *a.span_id.as_bytes());
        let feed = async move {
            let began = Instant::now();
            for (after, id, parent, name) in spans {
                tokio::time::sleep_until(began + Duration::from_millis(after)).await;
                let parent = if parent == 0 { trigger } else { [parent; 8] };
                if sender.send(Arrival::pushed(otlp(trace, id, parent, name))).await.is_err() {
                    return;
                }
            }
            // The stream stays open, like that of a receiver, by the paused clock.
            sleep(Duration::from_secs(3600)).await;
            drop(sender);
        };
        let mut feeding = tokio::task::JoinSet::new();
        feeding.spawn(feed);
        feeding.detach_all();
        Arrivals::new(receiver)
    }

    fn has_lost_spans(&self, _trace: TraceId) -> bool {
        self.refused
    }

    async fn other_servers(&self, _trace: TraceId) -> Result<Vec<String>, LeaseLost> {
        self.others.clone()
    }

    async fn attempted(&self, attempt: &Attempt) -> Result<(), LeaseLost> {
        self.say("attempted");
        *self.attempt.lock().expect("one thread") = Some(*attempt);
        // The clock is paused, and the time that the record takes is a part of the case.
        sleep(self.records_in).await;
        self.record.clone()
    }

    async fn fire(&self, _request: &Request, _attempt: &Attempt) -> Result<Answer, LeaseLost> {
        self.lease.clone()?;
        self.say("fires");
        Ok(self.answer.clone())
    }

    async fn answered(&self, _answer: &Answer) -> Result<(), LeaseLost> {
        self.say("answered");
        Ok(())
    }

    fn tell(&self, event: RunEvent) {
        self.say(match event.what {
            What::Settled(_) => "settled".to_owned(),
            What::Provisional { verdict } => format!("provisional {}", verdict.as_str()),
            What::Judged { verdict } => verdict.as_str().to_owned(),
            other => format!("{other:?}"),
        });
    }
}

fn answered() -> Answer {
    let body = Body::Text("{}".into());
    Answer::Response(Response { status: 200, headers: Vec::new(), body, duration_ns: 1 })
}

fn plan(selector: &str, assertion: &str) -> Plan {
    let document = format!(
        "type: Test
spec:
  name: cart
  trigger: {{type: http, httpRequest: {{method: GET, url: 'http://shop/cart'}}}}
  settle: {{timeout: 10s, flush: 1s}}
  specs:
    - selector: {selector}
      assertions: ['{assertion}']
"
    );
    let (documents, mistakes) = lang::read(&Text::new("cart.yaml", document));
    assert!(mistakes.is_empty(), "{}", source::draw(&mistakes, source::Colour::Never));
    let test = documents.iter().find_map(|document| match document {
        Document::Test(test) => Some(test),
        _ => None,
    });
    lang::compile(test.expect("one test")).0.expect("it compiles")
}

fn otlp(trace_id: TraceId, id: u8, parent: [u8; 8], name: &str) -> Bytes {
    let mut trace = Trace::new(trace_id);
    let resource = trace.resource(ResourceData::default()).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    let id = SpanId::from_bytes([id; 8]).expect("not zero");
    let mut span = SpanData::new(id, SpanId::from_bytes(parent), name);
    span.attributes.push(("items".to_owned(), Value::Int(3)));
    trace.push(resource, scope, span).expect("room");
    Bytes::from(otlp::encode(&trace))
}

fn attempt() -> Attempt {
    Attempt {
        trace_id: TraceId::from_bytes([3; 16]).expect("not zero"),
        span_id: SpanId::from_bytes([7; 8]).expect("not zero"),
        at: Timestamp::from_nanos(1_000_000_000_000_000_000),
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_listens_records_fires_settles_and_judges_in_this_order() {
    let world = World::new(&[(5, 1, 0, "cart"), (300, 2, 1, "query")]);
    let finished = world.run(Progress::New).await.expect("a verdict");
    assert_eq!(finished.outcome.verdict, Verdict::Passed, "{:#?}", finished.outcome);
    let order = ["listens", "attempted", "fires", "answered", "settled", "provisional passed"];
    assert_eq!(world.log(), order);
    let settlement = finished.outcome.settlement.expect("a trace was asked for");
    assert!(settlement.is_whole() && settlement.spans == 2, "{settlement:?}");
    // 300 ms to the last span, then the declared quiet period of one second, and no longer.
    assert!((1300..1310).contains(&(settlement.waited_ns / 1_000_000)), "{settlement:?}");
    let trace = finished.trace.expect("kept");
    assert_eq!(trace.len(), 3, "the trigger's span is in it");
    assert!(world.keys().verify(&trace.id()).is_some(), "the id identifies itself");
}

#[tokio::test(start_paused = true)]
async fn a_trace_that_is_not_whole_concludes_nothing_from_absence() {
    // (spans, why the trace is not complete, how many seconds the run takes: if no span arrives at all, nothing is concluded,
    // so the run does not wait for the deadline)
    let orphan = SpanId::from_bytes([2; 8]).expect("not zero");
    let endless: Vec<_> = (0..30).map(|n| (n * 500, n as u8 + 10, 0, "cart")).collect();
    let cases = [
        (vec![], UnsettledReason::NoTelemetry, 6),
        (
            vec![(5, 1, 0, "cart"), (6, 2, 99, "query")],
            UnsettledReason::ParentsAbsent(vec![orphan]),
            10,
        ),
        (endless, UnsettledReason::NotQuiet, 10),
    ];
    for (spans, unsettled, seconds) in cases {
        let finished = World::new(&spans).run(Progress::New).await.expect("a verdict");
        let settlement = finished.outcome.settlement.expect("a trace was asked for");
        assert_eq!(settlement.unsettled, [unsettled]);
        assert_eq!(finished.outcome.verdict, Verdict::Inconclusive, "{settlement:?}");
        let said = finished.outcome.reasons.len() + finished.outcome.diagnoses.len();
        assert!(said > 0, "it says why");
        assert_eq!(settlement.waited_ns / 10_000_000, seconds * 100, "{settlement:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_comes_late_closes_the_trace() {
    let world = World::new(&[(5, 2, 1, "query"), (3000, 1, 0, "cart")]);
    let finished = world.run(Progress::New).await.expect("a verdict");
    assert_eq!(finished.outcome.verdict, Verdict::Passed);
    let waited = finished.outcome.settlement.map(|s| s.waited_ns / 1_000_000);
    assert!(waited.is_some_and(|ms| (4000..4010).contains(&ms)), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_trigger_span_that_comes_back_is_the_same_span() {
    let world =
        World::new(&[(5, 1, 0, "cart"), (6, 14, 99, "query"), (8, 7, 99, "Qualitytrace trigger")]);
    // The minted span id consists of bytes that are all 7, so the third span has it.
    let finished = world.run(Progress::New).await.expect("a verdict");
    let trace = finished.trace.expect("kept");
    let triggers = trace.spans().filter(|span| span.name() == "Qualitytrace trigger");
    assert_eq!(triggers.count(), 1);
    assert!(trace.conflicts().is_empty());
    assert_eq!(finished.outcome.settlement.map(|s| s.spans), Some(2), "it is not counted");
}

#[tokio::test(start_paused = true)]
async fn the_trigger_span_begins_when_the_request_is_sent() {
    let records_in = Duration::from_secs(1);
    let world = World { records_in, ..World::new(&[(1005, 1, 0, "cart")]) };
    let finished = world.run(Progress::New).await.expect("a verdict");
    let attempt = world.attempt.lock().expect("one thread").expect("it was attempted");
    let trigger = finished.trigger.expect("it was fired");
    assert_eq!(trigger.start, attempt.at.plus(records_in));
    let Answer::Response(response) = &*finished.answer else { panic!("a response") };
    assert_eq!(trigger.end, trigger.start.plus(Duration::from_nanos(response.duration_ns)));

    // Another worker that continues knows the attempt, and not when the request was sent.
    let world = World::new(&[(5, 1, 0, "cart")]);
    let resumed = world.run(Progress::Answered(attempt, answered())).await.expect("a verdict");
    assert_eq!(resumed.trigger.expect("it was fired").start, attempt.at);
}

#[tokio::test(start_paused = true)]
async fn what_was_attempted_is_never_fired_again() {
    let mut world = World::new(&[(5, 1, 0, "cart")]);
    world.refused = true;
    let finished = world.run(Progress::Attempted(attempt())).await.expect("a verdict");
    assert!(!world.log().contains(&"fires".to_owned()), "{:?}", world.log());
    assert_eq!(finished.outcome.trace_id, Some(attempt().trace_id));
    assert_eq!(finished.outcome.verdict, Verdict::Inconclusive);
    let unsettled = finished.outcome.settlement.expect("settled").unsettled;
    assert_eq!(unsettled, [UnsettledReason::NotAnswered, UnsettledReason::SpansLost]);
    assert!(
        finished.outcome.reasons[0].contains("never sent twice"),
        "{:?}",
        finished.outcome.reasons
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_is_judged_on_the_recorded_answer() {
    let mut world = World::new(&[(5, 1, 0, "cart")]);
    world.refused = true;
    let progress = Progress::Answered(attempt(), answered());
    let finished = world.run(progress).await.expect("a verdict");
    assert_eq!(world.log(), ["listens", "settled", "inconclusive"]);
    assert_eq!(finished.outcome.answer, Some(answered()));
    assert_eq!(
        finished.outcome.settlement.expect("settled").unsettled,
        [UnsettledReason::SpansLost]
    );
}

/// A listener that never stopped receives all spans, even if another worker continues the run.
#[tokio::test(start_paused = true)]
async fn a_resumed_run_concludes_where_nothing_was_lost() {
    let world = World::new(&[(5, 1, 0, "cart"), (6, 14, 99, "query")]);
    let fresh = world.run(Progress::New).await.expect("a verdict").outcome;
    let progress = Progress::Answered(attempt(), answered());
    let resumed = world.run(progress).await.expect("a verdict").outcome;
    assert_eq!(resumed.settlement.map(|it| it.unsettled), fresh.settlement.map(|it| it.unsettled));
    assert_eq!(resumed.verdict, fresh.verdict);
}

#[tokio::test(start_paused = true)]
async fn spans_that_were_refused_leave_absence_open() {
    let mut world = World::new(&[(5, 1, 0, "cart")]);
    world.refused = true;
    let finished = world.run(Progress::New).await.expect("a verdict");
    assert_eq!(
        finished.outcome.settlement.expect("settled").unsettled,
        [UnsettledReason::SpansLost]
    );
    assert_eq!(finished.outcome.verdict, Verdict::Inconclusive);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_that_is_not_recorded_or_not_ours() {
    let mut world = World::new(&[]);
    world.record = Err(LeaseLost("fenced".to_owned()));
    let error = world.run(Progress::New).await.expect_err("given up");
    assert_eq!(error.to_string(), "the run was given up: fenced");
    assert_eq!(world.log(), ["listens", "attempted"]);

    let mut world = World::new(&[]);
    world.lease = Err(LeaseLost("the lease is short".to_owned()));
    world.run(Progress::New).await.expect_err("given up");
    assert_eq!(world.log(), ["listens", "attempted"]);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_silence_is_believed_soon() {
    // Twice the quiet period, not the complete timeout; and no wait at all if nothing was sent.
    let cases =
        [(NoAnswerKind::Connection, 2, "connection broke"), (NoAnswerKind::Refused, 0, "start it")];
    for (kind, seconds, words) in cases {
        let mut world = World::new(&[]);
        world.answer = Answer::NoAnswer(NoAnswer { kind, message: "no".to_owned() });
        let finished = world.run(Progress::New).await.expect("a verdict");
        assert_eq!(finished.outcome.verdict, Verdict::Inconclusive);
        let [reason] = finished.outcome.reasons.as_slice() else { unreachable!("one reason") };
        assert!(reason.contains(words), "{reason}");
        let settlement = finished.outcome.settlement.expect("settled");
        assert_eq!(
            settlement.unsettled,
            [UnsettledReason::NotAnswered, UnsettledReason::NoTelemetry]
        );
        assert_eq!(settlement.waited_ns / 1_000_000_000, seconds, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_another_server_received_spans_absence_is_open() {
    let mut world = World::new(&[(5, 1, 0, "cart")]);
    world.others = Ok(vec!["quality-2:11633".to_owned()]);
    let outcome = world.run(Progress::New).await.expect("a verdict").outcome;
    let unsettled = outcome.settlement.expect("settled").unsettled;
    assert_eq!(unsettled, [UnsettledReason::OtherServers(vec!["quality-2:11633".to_owned()])]);
    assert_eq!(outcome.verdict, Verdict::Inconclusive);
    let words = &outcome.reasons[0];
    assert!(words.contains("`quality-2:11633`") && words.contains("one server"), "{words}");

    // A worker that cannot query the other servers concludes nothing, and leaves the run to the next worker.
    world.others = Err(LeaseLost("the database is away".to_owned()));
    let lost = world.run(Progress::New).await.expect_err("no verdict");
    assert!(matches!(lost, RunError::Lost(_)), "{lost}");
}

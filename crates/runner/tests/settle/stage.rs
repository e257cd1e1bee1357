//! A test stage for the settle engine: spans as lines, on a paused clock, through the complete function `run`.
//!
//! A line is an arrival: its time, in milliseconds after the response; its process (`service`, `service#instance`, with the
//! suffix `!` if we started it); its kind; its id, and after `<` its parent's id, where `t` is the trigger; its start and end.
//! Then its optional properties: `to=PEER`, `topic=NAME`, `db`, `error`, `link=ID`, `skew=MS`, `local`, `name=NAME`. Lines with
//! the same time arrive in one message.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use bytes::Bytes;
use drivers::arrivals::{AnswerGap, Arrival, Arrivals, Lag, QueriedSource};
use lang::{Document, Plan, Vars};
use model::{
    Answer, Attempt, Body, Key, KeyRing, LearnedProfile, Progress, Request, Response, RunEvent,
    RunId, SpanId, Timestamp, Trace, TraceId, UnsettledReason,
    trace::{Kind, LinkData, ResourceData, ScopeData, SpanData, StatusCode, Value},
};
use runner::{FinalRun, FinishedRun, Job, LeaseLost, Limits, MARKER, Ports, StartedProcesses, run};
use source::Text;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until},
};

/// A scenario to settle.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// Lines of `spec` in the test's document.
    pub(crate) test: String,
    pub(crate) arrivals: Vec<Line>,
    pub(crate) learned: LearnedProfile,
    /// How long a flush of the system takes, if the system can flush on request.
    pub(crate) drain: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    /// How long the trigger takes; the times of spans count from when it is fired.
    pub(crate) answers_after: Duration,
    /// The lag of the source, if it is queried.
    pub(crate) lag: Lag,
}

/// The arrivals at one time.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) at: Duration,
    pub(crate) text: String,
}

pub(crate) const MARKED: &str = "token";

/// The claim of a test in which nothing else matters: only a complete trace decides it.
pub(crate) const ABSENCE: &str = "trace: ['no span[name=\"never\"]']";

/// The words of a line that reports an answer of a queried source: the beginning of a complete one, in milliseconds, or why
/// another one covers nothing.
const ANSWERS: [&str; 4] = ["covered ", "failed ", "partial ", "refused "];

/// The words of a line that reports what is proved of pushed spans: the time of a proof, in milliseconds, or a doubt, which may
/// last.
const PROOFS: [&str; 3] = ["proved ", "doubted ", "doubted-for-good "];

/// The word of a span that comes from the queried source, and not from the receiver.
const STORED: &str = " from=store";

const EPOCH: u64 = 1_000_000_000_000_000_000;

impl Stage {
    /// Creates a stage with these lines, without declarations and without a learned profile.
    pub(crate) fn new(lines: &str) -> Self {
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = |line: &str| {
            let (at, text) = line.split_once(' ').expect("a moment and a span");
            let at = Duration::from_micros((at.parse::<f64>().expect("milliseconds") * 1e3) as u64);
            Line { at, text: text.trim().to_owned() }
        };
        Self {
            test: ABSENCE.to_owned(),
            arrivals: lines.map(line).collect(),
            learned: LearnedProfile::default(),
            drain: None,
            timeout: None,
            answers_after: Duration::ZERO,
            lag: Lag::Declared(Duration::ZERO),
        }
    }

    /// The same stage with other lines in the test.
    pub(crate) fn test(mut self, test: &str) -> Self {
        self.test = format!("{test}\n  {ABSENCE}");
        self
    }

    pub(crate) async fn run(&self) -> FinishedRun {
        let plan = plan(&self.test);
        let world = World { began: Instant::now(), stage: self.clone(), told: Mutex::default() };
        let started =
            StartedProcesses { marker: MARKED.to_owned(), batch_delay: Duration::from_millis(50) };
        let job = Job {
            run_id: RunId::new(Timestamp::from_nanos(0), [1; 10]),
            plan: &plan,
            vars: &Vars::default(),
            files: &lang::Files::default(),
            progress: Progress::New,
            limits: Limits::default(),
            learned: &self.learned,
            started: Some(&started).filter(|_| self.is_started()),
            timeout: self.timeout,
        };
        run(job, &world).await.expect("a verdict")
    }

    /// Runs it to its final verdict; returns the provisional and the final run, and when it was ready to be final.
    pub(crate) async fn conclude(&self, end: Duration) -> (FinishedRun, FinalRun, Instant) {
        let mut finished = self.run().await;
        let world = World { began: Instant::now(), stage: self.clone(), told: Mutex::default() };
        let watch = finished.watch.take().expect("a trace was asked for");
        let mut ready = Instant::now();
        // The clock is paused: the time until `end` passes at once.
        let mut watch = watch.linger(|| ready = Instant::now(), sleep(end)).await;
        let concluded = watch.conclude(finished.outcome.clone(), &world).await;
        (finished, concluded.expect("nobody else has the run"), ready)
    }

    /// Formats the outcome in one line: the settlement, the milliseconds that it took, and the verdict if it is not passed.
    pub(crate) async fn outcome(&self) -> String {
        shown(&self.run().await)
    }

    /// Whether the source is queried: it then reports what its answers cover.
    fn is_queried(&self) -> bool {
        self.arrivals.iter().any(|line| is_answer(&line.text))
    }

    fn is_started(&self) -> bool {
        self.arrivals.iter().any(|line| line.text.contains('!'))
    }
}

fn is_answer(line: &str) -> bool {
    ANSWERS.iter().any(|answer| line.starts_with(answer))
}

fn is_proof(line: &str) -> bool {
    PROOFS.iter().any(|proof| line.starts_with(proof))
}

/// Reads an answer of a queried source, or a proof; its times count from `began`.
fn answer(line: &str, began: Instant) -> Arrival {
    let (word, rest) = line.split_once(' ').expect("a word and more");
    let at = |ms: &str| began + Duration::from_millis(ms.trim().parse().expect("milliseconds"));
    let gap = match (word, rest.to_owned()) {
        ("failed", why) => AnswerGap::Failed(why),
        ("partial", why) => AnswerGap::Partial(why),
        ("refused", why) => AnswerGap::Refused(why),
        ("doubted", reason) => return Arrival::Doubt { reason, is_lasting: false },
        ("doubted-for-good", reason) => return Arrival::Doubt { reason, is_lasting: true },
        ("proved", ms) => return Arrival::Proof { began: at(&ms) },
        (_, ms) => return Arrival::Coverage { source: 0, began: at(&ms) },
    };
    Arrival::Gap { source: 0, gap }
}

pub(crate) fn shown(finished: &FinishedRun) -> String {
    let settlement = finished.outcome.settlement.as_ref().expect("a trace was asked for");
    let ms = settlement.waited_ns / 1_000_000;
    let reasons: Vec<_> = settlement.unsettled.iter().map(reason).collect();
    let how = if reasons.is_empty() { "whole".to_owned() } else { reasons.join(", ") };
    let verdict = match finished.outcome.verdict {
        model::Verdict::Passed => String::new(),
        other => format!(" {}", other.as_str()),
    };
    format!("{how} {ms}{verdict}")
}

fn reason(unsettled: &UnsettledReason) -> String {
    let ids = |spans: &[SpanId]| {
        let ids: Vec<_> = spans.iter().map(|span| span.as_bytes()[0].to_string()).collect();
        ids.join("+")
    };
    match unsettled {
        UnsettledReason::ParentsAbsent(spans) => format!("orphans {}", ids(spans)),
        UnsettledReason::EdgesOpen(spans) => format!("calls {}", ids(spans)),
        UnsettledReason::ExpectedAbsent(expected) => format!("expected {}", expected.join("+")),
        UnsettledReason::StoreUnread(gap) => format!("unread: {}", gap.message),
        UnsettledReason::StorePartial(gap) => format!("partial: {}", gap.message),
        UnsettledReason::Unproved(reason) => format!("unproved: {reason}"),
        other => format!("{other:?}"),
    }
}

pub(crate) fn plan(test: &str) -> Plan {
    let document = format!(
        "type: Test
spec:
  name: cart
  trigger: {{type: http, httpRequest: {{method: GET, url: 'http://shop/cart'}}}}
  {test}
"
    );
    let (documents, mistakes) = lang::read(&Text::new("cart.yaml", document));
    assert!(mistakes.is_empty(), "{}", source::draw(&mistakes, source::Colour::Never));
    let test = documents.iter().find_map(|document| match document {
        Document::Test(test) => Some(test),
        _ => None,
    });
    let (plan, mistakes) = lang::compile(test.expect("one test"));
    plan.unwrap_or_else(|| unreachable!("{}", source::draw(&mistakes, source::Colour::Never)))
}

/// An environment that sends the arrivals of the stage.
struct World {
    began: Instant,
    stage: Stage,
    told: Mutex<Vec<RunEvent>>,
}

impl Ports for World {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(EPOCH).plus(self.began.elapsed())
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
        let (sender, receiver) = mpsc::channel(1024);
        let mut messages: BTreeMap<Duration, Vec<String>> = BTreeMap::new();
        for Line { at, text } in &self.stage.arrivals {
            messages.entry(*at).or_default().push(text.clone());
        }
        let began = Instant::now() + self.stage.answers_after;
        let feed = async move {
            for (at, lines) in messages {
                sleep_until(began + at).await;
                let (answers, spans): (Vec<_>, Vec<_>) =
                    lines.into_iter().partition(|line| is_answer(line) || is_proof(line));
                let (stored, pushed): (Vec<_>, Vec<_>) =
                    spans.into_iter().partition(|line| line.contains(STORED));
                let mut arrivals = Vec::new();
                if !pushed.is_empty() {
                    arrivals.push(Arrival::pushed(otlp(trace, &pushed)));
                }
                if !stored.is_empty() {
                    let (at, bytes) = (Instant::now(), otlp(trace, &stored));
                    arrivals.push(Arrival::Spans { source: Some(0), at, bytes });
                }
                arrivals.extend(answers.iter().map(|line| answer(line, began)));
                for arrival in arrivals {
                    if sender.send(arrival).await.is_err() {
                        return;
                    }
                }
            }
            // The stream stays open, like that of a receiver, by the paused clock.
            sleep(Duration::from_secs(3600)).await;
            drop(sender);
        };
        let mut feeding = tokio::task::JoinSet::new();
        feeding.spawn(feed);
        feeding.detach_all();
        let is_proved = self.stage.arrivals.iter().any(|line| is_proof(&line.text));
        let mut arrivals = match is_proved {
            true => Arrivals::with_proofs(receiver, watch::Sender::default()),
            false => Arrivals::new(receiver),
        };
        if self.stage.is_queried() {
            let source =
                QueriedSource { name: "prod".to_owned(), lag: self.stage.lag, lacks: Vec::new() };
            arrivals.query(source, |_| async {});
        }
        arrivals
    }

    fn has_lost_spans(&self, _trace: TraceId) -> bool {
        false
    }

    async fn attempted(&self, _attempt: &Attempt) -> Result<(), LeaseLost> {
        Ok(())
    }

    async fn fire(&self, _request: &Request, _attempt: &Attempt) -> Result<Answer, LeaseLost> {
        // The clock is paused, and the time of the response is a part of the stage.
        sleep(self.stage.answers_after).await;
        let body = Body::Text("{}".into());
        Ok(Answer::Response(Response { status: 200, headers: Vec::new(), body, duration_ns: 1 }))
    }

    async fn answered(&self, _answer: &Answer) -> Result<(), LeaseLost> {
        Ok(())
    }

    async fn drain(&self) -> bool {
        match self.stage.drain {
            None => false,
            Some(takes) => {
                // The same for the time of the drain.
                sleep(takes).await;
                true
            }
        }
    }

    fn tell(&self, event: RunEvent) {
        self.told.lock().expect("one thread").push(event);
    }
}

/// Encodes one message with the spans of these lines.
pub(crate) fn otlp(trace_id: TraceId, lines: &[String]) -> Bytes {
    let mut trace = Trace::new(trace_id);
    for line in lines {
        let (resource, span) = span(line, trace_id);
        let resource = trace.resource(resource).expect("room");
        let scope = trace.scope(ScopeData::default()).expect("room");
        trace.push(resource, scope, span).expect("room");
    }
    Bytes::from(otlp::encode(&trace))
}

fn span(line: &str, trace_id: TraceId) -> (ResourceData, SpanData) {
    let mut words = line.split_whitespace();
    let mut word = || words.next().unwrap_or_else(|| unreachable!("`{line}` is too short"));
    let (process, kind, ids, times) = (word(), word(), word(), word());
    let (id, parent) = ids.split_once('<').expect("a parent");
    let parent = if parent == "t" { SpanId::from_bytes([7; 8]) } else { Some(span_id(parent)) };
    let mut span = SpanData::new(span_id(id), parent, "work");
    span.kind = match kind {
        "server" => Kind::Server,
        "client" => Kind::Client,
        "producer" => Kind::Producer,
        "consumer" => Kind::Consumer,
        "inner" => Kind::Internal,
        _ => unreachable!("`{kind}` is no kind"),
    };
    let (start, end) = times.split_once("..").expect("two times");
    let mut skew = 0;
    let text = |value: &str| Value::Str(value.to_owned());
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "to" => span.attributes.push(("peer.service".to_owned(), text(value))),
            "at" => span.attributes.push(("server.address".to_owned(), text(value))),
            "topic" => span.attributes.push(("messaging.destination.name".to_owned(), text(value))),
            "db" => span.attributes.push(("db.system.name".to_owned(), text("postgresql"))),
            "error" => span.status.code = StatusCode::Error,
            "link" => span.links.push(LinkData {
                trace_id: Some(trace_id),
                span_id: Some(span_id(value)),
                ..LinkData::default()
            }),
            "skew" => skew = value.parse::<i64>().expect("milliseconds"),
            "local" => span.flags = 0x100,
            "from" => {}
            "name" => value.clone_into(&mut span.name),
            _ => unreachable!("`{word}` says nothing"),
        }
    }
    let moment = |ms: &str| {
        let ms = ms.parse::<i64>().expect("milliseconds") + skew;
        Timestamp::from_nanos(EPOCH.checked_add_signed(ms * 1_000_000).expect("a moment"))
    };
    (span.start, span.end) = (moment(start), moment(end));
    (resource(process), span)
}

fn resource(process: &str) -> ResourceData {
    let (process, is_started) =
        process.strip_suffix('!').map_or((process, false), |process| (process, true));
    let (service, instance) = process.split_once('#').unwrap_or((process, ""));
    let mut attributes = Vec::new();
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            attributes.push((key.to_owned(), Value::Str(value.to_owned())));
        }
    };
    add("service.name", service);
    add("service.instance.id", instance);
    add(MARKER, if is_started { MARKED } else { "" });
    ResourceData { attributes, ..ResourceData::default() }
}

fn span_id(number: &str) -> SpanId {
    let number: u8 = number.parse().expect("a number");
    assert!(number != 7, "that is the trigger's");
    SpanId::from_bytes([number; 8]).expect("not zero")
}

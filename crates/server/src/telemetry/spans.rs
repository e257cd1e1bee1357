//! The spans of the server itself, by the names of the catalogue.
//!
//! Deliberately absent: how a span is exported, and anything about ingest, which is never traced.

use std::time::Duration;

use db::RunLease;
use model::{
    Answer, Outcome, SpanId, Step, StepTime, Timestamp, TraceId, Verdict, World,
    trace::{EventData, Kind, LinkData, SpanData, Status, StatusCode, Value},
};

use telemetry::{ParentState, plan::Level};

use crate::{
    plant::{Plant, is_planted},
    telemetry::{
        call::{Call, HttpSpan},
        catalogue::{EXCEPTION, JUDGEMENT, RUN, attribute},
        export::Telemetry,
        traceparent::TraceParent,
    },
};

/// The span ids of a run. They are chosen when the run is leased, so that a child span of a step can be exported before
/// the step's own span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunTrace {
    /// The span of the run.
    own: TraceParent,
    /// The parent of the run's span; `None` makes it a root.
    parent: Option<SpanId>,
    steps: [SpanId; STEPS],
}

const STEPS: usize = Step::Record as usize + 1;

impl RunTrace {
    pub(crate) fn new(parent: Option<TraceParent>, world: World) -> Self {
        let parent = parent.filter(|_| !is_planted(Plant::LostContext));
        let span = || SpanId::from_random(world.random());
        let root = || TraceParent {
            trace_id: TraceId::from_random(world.random()),
            span_id: span(),
            sampled: true,
            followed: false,
            level: Level::Info,
        };
        Self {
            own: parent.map_or_else(root, |parent| parent.at(span())),
            parent: parent.map(|parent| parent.span_id),
            steps: std::array::from_fn(|_| span()),
        }
    }

    /// The context of the run's span.
    pub(crate) fn own(&self) -> TraceParent {
        self.own
    }

    /// The context of a step's span.
    pub(crate) fn step(&self, step: Step) -> TraceParent {
        TraceParent { level: step_level(step), ..self.own.at(self.steps[step as usize]) }
    }
}

/// The data for the span of a run: its outcome, and what only its worker knows.
pub(crate) struct RunSpan<'a> {
    pub(crate) trace: RunTrace,
    pub(crate) outcome: &'a Outcome,
    pub(crate) taken: &'a RunLease,
    /// The trace under test and the trigger's span in it; `None` if no trigger was sent.
    pub(crate) trigger: Option<(TraceId, SpanId)>,
    /// All steps in the order they began, queue and record included.
    pub(crate) steps: &'a [StepTime],
}

/// Exports the span of a run with a child for each of its steps.
pub(crate) fn send_run(telemetry: &Telemetry, run: &RunSpan<'_>) {
    let RunTrace { own, parent, .. } = run.trace;
    let mut root = SpanData::new(own.span_id, parent, RUN);
    root.kind = Kind::Internal;
    root.start = run.steps.iter().map(|step| step.began).min().unwrap_or_default();
    root.end = run.steps.iter().map(|step| step.ended).max().unwrap_or_default();
    root.attributes = run_attributes(run.outcome);
    root.attributes.extend(taken_attributes(run.taken));
    let linked = run.trigger.filter(|_| !is_planted(Plant::DroppedLink));
    root.links.extend(linked.map(|(trace_id, span_id)| LinkData {
        trace_id: Some(trace_id),
        span_id: Some(span_id),
        ..LinkData::default()
    }));
    for step in run.steps {
        if is_planted(Plant::MissingStep) && step.step == Step::Settle {
            continue;
        }
        let name = format!("{RUN}.{}", step.step.as_str());
        let TraceParent { span_id: id, level, .. } = run.trace.step(step.step);
        let mut child = SpanData::new(id, Some(own.span_id), name);
        child.kind = Kind::Internal;
        (child.start, child.end) = (step.began, step.ended);
        if is_planted(Plant::StepsOutOfOrder) && step.step == Step::Judge {
            child.start = root.start;
        }
        if let (Step::Trigger, Some(Answer::NoAnswer(none))) = (step.step, &run.outcome.answer) {
            fail(&mut child, none.kind.as_str(), none.kind.as_str());
        }
        telemetry.own(&own, (level, ParentState::UnderWay), child);
    }
    // The request that started the run had its response at once.
    telemetry.own(&own, (Level::Info, ParentState::Ended(Level::Info)), root);
}

/// Returns the level of a step's span: a step that only waits has a finer level than one that works.
fn step_level(step: Step) -> Level {
    match step {
        Step::Queue | Step::Settle | Step::Linger => Level::Trace,
        Step::Compile | Step::Resolve | Step::Trigger | Step::Judge | Step::Record => Level::Debug,
    }
}

/// Exports the span of a re-judgement that a caller requested, as a child of `within`.
pub(crate) fn send_judgement(
    telemetry: &Telemetry,
    (within, id): (TraceParent, SpanId),
    outcome: &Outcome,
    times: (Timestamp, Timestamp),
) {
    let mut span = SpanData::new(id, Some(within.span_id), JUDGEMENT);
    span.kind = Kind::Internal;
    (span.start, span.end) = times;
    span.attributes = run_attributes(outcome);
    telemetry.own(&within, (Level::Info, ParentState::UnderWay), span);
}

/// Returns the attributes of the lease: project, test and version, revision of the system, and the starter of the run.
fn taken_attributes(taken: &RunLease) -> impl Iterator<Item = (String, Value)> {
    let version = Value::Int(taken.test.version.into());
    let suite = taken.suite.as_deref().map(|suite| text(attribute::TEST_SUITE, suite));
    let revision = taken.vars.revision.as_deref();
    let revision = revision.map(|revision| text(attribute::REVISION, revision));
    [
        text(attribute::PROJECT, taken.project.as_str()),
        text(attribute::TEST_ID, taken.test.id.as_str()),
        (attribute::TEST_VERSION.to_owned(), version),
    ]
    .into_iter()
    .chain(suite)
    .chain(revision)
    .chain(taken.starter.map(|starter| text(attribute::STARTER, starter.as_str())))
}

fn run_attributes(outcome: &Outcome) -> Vec<(String, Value)> {
    let mut attributes = vec![
        text(attribute::TEST_CASE, &outcome.test),
        text(attribute::VERDICT, outcome.verdict.as_str()),
    ];
    attributes.extend(outcome.run_id.map(|id| text(attribute::RUN_ID, &id.to_string())));
    // The semantic conventions have two results; an inconclusive run sets neither.
    match outcome.verdict {
        Verdict::Passed => attributes.push(text(attribute::TEST_STATUS, "pass")),
        Verdict::Failed => attributes.push(text(attribute::TEST_STATUS, "fail")),
        Verdict::Inconclusive => {}
    }
    if let Some(settlement) = &outcome.settlement {
        let waited = Duration::from_nanos(settlement.waited_ns).as_secs_f64();
        attributes
            .push((attribute::SETTLE_COMPLETE.to_owned(), Value::Bool(settlement.is_whole())));
        attributes.push(text(attribute::SETTLE_REASON, &settlement.reason()));
        attributes.push((attribute::SETTLE_WAITED.to_owned(), Value::Double(waited)));
        let spans = i64::try_from(settlement.spans).unwrap_or(i64::MAX);
        attributes.push((attribute::SETTLE_SPANS.to_owned(), Value::Int(spans)));
    }
    attributes
}

/// Returns the trigger's span for the application's trace store: without the content of the response.
pub(crate) fn trigger_for_application(mut span: SpanData, taken: &RunLease) -> SpanData {
    let is_content = |key: &str| {
        [".response.body", ".response.headers", ".response.stderr"]
            .iter()
            .any(|end| key.ends_with(end))
    };
    span.attributes.retain(|(key, _)| !is_content(key));
    // A reader of the application's traces sees which test fired.
    span.attributes.extend([
        text(attribute::RUN_ID, &taken.run_id.to_string()),
        text(attribute::TEST_ID, taken.test.id.as_str()),
        text(attribute::TEST_CASE, &taken.test.name),
    ]);
    span
}

/// The maximum length of an exported path: untrusted senders choose it.
const PATH_BYTES_MAX: usize = 1024;

fn cut(path: &str) -> &str {
    &path[..path.floor_char_boundary(PATH_BYTES_MAX)]
}

/// Exports the span of a served request, named by the stable semantic conventions.
pub(crate) fn send_http(telemetry: &Telemetry, http: &HttpSpan<'_>) {
    telemetry.metrics().served(http);
    let name = match http.route {
        Some(_) if is_planted(Plant::PathInName) => format!("{} {}", http.method, http.path),
        Some(route) => format!("{} {route}", http.method),
        None => http.method.to_owned(),
    };
    // A caller that exceeds its rate limit must not fill the telemetry buffer as well.
    if http.status == 429 {
        return;
    }
    // The sampling decision of an unauthenticated caller is not followed either.
    let context =
        TraceParent { followed: http.context.followed && http.status != 401, ..http.context };
    let mut span = SpanData::new(http.context.span_id, http.parent, name);
    span.kind = Kind::Server;
    (span.start, span.end) = (http.began, http.ended);
    span.attributes = vec![
        text(attribute::METHOD, http.method),
        text(attribute::PATH, cut(http.path)),
        text(attribute::SCHEME, "http"),
        (attribute::STATUS.to_owned(), Value::Int(i64::from(http.status))),
    ];
    span.attributes.extend(http.route.map(|route| text(attribute::ROUTE, route)));
    if http.status >= 500 {
        let status = http.status.to_string();
        fail(&mut span, &status, http.fault.map_or(status.as_str(), |fault| fault.as_str()));
    }
    telemetry.own(&context, (Level::Info, ParentState::Remote), span);
}

/// A database statement that was executed.
pub(crate) struct DbSpan {
    /// The context of the parent span.
    pub(crate) within: TraceParent,
    pub(crate) id: SpanId,
    pub(crate) call: Call,
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
    /// The kind of error in one word: a message of the database may quote values.
    pub(crate) error: Option<&'static str>,
}

/// Exports the span of a statement, named by the stable semantic conventions. It holds no values and no SQL.
pub(crate) fn send_db(telemetry: &Telemetry, db: &DbSpan) {
    telemetry.metrics().count_statement(db.call, db.ended.max(db.began).since(db.began), db.error);
    let Call(operation, table) = db.call;
    let mut span = SpanData::new(db.id, Some(db.within.span_id), format!("{operation} {table}"));
    span.kind = Kind::Client;
    (span.start, span.end) = (db.began, db.ended);
    span.attributes = vec![
        text(attribute::DB_SYSTEM, "postgresql"),
        text(attribute::DB_OPERATION, operation),
        text(attribute::DB_TABLE, table),
    ];
    if is_planted(Plant::UnknownAttribute) {
        span.attributes.push(text("db.query.text", "select 1"));
    }
    if let Some(kind) = db.error {
        fail(&mut span, kind, kind);
    }
    let level = db.within.level.min(Level::Debug);
    telemetry.own(&db.within, (level, ParentState::UnderWay), span);
}

/// Exports the span of a notification on the bus, named by the semantic conventions of messaging.
pub(crate) fn send_hint(
    telemetry: &Telemetry,
    within: TraceParent,
    id: SpanId,
    subject: &str,
    times: (Timestamp, Timestamp),
) {
    let mut span = SpanData::new(id, Some(within.span_id), format!("send {subject}"));
    span.kind = Kind::Producer;
    (span.start, span.end) = times;
    span.attributes = vec![
        text(attribute::BUS_SYSTEM, "qualitytrace"),
        text(attribute::BUS_OPERATION, "send"),
        text(attribute::BUS_KIND, "send"),
        text(attribute::BUS_SUBJECT, subject),
    ];
    telemetry.own(&within, (Level::Trace, ParentState::UnderWay), span);
}

/// Marks a span as failed: sets its error type, and adds the exception as an event. Messages are omitted, since they quote values.
fn fail(span: &mut SpanData, error: &str, exception: &str) {
    if is_planted(Plant::SwallowedError) {
        return;
    }
    span.status = Status { code: StatusCode::Error, message: String::new() };
    span.attributes.push(text(attribute::ERROR, error));
    if is_planted(Plant::MissingException) {
        return;
    }
    span.events.push(EventData {
        at: span.end,
        name: EXCEPTION.to_owned(),
        attributes: vec![text(attribute::EXCEPTION_TYPE, exception)],
        dropped_attributes: 0,
    });
}

fn text(key: &str, value: &str) -> (String, Value) {
    (key.to_owned(), Value::Str(value.to_owned()))
}

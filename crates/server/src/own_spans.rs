//! What the server says about itself: the names and attributes of its own spans.
//!
//! Telemetry is an interface, so every name stands here and nowhere else. Deliberately absent: how a span
//! gets out, and anything about ingest, which is never traced.

use std::time::Duration;

use model::{
    Outcome, SpanId, StepTime, Timestamp, TraceId, Verdict, World,
    trace::{Kind, LinkData, SpanData, Status, StatusCode, Value},
};

use crate::{telemetry::Telemetry, traceparent::TraceParent};

const RUN: &str = "qualitytrace.run";

/// What a run is told by: its outcome, and what only its worker knows.
pub(crate) struct RunSpan<'a> {
    pub(crate) outcome: &'a Outcome,
    /// The trace under test and the trigger's span in it; none where nothing was sent.
    pub(crate) trigger: Option<(TraceId, SpanId)>,
    /// All steps in the order they began, queue and record included.
    pub(crate) steps: &'a [StepTime],
    /// What the run continues; none makes it a root.
    pub(crate) parent: Option<TraceParent>,
    /// Where ids of new spans come from.
    pub(crate) world: World,
}

/// Sends the span of a run with a child for each of its steps.
pub(crate) fn send_run(telemetry: &Telemetry, run: &RunSpan<'_>) {
    if run.parent.is_some_and(|parent| !parent.sampled) {
        return;
    }
    let trace_id = run
        .parent
        .map_or_else(|| TraceId::from_random(run.world.random()), |parent| parent.trace_id);
    let mut root =
        SpanData::new(SpanId::from_random(run.world.random()), run.parent.map(|p| p.span_id), RUN);
    root.kind = Kind::Internal;
    root.start = run.steps.iter().map(|step| step.began).min().unwrap_or_default();
    root.end = run.steps.iter().map(|step| step.ended).max().unwrap_or_default();
    root.attributes = run_attributes(run.outcome);
    root.links.extend(run.trigger.map(|(trace_id, span_id)| LinkData {
        trace_id: Some(trace_id),
        span_id: Some(span_id),
        ..LinkData::default()
    }));
    for step in run.steps {
        let name = format!("{RUN}.{}", step.step.as_str());
        let mut child = SpanData::new(SpanId::from_random(run.world.random()), Some(root.id), name);
        child.kind = Kind::Internal;
        (child.start, child.end) = (step.began, step.ended);
        telemetry.own(trace_id, child);
    }
    telemetry.own(trace_id, root);
}

fn run_attributes(outcome: &Outcome) -> Vec<(String, Value)> {
    let mut attributes = vec![
        text("test.case.name", &outcome.test),
        text("qualitytrace.run.id", &outcome.run_id.to_string()),
        text("qualitytrace.run.verdict", outcome.verdict.as_str()),
    ];
    // The conventions know two results; a run that shows neither says nothing here.
    match outcome.verdict {
        Verdict::Passed => attributes.push(text("test.case.result.status", "pass")),
        Verdict::Failed => attributes.push(text("test.case.result.status", "fail")),
        Verdict::Inconclusive => {}
    }
    if let Some(settlement) = &outcome.settlement {
        let waited = Duration::from_nanos(settlement.waited_ns).as_secs_f64();
        attributes
            .push(("qualitytrace.settle.whole".to_owned(), Value::Bool(settlement.is_whole())));
        attributes.push(("qualitytrace.settle.waited".to_owned(), Value::Double(waited)));
        let spans = i64::try_from(settlement.spans).unwrap_or(i64::MAX);
        attributes.push(("qualitytrace.settle.spans".to_owned(), Value::Int(spans)));
    }
    attributes
}

/// The trigger's span as the application's trace store gets it: without what the response held.
pub(crate) fn trigger_for_application(mut span: SpanData) -> SpanData {
    let is_content =
        |key: &str| key.ends_with(".response.body") || key.ends_with(".response.headers");
    span.attributes.retain(|(key, _)| !is_content(key));
    span
}

/// An HTTP request that was served.
pub(crate) struct HttpSpan<'a> {
    pub(crate) context: TraceParent,
    pub(crate) parent: Option<SpanId>,
    pub(crate) method: &'a str,
    /// The route as the router knows it; none for a path that no route has.
    pub(crate) route: Option<&'a str>,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
}

/// Sends the span of a served request, named by the stable semantic conventions.
pub(crate) fn send_http(telemetry: &Telemetry, http: &HttpSpan<'_>) {
    if !http.context.sampled {
        return;
    }
    let name = match http.route {
        Some(route) => format!("{} {route}", http.method),
        None => http.method.to_owned(),
    };
    let mut span = SpanData::new(http.context.span_id, http.parent, name);
    span.kind = Kind::Server;
    (span.start, span.end) = (http.began, http.ended);
    span.attributes = vec![
        text("http.request.method", http.method),
        text("url.path", http.path),
        text("url.scheme", "http"),
        ("http.response.status_code".to_owned(), Value::Int(i64::from(http.status))),
    ];
    span.attributes.extend(http.route.map(|route| text("http.route", route)));
    if http.status >= 500 {
        span.attributes.push(text("error.type", &http.status.to_string()));
        span.status = Status { code: StatusCode::Error, message: String::new() };
    }
    telemetry.own(http.context.trace_id, span);
}

fn text(key: &str, value: &str) -> (String, Value) {
    (key.to_owned(), Value::Str(value.to_owned()))
}

//! `level`: the least severe level that is received, for spans, for logs, and for the children of a span.

use opentelemetry::{
    Context,
    logs::Severity,
    trace::{Span, Status, TraceContextExt, Tracer, TracerProvider},
};
use telemetry::Report;

use crate::{
    peer::Peer,
    stage::{Row, Stage},
    wire,
};

const LEVEL: &str = "003: tracer.<id>.level";

/// The least severe first.
const WORDS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        (LEVEL, "trace"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', level: trace, enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        level = "trace"
        enable.log-exporter = true"#,
        |stage| from(stage, 0),
    ),
    Row::new(
        (LEVEL, "debug"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', level: debug, enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        level = "debug"
        enable.log-exporter = true"#,
        |stage| from(stage, 1),
    ),
    Row::new(
        (LEVEL, "info"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', level: info, enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        level = "info"
        enable.log-exporter = true"#,
        |stage| from(stage, 2),
    ),
    Row::new(
        (LEVEL, "info if nothing is said"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        enable.log-exporter = true"#,
        |stage| from(stage, 2),
    ),
    Row::new(
        (LEVEL, "warn"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', level: warn, enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        level = "warn"
        enable.log-exporter = true"#,
        |stage| from(stage, 3),
    ),
    Row::new(
        (LEVEL, "error"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', level: error, enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        level = "error"
        enable.log-exporter = true"#,
        |stage| from(stage, 4),
    ),
    Row::new(
        (
            LEVEL,
            "a span below one that another tracer alone receives names the nearest that is received",
        ),
        "tracer:\n  all: {type: open-telemetry, endpoint: 'OTHER', level: trace}\n  \
         some: {type: open-telemetry, endpoint: 'PEER', level: info}",
        r#"[tracer.all]
        type = "open-telemetry"
        endpoint = "OTHER"
        level = "trace"
        [tracer.some]
        type = "open-telemetry"
        endpoint = "PEER"
        level = "info""#,
        below_a_withheld_one,
    ),
    Row::new(
        (LEVEL, "a span that failed is received whatever its level, with those around it"),
        "tracer:\n  all: {type: open-telemetry, endpoint: 'OTHER', level: trace}\n  \
         some: {type: open-telemetry, endpoint: 'PEER', level: warn}",
        r#"[tracer.all]
        type = "open-telemetry"
        endpoint = "OTHER"
        level = "trace"
        [tracer.some]
        type = "open-telemetry"
        endpoint = "PEER"
        level = "warn""#,
        failed_below,
    ),
];

/// A span that no exporter receives is rejected before it is created, so no mark can withhold its children. They get
/// the nearest received span as parent: there are no orphans here either.
pub(crate) const BELOW_NOBODY: &[Row] = &[Row::new(
    (LEVEL, "a span below one that nobody receives is no orphan"),
    "tracer: {some: {type: open-telemetry, endpoint: 'PEER', level: info}}",
    r#"[tracer.some]
        type = "open-telemetry"
        endpoint = "PEER"
        level = "info""#,
    below_one_that_is_none,
)];

/// Creates one span and one event of each level with the bridge, and spans and records with the bare API.
fn from(stage: &Stage, least: usize) -> Report {
    stage.bridged(|| {
        drop(tracing::trace_span!("trace"));
        drop(tracing::debug_span!("debug"));
        drop(tracing::info_span!("info"));
        drop(tracing::warn_span!("warn"));
        drop(tracing::error_span!("error"));
        tracing::trace!("trace");
        tracing::debug!("debug");
        tracing::info!("info");
        tracing::warn!("warn");
        tracing::error!("error");
    });
    stage.span("bare");
    stage.log(Severity::Debug, "bare debug");
    stage.log(Severity::Warn2, "bare warn");
    let report = stage.deliver();
    let expected = |bare: &[(&'static str, usize)]| {
        let bare = bare.iter().filter(|(_, level)| *level >= least).map(|(word, _)| *word);
        let mut words: Vec<_> = WORDS[least..].iter().copied().chain(bare).collect();
        words.sort_unstable();
        words
    };
    assert_eq!(wire::spans(&stage.peer), expected(&[("bare", 2)]), "the bare API counts as info");
    assert_eq!(wire::logs(&stage.peer), expected(&[("bare debug", 1), ("bare warn", 3)]));
    let attributes =
        stage.peer.seen().into_iter().flat_map(|it| it.spans).flat_map(|it| it.attributes);
    let keys: Vec<_> = attributes.map(|it| it.key).filter(|key| key == "level").collect();
    assert_eq!(keys.len(), 0, "the level by which it was chosen does not travel");
    report
}

fn severe_below_debug() {
    let upper = tracing::info_span!("info").entered();
    let withheld = tracing::debug_span!("debug").entered();
    let below = tracing::warn_span!("warn below debug").entered();
    drop(tracing::error_span!("error below that"));
    drop((below, withheld));
    drop(tracing::warn_span!("warn below info"));
    drop(upper);
    drop(tracing::error_span!("alone"));
}

/// Returns the name of a span's parent; `None` for a root. Fails for an orphan, a span with a parent that was not
/// received.
fn parent(peer: &Peer, name: &str) -> Option<String> {
    let spans: Vec<_> = peer.seen().into_iter().flat_map(|seen| seen.spans).collect();
    let span = spans.iter().find(|span| span.name == name).expect("received");
    let parent = spans.iter().find(|it| it.span_id == span.parent_span_id);
    let is_root = span.parent_span_id.is_empty();
    assert!(is_root || parent.is_some(), "`{name}` is an orphan");
    parent.map(|parent| parent.name.clone())
}

fn below_one_that_is_none(stage: &Stage) -> Report {
    stage.bridged(severe_below_debug);
    let report = stage.deliver();
    let received = ["alone", "error below that", "info", "warn below debug", "warn below info"];
    assert_eq!(wire::spans(&stage.peer), received);
    assert_eq!(parent(&stage.peer, "warn below debug").as_deref(), Some("info"));
    assert_eq!(parent(&stage.peer, "error below that").as_deref(), Some("warn below debug"));
    report
}

fn below_a_withheld_one(stage: &Stage) -> Report {
    let report = below_one_that_is_none(stage);
    let all = ["alone", "debug", "error below that", "info", "warn below debug", "warn below info"];
    assert_eq!(wire::spans(&stage.other), all);
    assert_eq!(parent(&stage.other, "warn below debug").as_deref(), Some("debug"));
    report
}

fn failed_below(stage: &Stage) -> Report {
    stage.bridged(|| {
        let request = tracing::info_span!("request").entered();
        let step = tracing::debug_span!("step").entered();
        tracing::trace_span!("statement").in_scope(|| tracing::error!("it failed"));
        drop(tracing::debug_span!("statement that went well"));
        drop(step);
        drop(tracing::warn_span!("warned"));
        drop(request);
    });
    let tracer = stage.telemetry.tracer_provider().tracer("bare");
    let parent_of_late = Context::new().with_span(tracer.start("request that went well"));
    let mut late = tracer.start_with_context("it outlives its parent", &parent_of_late);
    parent_of_late.span().end();
    late.set_status(Status::error("it failed"));
    late.end();
    let report = stage.deliver();
    let received = ["it outlives its parent", "request", "statement", "step", "warned"];
    assert_eq!(wire::spans(&stage.peer), received);
    let names = ["statement", "step", "request", "warned", "it outlives its parent"];
    let parents = names.map(|name| parent(&stage.peer, name));
    let parents: Vec<_> = parents.iter().map(Option::as_deref).collect();
    assert_eq!(parents, [Some("step"), Some("request"), None, Some("request"), None]);
    assert_eq!(wire::spans(&stage.other).len(), 7, "{:?}", wire::spans(&stage.other));
    report
}

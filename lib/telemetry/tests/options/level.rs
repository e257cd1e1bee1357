//! `level`: the least severe that is received, of spans, of logs, and of what is below a span.

use opentelemetry::logs::Severity;
use telemetry::Report;

use crate::{
    stage::{Row, Stage},
    wire,
};

const LEVEL: &str = "003: tracer.<id>.level";

/// From the least severe on.
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
        (LEVEL, "a span below one that another tracer alone receives is withheld too"),
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
];

/// What nobody receives is refused before it is a span, so that nothing is left to withhold its children by. They hang
/// below the nearest span that is received: no orphans arise here either.
pub(crate) const BELOW_NOBODY: &[Row] = &[Row::new(
    (LEVEL, "a span below one that nobody receives is no orphan"),
    "tracer: {some: {type: open-telemetry, endpoint: 'PEER', level: info}}",
    r#"[tracer.some]
        type = "open-telemetry"
        endpoint = "PEER"
        level = "info""#,
    below_one_that_is_none,
)];

/// One span and one event of each level by the bridge, one span and one record of each by the bare API.
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

fn below_one_that_is_none(stage: &Stage) -> Report {
    stage.bridged(severe_below_debug);
    let report = stage.deliver();
    let received = ["alone", "error below that", "info", "warn below debug", "warn below info"];
    assert_eq!(wire::spans(&stage.peer), received);
    let spans: Vec<_> = stage.peer.seen().into_iter().flat_map(|seen| seen.spans).collect();
    let parent = |name: &str| {
        let span = spans.iter().find(|span| span.name == name).expect("received");
        let parent = spans.iter().find(|it| it.span_id == span.parent_span_id);
        parent.map(|parent| parent.name.as_str())
    };
    assert_eq!(parent("warn below debug"), Some("info"));
    assert_eq!(parent("error below that"), Some("warn below debug"));
    report
}

fn below_a_withheld_one(stage: &Stage) -> Report {
    stage.bridged(severe_below_debug);
    let report = stage.deliver();
    assert_eq!(wire::spans(&stage.peer), ["alone", "info", "warn below info"]);
    if stage.plan.exporters.len() > 1 {
        let all =
            ["alone", "debug", "error below that", "info", "warn below debug", "warn below info"];
        assert_eq!(wire::spans(&stage.other), all);
    }
    report
}

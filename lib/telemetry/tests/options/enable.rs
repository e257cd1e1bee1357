//! `enable` in all its forms: everything, spans, logs.

use opentelemetry::logs::Severity;
use telemetry::Report;

use crate::{
    stage::{Row, Stage},
    wire,
};

const ENABLE: &str = "003: tracer.<id>.enable";
const LOGS: &str = "003: tracer.<id>.enable.log-exporter";
const SPANS: &str = "003: tracer.<id>.enable.span-exporter";

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        (ENABLE, "true if nothing is said: spans, no logs"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER'}}",
        r#"tracer.otel = { type = "open-telemetry", endpoint = "PEER" }"#,
        |stage| arrives(stage, true, false),
    ),
    Row::new(
        (ENABLE, "true"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable: true}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        enable = true"#,
        |stage| arrives(stage, true, false),
    ),
    Row::new(
        (ENABLE, "false"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable: false}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        enable = false"#,
        |stage| arrives(stage, false, false),
    ),
    Row::new(
        (ENABLE, "false, whatever the exporters are"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable: false, enable.log-exporter: true, enable.span-exporter: true}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        enable = false
        "enable.log-exporter" = true
        "enable.span-exporter" = true"#,
        |stage| arrives(stage, false, false),
    ),
    Row::new(
        (LOGS, "true, as a key with a dot beside `enable`"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable: true, enable.log-exporter: true}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        enable = true
        "enable.log-exporter" = true"#,
        |stage| arrives(stage, true, true),
    ),
    Row::new(
        (LOGS, "true, in a table"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        [tracer.otel.enable]
        log-exporter = true"#,
        |stage| arrives(stage, true, true),
    ),
    Row::new(
        (LOGS, "true, as one flat key"),
        "tracer.otel.type: open-telemetry\ntracer.otel.endpoint: 'PEER'\ntracer.otel.enable.log-exporter: true",
        r#"tracer.otel.type = "open-telemetry"
        tracer.otel.endpoint = "PEER"
        tracer.otel.enable.log-exporter = true"#,
        |stage| arrives(stage, true, true),
    ),
    Row::new(
        (LOGS, "true, where nobody takes logs: spans do not wait for them"),
        "tracer: {otel: {type: open-telemetry, transport: http, endpoint: 'PEER', throttle: 5ms, enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http"
        endpoint = "PEER"
        throttle = "5ms"
        enable.log-exporter = true"#,
        spans_alone,
    ),
    Row::new(
        (LOGS, "false"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable: {log-exporter: false}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        enable.log-exporter = false"#,
        |stage| arrives(stage, true, false),
    ),
    Row::new(
        (SPANS, "false, logs alone"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable: {span-exporter: false, log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        [tracer.otel.enable]
        span-exporter = false
        log-exporter = true"#,
        |stage| arrives(stage, false, true),
    ),
    Row::new(
        (SPANS, "false: nothing is left"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable.span-exporter: false}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        "enable.span-exporter" = false"#,
        |stage| arrives(stage, false, false),
    ),
    Row::new(
        (SPANS, "true"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable: {span-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        enable = { span-exporter = true }"#,
        |stage| arrives(stage, true, false),
    ),
];

/// Far more batches than a sender has open at a time.
const BATCHES: usize = 200;

fn spans_alone(stage: &Stage) -> Report {
    stage.peer.refuse_path("/v1/logs", 404);
    for number in 1..=BATCHES {
        stage.log(Severity::Error, "refused");
        stage.span("taken");
        stage.peer.wait_for("a batch of spans", |seen| {
            seen.iter().map(|request| request.spans.len()).sum::<usize>() >= number
        });
    }
    let status = stage.telemetry.status();
    assert_eq!(status.len(), 1, "an exporter is one, whatever it carries: {status:?}");
    let counts = &status[0].counts;
    assert_eq!(counts.accepted, 2 * BATCHES as u64, "{counts:?}");
    assert!(counts.queued >= BATCHES as u64, "no log is delivered: {counts:?}");
    stage.peer.accept_paths();
    let report = stage.deliver();
    let logs = stage.peer.accepted().into_iter().filter(|name| name == "refused").count();
    assert_eq!(logs, BATCHES, "what was kept is delivered");
    report
}

fn arrives(stage: &Stage, spans: bool, logs: bool) -> Report {
    stage.span("bare");
    stage.log(Severity::Error, "bare");
    stage.bridged(|| {
        drop(tracing::error_span!("bridged"));
        tracing::error!("bridged");
    });
    let report = stage.deliver();
    let expected = |is: bool| if is { vec!["bare", "bridged"] } else { Vec::new() };
    assert_eq!(wire::spans(&stage.peer), expected(spans));
    assert_eq!(wire::logs(&stage.peer), expected(logs));
    assert_eq!(stage.plan.exporters.len(), usize::from(spans || logs));
    report
}

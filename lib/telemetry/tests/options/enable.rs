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

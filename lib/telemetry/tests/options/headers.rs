//! `headers`: sent with every request of every transport, and never shown.

use opentelemetry::logs::Severity;
use telemetry::{Report, config};

use crate::stage::{Row, Stage};

const TRACER: &str = "003: tracer.<id>.headers";
const METRICS: &str = "002: metrics.open-telemetry.headers";
/// The documents give an exporter no headers; it accepts them in the same format.
const EXPORTER: &str = "000, 001: telemetry.exporters.<name>.exporter.collector";

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        (TRACER, "a list, by gRPC"),
        "tracer: {otel: {type: open-telemetry, transport: grpc, endpoint: 'PEER', enable.log-exporter: true, \
         headers: ['Authorization: Bearer s3cr3t', 'X-Tenant: a: b']}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "grpc"
        endpoint = "PEER"
        enable.log-exporter = true
        headers = ["Authorization: Bearer s3cr3t", "X-Tenant: a: b"]"#,
        sent,
    ),
    Row::new(
        (TRACER, "a list, by HTTP"),
        "tracer: {otel: {type: open-telemetry, transport: http, endpoint: 'PEER', enable.log-exporter: true, \
         headers: ['Authorization: Bearer s3cr3t', 'X-Tenant: a: b']}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http"
        endpoint = "PEER"
        enable.log-exporter = true
        headers = ["Authorization: Bearer s3cr3t", "X-Tenant: a: b"]"#,
        sent,
    ),
    Row::new(
        (TRACER, "a table, by gRPC"),
        "tracer: {otel: {type: open-telemetry, transport: grpc, endpoint: 'PEER', enable.log-exporter: true, \
         headers: {Authorization: Bearer s3cr3t, X-Tenant: 'a: b'}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "grpc"
        endpoint = "PEER"
        enable.log-exporter = true
        headers.Authorization = "Bearer s3cr3t"
        headers.X-Tenant = "a: b""#,
        sent,
    ),
    Row::new(
        (TRACER, "a table, by HTTP"),
        "tracer: {otel: {type: open-telemetry, transport: http, endpoint: 'PEER', enable.log-exporter: true, \
         headers: {Authorization: Bearer s3cr3t, X-Tenant: 'a: b'}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http"
        endpoint = "PEER"
        enable.log-exporter = true
        [tracer.otel.headers]
        Authorization = "Bearer s3cr3t"
        X-Tenant = "a: b""#,
        sent,
    ),
    Row::new(
        (METRICS, "a list, by gRPC"),
        "metrics: {open-telemetry: {transport: grpc, endpoint: 'PEER', headers: ['Authorization: Bearer s3cr3t', 'X-Tenant: a: b']}}",
        r#"[metrics.open-telemetry]
        transport = "grpc"
        endpoint = "PEER"
        headers = ["Authorization: Bearer s3cr3t", "X-Tenant: a: b"]"#,
        sent,
    ),
    Row::new(
        (METRICS, "a table, by HTTP"),
        "metrics: {open-telemetry: {transport: http, endpoint: 'PEER', headers: {Authorization: Bearer s3cr3t, X-Tenant: 'a: b'}}}",
        r#"[metrics.open-telemetry]
        transport = "http"
        endpoint = "PEER"
        headers = { Authorization = "Bearer s3cr3t", X-Tenant = "a: b" }"#,
        sent,
    ),
    Row::new(
        (METRICS, "a list, by HTTP"),
        "metrics: {open-telemetry: {transport: http, endpoint: 'PEER', headers: ['Authorization: Bearer s3cr3t', 'X-Tenant: a: b']}}",
        r#"[metrics.open-telemetry]
        transport = "http"
        endpoint = "PEER"
        headers = ["Authorization: Bearer s3cr3t", "X-Tenant: a: b"]"#,
        sent,
    ),
    Row::new(
        (EXPORTER, "headers, a list by gRPC"),
        "telemetry: {exporters: {collector: {exporter: {type: collector, collector: \
         {endpoint: 'PEER', headers: ['Authorization: Bearer s3cr3t', 'X-Tenant: a: b']}}}}}",
        r#"[telemetry.exporters.collector.exporter]
        type = "collector"
        [telemetry.exporters.collector.exporter.collector]
        endpoint = "PEER"
        headers = ["Authorization: Bearer s3cr3t", "X-Tenant: a: b"]"#,
        sent,
    ),
    Row::new(
        (EXPORTER, "headers, a table by HTTP"),
        "telemetry: {exporters: {collector: {exporter: {type: collector, collector: \
         {transport: http, endpoint: 'PEER', headers: {Authorization: Bearer s3cr3t, X-Tenant: 'a: b'}}}}}}",
        r#"[telemetry.exporters.collector.exporter]
        type = "collector"
        [telemetry.exporters.collector.exporter.collector]
        transport = "http"
        endpoint = "PEER"
        headers = { Authorization = "Bearer s3cr3t", X-Tenant = "a: b" }"#,
        sent,
    ),
];

fn sent(stage: &Stage) -> Report {
    stage.span("a span");
    stage.log(Severity::Info, "a log");
    stage.count();
    let report = stage.deliver();
    let seen = stage.peer.seen();
    let signals = stage.plan.exporters[0].signals;
    let expected = [signals.spans, signals.logs, signals.metrics.is_some()];
    assert_eq!(seen.len(), expected.iter().filter(|it| **it).count(), "a request for each signal");
    for seen in seen {
        assert_eq!(seen.header("authorization"), Some("Bearer s3cr3t"), "{}", seen.path);
        assert_eq!(seen.header("x-tenant"), Some("a: b"), "{}", seen.path);
    }
    let shown = format!("{}{:?}", config::describe(&stage.plan), stage.plan);
    assert!(shown.contains("authorization: ***") && !shown.contains("s3cr3t"), "{shown}");
    report
}

//! The same options against a real Collector: both transports of all three front ends.

use opentelemetry::logs::Severity;

use crate::stage::Row;

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        ("003: tracer.<id>.transport", "grpc, to a Collector"),
        "tracer: {otel: {type: open-telemetry, transport: grpc, endpoint: 'COLLECTOR_GRPC', enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "grpc"
        endpoint = "COLLECTOR_GRPC"
        enable.log-exporter = true"#,
        |stage| {
            stage.span("tracer by gRPC");
            stage.log(Severity::Info, "tracer by gRPC");
            stage.deliver()
        },
    ),
    Row::new(
        ("003: tracer.<id>.transport", "http, to a Collector"),
        "tracer: {otel: {type: open-telemetry, transport: http, endpoint: 'http://COLLECTOR_HTTP', enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http"
        endpoint = "http://COLLECTOR_HTTP"
        enable.log-exporter = true"#,
        |stage| {
            stage.span("tracer by HTTP");
            stage.log(Severity::Info, "tracer by HTTP");
            stage.deliver()
        },
    ),
    Row::new(
        ("002: metrics.open-telemetry.transport", "grpc, to a Collector"),
        "metrics: {open-telemetry: {transport: grpc, endpoint: 'COLLECTOR_GRPC'}}",
        r#"metrics.open-telemetry = { transport = "grpc", endpoint = "COLLECTOR_GRPC" }"#,
        |stage| {
            stage.count();
            stage.deliver()
        },
    ),
    Row::new(
        ("002: metrics.open-telemetry.transport", "http, to a Collector"),
        "metrics: {open-telemetry: {transport: http, endpoint: 'http://COLLECTOR_HTTP'}}",
        r#"metrics.open-telemetry = { transport = "http", endpoint = "http://COLLECTOR_HTTP" }"#,
        |stage| {
            stage.count();
            stage.deliver()
        },
    ),
    Row::new(
        (
            "000, 001: telemetry.exporters.<name>.exporter.collector.endpoint",
            "a Collector, as in the document",
        ),
        "telemetry:\n  exporters:\n    collector:\n      serviceName: shop\n      sampling: 100 # 100%\n      \
         exporter:\n        type: collector\n        collector:\n          endpoint: COLLECTOR_GRPC\n",
        r#"[telemetry.exporters.collector]
        serviceName = "shop"
        sampling = 100 # 100%
        [telemetry.exporters.collector.exporter]
        type = "collector"
        [telemetry.exporters.collector.exporter.collector]
        endpoint = "COLLECTOR_GRPC""#,
        |stage| {
            stage.span("exporter by gRPC");
            stage.count();
            stage.deliver()
        },
    ),
];

/// The data of a Collector after every row ran in both formats: each item twice.
pub(crate) const SPANS: [&str; 6] = [
    "program: tracer by HTTP",
    "program: tracer by HTTP",
    "program: tracer by gRPC",
    "program: tracer by gRPC",
    "shop: exporter by gRPC",
    "shop: exporter by gRPC",
];
pub(crate) const LOGS: [&str; 4] = [
    "program: tracer by HTTP",
    "program: tracer by HTTP",
    "program: tracer by gRPC",
    "program: tracer by gRPC",
];

//! `endpoint`: every accepted form, and the defaults without it.

use opentelemetry::logs::Severity;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use telemetry::Report;

use crate::{
    peer::Peer,
    stage::{Row, Stage},
    transport::is_untouched,
    wire,
};

const TRACER: &str = "003: tracer.<id>.endpoint";
const METRICS: &str = "002: metrics.open-telemetry.endpoint";
const EXPORTER: &str = "000, 001: telemetry.exporters.<name>.exporter.collector.endpoint";

const TRACES_GRPC: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const METRICS_GRPC: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

/// The endpoint in OpenTelemetry's variable.
const BY_VARIABLE: &[(&str, &str)] = &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://PEER")];

pub(crate) const TRACERS: &[Row] = &[
    Row::new(
        (TRACER, "an URL over gRPC"),
        "tracer: {otel: {type: open-telemetry, transport: grpc, endpoint: 'http://PEER'}}",
        r#"tracer.otel = { type = "open-telemetry", transport = "grpc", endpoint = "http://PEER" }"#,
        |stage| spans_at(stage, &stage.peer, TRACES_GRPC),
    ),
    Row::new(
        (TRACER, "TLS over gRPC, its path ignored"),
        "tracer: {otel: {type: open-telemetry, transport: grpc, endpoint: 'https://SECURE/otel', tls: {caFile: CAFILE}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "grpc"
        endpoint = "https://SECURE/otel"
        tls.caFile = "CAFILE""#,
        |stage| {
            let note = "gRPC has no paths, `/otel` of its endpoint is ignored";
            assert!(stage.plan.notes.iter().any(|it| it.contains(note)), "{:?}", stage.plan.notes);
            spans_at(stage, stage.secure(), TRACES_GRPC)
        },
    ),
    Row::new(
        (TRACER, "TLS over HTTP, a path of its own used as it stands"),
        "tracer: {otel: {type: open-telemetry, transport: http, endpoint: 'https://SECURE/v1/otel', tls: {caFile: CAFILE}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http"
        endpoint = "https://SECURE/v1/otel"
        tls = { caFile = "CAFILE" }"#,
        own_path,
    ),
    Row::new(
        (TRACER, "HTTP with the path of one signal, which the others exchange"),
        "tracer: {otel: {type: open-telemetry, transport: http, endpoint: 'http://PEER/at/v1/metrics', enable.log-exporter: true}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http"
        endpoint = "http://PEER/at/v1/metrics"
        enable.log-exporter = true"#,
        |stage| both_at(stage, ["/at/v1/logs", "/at/v1/traces"]),
    ),
    Row::new(
        (TRACER, "HTTP with `/`"),
        "tracer: {otel: {type: open-telemetry, transport: http, endpoint: 'http://PEER/', enable.log-exporter: true}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http"
        endpoint = "http://PEER/"
        enable.log-exporter = true"#,
        |stage| both_at(stage, ["/v1/logs", "/v1/traces"]),
    ),
    Row::new(
        (TRACER, "HTTP with `endpoints`, which separate signals"),
        "tracer: {otel: {type: open-telemetry, transport: http, enable.log-exporter: true, \
         endpoints: {traces: 'http://PEER/of/traces', logs: 'http://PEER/of/logs'}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http"
        enable.log-exporter = true
        endpoints = { traces = "http://PEER/of/traces", logs = "http://PEER/of/logs" }"#,
        |stage| both_at(stage, ["/of/logs", "/of/traces"]),
    ),
    Row::new(
        (TRACER, "the default, by gRPC"),
        "tracer: {otel: {type: open-telemetry}}",
        r#"[tracer.otel]
        type = "open-telemetry""#,
        |stage| defaults_to(stage, "http://localhost:4317/"),
    ),
    Row::new(
        (TRACER, "the default, by HTTP"),
        "tracer: {otel: {type: open-telemetry, transport: http}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http""#,
        |stage| defaults_to(stage, "http://localhost:4318/v1/traces"),
    ),
    Row::new(
        (TRACER, "the variable, by gRPC"),
        "tracer: {otel: {type: open-telemetry, transport: grpc}}",
        r#"tracer.otel = { type = "open-telemetry", transport = "grpc" }"#,
        |stage| spans_at(stage, &stage.peer, TRACES_GRPC),
    )
    .with(BY_VARIABLE),
    Row::new(
        (TRACER, "the variable, by HTTP, with its path before the usual one"),
        "tracer: {otel: {type: open-telemetry, transport: http, enable.log-exporter: true}}",
        r#"tracer.otel = { type = "open-telemetry", transport = "http", enable = { log-exporter = true } }"#,
        |stage| both_at(stage, ["/base/v1/logs", "/base/v1/traces"]),
    )
    .with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://PEER/base/")]),
    Row::new(
        (TRACER, "the variable of one signal, as it stands"),
        "tracer: {otel: {type: open-telemetry, transport: http}}",
        r#"tracer.otel = { type = "open-telemetry", transport = "http" }"#,
        |stage| spans_at(stage, &stage.peer, "/my/traces"),
    )
    .with(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://OTHER"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://PEER/my/traces"),
    ]),
    Row::new(
        (TRACER, "the file before the variable"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER'}}",
        r#"tracer.otel = { type = "open-telemetry", endpoint = "PEER" }"#,
        |stage| spans_at(stage, &stage.peer, TRACES_GRPC),
    )
    .with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://OTHER")]),
];

pub(crate) const OTHERS: &[Row] = &[
    Row::new(
        (METRICS, "TLS over gRPC, its path ignored"),
        "metrics: {open-telemetry: {transport: grpc, endpoint: 'https://SECURE/v1/metrics', tls: {caFile: CAFILE}}}",
        r#"[metrics.open-telemetry]
        transport = "grpc"
        endpoint = "https://SECURE/v1/metrics"
        tls.caFile = "CAFILE""#,
        |stage| pushes_to(stage, stage.secure(), METRICS_GRPC),
    ),
    Row::new(
        (METRICS, "HTTP with its path"),
        "metrics: {open-telemetry: {transport: http, endpoint: 'http://PEER/v1/metrics'}}",
        r#"metrics.open-telemetry = { transport = "http", endpoint = "http://PEER/v1/metrics" }"#,
        |stage| pushes_to(stage, &stage.peer, "/v1/metrics"),
    ),
    Row::new(
        (METRICS, "HTTP with the path of another signal"),
        "metrics: {open-telemetry: {transport: http, endpoint: 'http://PEER/v1/traces'}}",
        r#"metrics.open-telemetry = { transport = "http", endpoint = "http://PEER/v1/traces" }"#,
        |stage| pushes_to(stage, &stage.peer, "/v1/metrics"),
    ),
    Row::new(
        (METRICS, "the default, by gRPC"),
        "metrics: {open-telemetry: {transport: grpc}}",
        r#"metrics.open-telemetry.transport = "grpc""#,
        |stage| defaults_to(stage, "http://localhost:4317/"),
    ),
    Row::new(
        (METRICS, "the default, by HTTP"),
        "metrics: {open-telemetry: {transport: http}}",
        r#"metrics.open-telemetry.transport = "http""#,
        |stage| defaults_to(stage, "http://localhost:4318/v1/metrics"),
    ),
    Row::new(
        (METRICS, "the variable"),
        "metrics: {open-telemetry: {transport: http}}",
        r#"metrics.open-telemetry.transport = "http""#,
        |stage| pushes_to(stage, &stage.peer, "/v1/metrics"),
    )
    .with(BY_VARIABLE),
    Row::new(
        (EXPORTER, "host and port"),
        "telemetry: {exporters: {collector: {exporter: {type: collector, collector: {endpoint: 'PEER'}}}}}",
        r#"[telemetry.exporters.collector.exporter]
        type = "collector"
        collector.endpoint = "PEER""#,
        own_at_peer,
    ),
    Row::new(
        (EXPORTER, "an URL"),
        "telemetry: {exporters: {collector: {exporter: {type: collector, collector: {endpoint: 'http://PEER'}}}}}",
        r#"[telemetry.exporters.collector.exporter]
        type = "collector"
        collector.endpoint = "http://PEER""#,
        own_at_peer,
    ),
    Row::new(
        (EXPORTER, "the default"),
        "telemetry: {exporters: {collector: {exporter: {type: collector}}}}",
        r#"telemetry.exporters.collector.exporter.type = "collector""#,
        |stage| defaults_to(stage, "http://localhost:4317/"),
    ),
    Row::new(
        (EXPORTER, "the variable"),
        "telemetry: {exporters: {collector: {exporter: {type: collector}}}}",
        r#"telemetry.exporters.collector.exporter.type = "collector""#,
        own_at_peer,
    )
    .with(BY_VARIABLE),
];

fn spans_at(stage: &Stage, peer: &Peer, path: &str) -> Report {
    stage.span("a span");
    let report = stage.deliver();
    assert_eq!(
        (wire::spans(peer), wire::paths(peer)),
        (vec!["a span".to_owned()], vec![path.to_owned()])
    );
    is_untouched(&stage.other);
    report
}

fn both_at(stage: &Stage, paths: [&str; 2]) -> Report {
    stage.span("a span");
    stage.log(Severity::Info, "a log");
    let report = stage.deliver();
    assert_eq!(wire::paths(&stage.peer), paths);
    assert_eq!((wire::spans(&stage.peer).len(), wire::logs(&stage.peer).len()), (1, 1));
    report
}

fn own_path(stage: &Stage) -> Report {
    stage.span("a span");
    let report = stage.deliver();
    let seen = stage.secure().seen();
    assert_eq!(wire::paths(stage.secure()), ["/v1/otel"]);
    let request = ExportTraceServiceRequest::decode(&seen[0].body[..]).expect("spans");
    assert_eq!(request.resource_spans[0].scope_spans[0].spans[0].name, "a span");
    report
}

/// Checks the endpoint only. A server may or may not listen there, so no telemetry is produced.
fn defaults_to(stage: &Stage, endpoint: &str) -> Report {
    let otlp = stage.otlp();
    let signals = stage.plan.exporters[0].signals;
    let uri = if signals.spans { &otlp.endpoints.traces } else { &otlp.endpoints.metrics };
    assert_eq!(uri.to_string(), endpoint);
    stage.telemetry.shutdown(std::time::Duration::ZERO)
}

fn pushes_to(stage: &Stage, peer: &Peer, path: &str) -> Report {
    stage.count();
    let report = stage.deliver();
    assert_eq!(wire::paths(peer), [path]);
    assert!(wire::metrics(&peer.seen()[0]).contains(&"orders".to_owned()));
    report
}

fn own_at_peer(stage: &Stage) -> Report {
    stage.span("a span");
    stage.count();
    let report = stage.deliver();
    assert_eq!(wire::spans(&stage.peer), ["a span"]);
    assert_eq!(wire::paths(&stage.peer), [METRICS_GRPC, TRACES_GRPC]);
    report
}

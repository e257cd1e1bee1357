//! `type` and `transport`: how telemetry is sent, and whether it is sent at all.

use http::Version;
use opentelemetry::logs::Severity;
use telemetry::{Report, plan::Transport};

use crate::{
    peer::{Peer, Seen},
    stage::{Row, Stage},
    wire,
};

const TYPE: &str = "003: tracer.<id>.type";
const TRANSPORT: &str = "003: tracer.<id>.transport";
const METRICS: &str = "002: metrics.open-telemetry.transport";

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        (TRANSPORT, "grpc"),
        "tracer: {otel: {type: open-telemetry, transport: grpc, endpoint: 'PEER', enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "grpc"
        endpoint = "PEER"
        enable.log-exporter = true"#,
        |stage| spans_and_logs(stage, &GRPC),
    ),
    Row::new(
        (TRANSPORT, "http"),
        "tracer: {otel: {type: open-telemetry, transport: http, endpoint: 'PEER', enable: {log-exporter: true}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http"
        endpoint = "PEER"
        enable.log-exporter = true"#,
        |stage| spans_and_logs(stage, &HTTP),
    ),
    Row::new(
        (TYPE, "open-telemetry, by gRPC if nothing is said"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', enable.log-exporter: true}}",
        r#"tracer.otel = { type = "open-telemetry", endpoint = "PEER", "enable.log-exporter" = true }"#,
        |stage| spans_and_logs(stage, &GRPC),
    ),
    Row::new(
        (TYPE, "log"),
        "tracer: {local: {type: log, path: FILE, enable: {log-exporter: true}}}",
        r#"[tracer.local]
        type = "log"
        path = "FILE"
        enable = { log-exporter = true }"#,
        to_file,
    ),
    Row::new(
        (METRICS, "grpc"),
        "metrics: {open-telemetry: {transport: grpc, endpoint: 'PEER'}}",
        r#"[metrics.open-telemetry]
        transport = "grpc"
        endpoint = "PEER""#,
        |stage| pushed(stage, &GRPC),
    ),
    Row::new(
        (METRICS, "http"),
        "metrics: {open-telemetry: {transport: http, endpoint: 'PEER'}}",
        r#"[metrics.open-telemetry]
        transport = "http"
        endpoint = "PEER""#,
        |stage| pushed(stage, &HTTP),
    ),
    Row::new(
        (METRICS, "grpc if nothing is said"),
        "metrics: {open-telemetry: {endpoint: 'PEER'}}",
        "metrics.open-telemetry.endpoint = 'PEER'",
        |stage| pushed(stage, &GRPC),
    ),
    Row::new(
        (METRICS, "disable"),
        "metrics: {open-telemetry: {transport: disable, endpoint: 'PEER', interval: 20ms}}",
        r#"[metrics.open-telemetry]
        transport = "disable"
        endpoint = "PEER"
        interval = "20ms""#,
        nothing,
    ),
    Row::new(
        (METRICS, "nothing is pushed without the section"),
        "metrics: {}",
        "[metrics]",
        nothing,
    ),
];

/// The row with output that another process reads.
pub(crate) const STDOUT: Row = Row::new(
    (TYPE, "stdout"),
    "tracer: {local: {type: stdout, enable.log-exporter: true}}",
    r#"[tracer.local]
    type = "stdout"
    "enable.log-exporter" = true"#,
    |stage| {
        stage.span("to stdout");
        stage.log(Severity::Info, "said to stdout");
        let report = stage.deliver();
        assert_eq!(report.sum(|counts| counts.delivered), 2);
        report
    },
);

/// The properties of a request of one transport.
struct Look {
    transport: Transport,
    version: Version,
    content: &'static str,
    paths: [&'static str; 3],
}

const GRPC: Look = Look {
    transport: Transport::Grpc,
    version: Version::HTTP_2,
    content: "application/grpc",
    paths: [
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    ],
};

const HTTP: Look = Look {
    transport: Transport::Http,
    version: Version::HTTP_11,
    content: "application/x-protobuf",
    paths: ["/v1/traces", "/v1/logs", "/v1/metrics"],
};

impl Look {
    fn check(&self, stage: &Stage, signals: &[usize]) {
        assert_eq!(stage.otlp().transport, self.transport);
        let mut paths: Vec<_> = signals.iter().map(|signal| self.paths[*signal]).collect();
        paths.sort_unstable();
        assert_eq!(wire::paths(&stage.peer), paths);
        for seen in stage.peer.seen() {
            self.check_request(&seen);
        }
    }

    fn check_request(&self, seen: &Seen) {
        assert_eq!((seen.version, seen.header("content-type")), (self.version, Some(self.content)));
        assert_eq!(seen.header("user-agent"), Some("program/1.0"));
        assert_eq!(wire::service(seen), "program");
    }
}

fn spans_and_logs(stage: &Stage, look: &Look) -> Report {
    stage.span("a span");
    stage.log(Severity::Info, "a log");
    let report = stage.deliver();
    assert_eq!(report.sum(|counts| counts.delivered), 2);
    assert_eq!(wire::spans(&stage.peer), ["a span"]);
    assert_eq!(wire::logs(&stage.peer), ["a log"]);
    look.check(stage, &[0, 1]);
    report
}

fn pushed(stage: &Stage, look: &Look) -> Report {
    stage.count();
    stage.span("nobody asked for it");
    let report = stage.deliver();
    look.check(stage, &[2]);
    let pushes = wire::pushes(&stage.peer.seen());
    let last = pushes.last().expect("a push at the end at the latest");
    assert!(wire::metrics(last).contains(&"orders".to_owned()), "{:?}", wire::metrics(last));
    report
}

fn nothing(stage: &Stage) -> Report {
    assert_eq!(stage.plan.exporters, []);
    stage.count();
    assert_eq!(stage.peer.wait_until(std::time::Duration::from_millis(300)).len(), 0);
    let report = stage.deliver();
    is_untouched(&stage.peer);
    report
}

/// Checks that the peer received no request.
pub(crate) fn is_untouched(peer: &Peer) {
    assert_eq!(peer.seen().len(), 0, "{:?}", peer.seen());
}

fn to_file(stage: &Stage) -> Report {
    stage.span("to a file");
    stage.log(Severity::Warn, "said to a file");
    let report = stage.deliver();
    let lines = std::fs::read_to_string(&stage.file).expect("a file");
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(" internal \"to a file\" took=")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(" WARN \"said to a file\"")), "{lines:?}");
    is_untouched(&stage.peer);
    report
}

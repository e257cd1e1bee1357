//! `telemetry.exporters`: name, service name, sampling; and several exporters at once.

use std::time::Duration;

use opentelemetry::{
    Context, SpanId, TraceFlags, TraceId,
    logs::Severity,
    trace::{Span, SpanContext, TraceContextExt, TraceState, Tracer, TracerProvider},
};
use telemetry::Report;

use crate::{
    stage::{PROGRAM, Row, Stage},
    wire,
};

const NAME: &str = "000, 001: telemetry.exporters.<name>";
const SERVICE: &str = "000, 001: telemetry.exporters.<name>.serviceName";
const TYPE: &str = "000, 001: telemetry.exporters.<name>.exporter.type";
const SAMPLING: &str = "000, 001: telemetry.exporters.<name>.sampling";
const TRACER: &str = "003: tracer.<id>";

const TRACES: usize = 400;

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        (SERVICE, "a name of its own"),
        "telemetry: {exporters: {collector: {serviceName: shop, exporter: {type: collector, collector: {endpoint: 'PEER'}}}}}",
        r#"[telemetry.exporters.collector]
        serviceName = "shop"
        exporter = { type = "collector", collector = { endpoint = "PEER" } }"#,
        |stage| named(stage, "shop"),
    ),
    Row::new(
        (SERVICE, "the program's if nothing is said"),
        "telemetry: {exporters: {collector: {exporter: {type: collector, collector: {endpoint: 'PEER'}}}}}",
        r#"[telemetry.exporters.collector]
        exporter = { type = "collector", collector = { endpoint = "PEER" } }"#,
        |stage| named(stage, PROGRAM),
    ),
    Row::new(
        (TYPE, "collector, by HTTP"),
        "telemetry: {exporters: {any-name: {serviceName: shop, exporter: {type: collector, collector: {endpoint: 'PEER', transport: http}}}}}",
        r#"[telemetry.exporters.any-name]
        serviceName = "shop"
        exporter = { type = "collector", collector = { endpoint = "PEER", transport = "http" } }"#,
        |stage| named(stage, "shop"),
    ),
    Row::new(
        (SAMPLING, "0"),
        "telemetry: {exporters: {collector: {sampling: 0, exporter: {type: collector, collector: {endpoint: 'PEER'}}}}}",
        r#"[telemetry.exporters.collector]
        sampling = 0
        exporter = { type = "collector", collector = { endpoint = "PEER" } }"#,
        |stage| sampled(stage, 0.0),
    ),
    Row::new(
        (SAMPLING, "25"),
        "telemetry: {exporters: {collector: {sampling: 25, exporter: {type: collector, collector: {endpoint: 'PEER'}}}}}",
        r#"[telemetry.exporters.collector]
        sampling = 25
        exporter = { type = "collector", collector = { endpoint = "PEER" } }"#,
        |stage| sampled(stage, 0.25),
    ),
    Row::new(
        (SAMPLING, "100"),
        "telemetry: {exporters: {collector: {sampling: 100, exporter: {type: collector, collector: {endpoint: 'PEER'}}}}}",
        r#"[telemetry.exporters.collector]
        sampling = 100
        exporter = { type = "collector", collector = { endpoint = "PEER" } }"#,
        |stage| sampled(stage, 1.0),
    ),
    Row::new(
        (SAMPLING, "100 if nothing is said"),
        "telemetry: {exporters: {collector: {exporter: {type: collector, collector: {endpoint: 'PEER'}}}}}",
        r#"[telemetry.exporters.collector]
        exporter = { type = "collector", collector = { endpoint = "PEER" } }"#,
        |stage| sampled(stage, 1.0),
    ),
    Row::new(
        (NAME, "not used without a role, and beside a tracer both get everything"),
        "telemetry:\n  exporters:\n    collector: {serviceName: shop, exporter: {type: collector, collector: {endpoint: 'PEER'}}}\n    \
         unused: {exporter: {type: collector, collector: {endpoint: 'PEER'}}}\n\
         tracer: {collector: {type: open-telemetry, endpoint: 'OTHER'}}",
        r#"[telemetry.exporters]
        collector = { serviceName = "shop", exporter = { type = "collector", collector = { endpoint = "PEER" } } }
        unused = { exporter = { type = "collector", collector = { endpoint = "PEER" } } }
        [tracer]
        collector = { type = "open-telemetry", endpoint = "OTHER" }"#,
        beside_a_tracer,
    ),
    Row::new(
        (TRACER, "several, each with everything that its level lets through"),
        "tracer:\n  all: {type: open-telemetry, endpoint: 'PEER', level: trace, enable: {log-exporter: true}}\n  \
         few: {type: open-telemetry, transport: http, endpoint: 'OTHER', level: warn, enable: {log-exporter: true}}\n  \
         lines: {type: log, path: FILE, level: info}",
        r#"[tracer.all]
        type = "open-telemetry"
        endpoint = "PEER"
        level = "trace"
        enable.log-exporter = true
        [tracer.few]
        type = "open-telemetry"
        transport = "http"
        endpoint = "OTHER"
        level = "warn"
        enable.log-exporter = true
        [tracer.lines]
        type = "log"
        path = "FILE"
        level = "info""#,
        several,
    ),
];

fn named(stage: &Stage, service: &str) -> Report {
    stage.span("a span");
    stage.log(Severity::Error, "exporters carry no logs");
    stage.count();
    let report = stage.deliver();
    assert_eq!(
        (wire::spans(&stage.peer), wire::logs(&stage.peer).len()),
        (vec!["a span".to_owned()], 0)
    );
    let services: Vec<_> = stage.peer.seen().iter().map(wire::service).collect();
    assert_eq!(services, [service, service], "spans and metrics");
    let interval = stage.plan.exporters[0].signals.metrics;
    assert_eq!(interval, Some(Duration::from_secs(10)), "how often it pushes metrics");
    report
}

/// The sampling value of a trace.
fn draw(trace: &[u8]) -> u64 {
    trace[9..].iter().fold(0, |draw, byte| draw << 8 | u64::from(*byte))
}

/// Creates a child of a caller's span, with a sampling value in no exporter's share, or in every exporter's.
fn called(stage: &Stage, sampled: bool) -> Vec<u8> {
    let (low, flags) =
        if sampled { (0xff, TraceFlags::SAMPLED) } else { (0, TraceFlags::NOT_SAMPLED) };
    let mut trace = [low; 16];
    trace[0] = 1;
    let trace = TraceId::from_bytes(trace);
    let remote = SpanContext::new(trace, SpanId::from(7), flags, true, TraceState::NONE);
    let caller = Context::new().with_remote_span_context(remote);
    let tracer = stage.telemetry.tracer_provider().tracer("shop");
    let within = Context::new().with_span(tracer.start_with_context("server", &caller));
    tracer.start_with_context("below it", &within).end();
    within.span().end();
    trace.to_bytes().to_vec()
}

fn sampled(stage: &Stage, share: f64) -> Report {
    let threshold = (share * (1_u64 << 56) as f64) as u64;
    let roots: Vec<_> =
        (0..TRACES).map(|_| stage.span("root").trace_id().to_bytes().to_vec()).collect();
    let mut expected: Vec<_> = roots.into_iter().filter(|it| draw(it) < threshold).collect();
    let count = expected.len() as f64;
    let allowed = TRACES as f64 * share;
    assert!((count - allowed).abs() <= 40.0, "{count} of {TRACES}");
    // A called service follows the sampling of its caller, regardless of its own share.
    let followed = called(stage, true);
    called(stage, false);
    expected.extend([followed.clone(), followed]);
    expected.sort();
    let report = stage.deliver();
    assert_eq!(wire::traces(&stage.peer), expected);
    report
}

fn beside_a_tracer(stage: &Stage) -> Report {
    stage.span("a span");
    stage.bridged(|| drop(tracing::info_span!("bridged")));
    let report = stage.deliver();
    for (peer, service) in [(&stage.peer, "shop"), (&stage.other, PROGRAM)] {
        assert_eq!(wire::spans(peer), ["a span", "bridged"]);
        assert!(peer.seen().iter().all(|seen| wire::service(seen) == service), "{service}");
    }
    report
}

fn several(stage: &Stage) -> Report {
    stage.bridged(|| {
        let error = tracing::error_span!("error").entered();
        tracing::trace!("said in trace");
        tracing::error!("said in error");
        let info = tracing::info_span!("info").entered();
        drop(tracing::trace_span!("trace"));
        drop((info, error));
    });
    stage.span("bare");
    let report = stage.deliver();
    assert_eq!(wire::spans(&stage.peer), ["bare", "error", "info", "trace"]);
    assert_eq!(wire::logs(&stage.peer), ["said in error", "said in trace"]);
    assert_eq!(wire::spans(&stage.other), ["error"]);
    assert_eq!(wire::logs(&stage.other), ["said in error"]);
    let lines = std::fs::read_to_string(&stage.file).expect("a file");
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let log = stage.peer.seen().into_iter().flat_map(|it| it.logs).next().expect("a log");
    assert!(
        log.span_id.iter().any(|byte| *byte != 0),
        "logs carry the span that they were said in"
    );
    report
}

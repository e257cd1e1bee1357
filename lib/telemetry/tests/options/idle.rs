//! An idle program: the activity of telemetry itself does not become telemetry.
//!
//! Here the bridge is the subscriber of the program's thread; the test `no_loop` covers the bridge as the subscriber of
//! the entire process.

use std::time::Duration;

use telemetry::Report;

use crate::{
    stage::{Row, Stage},
    wire,
};

/// How long no telemetry may arrive.
const QUIET: Duration = Duration::from_secs(10);

pub(crate) const ROWS: &[Row] = &[Row::new(
    ("003: tracer.<id>.level", "trace, in an idle program"),
    "tracer:\n  one: {type: open-telemetry, transport: grpc, endpoint: 'PEER', level: trace, enable: {log-exporter: true}}\n  \
     two: {type: open-telemetry, transport: http, endpoint: 'OTHER', level: trace, enable: {log-exporter: true}}\n\
     metrics: {open-telemetry: {transport: grpc, endpoint: 'PEER', interval: 200ms}}",
    r#"[metrics.open-telemetry]
    transport = "grpc"
    endpoint = "PEER"
    interval = "200ms"
    [tracer.one]
    type = "open-telemetry"
    transport = "grpc"
    endpoint = "PEER"
    level = "trace"
    enable.log-exporter = true
    [tracer.two]
    type = "open-telemetry"
    transport = "http"
    endpoint = "OTHER"
    level = "trace"
    enable.log-exporter = true"#,
    quiet,
)];

fn quiet(stage: &Stage) -> Report {
    stage.bridged(|| {
        tracing::trace_span!("work").in_scope(|| tracing::trace!("said"));
        for peer in [&stage.peer, &stage.other] {
            peer.wait_for("the first flush", |seen| {
                let names: Vec<_> = seen.iter().flat_map(|it| it.names()).collect();
                names.contains(&"work".to_owned()) && names.contains(&"said".to_owned())
            });
        }
        // Metrics keep the connections busy all the time.
        let before = wire::pushes(&stage.peer.seen()).len();
        let after = wire::pushes(&stage.peer.wait_until(QUIET)).len();
        assert!(after > before + 10, "{before} pushes, then {after}");
    });
    let report = stage.deliver();
    for peer in [&stage.peer, &stage.other] {
        assert_eq!(
            (wire::spans(peer), wire::logs(peer)),
            (vec!["work".to_owned()], vec!["said".to_owned()])
        );
    }
    report
}

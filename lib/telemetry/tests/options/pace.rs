//! `throttle` and `interval`: when requests are sent.

use std::time::Duration;

use telemetry::{Report, plan::BATCH_ITEMS_MAX};

use crate::{
    peer::Seen,
    stage::{Row, Stage},
    wire,
};

const THROTTLE: &str = "003: tracer.<id>.throttle";
const INTERVAL: &str = "002: metrics.open-telemetry.interval";

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        (THROTTLE, "1s if nothing is said"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER'}}",
        r#"tracer.otel = { type = "open-telemetry", endpoint = "PEER" }"#,
        |stage| paced(stage, Duration::from_secs(1)),
    ),
    Row::new(
        (THROTTLE, "300ms"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', throttle: 300ms}}",
        r#"tracer.otel = { type = "open-telemetry", endpoint = "PEER", throttle = "300ms" }"#,
        |stage| paced(stage, Duration::from_millis(300)),
    ),
    Row::new(
        (THROTTLE, "2s, by HTTP"),
        "tracer: {otel: {type: open-telemetry, transport: http, endpoint: 'PEER', throttle: 2s}}",
        r#"tracer.otel = { type = "open-telemetry", transport = "http", endpoint = "PEER", throttle = "2s" }"#,
        |stage| paced(stage, Duration::from_secs(2)),
    ),
    Row::new(
        (THROTTLE, "a full batch goes at once, the rest waits"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', throttle: 60s}}",
        r#"tracer.otel = { type = "open-telemetry", endpoint = "PEER", throttle = "60s" }"#,
        full_at_once,
    ),
    Row::new(
        (INTERVAL, "1m if nothing is said"),
        "metrics: {open-telemetry: {transport: grpc, endpoint: 'PEER'}}",
        r#"metrics.open-telemetry = { transport = "grpc", endpoint = "PEER" }"#,
        |stage| {
            assert_eq!(stage.plan.exporters[0].signals.metrics, Some(Duration::from_secs(60)));
            stage.count();
            assert_eq!(stage.peer.wait_until(Duration::from_millis(500)).len(), 0, "not yet");
            let report = stage.deliver();
            assert_eq!(wire::pushes(&stage.peer.seen()).len(), 1, "the last one, at the end");
            report
        },
    ),
    Row::new(
        (INTERVAL, "200ms, by gRPC"),
        "metrics: {open-telemetry: {transport: grpc, endpoint: 'PEER', interval: 200ms}}",
        r#"metrics.open-telemetry = { transport = "grpc", endpoint = "PEER", interval = "200ms" }"#,
        every_200_ms,
    ),
    Row::new(
        (INTERVAL, "200ms, by HTTP"),
        "metrics: {open-telemetry: {transport: http, endpoint: 'PEER', interval: 200ms}}",
        r#"metrics.open-telemetry = { transport = "http", endpoint = "PEER", interval = "200ms" }"#,
        every_200_ms,
    ),
];

/// Returns the median gap between requests: a machine that is busy for a moment does not change it.
fn middle_gap(seen: &[Seen]) -> Duration {
    let mut gaps: Vec<_> = seen.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    gaps.sort();
    gaps[gaps.len() / 2]
}

fn is_about(gap: Duration, expected: Duration) {
    let allowed = expected.mul_f64(0.8)..expected.mul_f64(1.7);
    assert!(allowed.contains(&gap), "{gap:?} is not about {expected:?}");
}

/// Each span is a batch that is not full: the next one waits for the throttle.
fn paced(stage: &Stage, throttle: Duration) -> Report {
    assert_eq!(stage.plan.exporters[0].throttle, throttle);
    for number in 1..=4 {
        stage.span("one");
        stage.peer.wait_for("the span", |seen| seen.len() == number);
    }
    is_about(middle_gap(&stage.peer.seen()), throttle);
    stage.deliver()
}

fn full_at_once(stage: &Stage) -> Report {
    let full = BATCH_ITEMS_MAX as usize;
    // The first poll after the start may find some of them early; after that only a full batch may be sent.
    stage.span("first");
    stage.peer.wait_until(Duration::from_millis(300));
    let before = stage.peer.seen().len();
    stage.spans(full + 10, 0);
    let seen = stage.peer.wait_for("the full batch", |seen| seen.len() > before);
    assert_eq!(seen[before].spans.len(), full, "full");
    let seen = stage.peer.wait_until(Duration::from_millis(500));
    assert_eq!(seen.len(), before + 1, "what is left is not full, and waits");
    let report = stage.deliver();
    assert_eq!(report.sum(|counts| counts.delivered), full as u64 + 11);
    report
}

fn every_200_ms(stage: &Stage) -> Report {
    stage.count();
    let seen = stage.peer.wait_for("pushes", |seen| seen.len() >= 6);
    is_about(middle_gap(&seen), Duration::from_millis(200));
    for push in &seen {
        assert!(wire::metrics(push).contains(&"orders".to_owned()), "every push has everything");
    }
    stage.deliver()
}

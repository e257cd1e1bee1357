//! `lossy`: what happens when the queue is full.

use std::{collections::BTreeSet, thread, time::Duration};

use telemetry::Report;

use crate::{
    peer::Reply,
    stage::{Row, Stage},
    wire,
};

const LOSSY: &str = "003: tracer.<id>.lossy";

/// Three times the capacity of the buffer.
const SPANS: usize = 3000;
const SPAN_BYTES: usize = 1000;

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        (LOSSY, "true"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', lossy: true, timeout: 500ms, buffer: {memory: 1MiB}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        lossy = true
        timeout = "500ms"
        buffer.memory = "1MiB""#,
        drops,
    ),
    Row::new(
        (LOSSY, "false"),
        "tracer: {otel: {type: open-telemetry, endpoint: 'PEER', lossy: false, timeout: 500ms, buffer: {memory: 1MiB}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        endpoint = "PEER"
        lossy = false
        timeout = "500ms"
        buffer.memory = "1MiB""#,
        holds,
    ),
    Row::new(
        (LOSSY, "false if nothing is said, by HTTP"),
        "tracer: {otel: {type: open-telemetry, transport: http, endpoint: 'PEER', timeout: 500ms, buffer: {memory: 1MiB}}}",
        r#"[tracer.otel]
        type = "open-telemetry"
        transport = "http"
        endpoint = "PEER"
        timeout = "500ms"
        buffer.memory = "1MiB""#,
        holds,
    ),
];

/// The names of the delivered spans, each once: a request that timed out is sent again.
fn arrived(stage: &Stage) -> BTreeSet<String> {
    wire::spans(&stage.peer).into_iter().collect()
}

fn drops(stage: &Stage) -> Report {
    stage.peer.reply_always(Reply::Hang);
    stage.spans(SPANS, SPAN_BYTES);
    let counts = stage.telemetry.counts().remove(0);
    assert!(counts.is_balanced(), "{counts:?}");
    assert_eq!((counts.accepted, counts.delivered), (SPANS as u64, 0));
    assert!(counts.dropped > SPANS as u64 / 2, "{counts:?}");
    assert_eq!((counts.held, counts.holding), (Duration::ZERO, 0), "nobody waited");
    stage.peer.reply_always(Reply::Accept);
    let report = stage.end();
    let ended = &report.exporters[0];
    assert_eq!(ended.dropped, counts.dropped, "none after there was room");
    assert_eq!(ended.delivered, SPANS as u64 - ended.dropped);
    assert_eq!(arrived(stage).len() as u64, ended.delivered, "what was not dropped arrived");
    report
}

fn holds(stage: &Stage) -> Report {
    stage.peer.reply_always(Reply::Hang);
    thread::scope(|scope| {
        let producer = scope.spawn(|| stage.spans(SPANS, SPAN_BYTES));
        while stage.telemetry.counts()[0].holding == 0 {
            assert!(!producer.is_finished(), "the queue has no room for all");
            stage.peer.wait_until(Duration::from_millis(10));
        }
        stage.peer.wait_until(Duration::from_millis(700));
        let counts = stage.telemetry.counts().remove(0);
        assert!(!producer.is_finished() && counts.holding == 1, "still held: {counts:?}");
        assert!(counts.accepted < SPANS as u64 / 2 && counts.dropped == 0, "{counts:?}");
        assert!(stage.telemetry.pressure() > 0.8, "{}", stage.telemetry.pressure());
        stage.peer.reply_always(Reply::Accept);
        producer.join().expect("it goes on");
    });
    let report = stage.deliver();
    let ended = &report.exporters[0];
    assert_eq!((ended.delivered, ended.dropped), (SPANS as u64, 0));
    assert!(ended.held > Duration::from_millis(500), "{:?}", ended.held);
    assert_eq!(arrived(stage).len(), SPANS, "nothing is lost");
    report
}

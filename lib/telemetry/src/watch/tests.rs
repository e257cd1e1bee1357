//! The notices about an exporter, second by second.

use std::time::{Duration, Instant};

use super::{Delivery, SignalSnapshot, Snapshot, exporter::ExporterWatch};
use crate::{counts::Counts, plan::Signal};

/// An exporter with four snapshots a second, and its notices.
struct Stage {
    begin: Instant,
    snapshot: Snapshot,
    exporter: ExporterWatch,
    said: String,
}

impl Stage {
    #[expect(clippy::disallowed_methods, reason = "a moment to count from")]
    fn new() -> Self {
        let now = Instant::now();
        let snapshot = Snapshot {
            now,
            counts: Counts { exporter: "tracer.otel".to_owned(), ..Counts::default() },
            first: Signal::Spans,
            destinations: Signal::ALL.map(|_| "http://collector:4317/".to_owned()),
            folders: vec![("/data/tracer.otel".into(), 0)],
            throttle: Duration::from_secs(1),
            is_buffered: true,
            lossy: false,
            buffer: 0.0,
            signals: Default::default(),
            disk: None,
        };
        Self { begin: now, exporter: ExporterWatch::new(&snapshot), snapshot, said: String::new() }
    }

    /// Lets this many seconds pass, and applies `change` to each snapshot.
    fn pass(&mut self, seconds: u32, change: impl Fn(&mut Snapshot)) -> &mut Self {
        for _ in 0..seconds * 4 {
            self.snapshot.now += Duration::from_millis(250);
            change(&mut self.snapshot);
            for (topic, is_over, line) in self.exporter.observe(&self.snapshot) {
                let at = self.snapshot.now.duration_since(self.begin).as_secs_f64();
                let state = if is_over { "over" } else { "begins" };
                self.said += &format!("{at} {} {state}: {line}\n", topic.as_str());
            }
        }
        self
    }

    fn expect(&mut self, said: &str) {
        assert_eq!(self.said, said);
        self.said.clear();
    }

    fn state(&self) -> Delivery {
        self.exporter.state(&self.snapshot)
    }
}

fn fails(snapshot: &mut Snapshot) {
    let spans = &mut snapshot.signals[Signal::Spans as usize];
    spans.unanswered_since.get_or_insert(snapshot.now);
    spans.reason = Some("`http://collector:4317/` refused the connection".to_owned());
    snapshot.counts.queued += 1;
}

fn delivers(snapshot: &mut Snapshot) {
    arrives(snapshot, Signal::Spans);
    let sent = snapshot.counts.queued.min(10);
    snapshot.counts.queued -= sent;
    snapshot.counts.delivered += sent;
}

fn rejects(snapshot: &mut Snapshot) {
    arrives(snapshot, Signal::Spans);
    snapshot.counts.rejected += 1;
}

#[test]
fn a_destination_that_answers_and_refuses_everything_is_not_delivered_to() {
    let mut stage = Stage::new();
    stage.pass(2, rejects);
    assert_eq!(stage.state(), Delivery::Rejecting);
    stage.pass(60, |_| {});
    assert_eq!(stage.state(), Delivery::Rejecting, "nothing was sent since");
    stage.pass(1, |snapshot| {
        snapshot.counts.queued += 1;
        delivers(snapshot);
    });
    assert_eq!(stage.state(), Delivery::Delivering);
}

#[test]
fn what_is_kept_is_where_something_is() {
    let mut stage = Stage::new();
    stage.snapshot.folders.push(("/data/tracer.otel.logs".into(), 3));
    stage.pass(6, |snapshot| {
        let logs = &mut snapshot.signals[Signal::Logs as usize];
        logs.unanswered_since.get_or_insert(snapshot.now);
        snapshot.counts.queued = 3;
    });
    stage.expect(
        "5.25 delivery begins: has delivered no logs for 5.0 s: `http://collector:4317/` has not answered, and is waited for; kept \
         until it does: 3 items in `/data/tracer.otel.logs`\n",
    );
    stage.snapshot.folders[0].1 = 2;
    let both = "`/data/tracer.otel` and `/data/tracer.otel.logs`";
    assert!(super::words::kept(&stage.snapshot).ends_with(both));
}

fn metrics_fail(snapshot: &mut Snapshot) {
    let metrics = &mut snapshot.signals[Signal::Metrics as usize];
    metrics.unanswered_since.get_or_insert(snapshot.now);
    metrics.reason = Some("`http://collector:4318/v1/metrics` answered 503".to_owned());
}

fn arrives(snapshot: &mut Snapshot, signal: Signal) {
    let state = &mut snapshot.signals[signal as usize];
    (state.unanswered_since, state.reason, state.accepted) = (None, None, state.accepted + 1);
}

#[test]
fn a_destination_that_is_away_is_said_once_and_that_it_is_back() {
    let mut stage = Stage::new();
    assert_eq!(stage.state(), Delivery::Waiting);
    stage.pass(10, delivers).pass(3, fails).pass(10, delivers).expect("");
    assert_eq!(stage.state(), Delivery::Delivering);
    stage.pass(20, fails).expect(
        "28.25 delivery begins: has delivered no spans for 5.0 s: `http://collector:4317/` refused the connection; kept until it does: \
         21 items in `/data/tracer.otel`\n",
    );
    assert_eq!(stage.state(), Delivery::Failing);
    stage.pass(1, delivers).expect("");
    assert_eq!(stage.state(), Delivery::CatchingUp);
    stage.pass(60, delivers).expect(
        "45 delivery over: delivers spans again, after 20 s: delivered 80 items in 1.8 s\n",
    );
    assert_eq!(stage.state(), Delivery::Delivering);
}

#[test]
fn one_that_does_not_answer_is_said_to_hang() {
    let mut stage = Stage::new();
    stage.pass(1, delivers);
    stage.pass(8, |snapshot| {
        snapshot.signals[Signal::Spans as usize].unanswered_since.get_or_insert(snapshot.now);
    });
    stage.expect(
        "6.25 delivery begins: has delivered no spans for 5.0 s: `http://collector:4317/` has not answered, and is waited for; kept \
         until it does: 0 items in `/data/tracer.otel`\n",
    );
}

#[test]
fn what_waits_while_nothing_is_tried_is_said() {
    let mut stage = Stage::new();
    for waiting in 1..=10 {
        stage.pass(1, |snapshot| {
            snapshot.counts.queued = 3;
            snapshot.signals[Signal::Spans as usize].oldest = Some(Duration::from_secs(waiting));
        });
    }
    assert!(
        stage.said.starts_with("6 delivery begins: has delivered no spans for 6.0 s"),
        "{}",
        stage.said
    );
}

#[test]
fn another_sender_is_no_recovery() {
    let mut stage = Stage::new();
    stage.pass(6, fails);
    stage.said.clear();
    // A new plan: the failure reason of the old sender is cleared, and no request was sent so far.
    let forget = |snapshot: &mut Snapshot| {
        snapshot.signals[Signal::Spans as usize] = SignalSnapshot::default();
    };
    stage.pass(5, forget).expect("");
    assert_eq!(stage.state(), Delivery::Failing);
    stage.pass(5, delivers);
    assert!(stage.said.contains("delivers spans again"), "{}", stage.said);
}

#[test]
fn one_that_comes_and_goes_is_said_at_most_once_a_minute() {
    let mut stage = Stage::new();
    for _ in 0..20 {
        stage.pass(10, fails).pass(10, delivers);
    }
    stage.pass(100, delivers);
    let at: Vec<_> = stage.said.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(at.len(), 4, "{}", stage.said);
    let (last, before) = (stage.said.lines().nth(3), stage.said.lines().nth(2));
    assert!(before.is_some_and(|line| line.contains("times of late")), "{}", stage.said);
    assert!(last.is_some_and(|line| line.contains("for a minute")), "{}", stage.said);
}

#[test]
fn metrics_are_replaced() {
    let mut stage = Stage::new();
    stage.snapshot.is_buffered = false;
    stage.pass(6, metrics_fail).pass(1, |snapshot| arrives(snapshot, Signal::Metrics));
    stage.expect(
        "5.25 delivery begins: has delivered no metrics for 5.0 s: `http://collector:4318/v1/metrics` answered 503; the next metrics \
         replace those that did not arrive\n\
         6.25 delivery over: delivers metrics again, after 6.0 s\n",
    );
}

#[test]
fn one_destination_that_is_away_is_one_line_for_all_signals() {
    let mut stage = Stage::new();
    let away = |snapshot: &mut Snapshot| {
        fails(snapshot);
        metrics_fail(snapshot);
    };
    stage.pass(2, fails).pass(20, away);
    // Metrics are delivered a little later.
    stage.pass(3, delivers).pass(10, |snapshot| arrives(snapshot, Signal::Metrics));
    let lines: Vec<_> = stage.said.lines().collect();
    assert_eq!(lines.len(), 2, "{}", stage.said);
    assert!(lines[1].contains("delivers spans again"), "{}", stage.said);
}

#[test]
fn one_that_takes_spans_and_no_metrics_is_said_to() {
    let mut stage = Stage::new();
    let away = |snapshot: &mut Snapshot| {
        fails(snapshot);
        metrics_fail(snapshot);
    };
    stage.pass(20, away).pass(30, delivers);
    let lines: Vec<_> = stage.said.lines().collect();
    assert_eq!(lines.len(), 3, "{}", stage.said);
    for (line, words) in lines.iter().zip(["no spans for 5", "spans again", "no metrics for 2"]) {
        assert!(line.contains(words), "{}", stage.said);
    }
    assert_eq!(stage.state(), Delivery::Failing);
}

#[test]
fn a_buffer_that_fills_and_holds_is_said() {
    let mut stage = Stage::new();
    stage.pass(2, |snapshot| (snapshot.buffer, snapshot.counts.queued) = (0.85, 7));
    stage.pass(2, |snapshot| {
        snapshot.buffer = 1.0;
        snapshot.counts.holding = 3;
        snapshot.counts.held += Duration::from_millis(750);
    });
    // Occasionally a producer finds room: this counts as one blocked period.
    for _ in 0..5 {
        stage.pass(1, |snapshot| snapshot.counts.holding = 0);
        stage.pass(1, |snapshot| snapshot.counts.holding = 1);
    }
    stage.pass(10, |snapshot| (snapshot.counts.holding, snapshot.buffer) = (0, 0.75));
    stage.pass(10, |snapshot| snapshot.buffer = 0.5);
    stage.expect(
        "0.25 buffer begins: has a buffer that is 85 % full (7 items in `/data/tracer.otel`); when it is full, threads that end a span wait\n\
         2.25 hold begins: has a full buffer (7 items in `/data/tracer.otel`): 3 of the program's threads wait for room in \
         it, and so does all that they serve; nothing else is at fault\n\
         19.25 hold over: has room in its buffer, and no thread waits for it any more; threads waited 6.0 s in all\n\
         29.25 buffer over: has room in its buffer again: it is 50 % full\n",
    );
}

#[test]
fn drops_and_a_disk_that_refuses_are_said() {
    let mut stage = Stage::new();
    (stage.snapshot.lossy, stage.snapshot.counts.queued) = (true, 9);
    stage.pass(3, |snapshot| snapshot.counts.dropped += 10);
    stage.pass(6, |_| {});
    stage.pass(2, |snapshot| {
        let reason = "No space left on device".to_owned();
        snapshot.disk = Some(("/data/tracer.otel".into(), reason));
    });
    stage.pass(6, |snapshot| snapshot.disk = None);
    stage.expect(
        "0.25 drops begins: has a full buffer (9 items in `/data/tracer.otel`), and drops new items, as `lossy: true` configures\n\
         8.25 drops over: drops nothing any more; 120 items dropped\n\
         9.25 disk begins: cannot write its buffer in `/data/tracer.otel`: No space left on device; 9 items to deliver, and new items \
         stay in memory while there is room\n\
         16.25 disk over: can write its buffer in `/data/tracer.otel` again\n",
    );
}

/// One signal gets no response for as long as this is applied, and its items wait.
fn signal_fails(snapshot: &mut Snapshot, signal: Signal) {
    let state = &mut snapshot.signals[signal as usize];
    let since = *state.unanswered_since.get_or_insert(snapshot.now);
    state.oldest = Some(snapshot.now.duration_since(since));
    state.reason = Some("refused".to_owned());
    snapshot.counts.oldest = state.oldest;
    snapshot.counts.queued = 1;
}

fn signal_recovers(snapshot: &mut Snapshot, signal: Signal) {
    arrives(snapshot, signal);
    snapshot.signals[signal as usize].oldest = None;
    snapshot.counts.oldest = None;
    snapshot.counts.delivered += snapshot.counts.queued;
    snapshot.counts.queued = 0;
}

#[test]
fn a_signal_that_fails_is_not_reported_as_another_one() {
    let mut stage = Stage::new();
    // Spans were delivered before, and there are none now: only logs wait.
    stage.pass(2, |snapshot| arrives(snapshot, Signal::Spans)).expect("");
    stage.pass(60, |snapshot| signal_fails(snapshot, Signal::Logs));
    assert_eq!(stage.state(), Delivery::Failing);
    stage.pass(120, |snapshot| signal_recovers(snapshot, Signal::Logs));
    assert_eq!(stage.state(), Delivery::Delivering);
    stage.expect(
        "7.25 delivery begins: has delivered no logs for 5.0 s: refused; kept until it does: 1 item in `/data/tracer.otel`\n\
         62.25 delivery over: delivers logs again, after 60 s: delivered 1 item in 0.0 s\n",
    );
}

#[test]
fn a_destination_that_comes_and_goes_is_reported_once_a_minute_whatever_the_signal() {
    let mut stage = Stage::new();
    for signal in [Signal::Spans, Signal::Logs, Signal::Metrics] {
        stage.pass(9, |snapshot| signal_fails(snapshot, signal));
        stage.pass(11, |snapshot| signal_recovers(snapshot, signal));
    }
    let begins = stage.said.lines().filter(|line| line.contains("begins")).count();
    assert_eq!(begins, 1, "{}", stage.said);
    stage.said.clear();
    // A failure that stays is reported after the minute.
    stage.pass(10, |snapshot| signal_fails(snapshot, Signal::Logs));
    assert!(
        stage.said.starts_with("65.25 delivery begins: has delivered no logs"),
        "{}",
        stage.said
    );
}

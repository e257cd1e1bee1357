//! When is a trace whole?
//!
//! The simple rule: the trigger has answered, no span names a parent that is absent (the trigger's own span
//! aside), and nothing has come for as long as the test calls quiet. Whatever is missing at the deadline is
//! named. Deliberately absent so far: quiet per process, peers and parents learned from earlier runs, and
//! ending early on presence; `docs/adr/0004-settling.md` says where this goes.

use std::time::Duration;

use drivers::arrivals::Arrivals;
use lang::Settle;
use model::{Answer, Attempt, Settlement, Trace, Unsettled, trace::Tree};
use tokio::time::{Instant, timeout_at};

/// How much of a trace a run keeps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Spans.
    pub spans_max: usize,
    /// Bytes of OTLP.
    pub trace_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { spans_max: 1_000_000, trace_bytes_max: 64 << 20 }
    }
}

/// A settled trace.
pub(crate) struct Gathered {
    pub(crate) trace: Trace,
    pub(crate) settlement: Settlement,
}

/// Gathers the spans of a trace until it is whole or its time is up.
pub(crate) async fn settle(
    attempt: Attempt,
    answer: &Answer,
    mut arrivals: Arrivals,
    rule: &Settle,
    limits: &Limits,
) -> Gathered {
    let began = Instant::now();
    let deadline = began + patience(answer, rule);
    let mut gathering =
        Gathering { trace: Trace::new(attempt.trace_id), bytes: 0, overflowed: false, lost: false };
    let mut last = None;
    let mut quiet = false;
    while !gathering.overflowed && Instant::now() < deadline {
        let quiet_at = last.unwrap_or(began) + rule.flush;
        let until =
            if quiet || gathering.trace.is_empty() { deadline } else { quiet_at.min(deadline) };
        match timeout_at(until, arrivals.next()).await {
            Ok(Some(bytes)) => {
                gathering.take(&bytes, limits);
                quiet = false;
                last = Some(Instant::now());
            }
            Ok(None) => break,
            Err(_) => {
                quiet = Instant::now() >= quiet_at;
                if quiet && absent_parents(&gathering.trace, &attempt).is_empty() {
                    break;
                }
            }
        }
    }
    let unsettled = gathering.unsettled(&attempt, answer, quiet);
    let came_back = u64::from(gathering.trace.find(attempt.span_id).is_some());
    let settlement = Settlement {
        unsettled,
        spans: gathering.trace.len() as u64 - came_back,
        waited_ns: nanos(began.elapsed()),
        silent_ns: last.map(|last| nanos(last.elapsed())),
        quiet_ns: nanos(rule.flush),
    };
    Gathered { trace: gathering.trace, settlement }
}

/// How long to wait at most. A system that did not answer may have got nothing at all, so that its silence is
/// believed sooner; one that cannot have got anything is not waited for.
fn patience(answer: &Answer, rule: &Settle) -> Duration {
    match answer {
        Answer::Response(_) => rule.timeout,
        Answer::NoAnswer(no_answer) if no_answer.kind.is_unsent() => Duration::ZERO,
        Answer::NoAnswer(_) => rule.timeout.min(rule.flush * 2),
    }
}

struct Gathering {
    trace: Trace,
    bytes: usize,
    overflowed: bool,
    lost: bool,
}

impl Gathering {
    fn take(&mut self, bytes: &[u8], limits: &Limits) {
        self.bytes += bytes.len();
        self.overflowed = self.bytes > limits.trace_bytes_max;
        if self.overflowed {
            return;
        }
        match drivers::append(&mut self.trace, bytes) {
            Ok(_) => self.overflowed = self.trace.len() > limits.spans_max,
            Err(drivers::AppendError::Full(_)) => self.overflowed = true,
            // Whoever passed these bytes on has read them once already, so this is their loss, not the sender's.
            Err(drivers::AppendError::Decode(_)) => self.lost = true,
        }
    }

    fn unsettled(&self, attempt: &Attempt, answer: &Answer, quiet: bool) -> Vec<Unsettled> {
        let mut unsettled = Vec::new();
        if answer.response().is_none() {
            unsettled.push(Unsettled::NotAnswered);
        }
        if self.overflowed {
            unsettled.push(Unsettled::TooLarge);
        }
        if self.lost {
            unsettled.push(Unsettled::SpansLost);
        }
        let only_trigger = self.trace.spans().all(|span| span.id() == attempt.span_id);
        if only_trigger {
            unsettled.push(Unsettled::NoTelemetry);
            return unsettled;
        }
        let absent = absent_parents(&self.trace, attempt);
        if !absent.is_empty() {
            unsettled.push(Unsettled::ParentsAbsent(absent));
        }
        if !quiet {
            unsettled.push(Unsettled::NotQuiet);
        }
        unsettled
    }
}

/// Spans that name a parent which is neither here nor the trigger's.
fn absent_parents(trace: &Trace, attempt: &Attempt) -> Vec<model::SpanId> {
    let tree = Tree::of(trace);
    let orphans = tree.orphans().iter().map(|ix| trace.span(*ix));
    orphans.filter(|span| span.parent() != Some(attempt.span_id)).map(|span| span.id()).collect()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

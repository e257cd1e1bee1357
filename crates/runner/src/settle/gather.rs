//! Appends arrivals to a trace, within the limits of a run, and feeds them to the engine.

use std::sync::Arc;

use drivers::{AppendError, Arrival};
use model::{
    Attempt, Settlement, Timestamp, Trace, UnsettledReason,
    trace::{Span, SpanData, TraceFull},
};
use tokio::time::Instant;

use super::{engine::Engine, rules::Rules};
use crate::{
    clock::{Clock, nanos},
    pool::Share,
    trigger_span,
};

/// The upper bounds of the trace of a run.
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

/// A trace that is being collected: first the trigger's own span, then the spans that arrive.
#[derive(Debug)]
pub(crate) struct TraceBuffer {
    /// The trigger's own span; none if nothing was fired.
    trigger: Option<SpanData>,
    /// Shared with the judging threads; not shared when spans arrive.
    pub(crate) trace: Arc<Trace>,
    pub(crate) engine: Engine,
    clock: Clock,
    limits: Limits,
    /// The pool share that decodes large messages.
    share: Share,
    bytes: usize,
    has_overflowed: bool,
    has_lost: bool,
    /// The number of the first late span (late: after the verdict), and the time at which the first of them arrived.
    late: Option<(usize, Option<Timestamp>)>,
    /// For a queried source, the beginning of its last complete answer.
    watermark: Option<Timestamp>,
}

/// The minimum size in bytes of a message that is decoded on a separate thread.
const LARGE_BYTES: usize = 1 << 20;

impl TraceBuffer {
    pub(crate) fn new(
        attempt: &Attempt,
        trigger: Option<SpanData>,
        rules: Rules,
        (clock, limits, share): (Clock, Limits, Share),
    ) -> Result<Self, TraceFull> {
        let mut trace = Trace::new(attempt.trace_id);
        if let Some(trigger) = &trigger {
            push_trigger(&mut trace, trigger)?;
        }
        Ok(Self {
            trigger,
            trace: Arc::new(trace),
            engine: Engine::new(rules),
            clock,
            limits,
            share,
            bytes: 0,
            has_overflowed: false,
            has_lost: false,
            late: None,
            watermark: None,
        })
    }

    /// Decodes the spans of an arrival and appends them, or moves the watermark.
    pub(crate) async fn take(mut self, arrival: Arrival) -> Self {
        let (at, bytes) = match arrival {
            Arrival::Spans { at, bytes } => (at, bytes),
            Arrival::Coverage { began } => {
                let began = self.clock.at(began);
                self.watermark = self.watermark.map(|before| before.max(began));
                return self;
            }
        };
        if bytes.len() < LARGE_BYTES {
            self.read(at, &bytes);
            return self;
        }
        let share = self.share.clone();
        let read = move || {
            self.read(at, &bytes);
            self
        };
        share.run(read).await
    }

    /// Judges absence by the coverage of a queried source from now on: nothing is covered yet.
    pub(crate) fn require_coverage(&mut self) {
        self.watermark = Some(Timestamp::from_nanos(0));
    }

    /// Returns the time up to which absence is known. For pushed spans it is now.
    pub(crate) fn watermark(&self) -> Timestamp {
        let now = self.clock.now();
        self.watermark.map_or(now, |covered| covered.min(now))
    }

    fn read(&mut self, at: Instant, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.has_overflowed |= self.bytes > self.limits.trace_bytes_max;
        if self.has_overflowed {
            return;
        }
        let trace = Arc::make_mut(&mut self.trace);
        let from = trace.len();
        match drivers::append(trace, bytes) {
            Ok(_) => self.has_overflowed = trace.len() > self.limits.spans_max,
            Err(AppendError::Full(_)) => self.has_overflowed = true,
            // The component that forwarded these bytes has already decoded them once, so the loss is its own, not the sender's.
            Err(AppendError::Decode(_)) => self.has_lost = true,
        }
        let at = self.clock.at(at);
        if let Some((_, first @ None)) = &mut self.late
            && self.trace.len() > from
        {
            *first = Some(at);
        }
        self.engine.arrived(&self.trace, from, at);
    }

    /// Marks the time of the verdict: spans that arrive from now on are late.
    pub(crate) fn judged_now(&mut self) {
        self.late = Some((self.trace.len(), None));
    }

    /// Returns the first late span, and its arrival time.
    pub(crate) fn first_late(&self) -> Option<(Timestamp, Span<'_>)> {
        let (from, at) = self.late?;
        Some((at?, self.trace.numbered_span(from)))
    }

    /// Whether the buffer accepts no more spans.
    pub(crate) fn is_full(&self) -> bool {
        self.has_overflowed
    }

    /// Returns the settlement of the trace at a time.
    pub(crate) fn settlement(&self, answered: Timestamp, now: Timestamp) -> Settlement {
        let mut unsettled = Vec::new();
        if self.has_overflowed {
            unsettled.push(UnsettledReason::TooLarge);
        }
        if self.has_lost {
            unsettled.push(UnsettledReason::SpansLost);
        }
        let known = self.watermark().min(now);
        unsettled.extend(self.engine.unsettled(&self.trace, known));
        let processes = self.engine.processes(known);
        let last = self.engine.last();
        Settlement {
            unsettled,
            spans: self.engine.spans(),
            waited_ns: nanos(now.since(answered)),
            silent_ns: last.map(|last| nanos(now.since(last))),
            quiet_ns: processes.iter().map(|process| process.quiet_ns).max().unwrap_or(0),
            last_at: last,
            linger_ns: 0,
            logs: 0,
            drained: self.engine.is_drained(),
            processes,
            unanswered: self.engine.unanswered(),
        }
    }

    /// Returns the announced spans that are missing now.
    pub(crate) fn missing(&self) -> Vec<UnsettledReason> {
        self.engine.missing(&self.trace, self.watermark())
    }

    /// Returns the trace to judge: with the trigger's span once, even if it came back through a Collector.
    pub(crate) fn judged(&self) -> Result<Arc<Trace>, TraceFull> {
        let Some(trigger) = self.trigger.as_ref().filter(|_| self.engine.has_trigger_come_back())
        else {
            return Ok(Arc::clone(&self.trace));
        };
        let mut trace = self.trace.without(trigger.id)?;
        push_trigger(&mut trace, trigger)?;
        Ok(Arc::new(trace))
    }
}

fn push_trigger(trace: &mut Trace, trigger: &SpanData) -> Result<(), TraceFull> {
    let resource = trace.resource(trigger_span::resource())?;
    let scope = trace.scope(trigger_span::scope())?;
    trace.push(resource, scope, trigger.clone()).map(drop)
}

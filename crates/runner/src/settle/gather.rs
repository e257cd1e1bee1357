//! Arrivals into a trace, within the limits of a run, and into the engine.

use std::sync::Arc;

use drivers::{AppendError, Arrival};
use model::{
    Attempt, Settlement, Timestamp, Trace, UnsettledReason,
    trace::{Span, SpanData, TraceFull},
};

use super::engine::{Engine, Rules};
use crate::{
    clock::{Clock, nanos},
    pool::Share,
    trigger_span,
};

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

/// A trace in the making: first the trigger's own span, then what comes.
#[derive(Debug)]
pub(crate) struct TraceBuffer {
    /// The trigger's own span; none where nothing was fired.
    trigger: Option<SpanData>,
    /// Shared with whoever judges it, and with nobody when spans come.
    pub(crate) trace: Arc<Trace>,
    pub(crate) engine: Engine,
    clock: Clock,
    limits: Limits,
    /// Where large messages are read.
    share: Share,
    bytes: usize,
    has_overflowed: bool,
    has_lost: bool,
    /// From which span on what comes is late: the verdict was given; with when the first of them came.
    late: Option<(usize, Option<Timestamp>)>,
}

/// From how many bytes on a message is read on a thread of its own.
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
        })
    }

    /// Takes in what arrived.
    pub(crate) async fn take(mut self, arrival: Arrival) -> Self {
        if arrival.bytes.len() < LARGE_BYTES {
            self.read(&arrival);
            return self;
        }
        let share = self.share.clone();
        let read = move || {
            self.read(&arrival);
            self
        };
        share.run(read).await
    }

    fn read(&mut self, arrival: &Arrival) {
        self.bytes += arrival.bytes.len();
        self.has_overflowed |= self.bytes > self.limits.trace_bytes_max;
        if self.has_overflowed {
            return;
        }
        let trace = Arc::make_mut(&mut self.trace);
        let from = trace.len();
        match drivers::append(trace, &arrival.bytes) {
            Ok(_) => self.has_overflowed = trace.len() > self.limits.spans_max,
            Err(AppendError::Full(_)) => self.has_overflowed = true,
            // Whoever passed these bytes on has read them once already, so this is their loss, not the sender's.
            Err(AppendError::Decode(_)) => self.has_lost = true,
        }
        let at = self.clock.at(arrival.at);
        if let Some((_, first @ None)) = &mut self.late
            && self.trace.len() > from
        {
            *first = Some(at);
        }
        self.engine.arrived(&self.trace, from, at);
    }

    /// A verdict is given: what comes from now on is late.
    pub(crate) fn judged_now(&mut self) {
        self.late = Some((self.trace.len(), None));
    }

    /// The first span that came late, and when.
    pub(crate) fn first_late(&self) -> Option<(Timestamp, Span<'_>)> {
        let (from, at) = self.late?;
        Some((at?, self.trace.numbered_span(from)))
    }

    /// Whether nothing more is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.has_overflowed
    }

    /// What is known of the trace at a moment.
    pub(crate) fn settlement(&self, answered: Timestamp, now: Timestamp) -> Settlement {
        let mut unsettled = Vec::new();
        if self.has_overflowed {
            unsettled.push(UnsettledReason::TooLarge);
        }
        if self.has_lost {
            unsettled.push(UnsettledReason::SpansLost);
        }
        unsettled.extend(self.engine.unsettled(&self.trace, now));
        let processes = self.engine.processes(now);
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

    /// What was announced and is missing by now.
    pub(crate) fn missing(&self) -> Vec<UnsettledReason> {
        self.engine.missing(&self.trace, self.clock.now())
    }

    /// The trace as it is judged: with the trigger's span once, also where it came back through a Collector.
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

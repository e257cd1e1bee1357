//! The notices about one signal of an exporter: that its delivery fails, and that it has recovered.

use std::time::{Duration, Instant};

use super::{
    Snapshot,
    alarm::{Alarm, Say},
    words::{items, kept, spoken},
};
use crate::plan::Signal;

/// How long delivery may fail before it is reported.
const FAILING_AFTER: Duration = Duration::from_secs(5);

/// The reported state of one signal.
#[derive(Debug)]
pub(super) struct SignalWatch {
    signal: Signal,
    /// The number of accepted requests, and when the watch last saw it grow.
    progress: (u64, Instant),
    failing: Option<DeliveryOutage>,
    alarm: Alarm,
    /// When another signal of this exporter last had a reported failure.
    beside: Option<Instant>,
}

/// A time in which nothing is delivered.
#[derive(Debug)]
struct DeliveryOutage {
    since: Instant,
    accepted: u64,
    delivered: u64,
    /// When delivery resumed, and the number of ended items at which the backlog is sent.
    back: Option<(Instant, u64)>,
}

impl SignalWatch {
    pub(super) fn new(signal: Signal, snapshot: &Snapshot) -> Self {
        Self {
            signal,
            progress: (snapshot.signal(signal).accepted, snapshot.now),
            failing: None,
            alarm: Alarm::over_after(Duration::ZERO),
            beside: None,
        }
    }

    /// Returns whether delivery fails.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.as_ref().is_some_and(|failing| failing.back.is_none())
    }

    /// Returns whether delivery has resumed, and the backlog is being sent.
    pub(super) fn is_catching_up(&self) -> bool {
        self.failing.as_ref().is_some_and(|failing| failing.back.is_some())
    }

    /// Returns whether delivery fails, and the failure was reported.
    pub(super) fn is_reported(&self) -> bool {
        self.is_failing() && self.alarm.is_reported()
    }

    pub(super) fn failing_for(&self, now: Instant) -> Option<Duration> {
        let failing = self.failing.as_ref().filter(|_| self.is_failing());
        failing.map(|failing| now.saturating_duration_since(failing.since))
    }

    /// Returns how the signal fails, whatever its URL: signals that fail in the same way have the same problem.
    pub(super) fn failure_kind(&self, snapshot: &Snapshot) -> String {
        let reason = snapshot.signal(self.signal).reason.as_deref().unwrap_or_default();
        reason.split_once("` ").map_or(reason, |(_, kind)| kind).to_owned()
    }

    /// Returns the notice that is due: a begin or an end. While another signal has a reported failure (`is_beside`), this
    /// is the same outage until that one recovers. No failure is reported if one of the same kind was a moment ago
    /// (`is_early`).
    pub(super) fn observe(
        &mut self,
        snapshot: &Snapshot,
        (is_beside, is_early): (bool, bool),
    ) -> Option<(bool, String)> {
        let over = self.note(snapshot);
        if is_beside {
            self.beside = Some(snapshot.now);
        }
        let is_alone = self.beside.is_none_or(|last| snapshot.now >= last + FAILING_AFTER);
        let is_on = self.failing.is_some() && (is_alone && !is_early || self.alarm.is_reported());
        match self.alarm.observe(snapshot.now, is_on)? {
            Say::Began { times } => Some((false, self.failing_words(snapshot, times))),
            Say::Over => {
                let signal = self.signal.as_str();
                let calm = || format!("has delivered {signal} for a minute without failing");
                Some((true, over.map_or_else(calm, |failure| failure.words(signal, snapshot))))
            }
        }
    }

    /// Updates the delivery state; returns an outage that is over.
    fn note(&mut self, snapshot: &Snapshot) -> Option<DeliveryOutage> {
        let (accepted, ended) = (snapshot.signal(self.signal).accepted, snapshot.ended());
        if accepted > self.progress.0 {
            self.progress = (accepted, snapshot.now);
        }
        let stuck_since = self.stuck_since(snapshot);
        match (&mut self.failing, stuck_since) {
            (None, Some(since)) => {
                let delivered = snapshot.counts.delivered;
                self.failing = Some(DeliveryOutage { since, accepted, delivered, back: None });
                None
            }
            (Some(failing), Some(_)) => {
                // It failed again before the backlog was sent: this is the same outage, and its end was not reported.
                (failing.back, failing.accepted) = (None, accepted);
                None
            }
            (Some(failing), None) => {
                // A new sender has cleared the failure reason; only an accepted request ends the outage.
                if failing.back.is_none() && accepted > failing.accepted {
                    failing.back = Some((snapshot.now, ended + snapshot.counts.queued));
                }
                let is_sent = failing.back.is_some_and(|(_, until)| ended >= until);
                self.failing.take_if(|_| is_sent)
            }
            (None, None) => None,
        }
    }

    /// Returns since when nothing is delivered, if that is long enough.
    fn stuck_since(&self, snapshot: &Snapshot) -> Option<Instant> {
        let is_long = |since: &Instant, max| snapshot.now >= *since + max;
        let since = snapshot.signal(self.signal).unanswered_since;
        if let Some(since) = since.filter(|since| is_long(since, FAILING_AFTER)) {
            return Some(since);
        }
        // No request is even tried, although an item waits.
        let max = snapshot.throttle + FAILING_AFTER;
        let oldest = snapshot.signal(self.signal).oldest;
        let (_, last) = self.progress;
        (oldest.is_some_and(|oldest| oldest >= max) && is_long(&last, max)).then_some(last)
    }

    fn failing_words(&self, snapshot: &Snapshot, times: u32) -> String {
        let signal = self.signal.as_str();
        let long = spoken(self.failing_for(snapshot.now).unwrap_or(FAILING_AFTER));
        let often = if times > 1 { format!(", {times} times of late") } else { String::new() };
        let destination = snapshot.destination(self.signal);
        let hangs = || format!("`{destination}` has not answered, and is waited for");
        let reason = snapshot.signal(self.signal).reason.clone().unwrap_or_else(hangs);
        let kept = if self.signal == Signal::Metrics {
            "the next metrics replace those that did not arrive".to_owned()
        } else {
            format!("kept until it does: {}", kept(snapshot))
        };
        format!("has delivered no {signal} for {long}{often}: {reason}; {kept}")
    }
}

impl DeliveryOutage {
    /// Formats the notice that the outage is over.
    fn words(&self, signal: &str, snapshot: &Snapshot) -> String {
        let back = self.back.map_or(snapshot.now, |(back, _)| back);
        let away = spoken(back.saturating_duration_since(self.since));
        let delivered = snapshot.counts.delivered.saturating_sub(self.delivered);
        if delivered == 0 || signal == Signal::Metrics.as_str() {
            return format!("delivers {signal} again, after {away}");
        }
        let took = spoken(snapshot.now.saturating_duration_since(back));
        let delivered = items(delivered);
        format!("delivers {signal} again, after {away}: delivered {delivered} in {took}")
    }
}

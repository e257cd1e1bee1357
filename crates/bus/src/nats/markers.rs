//! Markers: which one is on its way, for whom, and when the consumer has to be opened anew. Decisions without a connection or a clock.
//!
//! A marker proves everything that was stored before it. So one who begins to wait while a marker is on its way waits for the next.

use std::{mem, time::Duration};

use crate::Doubt;

/// How long a marker may take before the consumer is opened anew.
pub(super) const MARKER_MAX: Duration = Duration::from_millis(500);

/// How long a proof may take.
pub(super) const PROOF_MAX: Duration = Duration::from_secs(3);

/// The markers of one reader. `R` is how one who waits gets the reply; times count from any moment.
#[derive(Debug)]
pub(super) struct Markers<R> {
    /// Those who wait for the next marker.
    waiting: Vec<R>,
    on_its_way: Option<Marker<R>>,
}

#[derive(Debug)]
struct Marker<R> {
    number: u64,
    replies: Vec<R>,
    /// When the consumer is opened anew.
    reopen_at: Duration,
    /// When those who wait get a doubt.
    ends_at: Duration,
    refusal: Option<String>,
}

impl<R> Default for Markers<R> {
    fn default() -> Self {
        Self { waiting: Vec::new(), on_its_way: None }
    }
}

impl<R> Markers<R> {
    /// Adds one who waits for a proof of everything that is stored now.
    pub(super) fn wait(&mut self, reply: R) {
        self.waiting.push(reply);
    }

    /// Removes those of whom this is false.
    pub(super) fn retain(&mut self, is_waiting: impl FnMut(&R) -> bool) {
        self.waiting.retain(is_waiting);
    }

    /// Whether a marker has to be sent now: none is on its way, and there are those who wait.
    pub(super) fn is_due(&self) -> bool {
        self.on_its_way.is_none() && !self.waiting.is_empty()
    }

    /// Takes note of a marker that is sent. No other reader of this process MAY have used its number: it would take that marker for its
    /// own.
    pub(super) fn send(&mut self, number: u64, now: Duration) {
        self.on_its_way = Some(Marker {
            number,
            replies: mem::take(&mut self.waiting),
            reopen_at: now + MARKER_MAX,
            ends_at: now + PROOF_MAX,
            refusal: None,
        });
    }

    /// Returns the number of the marker to send again, because the consumer was opened anew: it may not be stored.
    pub(super) fn again(&mut self, now: Duration) -> Option<u64> {
        let marker = self.on_its_way.as_mut()?;
        marker.reopen_at = now + MARKER_MAX;
        Some(marker.number)
    }

    /// Returns when the consumer has to be opened anew.
    pub(super) fn reopen_at(&self) -> Option<Duration> {
        self.on_its_way.as_ref().map(|marker| marker.reopen_at)
    }

    /// Takes note of whether a marker was stored.
    pub(super) fn stored(&mut self, result: Result<(), String>) {
        if let Some(marker) = &mut self.on_its_way {
            marker.refusal = result.err();
        }
    }

    /// Whether this marker is on its way.
    pub(super) fn is_on_its_way(&self, number: u64) -> bool {
        self.on_its_way.as_ref().is_some_and(|marker| marker.number == number)
    }

    /// Returns those who waited for a marker that came.
    pub(super) fn came(&mut self, number: u64) -> Vec<R> {
        let came = self.on_its_way.take_if(|marker| marker.number == number);
        came.map(|marker| marker.replies).unwrap_or_default()
    }

    /// Returns those who have waited for too long, with their doubt.
    pub(super) fn expire(&mut self, now: Duration) -> Option<(Vec<R>, Doubt)> {
        let marker = self.on_its_way.take_if(|marker| marker.ends_at <= now)?;
        let doubt = marker.refusal.map_or(Doubt::MarkerLate(PROOF_MAX), Doubt::MarkerRefused);
        Some((marker.replies, doubt))
    }
}

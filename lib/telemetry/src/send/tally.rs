//! The outcomes of all items that were read from an exporter's journal.
//!
//! An outcome is counted when its batch is acknowledged, not when a request returns: a batch that the next sender reads
//! again would count twice. So the sum of delivered and rejected items equals the journal's acknowledged items whenever
//! the sender is idle.

use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::answer::Why;
use crate::plan::Signal;

/// A snapshot of one signal.
#[derive(Clone, Debug, Default)]
pub(crate) struct SignalSnapshot {
    /// The first attempt without a valid response, if there was none since.
    pub(crate) unanswered_since: Option<Instant>,
    /// The number of requests with a valid response.
    pub(crate) accepted: u64,
    /// Why the last request failed.
    pub(crate) reason: Option<String>,
    /// The age of the oldest item that is not delivered; the journal of the signal has it.
    pub(crate) oldest: Option<Duration>,
}

/// The outcomes of all items that were read from an exporter's journal, over all its senders.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The outcomes of spans.
    pub(crate) spans: SignalCounts,
    /// The outcomes of log records.
    pub(crate) logs: SignalCounts,
    /// Items of records that this version cannot read; they count as rejected.
    pub(crate) unreadable: AtomicU64,
    /// Requests that were sent, each attempt counted.
    pub(crate) requests: AtomicU64,
    /// The part of them that repeats an earlier request.
    pub(crate) retries: AtomicU64,
    /// Batches that have ended completely.
    pub(crate) batches: AtomicU64,
    /// Dead letters that were written.
    pub(crate) dead_letters: AtomicU64,
    /// Dead letters that were deleted again for lack of room.
    pub(crate) dead_letters_removed: AtomicU64,
    /// Dead letters that could not be written.
    pub(crate) dead_letters_failed: AtomicU64,
    /// Collections of metrics that were delivered.
    pub(crate) pushes: AtomicU64,
    /// Attempts to push metrics that failed.
    pub(crate) pushes_failed: AtomicU64,
    /// Data points in the delivered collections.
    pub(crate) points: AtomicU64,
    /// The delivery states of spans, logs and metrics.
    signals: Mutex<[SignalState; 3]>,
}

/// The delivery state of one signal.
#[derive(Debug, Default)]
struct SignalState {
    /// Why it is not delivered at the moment.
    trouble: Option<Why>,
    /// The first attempt without a valid response, if there was none since.
    unanswered_since: Option<Instant>,
    /// Requests that the destination accepted, or answered so that others may be sent.
    accepted: u64,
}

/// The outcomes of the items of one signal.
#[derive(Debug, Default)]
pub(crate) struct SignalCounts {
    pub(crate) delivered: AtomicU64,
    pub(crate) rejected: AtomicU64,
}

impl Tally {
    /// Returns the outcomes of a signal that has a journal.
    pub(crate) fn ends(&self, signal: Signal) -> &SignalCounts {
        if signal == Signal::Logs { &self.logs } else { &self.spans }
    }

    /// The number of delivered items.
    pub(crate) fn delivered(&self) -> u64 {
        let [spans, logs] =
            [&self.spans, &self.logs].map(|it| it.delivered.load(Ordering::Relaxed));
        spans + logs
    }

    /// The number of items that will never be delivered.
    pub(crate) fn rejected(&self) -> u64 {
        let [spans, logs] = [&self.spans, &self.logs].map(|it| it.rejected.load(Ordering::Relaxed));
        spans + logs + self.unreadable.load(Ordering::Relaxed)
    }

    /// Returns why some signal is not delivered at the moment.
    pub(crate) fn trouble(&self) -> Option<Why> {
        self.signals().iter().find_map(|state| state.trouble.clone())
    }

    /// Sets why this signal is not delivered at the moment.
    pub(crate) fn set_trouble(&self, signal: Signal, trouble: Option<Why>) {
        self.signals()[signal as usize].trouble = trouble;
    }

    pub(crate) fn forget_troubles(&self) {
        for signal in Signal::ALL {
            self.forget_trouble(signal);
        }
    }

    /// Clears the failure reason of a signal of which nothing is in progress or queued.
    pub(crate) fn forget_trouble(&self, signal: Signal) {
        let state = &mut self.signals()[signal as usize];
        (state.trouble, state.unanswered_since) = (None, None);
    }

    /// Records that a request of this signal was started.
    pub(crate) fn began(&self, signal: Signal, at: Instant) {
        self.signals()[signal as usize].unanswered_since.get_or_insert(at);
    }

    /// Records a valid response; `oldest` is the start of the oldest request that is still in progress.
    pub(crate) fn answered(&self, signal: Signal, oldest: Option<Instant>) {
        let state = &mut self.signals()[signal as usize];
        (state.unanswered_since, state.accepted) = (oldest, state.accepted + 1);
    }

    /// Returns the delivery state of each signal.
    pub(crate) fn snapshot(&self) -> [SignalSnapshot; 3] {
        self.signals().each_ref().map(|state| SignalSnapshot {
            unanswered_since: state.unanswered_since,
            accepted: state.accepted,
            reason: state.trouble.as_ref().map(|why| why.message.clone()),
            oldest: None,
        })
    }

    fn signals(&self) -> MutexGuard<'_, [SignalState; 3]> {
        self.signals.lock().expect("no panic under this lock")
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

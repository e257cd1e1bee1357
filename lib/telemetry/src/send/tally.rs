//! What became of everything that an exporter's journal gave out.
//!
//! Ends are counted when a batch is acknowledged, not when a request returns: a batch that is read again by the next
//! sender would count twice. So delivered and rejected together are the journal's acknowledged items at every rest.

use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use super::answer::Why;
use crate::{plan::Signal, watch::SignalSnapshot};

/// What became of everything that an exporter's journal gave out, over all its senders.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Of spans.
    pub(crate) spans: SignalCounts,
    /// Of log records.
    pub(crate) logs: SignalCounts,
    /// Items of records that this version cannot read; they count as rejected.
    pub(crate) unreadable: AtomicU64,
    /// Requests that were sent, each attempt counted.
    pub(crate) requests: AtomicU64,
    /// Of these, those that repeat an earlier one.
    pub(crate) retries: AtomicU64,
    /// Batches that are wholly ended.
    pub(crate) batches: AtomicU64,
    /// Dead letters that were written.
    pub(crate) dead_letters: AtomicU64,
    /// Dead letters that were removed again for lack of room.
    pub(crate) dead_letters_removed: AtomicU64,
    /// Dead letters that could not be written.
    pub(crate) dead_letters_failed: AtomicU64,
    /// Collections of metrics that arrived.
    pub(crate) pushes: AtomicU64,
    /// Attempts to push metrics that failed.
    pub(crate) pushes_failed: AtomicU64,
    /// Data points in the collections that arrived.
    pub(crate) points: AtomicU64,
    /// How spans, logs and metrics fare.
    signals: Mutex<[SignalState; 3]>,
}

/// How one signal fares.
#[derive(Debug, Default)]
struct SignalState {
    /// Why it does not arrive just now.
    trouble: Option<Why>,
    /// The first attempt that was not answered well, with none that was since.
    unanswered_since: Option<Instant>,
    /// Requests that the destination took, or answered so that others may be sent.
    accepted: u64,
}

/// How items of one signal ended.
#[derive(Debug, Default)]
pub(crate) struct SignalCounts {
    pub(crate) delivered: AtomicU64,
    pub(crate) rejected: AtomicU64,
}

impl Tally {
    /// The ends of a signal that has a journal.
    pub(crate) fn ends(&self, signal: Signal) -> &SignalCounts {
        if signal == Signal::Logs { &self.logs } else { &self.spans }
    }

    /// Items that the destination has.
    pub(crate) fn delivered(&self) -> u64 {
        let [spans, logs] =
            [&self.spans, &self.logs].map(|it| it.delivered.load(Ordering::Relaxed));
        spans + logs
    }

    /// Items that the destination will never have.
    pub(crate) fn rejected(&self) -> u64 {
        let [spans, logs] = [&self.spans, &self.logs].map(|it| it.rejected.load(Ordering::Relaxed));
        spans + logs + self.unreadable.load(Ordering::Relaxed)
    }

    /// Why something is not delivered just now.
    pub(crate) fn trouble(&self) -> Option<Why> {
        self.signals().iter().find_map(|state| state.trouble.clone())
    }

    /// Why this signal is not delivered just now.
    pub(crate) fn set_trouble(&self, signal: Signal, trouble: Option<Why>) {
        self.signals()[signal as usize].trouble = trouble;
    }

    pub(crate) fn forget_troubles(&self) {
        for signal in Signal::ALL {
            self.forget_trouble(signal);
        }
    }

    /// Nothing of this signal is under way or to be sent.
    pub(crate) fn forget_trouble(&self, signal: Signal) {
        let state = &mut self.signals()[signal as usize];
        (state.trouble, state.unanswered_since) = (None, None);
    }

    /// A request of this signal was begun.
    pub(crate) fn began(&self, signal: Signal, at: Instant) {
        self.signals()[signal as usize].unanswered_since.get_or_insert(at);
    }

    /// One was answered well; the oldest that still is under way began then.
    pub(crate) fn answered(&self, signal: Signal, oldest: Option<Instant>) {
        let state = &mut self.signals()[signal as usize];
        (state.unanswered_since, state.accepted) = (oldest, state.accepted + 1);
    }

    /// How each signal fares.
    pub(crate) fn snapshot(&self) -> [SignalSnapshot; 3] {
        self.signals().each_ref().map(|state| SignalSnapshot {
            unanswered_since: state.unanswered_since,
            accepted: state.accepted,
            reason: state.trouble.as_ref().map(|why| why.message.clone()),
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

//! The age of the oldest record, from sparse timestamps: a clock call per record would cost as much as the record.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The maximum number of timestamps. Beyond it, every other one is discarded and the distance between new ones is
/// doubled.
const NOTES_MAX: usize = 1024;

/// Timestamps that map a position of the journal to the time at which the journal had grown to it.
#[derive(Debug)]
pub(crate) struct Ages {
    notes: VecDeque<(u64, Instant)>,
    distance: Duration,
}

impl Ages {
    pub(crate) fn new() -> Self {
        Self { notes: VecDeque::new(), distance: Duration::from_secs(1) }
    }

    /// Notes the time of a position: records that are appended from this position on are not older than `now`.
    pub(crate) fn note(&mut self, at: u64, now: Instant) {
        match self.notes.back() {
            Some(&(_, last)) if now.saturating_duration_since(last) < self.distance => return,
            _ => {}
        }
        if self.notes.len() == NOTES_MAX {
            let mut index = 0;
            self.notes.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.distance *= 2;
        }
        self.notes.push_back((at, now));
    }

    /// Discards the timestamps that only positions before this one need.
    pub(crate) fn forget_before(&mut self, at: u64) {
        while self.notes.get(1).is_some_and(|&(next, _)| next <= at) {
            self.notes.pop_front();
        }
        if self.notes.is_empty() {
            self.distance = Duration::from_secs(1);
        }
    }

    /// Discards all timestamps, because the journal is empty.
    pub(crate) fn clear(&mut self) {
        self.notes.clear();
    }

    /// Returns the earliest time at which the record at this position can have been appended.
    pub(crate) fn of(&self, at: u64) -> Option<Instant> {
        let behind = self.notes.partition_point(|&(noted, _)| noted <= at);
        self.notes.get(behind.saturating_sub(1)).map(|&(_, then)| then)
    }
}

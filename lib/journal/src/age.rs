//! How old the oldest record is, from sparse notes of the time: a clock per record would cost as much as the record.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// How many notes are kept; beyond, every other one is forgotten and the distance between new ones doubled.
const NOTES_MAX: usize = 1024;

/// Notes of when the journal had grown to which position.
#[derive(Debug)]
pub(crate) struct Ages {
    notes: VecDeque<(u64, Instant)>,
    distance: Duration,
}

impl Ages {
    pub(crate) fn new() -> Self {
        Self { notes: VecDeque::new(), distance: Duration::from_secs(1) }
    }

    /// What is appended from this position on is not older than now.
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

    /// Nobody will ask for what is before this position.
    pub(crate) fn forget_before(&mut self, at: u64) {
        while self.notes.get(1).is_some_and(|&(next, _)| next <= at) {
            self.notes.pop_front();
        }
        if self.notes.is_empty() {
            self.distance = Duration::from_secs(1);
        }
    }

    /// There is nothing left that could have an age.
    pub(crate) fn clear(&mut self) {
        self.notes.clear();
    }

    /// When the record at this position was appended, at the earliest.
    pub(crate) fn of(&self, at: u64) -> Option<Instant> {
        let behind = self.notes.partition_point(|&(noted, _)| noted <= at);
        self.notes.get(behind.saturating_sub(1)).map(|&(_, then)| then)
    }
}

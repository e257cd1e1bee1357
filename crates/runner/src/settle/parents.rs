//! Absent parents: parents that a span names and that have not arrived.
//!
//! Each span waits for its parent in a list by the parent's id, so that the cost of an arrival depends only on the new spans.
//! Each absent parent has a deadline until which the run waits for it, as a call has.

use std::collections::{BTreeSet, HashMap};

use model::{SpanId, Timestamp};

use super::edges::FOREVER;

/// The parents that are named and have not arrived.
#[derive(Debug, Default)]
pub(super) struct Parents {
    absent: HashMap<SpanId, AbsentSpan>,
    /// By the number of a waiting span: the next span that waits for the same parent.
    next: Vec<u32>,
    /// The absent parents by their deadline.
    by_time: BTreeSet<(Timestamp, SpanId)>,
}

#[derive(Debug)]
struct AbsentSpan {
    /// The last span that started to wait.
    first: u32,
    until: Timestamp,
}

/// No span: a trace has fewer than 2^32 spans.
const NONE: u32 = u32::MAX;

impl Parents {
    /// Makes the span with this number wait for a parent, until this deadline.
    pub(super) fn wait(&mut self, number: usize, parent: SpanId, until: Timestamp) {
        if self.next.len() <= number {
            self.next.resize(number + 1, NONE);
        }
        let absent = self.absent.entry(parent).or_insert_with(|| {
            self.by_time.insert((until, parent));
            AbsentSpan { first: NONE, until }
        });
        self.next[number] = absent.first;
        absent.first = number as u32;
        if until > absent.until {
            self.by_time.remove(&(absent.until, parent));
            self.by_time.insert((until, parent));
            absent.until = until;
        }
    }

    /// Returns the numbers of the spans that waited for this span, which has arrived.
    pub(super) fn came(&mut self, id: SpanId) -> Vec<usize> {
        let Some(absent) = self.absent.remove(&id) else { return Vec::new() };
        self.by_time.remove(&(absent.until, id));
        self.waiting(&absent).collect()
    }

    /// Returns the latest deadline of all absent parents; none if one has no end.
    pub(super) fn closed_at(&self) -> Option<Timestamp> {
        match self.by_time.last() {
            None => Some(Timestamp::default()),
            Some((until, _)) => (*until != FOREVER).then_some(*until),
        }
    }

    /// Returns the numbers of all spans that still wait for a parent, in order.
    pub(super) fn open_at(&self, now: Timestamp) -> Vec<usize> {
        let open = self.by_time.iter().rev().take_while(|(until, _)| *until > now);
        let open = open.filter_map(|(_, id)| self.absent.get(id));
        let mut numbers: Vec<_> = open.flat_map(|absent| self.waiting(absent)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns the numbers of all waiting spans.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.absent.values().flat_map(|absent| self.waiting(absent))
    }

    fn waiting(&self, absent: &AbsentSpan) -> impl Iterator<Item = usize> {
        let mut next = absent.first;
        std::iter::from_fn(move || {
            let number = (next != NONE).then_some(next as usize)?;
            next = self.next[number];
            Some(number)
        })
    }
}

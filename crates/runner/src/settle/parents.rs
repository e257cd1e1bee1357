//! Which parents are named and have not come.
//!
//! Each span waits for its parent in a list by the parent's id, so that an arrival costs what is new and no more. Each
//! absent parent has a moment until which it is waited for, as a call has.

use std::collections::{BTreeSet, HashMap};

use model::{SpanId, Timestamp};

use super::edges::FOREVER;

/// The parents that are named and have not come.
#[derive(Debug, Default)]
pub(super) struct Parents {
    absent: HashMap<SpanId, AbsentSpan>,
    /// By the number of a span that waits: the next that waits for the same parent.
    next: Vec<u32>,
    /// The absent ones by the moment until which they are waited for.
    by_time: BTreeSet<(Timestamp, SpanId)>,
}

#[derive(Debug)]
struct AbsentSpan {
    /// The last that began to wait.
    first: u32,
    until: Timestamp,
}

/// No span: a trace has fewer than 2^32 of them.
const NONE: u32 = u32::MAX;

impl Parents {
    /// The span with this number waits for a parent, until this moment.
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

    /// The numbers of those that waited for this span, which is here now.
    pub(super) fn came(&mut self, id: SpanId) -> Vec<usize> {
        let Some(absent) = self.absent.remove(&id) else { return Vec::new() };
        self.by_time.remove(&(absent.until, id));
        self.waiting(&absent).collect()
    }

    /// Until when the last of them is waited for; none where that is for ever.
    pub(super) fn closed_at(&self) -> Option<Timestamp> {
        match self.by_time.last() {
            None => Some(Timestamp::default()),
            Some((until, _)) => (*until != FOREVER).then_some(*until),
        }
    }

    /// The numbers of all whose parents are still waited for, in order.
    pub(super) fn open_at(&self, now: Timestamp) -> Vec<usize> {
        let open = self.by_time.iter().rev().take_while(|(until, _)| *until > now);
        let open = open.filter_map(|(_, id)| self.absent.get(id));
        let mut numbers: Vec<_> = open.flat_map(|absent| self.waiting(absent)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The numbers of all that wait.
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

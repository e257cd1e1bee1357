//! The slots of a worker: how many runs it executes, and how many only linger.
//!
//! A run has a slot until its provisional verdict is written. After that it only receives spans, which costs the memory of its
//! trace and nothing else, so its slot goes to a queued run. Both numbers are bounded: a run that finds no room to linger keeps
//! its slot meanwhile, and none is ended early.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The maximum number of runs that linger without a slot.
const LINGERING_MAX: usize = 2048;
/// The maximum number of spans of all of these runs: each holds its trace in memory.
const LINGERING_SPANS_MAX: u64 = 2_000_000;

/// The counts of active and lingering runs.
#[derive(Debug, Default)]
pub(super) struct Slots {
    used: Mutex<SlotUse>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct SlotUse {
    slots: usize,
    lingering: usize,
    spans: u64,
}

/// The slot of one run, until it lingers or is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    of: Arc<Slots>,
    /// The number of spans of a run that lingers without a slot.
    lingering: Option<u64>,
}

impl Slots {
    /// Takes a slot for one more run.
    pub(super) fn take(self: &Arc<Self>) -> Slot {
        self.used().slots += 1;
        Slot { of: Arc::clone(self), lingering: None }
    }

    /// Returns how many slots are taken.
    pub(super) fn taken(&self) -> usize {
        self.used().slots
    }

    /// Waits until a slot is released.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }

    fn used(&self) -> MutexGuard<'_, SlotUse> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Releases the slot while its run, with this many spans, lingers; keeps it if too many runs linger.
    pub(super) fn linger(&mut self, spans: u64) {
        let mut used = self.of.used();
        let has_room = used.lingering < LINGERING_MAX
            && used.spans.saturating_add(spans) <= LINGERING_SPANS_MAX;
        if self.lingering.is_some() || !has_room {
            return;
        }
        used.slots -= 1;
        used.lingering += 1;
        used.spans += spans;
        drop(used);
        self.lingering = Some(spans);
        self.of.freed.notify_one();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut used = self.of.used();
        match self.lingering {
            Some(spans) => {
                used.lingering -= 1;
                used.spans -= spans;
            }
            None => {
                used.slots -= 1;
                drop(used);
                self.of.freed.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{LINGERING_MAX, LINGERING_SPANS_MAX, Slots};

    #[test]
    fn a_run_that_lingers_has_no_slot_while_there_is_room() {
        let slots = Arc::new(Slots::default());
        let mut first = slots.take();
        assert_eq!(slots.taken(), 1);
        first.linger(3);
        first.linger(3);
        assert_eq!(slots.taken(), 0);

        let mut large = slots.take();
        large.linger(LINGERING_SPANS_MAX - 2);
        assert_eq!(slots.taken(), 1, "too many spans");
        drop(first);
        large.linger(LINGERING_SPANS_MAX - 2);
        assert_eq!(slots.taken(), 0);
        drop(large);

        let mut all: Vec<_> = (0..=LINGERING_MAX).map(|_| slots.take()).collect();
        all.iter_mut().for_each(|slot| slot.linger(1));
        assert_eq!(slots.taken(), 1, "too many runs");
        drop(all);
        let left = slots.used();
        assert_eq!((left.slots, left.lingering, left.spans), (0, 0, 0));
    }
}

//! The data that a journal shares with its flusher.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    folder::Folder,
    options::Durability,
    reader::Reader,
    state::State,
    sync::SyncState,
    writer::{Slots, Writer},
};

/// The data that a journal shares with its flusher.
pub(crate) struct SharedJournal {
    pub(crate) state: Mutex<State>,
    /// Producers wait here for room.
    pub(crate) room: Condvar,
    /// The flusher waits here for work.
    pub(crate) work: Condvar,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) slots: Mutex<Slots>,
    pub(crate) reader: Mutex<Reader>,
    pub(crate) syncing: Mutex<SyncState>,
    pub(crate) folder: Option<Folder>,
    pub(crate) durability: Chosen,
    pub(crate) now: fn() -> Instant,
    pub(crate) opened: Instant,
}

/// The current durability, readable without a lock.
#[derive(Debug)]
pub(crate) struct Chosen(AtomicU8);

impl Chosen {
    const ALL: [Durability; 4] =
        [Durability::Memory, Durability::Process, Durability::WriteThrough, Durability::Host];

    pub(crate) fn new(durability: Durability) -> Self {
        Self(AtomicU8::new(durability as u8))
    }

    #[inline]
    pub(crate) fn get(&self) -> Durability {
        Self::ALL[usize::from(self.0.load(Ordering::Relaxed))]
    }

    pub(crate) fn set(&self, durability: Durability) {
        self.0.store(durability as u8, Ordering::Relaxed);
    }
}

impl SharedJournal {
    /// Wakes the flusher if it is parked. Makes no call if it is awake.
    #[inline]
    pub(crate) fn unpark(&self, state: &mut MutexGuard<'_, State>) {
        if state.parked {
            state.parked = false;
            self.work.notify_one();
        }
    }

    /// Runs after records were settled: updates the files, and wakes producers that wait for room.
    pub(crate) fn after_settling(&self) {
        self.room.notify_all();
        self.delete_doomed();
        self.write_slot();
    }
}

/// Notifies the reader, outside of the lock, if its threshold was reached.
#[inline]
pub(crate) fn tell(state: MutexGuard<'_, State>, reached: bool) {
    if reached {
        let wake = state.ready.wake();
        drop(state);
        wake();
    }
}

/// Locks the mutex and ignores poisoning: no panic can leave the data half changed.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification, at most for `most`. Returns whether the wait timed out.
pub(crate) fn wait_for<'a, T>(
    called: &Condvar,
    guard: MutexGuard<'a, T>,
    most: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, timeout) = called.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner);
    (guard, timeout.timed_out())
}

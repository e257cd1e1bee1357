//! What a journal and its flusher both hold.

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

/// What a journal and its flusher both hold.
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

/// The durability of the moment, for those who hold no lock.
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
    /// The flusher has something to do. Nothing is called if it is awake.
    #[inline]
    pub(crate) fn unpark(&self, state: &mut MutexGuard<'_, State>) {
        if state.parked {
            state.parked = false;
            self.work.notify_one();
        }
    }

    /// Something was settled: the files learn of it, and whoever waits for room.
    pub(crate) fn after_settling(&self) {
        self.room.notify_all();
        self.delete_doomed();
        self.write_slot();
    }
}

/// Tells the reader, outside of the lock, if its threshold was reached.
#[inline]
pub(crate) fn tell(state: MutexGuard<'_, State>, reached: bool) {
    if reached {
        let wake = state.ready.wake();
        drop(state);
        wake();
    }
}

/// Locks; what a panicking thread left is as good as before, since nothing here is changed halfway by one.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until it is called, or for so long, and says whether the time is over.
pub(crate) fn wait_for<'a, T>(
    called: &Condvar,
    guard: MutexGuard<'a, T>,
    most: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, timeout) = called.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner);
    (guard, timeout.timed_out())
}

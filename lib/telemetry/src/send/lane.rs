//! The state of one exporter that outlives its senders.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use journal::{Batch, Journal};

use super::{
    dead_letters::{DeadLetters, LETTERS_BYTES_MAX},
    tally::Tally,
};

/// The state of one exporter that outlives its senders: queued items, counters, dead letters.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) journal: Arc<Journal>,
    pub(crate) tally: Arc<Tally>,
    /// Without a folder, dead letters are only counted.
    pub(crate) dead_letters: Option<Mutex<DeadLetters>>,
    /// The number of the current sender. Locked while that sender changes the journal: an old sender that could not be
    /// stopped, because it is blocked, must not disturb the next one.
    turn: Mutex<u64>,
    /// Locked while an outcome is counted here and in the journal, so that a reader of both sees consistent numbers.
    counting: Mutex<()>,
}

impl Lane {
    /// Creates a lane over this journal. Dead letters go to this folder, which is created with the first letter.
    pub(crate) fn new(journal: Arc<Journal>, dead_letters: Option<PathBuf>) -> Self {
        let letters = |folder| Mutex::new(DeadLetters::new(folder, LETTERS_BYTES_MAX));
        Self {
            journal,
            tally: Arc::default(),
            dead_letters: dead_letters.map(letters),
            turn: Mutex::default(),
            counting: Mutex::default(),
        }
    }

    /// Starts a new sender, and returns its number: batches that the last sender had read become unread again, and its
    /// failure reasons are cleared.
    pub(crate) fn begin(&self) -> u64 {
        let mut turn = self.turn.lock().expect("no panic under this lock");
        *turn += 1;
        self.journal.rewind();
        self.tally.forget_troubles();
        *turn
    }

    /// Returns whether this is the current sender.
    pub(crate) fn is_turn(&self, turn: u64) -> bool {
        *self.turn.lock().expect("no panic under this lock") == turn
    }

    /// Returns the next batch; `None` for a sender that is not the current one.
    pub(crate) fn read(&self, turn: u64, items_max: u64, bytes_max: usize) -> Option<Batch> {
        let current = self.turn.lock().expect("no panic under this lock");
        (*current == turn).then(|| self.journal.read(items_max, bytes_max)).flatten()
    }

    /// Makes batches unread again that were read and not acknowledged, unless another sender is the current one.
    pub(crate) fn rewind(&self, turn: u64) {
        let current = self.turn.lock().expect("no panic under this lock");
        if *current == turn {
            self.journal.rewind();
        }
    }

    /// Acknowledges a batch and counts those of its items that were not acknowledged before. Does nothing if another
    /// sender is the current one: the delivered items still count as queued, and are sent again.
    pub(crate) fn acknowledge(&self, turn: u64, batch: &Batch, count: impl FnOnce(&Tally, u64)) {
        let current = self.turn.lock().expect("no panic under this lock");
        if *current != turn {
            return;
        }
        let _counting = self.counting.lock().expect("no panic under this lock");
        let fresh = self.journal.acknowledge(batch);
        if fresh > 0 {
            count(&self.tally, fresh);
        }
    }

    /// Closes the journal; later acknowledgements have no effect.
    pub(crate) fn close(&self) {
        self.journal.close();
    }

    /// Returns the counts of the journal, and in the same snapshot the numbers of delivered and rejected items.
    pub(crate) fn counts(&self) -> (journal::Counts, u64, u64) {
        let _counting = self.counting.lock().expect("no panic under this lock");
        (self.journal.counts(), self.tally.delivered(), self.tally.rejected())
    }
}

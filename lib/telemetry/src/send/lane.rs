//! What one exporter keeps when its sender is exchanged.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use journal::{Batch, Journal};

use super::{
    dead_letters::{DeadLetters, LETTERS_BYTES_MAX},
    tally::Tally,
};

/// What one exporter keeps when its sender is exchanged: what is queued, what was counted, what was refused.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) journal: Arc<Journal>,
    pub(crate) tally: Arc<Tally>,
    /// Without a folder dead letters are only counted.
    pub(crate) dead_letters: Option<Mutex<DeadLetters>>,
    /// The number of the sender whose turn it is. Held while it does something to the journal: one that outlived its
    /// time, because it hung where nothing could end it, must not disturb the next.
    turn: Mutex<u64>,
    /// Held while an end is counted here and in the journal, so that the two never differ for a reader of both.
    counting: Mutex<()>,
}

impl Lane {
    /// A lane over this journal. Dead letters go to this folder, which is made when the first comes.
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

    /// Begins the turn of another sender, whose number this is: what the last one had read is unread again, and what
    /// troubled it is no trouble of the new one.
    pub(crate) fn begin(&self) -> u64 {
        let mut turn = self.turn.lock().expect("no panic under this lock");
        *turn += 1;
        self.journal.rewind();
        self.tally.forget_troubles();
        *turn
    }

    /// Whether it is this sender's turn.
    pub(crate) fn is_turn(&self, turn: u64) -> bool {
        *self.turn.lock().expect("no panic under this lock") == turn
    }

    /// The next batch; none where it is another sender's turn.
    pub(crate) fn read(&self, turn: u64, items_max: u64, bytes_max: usize) -> Option<Batch> {
        let current = self.turn.lock().expect("no panic under this lock");
        (*current == turn).then(|| self.journal.read(items_max, bytes_max)).flatten()
    }

    /// What was read and not acknowledged is unread again, unless it is another sender's turn.
    pub(crate) fn rewind(&self, turn: u64) {
        let current = self.turn.lock().expect("no panic under this lock");
        if *current == turn {
            self.journal.rewind();
        }
    }

    /// Acknowledges a batch and counts those of its items that were not before. Where it is another sender's turn
    /// nothing is: what was delivered is queued in the books, and is sent again.
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

    /// Ends the journal; later acknowledgements change nothing.
    pub(crate) fn close(&self) {
        self.journal.close();
    }

    /// The journal's counts, and of the same moment what became of those that were acknowledged: delivered, rejected.
    pub(crate) fn counts(&self) -> (journal::Counts, u64, u64) {
        let _counting = self.counting.lock().expect("no panic under this lock");
        (self.journal.counts(), self.tally.delivered(), self.tally.rejected())
    }
}

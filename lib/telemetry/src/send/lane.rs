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
    /// Held while an end is counted here and in the journal, so that the two never differ for a reader of both.
    counting: Mutex<Counting>,
}

#[derive(Debug, Default)]
struct Counting {
    /// The journal takes no acknowledgement any more.
    is_closed: bool,
}

impl Lane {
    /// A lane over this journal. Dead letters go to this folder, which is made when the first comes.
    pub(crate) fn new(journal: Arc<Journal>, dead_letters: Option<PathBuf>) -> Self {
        let letters = |folder| Mutex::new(DeadLetters::new(folder, LETTERS_BYTES_MAX));
        Self {
            journal,
            tally: Arc::default(),
            dead_letters: dead_letters.map(letters),
            counting: Mutex::default(),
        }
    }

    /// Acknowledges a batch, all of which `count` has counted as ended.
    pub(crate) fn acknowledge(&self, batch: &Batch, count: impl FnOnce(&Tally)) {
        let counting = self.counting.lock().expect("no panic under this lock");
        // A sender that outlived its time: what it delivered is queued or dropped in the books, and may be sent again.
        if !counting.is_closed {
            count(&self.tally);
            self.journal.acknowledge(batch);
        }
    }

    /// Ends the journal; later acknowledgements change nothing.
    pub(crate) fn close(&self) {
        self.counting.lock().expect("no panic under this lock").is_closed = true;
        self.journal.close();
    }

    /// The journal's counts, and of the same moment what became of those that were acknowledged: delivered, rejected.
    pub(crate) fn counts(&self) -> (journal::Counts, u64, u64) {
        let _counting = self.counting.lock().expect("no panic under this lock");
        (self.journal.counts(), self.tally.delivered(), self.tally.rejected())
    }
}

//! When the reader is notified that there are records to read.

use std::{mem, sync::Arc};

use crate::{options::Ready, settled_ranges::Mark};

/// A threshold, stored as positions that the end of the journal reaches: one comparison each per append.
#[derive(Debug)]
pub(crate) struct Readiness {
    ready: Ready,
    /// The end of the journal at which the reader is notified; `NOWHERE` after it was notified.
    at: Mark,
    /// Whether the reader was notified and has not caught up.
    told: bool,
}

const NOWHERE: Mark = Mark { at: u64::MAX, items: u64::MAX };

impl Readiness {
    pub(crate) fn new(ready: Ready) -> Self {
        Self { ready, at: NOWHERE, told: false }
    }

    /// Returns whether the reader must be notified now.
    #[inline]
    pub(crate) fn is_reached(&mut self, end: Mark) -> bool {
        let reached = end.items >= self.at.items || end.at >= self.at.at;
        if reached {
            self.press();
        }
        reached
    }

    /// Records that the reader has moved. Returns whether it must be notified of the remaining records: not if it was
    /// already.
    pub(crate) fn moved(&mut self, reader: Mark, end: Mark) -> bool {
        let knew = self.told;
        self.found_nothing(reader);
        self.is_reached(end) && !knew
    }

    /// Records that the reader found no record. It is notified by the next append beyond the threshold.
    pub(crate) fn found_nothing(&mut self, reader: Mark) {
        self.told = false;
        self.at = Mark {
            at: reader.at.saturating_add(self.ready.bytes.max(1)),
            items: reader.items.saturating_add(self.ready.items.max(1)),
        };
    }

    /// Replaces the threshold. Returns whether the reader must be notified because of it.
    pub(crate) fn replace(&mut self, ready: Ready, reader: Mark, end: Mark) -> bool {
        self.ready = ready;
        self.told = false;
        self.moved(reader, end)
    }

    /// Records that there is no room, regardless of the threshold. Returns whether the reader must be notified: not if
    /// it was already.
    pub(crate) fn press(&mut self) -> bool {
        self.at = NOWHERE;
        !mem::replace(&mut self.told, true)
    }

    /// Returns the callback.
    pub(crate) fn wake(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::clone(&self.ready.wake)
    }
}

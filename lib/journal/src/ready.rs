//! When the reader is told that there is something to read.

use std::{mem, sync::Arc};

use crate::{options::Ready, settled_ranges::Mark};

/// A threshold, as positions that the end of the journal reaches: one comparison each per append.
#[derive(Debug)]
pub(crate) struct Readiness {
    ready: Ready,
    /// The journal's end at which the reader is told; nowhere while it has been told.
    at: Mark,
    /// The reader has been told, and has not caught up.
    told: bool,
}

const NOWHERE: Mark = Mark { at: u64::MAX, items: u64::MAX };

impl Readiness {
    pub(crate) fn new(ready: Ready) -> Self {
        Self { ready, at: NOWHERE, told: false }
    }

    /// Whether the reader must be told now.
    #[inline]
    pub(crate) fn is_reached(&mut self, end: Mark) -> bool {
        let reached = end.items >= self.at.items || end.at >= self.at.at;
        if reached {
            self.press();
        }
        reached
    }

    /// The reader has moved. Whether it must be told of what is left: not if it knows.
    pub(crate) fn moved(&mut self, reader: Mark, end: Mark) -> bool {
        let knew = self.told;
        self.found_nothing(reader);
        self.is_reached(end) && !knew
    }

    /// The reader has looked and got nothing: it knows of nothing, and is told by the next append beyond the threshold.
    pub(crate) fn found_nothing(&mut self, reader: Mark) {
        self.told = false;
        self.at = Mark {
            at: reader.at.saturating_add(self.ready.bytes.max(1)),
            items: reader.items.saturating_add(self.ready.items.max(1)),
        };
    }

    /// Another threshold. Whether the reader must be told by it.
    pub(crate) fn replace(&mut self, ready: Ready, reader: Mark, end: Mark) -> bool {
        self.ready = ready;
        self.told = false;
        self.moved(reader, end)
    }

    /// There is no room, whatever the threshold says. Whether the reader must be told: not if it knows.
    pub(crate) fn press(&mut self) -> bool {
        self.at = NOWHERE;
        !mem::replace(&mut self.told, true)
    }

    /// What is called.
    pub(crate) fn wake(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::clone(&self.ready.wake)
    }
}

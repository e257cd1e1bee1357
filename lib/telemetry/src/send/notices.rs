//! What a person is told of trouble: once for each change of it.

use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{SendHost, answer::WhyKind};
use crate::plan::Exporter;

/// What one exporter has to say.
pub(crate) struct Notices {
    exporter: String,
    host: SendHost,
    said: HashSet<WhyKind>,
}

impl Notices {
    pub(crate) fn new(exporter: &Exporter, host: &SendHost) -> Self {
        Self { exporter: exporter.name.clone(), host: host.clone(), said: HashSet::new() }
    }

    /// Says it, unless something of this kind was said before.
    pub(crate) fn say(&mut self, kind: WhyKind, message: &str) {
        if self.said.insert(kind) {
            let say = || (self.host.notice)(&self.exporter, message);
            // It is the program's own function: whether it panics is no reason to deliver nothing any more.
            drop(catch_unwind(AssertUnwindSafe(say)));
        }
    }

    /// The trouble is over: the next is news again.
    pub(crate) fn clear(&mut self) {
        self.said.clear();
    }
}

//! Notices about failures to an operator: once for each change.

use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{SendHost, answer::WhyKind};
use crate::plan::Exporter;

/// The notices of one exporter.
pub(crate) struct Notices {
    exporter: String,
    host: SendHost,
    said: HashSet<WhyKind>,
}

impl Notices {
    pub(crate) fn new(exporter: &Exporter, host: &SendHost) -> Self {
        Self { exporter: exporter.name.clone(), host: host.clone(), said: HashSet::new() }
    }

    /// Reports a message, unless one of this kind was reported before.
    pub(crate) fn say(&mut self, kind: WhyKind, message: &str) {
        if self.said.insert(kind) {
            let say = || (self.host.notice)(&self.exporter, message);
            // The callback belongs to the program: its panic must not stop delivery.
            drop(catch_unwind(AssertUnwindSafe(say)));
        }
    }

    /// Resets the notices after a recovery: the next failure is reported again.
    pub(crate) fn clear(&mut self) {
        self.said.clear();
    }
}

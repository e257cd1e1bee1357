//! What a person is told of trouble: once for each change of it.

use super::{SendHost, answer::WhyKind};
use crate::plan::Exporter;

/// What one exporter has to say.
pub(crate) struct Notices {
    exporter: String,
    host: SendHost,
    said: Option<WhyKind>,
}

impl Notices {
    pub(crate) fn new(exporter: &Exporter, host: &SendHost) -> Self {
        Self { exporter: exporter.name.clone(), host: host.clone(), said: None }
    }

    /// Says it, unless the last thing said was of this kind.
    pub(crate) fn say(&mut self, kind: WhyKind, message: &str) {
        if self.said != Some(kind) {
            self.said = Some(kind);
            (self.host.notice)(&self.exporter, message);
        }
    }

    /// The trouble is over: the next is news again.
    pub(crate) fn clear(&mut self) {
        self.said = None;
    }
}

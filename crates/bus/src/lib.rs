//! How the parts of a server share what is new: spans by trace id, and hints.
//!
//! Spans are kept, so that a subscriber that comes late, or comes again after a worker died, misses nothing;
//! a full bus refuses the new and drops nothing old. Hints are not kept: one says "look again", the record
//! says what there is to see.
//!
//! Deliberately absent: what a span or a run is, the clock (every moment is handed in), and a trait, which
//! comes with the second implementation.

mod hints;
mod spans;

pub use hints::{Hints, Subject};
pub use spans::{Full, Limits, Subscription};

use bytes::Bytes;
use model::{Timestamp, TraceId};

/// Shares spans and hints within one process. A clone is the same bus.
#[derive(Clone, Debug)]
pub struct Bus {
    spans: spans::Spans,
    hints: hints::Sender,
}

impl Bus {
    /// An empty bus.
    pub fn new(limits: Limits) -> Self {
        Self { spans: spans::Spans::new(limits), hints: hints::Sender::new() }
    }

    /// Keeps `bytes` for the trace, where there are any, and wakes its subscribers, or refuses them and keeps nothing.
    ///
    /// Forgets first what nobody subscribes to and nobody added to for longer than `age_max`.
    pub fn publish(&self, now: Timestamp, trace: TraceId, bytes: Bytes) -> Result<(), Full> {
        self.spans.publish(now, trace, bytes)
    }

    /// Subscribes to a trace: everything kept of it, then everything new, in the order of publishing.
    ///
    /// A trace that someone subscribes to does not age.
    pub fn subscribe(&self, trace: TraceId) -> Subscription {
        self.spans.subscribe(trace)
    }

    /// Notes that spans of the trace were lost before they came here.
    pub fn lose(&self, now: Timestamp, trace: TraceId) {
        self.spans.lose(now, trace);
    }

    /// How many batches of the trace were refused or lost since someone first subscribed or something was kept.
    ///
    /// A sender may have sent them again with success, which the bus cannot know: above zero, absence of a
    /// span proves nothing.
    pub fn refused(&self, trace: TraceId) -> u64 {
        self.spans.refused(trace)
    }

    /// Drops what is kept of the trace and ends its subscriptions.
    ///
    /// Spans that come later open the trace anew: they are kept within the bounds, for nobody, until they are
    /// older than `age_max`. To refuse them, the bus would have to remember every trace it forgot.
    pub fn forget(&self, trace: TraceId) {
        self.spans.forget(trace);
    }

    /// Tells everyone who listens that there is something new about `subject`.
    pub fn hint(&self, subject: Subject) {
        self.hints.send(subject);
    }

    /// Listens to the hints from now on.
    pub fn hints(&self) -> Hints {
        self.hints.listen()
    }
}

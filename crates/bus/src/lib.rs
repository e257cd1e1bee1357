//! The bus between the parts of a server: spans by trace id, and hints (notifications).
//!
//! The bus stores spans, so that a late subscriber, or one that subscribes again after a worker died, misses nothing; a full bus
//! refuses new spans and drops none that a subscriber waits for. The bus does not store hints: a hint requests another look at
//! the database, which holds the data.
//!
//! [`Bus`] is the contract of every bus, [`conformance`] the suite that each implementation has to pass, and [`Local`] the bus of
//! one process, which stores spans in memory and, sealed, in a journal. ADR 0017 has the reasons.
//!
//! Deliberately absent: the meaning of a span or a run, and the wall clock (the caller passes every timestamp).

pub mod conformance;
mod hints;
mod local;
mod record;
mod replay;
mod seal;
mod spans;
mod traces;
mod writer;

use std::future::Future;

use bytes::Bytes;
use model::{Fault, Faulty, Project, Timestamp, TraceId};
use thiserror::Error;

pub use hints::{Hints, Subject};
pub use local::{Counts, Local, OpenError, Options};
pub use replay::ReplaySummary;
pub use seal::SealKeys;
pub use spans::{Limits, Subscription};

/// A bus that shares spans by trace id, and hints.
///
/// A subscriber may receive a batch more than once, for example when a refused sender sends it again; it always receives the
/// batches of one publisher in the order of publishing.
pub trait Bus: Send + Sync + 'static {
    /// One reader of one trace. Dropping it ends the subscription, and nothing else.
    type Subscription: Next;

    /// Stores all of these batches, each for its trace, and wakes subscribers.
    ///
    /// After `Ok` they outlive this process: a process that opens the bus again finds them until they are forgotten. Batches of a
    /// trace at its bound, or of a project that has used its share, are not stored: they count as lost to their trace, and are no
    /// reason to refuse a sender that may also send for other projects. After [`PublishError`] some may be stored, the rest count
    /// as refused to their traces, and all of them may be published again. If the future is dropped before it completes, it MAY
    /// have stored them.
    ///
    /// First discards traces that have no subscriber and no new batch for longer than the age limit of the bus; and where the bus
    /// is full, discards traces without a subscriber, the oldest first.
    fn publish(
        &self,
        now: Timestamp,
        batches: Vec<Batch>,
    ) -> impl Future<Output = Result<(), PublishError>> + Send;

    /// Subscribes to a trace: all stored batches, then all new ones, in the order of publishing.
    ///
    /// A trace with a subscriber does not age, and counts for the project of its first subscriber.
    fn subscribe(&self, trace: TraceId, project: &Project) -> Self::Subscription;

    /// Marks that the trace begins now: no span of it was sent before, and it has a subscriber.
    fn expect(&self, trace: TraceId);

    /// Whether the trace is complete as far as the bus knows, so that absence can be concluded: the bus has listened for it from
    /// its beginning, without a pause, and none of its batches was refused or lost.
    ///
    /// A bus that was closed and opened again did not listen meanwhile, and a sender may have given up. So it is false for all
    /// traces that were expected before, unless other servers have listened in its place.
    fn is_whole(&self, trace: TraceId) -> bool;

    /// Records that spans of the trace were lost before they reached the bus. It MUST NOT block.
    fn lose(&self, now: Timestamp, trace: TraceId);

    /// Returns how many batches of the trace were refused or lost since its first subscription or its first stored batch.
    ///
    /// A sender may have sent them again with success, which the bus cannot know: above zero, no absence of a span can be
    /// concluded.
    fn refused(&self, trace: TraceId) -> u64;

    /// Discards the batches of the trace, in memory and in persistent storage, and ends its subscriptions.
    ///
    /// Later spans open the trace anew: the bus stores them within the bounds, without a subscriber, until they exceed the age
    /// limit. To refuse them, the bus would have to remember every forgotten trace.
    fn forget(&self, trace: TraceId);

    /// Notifies all listeners that there is something new about `subject`.
    fn hint(&self, subject: Subject);

    /// Listens to the hints from now on.
    fn hints(&self) -> Hints;
}

/// The reading side of a subscription.
pub trait Next: Send {
    /// Returns the next batch; waits for one if all are read. Returns none after the trace was forgotten.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// A batch of spans of one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The trace.
    pub trace: TraceId,
    /// How many spans there are.
    pub spans: u32,
    /// The encoded spans, opaque to the bus.
    pub bytes: Bytes,
}

/// The bus refused to store a batch, and kept all batches that a subscriber waits for. Publishing it again later may succeed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PublishError {
    /// All traces together are at the upper bound, and each of them has a subscriber.
    #[error("the bus keeps no more than {bytes_max} bytes of spans: send them again later")]
    Full {
        /// The upper bound.
        bytes_max: usize,
    },
    /// The journal cannot be written.
    #[error("the journal of spans takes nothing now ({reason}): send them again later")]
    Journal {
        /// The reason.
        reason: String,
    },
    /// The bus is shutting down.
    #[error("the bus is closed: send them again later")]
    Closed,
}

impl Faulty for PublishError {
    fn fault(&self) -> Fault {
        Fault::Overloaded
    }
}

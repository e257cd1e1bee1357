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
mod nats;
mod notices;
mod record;
mod refusals;
mod replay;
mod seal;
mod spans;
mod traces;
mod writer;

use std::{future::Future, sync::Arc};

use bytes::Bytes;
use model::{BusSlot, Fault, Faulty, Project, Timestamp, TraceId};
use thiserror::Error;

pub use hints::{Hints, Subject};
pub use local::{Counts, Local, OpenError, Options};
pub use nats::{
    HELD_MAX, Login, MESSAGE_VERSION, Nats, NatsError, NatsMember, NatsOptions, PeerRequest,
    PeerRequests, PlantedFault, PlayCounts, STREAM_SLOTS, StreamLimits, play,
};
pub use notices::Signal;
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
    /// After `Ok` they outlive this process: a process that opens the bus again finds them until they are forgotten or too old.
    /// Batches of a trace at its bound, or of a project that has used its share, are not stored: they count as lost to their
    /// trace, and are no reason to refuse a sender that may also send for other projects. After [`PublishError`] some may be
    /// stored, the rest count as refused to their traces until they are published again. If the future is dropped before
    /// it completes, it MAY have stored them.
    ///
    /// Traces that have no subscriber and no new batch for longer than the age limit of the bus are discarded; and where the
    /// memory is full, traces without a subscriber, the oldest first.
    fn publish(
        &self,
        now: Timestamp,
        batches: Vec<Batch>,
    ) -> impl Future<Output = Result<(), PublishError>> + Send;

    /// Subscribes to a trace: all stored batches, then all new ones, in the order of publishing.
    ///
    /// A trace with a subscriber does not age, and counts for the project of its first subscriber.
    fn subscribe(&self, channel: Channel, project: &Project) -> Self::Subscription;

    /// Marks that the trace begins now: no span of it was sent before, and it has a subscriber.
    fn expect(&self, channel: Channel);

    /// Returns what identifies the storage of the trace now, for a process that resumes it; none if no other process can.
    fn state(&self, channel: Channel) -> Option<String>;

    /// Marks that the trace began at a time, in a process that has ended, and that it has a subscriber now. A bus that shares
    /// spans among servers has listened in between, unless its storage is not in the same state; one of a single process has not.
    fn resume(&self, channel: Channel, since: Timestamp, state: Option<&str>);

    /// Waits until all batches of the trace are here that any publisher stored before the call, and returns how many batches the
    /// trace has then. Only after that can absence be concluded, from these batches.
    ///
    /// It fails with each [`Doubt`] of [`Bus::doubt`], and if it cannot be known in time whether further batches are stored.
    fn proved(&self, channel: Channel) -> impl Future<Output = Result<u64, Doubt>> + Send;

    /// Returns why no absence can be concluded in this trace now; none as far as is known. A refused batch is no reason any more once
    /// the same bytes are stored, from any publisher; a sender that splits its spans in another way leaves the doubt.
    fn doubt(&self, channel: Channel) -> Option<Doubt>;

    /// Records that spans of the trace were lost before they reached the bus. It MUST NOT block.
    fn lose(&self, now: Timestamp, channel: Channel);

    /// Records that an export was lost that may have belonged to any run of these projects; none stands for all. It MUST NOT block.
    fn lose_unread(&self, signal: Signal, projects: Option<&[Project]>);

    /// Returns how many such exports may have belonged to runs of this project.
    fn unread(&self, signal: Signal, project: &Project) -> u64;

    /// Records that log records of the trace arrived. It MUST NOT block.
    fn log(&self, channel: Channel);

    /// Returns the number of log records of the trace that arrived.
    fn logs(&self, channel: Channel) -> u64;

    /// Waits until everything that was recorded of log records and losses has reached the bus, or would be refused.
    fn flush(&self) -> impl Future<Output = Result<(), PublishError>> + Send;

    /// Discards the batches of the trace in memory, and ends its subscriptions. Persistent storage MAY keep them for some time.
    ///
    /// Later spans open the trace anew: the bus stores them within the bounds, without a subscriber, until they exceed the age
    /// limit. To refuse them, the bus would have to remember every forgotten trace.
    fn forget(&self, channel: Channel);

    /// Notifies all listeners that there is something new about `subject`.
    fn hint(&self, subject: Subject);

    /// Notifies the listeners of one process that is available; those of this process if it is. All of them may miss it.
    fn hint_one(&self, subject: Subject);

    /// Sets whether this process is available: whether it gets the hints that are for one process only.
    fn set_available(&self, is_available: bool);

    /// Listens to the hints from now on.
    fn hints(&self) -> Hints;
}

/// The reading side of a subscription.
pub trait Next: Send {
    /// Returns the next batch; waits for one if all are read. Returns none after the trace was forgotten.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The address of the spans of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Channel {
    /// The slot of the worker that reads them first. A bus of a single process does not use it.
    pub slot: BusSlot,
    /// The trace.
    pub trace: TraceId,
}

/// Why the absence of a span cannot be concluded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Doubt {
    /// The bus has not listened for the trace from its beginning, without a pause.
    #[error("the server has not listened since the beginning of the run")]
    NotListened,
    /// Batches of the trace were lost.
    #[error("{0} exports with spans of the trace were lost")]
    Lost(u64),
    /// Batches of the trace were refused, and their senders have not sent them again.
    #[error("{0} exports with spans of the trace were refused, and were not sent again")]
    Refused(u64),
    /// A marker that was sent behind all stored batches has not come back.
    #[error("NATS did not deliver a marker within {0:?}")]
    MarkerLate(std::time::Duration),
    /// A marker could not be stored.
    #[error("NATS did not store a marker: {0}")]
    MarkerRefused(String),
    /// The stream is not the one that the trace began with.
    #[error("the stream of spans in NATS was replaced during the run")]
    StreamReplaced,
    /// Another node may miss what the last leader of the stream acknowledged.
    #[error(
        "the stream of spans in NATS has a new leader, and NATS does not write to disk before it acknowledges"
    )]
    LeaderChanged,
}

/// A period without a change of the storage that may have lost batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Era {
    /// The number of changes so far.
    pub(crate) number: u64,
    /// The doubt that the last one causes in traces that began before it.
    pub(crate) doubt: Option<Doubt>,
}

/// A batch of spans of one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The address of the trace.
    pub channel: Channel,
    /// How many spans there are.
    pub spans: u32,
    /// The encoded spans, opaque to the bus.
    pub bytes: Bytes,
    /// The projects that the sender may write to; none stands for all. A batch for a trace of another project is discarded.
    pub projects: Option<Arc<[Project]>>,
    /// The project of the trace, for its share of a bus that processes share; none if that is not known.
    pub owner: Option<Project>,
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
    /// NATS cannot be reached, or does not answer.
    #[error("NATS takes no spans now ({reason}): send them again later")]
    Away {
        /// The reason.
        reason: String,
    },
    /// The bus is shutting down.
    #[error("the bus is closed: send them again later")]
    Closed,
}

impl Doubt {
    /// Returns a short name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotListened => "notListened",
            Self::Lost(_) => "lost",
            Self::Refused(_) => "refused",
            Self::MarkerLate(_) => "markerLate",
            Self::MarkerRefused(_) => "markerRefused",
            Self::StreamReplaced => "streamReplaced",
            Self::LeaderChanged => "leaderChanged",
        }
    }

    /// Whether no later proof removes the doubt.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Refused(_) | Self::MarkerLate(_) | Self::MarkerRefused(_) => false,
            Self::NotListened | Self::Lost(_) | Self::StreamReplaced | Self::LeaderChanged => true,
        }
    }

    /// Whether spans that were sent may have been lost before a bus stored them.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::NotListened | Self::Lost(_) | Self::Refused(_))
    }
}

impl Faulty for Doubt {
    fn fault(&self) -> Fault {
        Fault::Overloaded
    }
}

impl Faulty for PublishError {
    fn fault(&self) -> Fault {
        Fault::Overloaded
    }
}

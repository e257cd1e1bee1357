//! How the parts of a server share what is new: spans by trace id, and hints.
//!
//! Spans are kept, so that a subscriber that comes late, or comes again after a worker died, misses nothing;
//! a full bus refuses the new and drops nothing that somebody waits for. Hints are not kept: one says "look again", the record
//! says what there is to see.
//!
//! [`Bus`] is what every bus promises, [`conformance`] the suite that each has to pass, and [`Local`] the bus of one
//! process, which keeps spans in memory and, sealed, in a journal. Record 0017 has the reasons.
//!
//! Deliberately absent: what a span or a run is, and the wall clock (every moment is handed in).

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

/// Shares spans by trace id, and hints.
///
/// What is published may come to a subscriber more than once, as when a sender that was refused sends it again; never
/// out of the order in which one publisher published it.
pub trait Bus: Send + Sync + 'static {
    /// One reader of one trace. Dropping it ends it, and nothing else.
    type Subscription: Next;

    /// Keeps all of these, each for its trace, and wakes subscribers.
    ///
    /// After `Ok` they outlive this process: whoever opens the bus again finds them until they are forgotten. Those of a
    /// trace that is at its bound, or whose project has its share, are not kept: they count as lost to their trace, and are no
    /// reason to refuse a sender that may send for others too. After [`PublishError`] some may be kept, the rest count as refused to their traces,
    /// and all of them may be published again. Dropped before it ends, it MAY have kept them.
    ///
    /// Forgets first what nobody subscribes to and nobody added to for longer than the bus's age; and where the bus is full,
    /// what nobody subscribes to at all, the oldest first.
    fn publish(
        &self,
        now: Timestamp,
        batches: Vec<Batch>,
    ) -> impl Future<Output = Result<(), PublishError>> + Send;

    /// Subscribes to a trace: everything kept of it, then everything new, in the order of publishing.
    ///
    /// A trace that someone subscribes to does not age, and counts for the project of its first subscriber.
    fn subscribe(&self, trace: TraceId, project: &Project) -> Self::Subscription;

    /// Says that the trace begins now: nothing of it was sent before, and someone subscribes to it.
    fn expect(&self, trace: TraceId);

    /// Whether absence proves anything: the bus has heard of the trace from its beginning on, without a pause, and
    /// nothing of it was refused or lost.
    ///
    /// A bus that was closed and opened again was deaf meanwhile, and a sender may have given up. So it is false for
    /// all that was expected before, unless others have listened in its place.
    fn is_whole(&self, trace: TraceId) -> bool;

    /// Notes that spans of the trace were lost before they came here. It MUST NOT block.
    fn lose(&self, now: Timestamp, trace: TraceId);

    /// How many batches of the trace were refused or lost since someone first subscribed or something was kept.
    ///
    /// A sender may have sent them again with success, which the bus cannot know: above zero, absence of a
    /// span proves nothing.
    fn refused(&self, trace: TraceId) -> u64;

    /// Drops what is kept of the trace, here and wherever it would outlive the process, and ends its subscriptions.
    ///
    /// Spans that come later open the trace anew: they are kept within the bounds, for nobody, until they are
    /// older than the bus's age. To refuse them, the bus would have to remember every trace it forgot.
    fn forget(&self, trace: TraceId);

    /// Tells everyone who listens that there is something new about `subject`.
    fn hint(&self, subject: Subject);

    /// Listens to the hints from now on.
    fn hints(&self) -> Hints;
}

/// What a subscription gives.
pub trait Next: Send {
    /// The next batch; waits for one where all are read. Nothing after the trace was forgotten.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// Spans of one trace that came together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The trace.
    pub trace: TraceId,
    /// How many spans there are.
    pub spans: u32,
    /// The spans, in a form that the bus does not know.
    pub bytes: Bytes,
}

/// A bus refused to keep something, and kept all that somebody waits for. To publish it again later may help.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PublishError {
    /// All traces together are at the bound, and somebody waits for each of them.
    #[error("the bus keeps no more than {bytes_max} bytes of spans: send them again later")]
    Full {
        /// The bound.
        bytes_max: usize,
    },
    /// What would outlive the process cannot be written.
    #[error("the journal of spans takes nothing now ({reason}): send them again later")]
    Journal {
        /// Why.
        reason: String,
    },
    /// The bus is being closed.
    #[error("the bus is closed: send them again later")]
    Closed,
}

impl Faulty for PublishError {
    fn fault(&self) -> Fault {
        Fault::Overloaded
    }
}

//! The interface of a run to its environment.

use std::{
    fmt,
    future::{Future, pending},
};

use drivers::{arrivals::Arrivals, receiver::ReceiverSnapshot};
use model::{
    Answer, Attempt, Fault, Faulty, KeyRing, Project, Request, RunEvent, Timestamp, TraceId, What,
};
use thiserror::Error;

use crate::{pool::Share, snapshot::SnapshotRequest, started::Process};

/// The interface of a run to its environment. The local run is one implementation, the server's worker the other.
pub trait Ports: Send + Sync {
    /// Returns the time of the wall clock.
    fn now(&self) -> Timestamp;

    /// Returns fresh random bytes.
    fn random(&self) -> [u8; 32];

    /// Returns the keys that mint trace ids.
    fn keys(&self) -> &KeyRing;

    /// Mints the trace id of a run that starts at `now`.
    fn mint(&self, now: Timestamp, random: [u8; 5]) -> TraceId {
        self.keys().mint(&self.project(), now, random)
    }

    /// Returns the project of the run. Its trace ids are minted for it: a sender of another project cannot reach them.
    fn project(&self) -> Project {
        Project::default()
    }

    /// Returns the pool share that decodes and judges the trace; inline by default.
    fn share(&self) -> Share {
        Share::inline()
    }

    /// Starts to listen for the spans of a trace, including those that already arrived.
    fn spans(&self, trace: TraceId) -> impl Future<Output = Arrivals> + Send;

    /// Whether spans of the trace may have been lost on their way here: refused, or sent while the receiver was not listening,
    /// as before a run was resumed. Called before absence is concluded.
    fn has_lost_spans(&self, trace: TraceId) -> bool;

    /// Returns the names of the servers that may have received spans of the trace at any time since before the attempt, and that do
    /// not share them with this server. Called before absence is concluded; empty if no other server can have received any. On
    /// [`LeaseLost`] nothing is concluded.
    fn other_servers(
        &self,
        _trace: TraceId,
    ) -> impl Future<Output = Result<Vec<String>, LeaseLost>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Stores the attempt. It MUST be durable when this returns; on [`LeaseLost`] nothing is sent.
    fn attempted(&self, attempt: &Attempt) -> impl Future<Output = Result<(), LeaseLost>> + Send;

    /// Sends the request, as the parent of all work of the system. Called at most once for a run.
    ///
    /// Right before the first byte it MUST verify that this worker still holds the lease; on [`LeaseLost`] nothing was sent.
    fn fire(
        &self,
        request: &Request,
        attempt: &Attempt,
    ) -> impl Future<Output = Result<Answer, LeaseLost>> + Send;

    /// Stores how the trigger ended. MAY be called again for a resumed run, with an unknown outcome.
    fn answered(&self, answer: &Answer) -> impl Future<Output = Result<(), LeaseLost>> + Send;

    /// Requests the system to flush all its spans, and waits until it did. Returns false if the system has no such interface.
    ///
    /// Called at most once, when the trigger has a response; cancelled at the deadline.
    fn drain(&self) -> impl Future<Output = bool> + Send {
        async { false }
    }

    /// Returns the observations of the receiver, for a run with an incomplete trace; none if there are none.
    fn seen(&self) -> impl Future<Output = Option<ReceiverSnapshot>> + Send {
        async { None }
    }

    /// Returns the number of log records of the trace that arrived. Called before the absence of events is concluded.
    fn logs(&self, trace: TraceId) -> u64 {
        let _none_are_read_here = trace;
        0
    }

    /// Returns the processes that were started for this run, as far as they can be inspected. Called if a trace is incomplete.
    fn processes(&self) -> Vec<Process> {
        Vec::new()
    }

    /// Waits for the next person who looks at the trace while its spans arrive. There is none by default.
    fn snapshot_request(&self) -> impl Future<Output = SnapshotRequest> + Send {
        pending()
    }

    /// Receives the events of the run, in order. It MUST NOT block.
    fn tell(&self, event: RunEvent);

    /// Receives what the run does next and why, for a person who looks for an error. It has counts, times and names of reasons, and
    /// no text of a document, a request or a span. It MUST NOT block.
    fn debug(&self, note: fmt::Arguments<'_>) {
        let _not_kept_here = note;
    }
}

/// The error of a worker that lost the lease of its run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the run was given up: {0}")]
pub struct LeaseLost(pub String);

impl Faulty for LeaseLost {
    fn fault(&self) -> Fault {
        Fault::Conflict
    }
}

/// Publishes an event of the run.
pub(crate) fn tell<P: Ports>(ports: &P, what: What) {
    ports.tell(RunEvent { at: ports.now(), what });
}

//! What a run needs of the world.

use std::future::Future;

use drivers::{arrivals::Arrivals, receiver::ReceiverSnapshot};
use model::{
    Answer, Attempt, Fault, Faulty, KeyRing, Project, Request, RunEvent, Timestamp, TraceId,
};
use thiserror::Error;

use crate::{diagnosis::Process, pool::Share};

/// What a run needs of the world. The local run is one implementation, the server's worker the other.
pub trait Ports: Send + Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Fresh random bytes.
    fn random(&self) -> [u8; 32];

    /// The keys under which trace ids are minted.
    fn keys(&self) -> &KeyRing;

    /// Whose run it is: ids are minted for it, and who may send for others does not reach them.
    fn project(&self) -> Project {
        Project::default()
    }

    /// Where its trace is read and judged; by default here.
    fn share(&self) -> Share {
        Share::inline()
    }

    /// Starts to listen for the spans of a trace, those that came already included.
    fn spans(&self, trace: TraceId) -> impl Future<Output = Arrivals> + Send;

    /// Whether spans of the trace may have been lost on their way here: refused, or sent while nobody listened, as
    /// before a run was resumed. Asked before absence is concluded.
    fn has_lost_spans(&self, trace: TraceId) -> bool;

    /// The servers that received spans at any time since before the attempt, and that share none with this one, by name. Asked
    /// before absence is concluded; none where nobody else can have received any. On [`LeaseLost`] nothing is concluded.
    fn other_servers(&self) -> impl Future<Output = Result<Vec<String>, LeaseLost>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Records the attempt. It MUST be durable when this returns; on [`LeaseLost`] nothing is sent.
    fn attempted(&self, attempt: &Attempt) -> impl Future<Output = Result<(), LeaseLost>> + Send;

    /// Sends the request, as the parent of whatever the system does. Called at most once for a run.
    ///
    /// Right before the first byte it MUST make sure that the run is still ours; on [`LeaseLost`] nothing was sent.
    fn fire(
        &self,
        request: &Request,
        attempt: &Attempt,
    ) -> impl Future<Output = Result<Answer, LeaseLost>> + Send;

    /// Records how the trigger ended. MAY be called again for a resumed run, with an unknown outcome.
    fn answered(&self, answer: &Answer) -> impl Future<Output = Result<(), LeaseLost>> + Send;

    /// Tells the system to send all that it has, and waits until it did. False where it cannot be told.
    ///
    /// Called at most once, when the trigger has answered; given up at the deadline.
    fn drain(&self) -> impl Future<Output = bool> + Send {
        async { false }
    }

    /// What the receiver has met, for a run whose trace is not whole; none where nobody knows.
    fn seen(&self) -> Option<ReceiverSnapshot> {
        None
    }

    /// Log records of the trace that came. Asked before the absence of events is concluded.
    fn logs(&self, trace: TraceId) -> u64 {
        let _none_are_read_here = trace;
        0
    }

    /// The processes that were started for this run, as far as they can be looked at. Asked when a trace is not whole.
    fn processes(&self) -> Vec<Process> {
        Vec::new()
    }

    /// Hears what happens, in order. It MUST NOT block.
    fn tell(&self, event: RunEvent);
}

/// The run is not ours any more.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the run was given up: {0}")]
pub struct LeaseLost(pub String);

impl Faulty for LeaseLost {
    fn fault(&self) -> Fault {
        Fault::Conflict
    }
}

//! From the journal to the destination: clients, responses, and the lane that loses no item on the way.
//!
//! One exporter has one [`Lane`], which outlives its senders, and one [`Sender`], a thread with its own runtime. The
//! thread reads batches from the lane's journal, sends them, and acts on each response until every item has ended: as
//! delivered, or as rejected with a dead letter. The same thread pushes metrics, without the journal. Deliberately
//! absent: encoding (`encode`, `record`), and storage (`journal`).

mod answer;
mod backoff;
mod body;
mod calendar;
mod client;
mod dead_letters;
mod deliver;
mod grpc;
mod lane;
mod lines;
mod notices;
mod outlet;
mod part;
mod push;
mod sender;
mod tally;
mod tls;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

pub(crate) use self::{
    answer::Answer,
    client::Client,
    lane::Lane,
    sender::{PreparedSender, Sender, SenderError},
    tally::SignalSnapshot,
};
use crate::metrics;

/// The pause for a destination that only an operator can fix.
const HOLD: Duration = Duration::from_secs(10);

/// The callback for notices to an operator: the name of an exporter, and a message.
pub(crate) type NoticeFn = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The dependencies of a sender.
#[derive(Clone)]
pub(crate) struct SendHost {
    /// The monotonic clock.
    pub(crate) now: fn() -> Instant,
    /// The wall clock, for the names of dead letters.
    pub(crate) wall: fn() -> SystemTime,
    /// The random number source, for the jitter of pauses.
    pub(crate) random: fn() -> u64,
    /// The `User-Agent` of requests.
    pub(crate) user_agent: String,
    /// The callback for notices to an operator.
    pub(crate) notice: NoticeFn,
    /// The reader of the metrics to push, if an exporter pushes metrics.
    pub(crate) metrics: Option<metrics::Reader>,
}

impl fmt::Debug for SendHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendHost").field("user_agent", &self.user_agent).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "../../tests/peer/mod.rs"]
mod peer;
#[cfg(test)]
mod tests;

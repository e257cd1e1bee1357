//! From the journal to the destination: clients, answers, and the lane that loses nothing on the way.
//!
//! One exporter has one [`Lane`], which outlives its senders, and one [`Sender`], a thread with a runtime of its own. The
//! thread reads batches from the lane's journal, sends them, and acts on each answer until every item has ended: as
//! delivered, or as rejected with a dead letter. Metrics are pushed from the same thread, past the journal.
//! Deliberately absent: what is sent (`encode`, `record`), and what is kept how (`journal`).

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
};
use crate::metrics;

/// How long a destination is left alone that nothing but an operator can help.
const HOLD: Duration = Duration::from_secs(10);

/// Who is told what an operator should know: an exporter's name, and a message.
pub(crate) type NoticeFn = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// What a sender needs of the world.
#[derive(Clone)]
pub(crate) struct SendHost {
    /// The monotonic clock.
    pub(crate) now: fn() -> Instant,
    /// The calendar's clock, for the names of dead letters.
    pub(crate) wall: fn() -> SystemTime,
    /// Dice, for the jitter of waits.
    pub(crate) random: fn() -> u64,
    /// Who we are to the peer.
    pub(crate) user_agent: String,
    /// Who is told what an operator should know.
    pub(crate) notice: NoticeFn,
    /// What is pushed, where an exporter pushes metrics.
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

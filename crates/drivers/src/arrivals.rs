//! The spans of one trace as they arrive: the one contract of all sources of spans.
//!
//! A source either pushes or is queried. What is pushed is in the channel as soon as the receiver accepted it: no further span of
//! the past is on its way here, and absence is judged by the current time. A source that is queried proves absence only up to the
//! beginning of its last complete answer, which it reports as [`Arrival::Coverage`]. It reports none for an answer that failed or
//! was partial.

use bytes::Bytes;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::Instant,
};

use crate::inbox::Claim;

/// What a source of spans reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Some spans of one trace, in an OTLP `TracesData` message.
    Spans {
        /// When they arrived, which may be long before they are decoded.
        at: Instant,
        /// The message.
        bytes: Bytes,
    },
    /// All spans that a queried source had at a time have been reported.
    Coverage {
        /// When the query began.
        began: Instant,
    },
}

/// The spans of one trace as they arrive. The same span may arrive more than once.
#[derive(Debug)]
pub struct Arrivals {
    receiver: mpsc::Receiver<Arrival>,
    source: Source,
}

/// What the arrivals come from. Dropping it ends it.
#[derive(Debug)]
enum Source {
    Pushed(#[expect(dead_code, reason = "only dropped")] Option<Claim>),
    Queried { wanted: watch::Sender<Option<Instant>>, _queries: JoinSet<()> },
}

impl Arrival {
    /// Returns the message with the spans, if it has any.
    pub fn spans(self) -> Option<Bytes> {
        match self {
            Self::Spans { bytes, .. } => Some(bytes),
            Self::Coverage { .. } => None,
        }
    }
}

impl Arrivals {
    /// Creates arrivals of a source that pushes, from this channel.
    pub fn new(receiver: mpsc::Receiver<Arrival>) -> Self {
        Self { receiver, source: Source::Pushed(None) }
    }

    /// Creates arrivals of a source that is queried, from this channel. `queries` end with the arrivals; `wanted` tells them until
    /// when they have to cover.
    pub fn queried(
        receiver: mpsc::Receiver<Arrival>,
        wanted: watch::Sender<Option<Instant>>,
        queries: JoinSet<()>,
    ) -> Self {
        Self { receiver, source: Source::Queried { wanted, _queries: queries } }
    }

    pub(crate) fn claimed(receiver: mpsc::Receiver<Arrival>, claim: Claim) -> Self {
        Self { receiver, source: Source::Pushed(Some(claim)) }
    }

    /// Whether the source is queried.
    pub fn is_queried(&self) -> bool {
        matches!(self.source, Source::Queried { .. })
    }

    /// Requests coverage of this time: a source that is queried queries once more when it has come.
    pub fn want(&self, until: Instant) {
        if let Source::Queried { wanted, .. } = &self.source {
            wanted.send_if_modified(|before| before.replace(until) != Some(until));
        }
    }

    /// Waits for the next arrival; none means that no more will come. Cancel-safe: a dropped wait loses nothing.
    pub async fn next(&mut self) -> Option<Arrival> {
        self.receiver.recv().await
    }

    /// Returns the next arrival, if it is already there.
    pub fn waiting(&mut self) -> Option<Arrival> {
        self.receiver.try_recv().ok()
    }
}

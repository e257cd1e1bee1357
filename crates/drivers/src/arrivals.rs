//! The spans of one trace as they arrive.

use bytes::Bytes;
use tokio::{sync::mpsc, time::Instant};

use crate::inbox::Claim;

/// Some spans of one trace, in an OTLP `TracesData` message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When they arrived, which may be long before they are decoded.
    pub at: Instant,
    /// The message.
    pub bytes: Bytes,
}

/// The spans of one trace as they arrive. The same span may arrive more than once.
#[derive(Debug)]
pub struct Arrivals {
    receiver: mpsc::Receiver<Arrival>,
    /// Ends the claim in the inbox on drop, if the arrivals come from an inbox.
    _claim: Option<Claim>,
}

impl Arrivals {
    /// Creates arrivals from this channel.
    pub fn new(receiver: mpsc::Receiver<Arrival>) -> Self {
        Self { receiver, _claim: None }
    }

    pub(crate) fn claimed(receiver: mpsc::Receiver<Arrival>, claim: Claim) -> Self {
        Self { receiver, _claim: Some(claim) }
    }

    /// Waits for the next message; none means that no more will arrive. Cancel-safe: a dropped wait loses nothing.
    pub async fn next(&mut self) -> Option<Arrival> {
        self.receiver.recv().await
    }

    /// Returns the next message, if it has already arrived.
    pub fn waiting(&mut self) -> Option<Arrival> {
        self.receiver.try_recv().ok()
    }
}

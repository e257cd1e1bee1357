//! The spans of one trace as they arrive.

use bytes::Bytes;
use tokio::{sync::mpsc, time::Instant};

use crate::inbox::Claim;

/// Some spans of one trace, in an OTLP `TracesData` message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When they came in, which may be long before they are read.
    pub at: Instant,
    /// The message.
    pub bytes: Bytes,
}

/// The spans of one trace as they arrive. The same span may come more than once.
#[derive(Debug)]
pub struct Arrivals {
    receiver: mpsc::Receiver<Arrival>,
    /// Tells the inbox, if they come from there, that they are let go.
    _claim: Option<Claim>,
}

impl Arrivals {
    /// Arrivals that come through this channel.
    pub fn new(receiver: mpsc::Receiver<Arrival>) -> Self {
        Self { receiver, _claim: None }
    }

    pub(crate) fn claimed(receiver: mpsc::Receiver<Arrival>, claim: Claim) -> Self {
        Self { receiver, _claim: Some(claim) }
    }

    /// Waits for the next message; none means that no more will come. Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> Option<Arrival> {
        self.receiver.recv().await
    }

    /// The next message, if it has come already.
    pub fn waiting(&mut self) -> Option<Arrival> {
        self.receiver.try_recv().ok()
    }
}

//! The spans of one trace as they arrive.

use bytes::Bytes;
use tokio::sync::mpsc;

/// The spans of one trace as they arrive, in OTLP `TracesData` messages. The same span may come more than once.
#[derive(Debug)]
pub struct Arrivals {
    receiver: mpsc::Receiver<Bytes>,
}

impl Arrivals {
    /// Arrivals that come through this channel.
    pub fn new(receiver: mpsc::Receiver<Bytes>) -> Self {
        Self { receiver }
    }

    /// Waits for the next message; none means that no more will come. Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.receiver.recv().await
    }
}

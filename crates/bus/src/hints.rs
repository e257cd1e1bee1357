//! Hints: lossy notifications of the form "something new about X", for current listeners.
//!
//! A listener that is too slow may lose a hint, so a hint never carries data. A component that must not miss a change also polls
//! the database from time to time.

use tokio::sync::broadcast;

/// Hints that are buffered for the slowest listener.
const LAG_MAX: usize = 1024;

/// The subject of a hint: a string that its sender and its listeners agree on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject(pub String);

/// The subscription of one listener to hints.
#[derive(Debug)]
pub struct Hints(broadcast::Receiver<Subject>);

#[derive(Clone, Debug)]
pub(crate) struct Sender(broadcast::Sender<Subject>);

impl Hints {
    /// Returns the next hint; after a lag, the oldest one in the buffer. Returns none once the bus is dropped.
    pub async fn next(&mut self) -> Option<Subject> {
        loop {
            match self.0.recv().await {
                Ok(subject) => return Some(subject),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl Sender {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(LAG_MAX))
    }

    pub(crate) fn send(&self, subject: Subject) {
        // The only error is that there is no listener, which is no error for a hint.
        self.0.send(subject).ok();
    }

    pub(crate) fn listen(&self) -> Hints {
        Hints(self.0.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::{LAG_MAX, Sender, Subject};

    fn subject(number: usize) -> Subject {
        Subject(number.to_string())
    }

    #[tokio::test]
    async fn every_listener_gets_every_hint_from_its_start_on() {
        let sender = Sender::new();
        sender.send(subject(0));
        let (mut one, mut other) = (sender.listen(), sender.listen());
        sender.send(subject(1));
        assert_eq!(one.next().await, Some(subject(1)));
        assert_eq!(other.next().await, Some(subject(1)));
        drop(sender);
        assert_eq!(one.next().await, None);
    }

    #[tokio::test]
    async fn a_slow_listener_loses_the_oldest_hints_and_goes_on() {
        let sender = Sender::new();
        let mut slow = sender.listen();
        for number in 0..LAG_MAX + 3 {
            sender.send(subject(number));
        }
        for number in 3..LAG_MAX + 3 {
            assert_eq!(slow.next().await, Some(subject(number)));
        }
        sender.send(subject(7));
        assert_eq!(slow.next().await, Some(subject(7)));
    }
}

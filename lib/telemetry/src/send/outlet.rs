//! The writer of an exporter's requests, for every kind of destination.

use bytes::Bytes;

use super::{
    answer::Answer,
    client::{Client, ClientError},
    lines::Lines,
};
use crate::plan::{Destination, Signal};

/// The writer of an exporter's requests.
pub(crate) enum RequestWriter {
    Otlp(Box<Client>),
    Lines(Lines),
}

impl RequestWriter {
    pub(crate) fn new(destination: &Destination, user_agent: &str) -> Result<Self, ClientError> {
        Ok(match destination {
            Destination::Otlp(otlp) => Self::Otlp(Box::new(Client::new(otlp, user_agent)?)),
            Destination::Stdout => Self::Lines(Lines::Stdout),
            Destination::Log(path) => Self::Lines(Lines::File(path.clone())),
        })
    }

    /// Sends an export request, and returns the outcome.
    pub(crate) async fn send(&self, signal: Signal, message: Bytes) -> Answer {
        match self {
            Self::Otlp(client) => client.send(signal, message).await,
            Self::Lines(lines) => lines.send(signal, &message),
        }
    }
}

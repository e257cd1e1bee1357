//! Publishes batches: in chunks, sealed, tried again for some time, and told to their readers where that fails.

use std::{
    collections::HashSet,
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use model::Timestamp;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{
    connection::{Connection, StoreError},
    wire::{self, CHUNK_BYTES, Chunk, Head, StreamNumber},
};
use crate::{
    Batch, Channel, PublishError,
    seal::{SEAL_BYTES, Sealer},
    spans::Spans,
};

/// How long a batch is tried: longer than the election of a stream's leader.
const PUBLISH_MAX: Duration = Duration::from_secs(8);

/// How long a batch is tried without a connection.
const AWAY_MAX: Duration = Duration::from_secs(1);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// The upper bound of traces whose loss is not stored yet. Beyond it, batches are refused before they are sent.
const LOSSES_MAX: usize = 65_536;

/// Publishes batches.
#[derive(Debug)]
pub(super) struct Publishing {
    pub(super) connection: Arc<Connection>,
    pub(super) spans: Spans,
    pub(super) sealer: Mutex<Sealer>,
    pub(super) losses: Losses,
}

/// The traces whose loss has to be told to their readers.
#[derive(Debug, Default)]
pub(super) struct Losses {
    channels: Mutex<HashSet<Channel>>,
    news: Notify,
}

/// A message that is not stored yet.
struct Outgoing {
    channel: Channel,
    subject: String,
    payload: Bytes,
}

/// The batches of a publisher that may give up; their loss is told unless they are stored.
struct Unstored<'a> {
    publishing: &'a Publishing,
    now: Timestamp,
    messages: Vec<Outgoing>,
}

impl Publishing {
    /// Stores these batches.
    pub(super) async fn publish(
        &self,
        now: Timestamp,
        batches: Vec<Batch>,
    ) -> Result<(), PublishError> {
        let limits = self.spans.limits;
        let (large, batches): (Vec<_>, Vec<_>) = batches
            .into_iter()
            .filter(|batch| !batch.bytes.is_empty())
            .partition(|batch| batch.bytes.len() > limits.trace_bytes_max);
        for batch in large {
            self.lose(now, batch.channel);
        }
        let messages = batches.iter().flat_map(|batch| self.messages(now, batch)).collect();
        let mut unstored = Unstored { publishing: self, now, messages };
        let began = Instant::now();
        while !unstored.messages.is_empty() {
            match self.try_all(&mut unstored.messages).await {
                Ok(()) => {}
                Err(StoreError::Full) => {
                    let bytes_max = usize::try_from(self.connection.stream_bytes_max());
                    return Err(PublishError::Full { bytes_max: bytes_max.unwrap_or(usize::MAX) });
                }
                Err(StoreError::Failed(reason)) => {
                    let patience =
                        if self.connection.is_connected() { PUBLISH_MAX } else { AWAY_MAX };
                    if began.elapsed() > patience || self.losses.is_full() {
                        return Err(PublishError::Away { reason });
                    }
                    sleep(PAUSE).await;
                }
            }
        }
        Ok(())
    }

    /// Sends all of these messages, then awaits their acknowledgements; keeps those that were not stored.
    async fn try_all(&self, messages: &mut Vec<Outgoing>) -> Result<(), StoreError> {
        let mut sent = Vec::with_capacity(messages.len());
        for message in messages.iter() {
            sent.push(self.connection.send(&message.subject, message.payload.clone()).await);
        }
        let (mut failed, mut error) = (Vec::new(), None);
        for (message, sent) in mem::take(messages).into_iter().zip(sent) {
            let stored = match sent {
                Ok(stored) => stored.await,
                Err(error) => Err(error),
            };
            if let Err(reason) = stored {
                // A full stream is full for all.
                if !matches!(error, Some(StoreError::Full)) {
                    error = Some(reason);
                }
                failed.push(message);
            }
        }
        let streams: HashSet<_> =
            failed.iter().map(|message| StreamNumber::of(message.channel.slot)).collect();
        *messages = failed;
        let Some(error) = error else { return Ok(()) };
        if matches!(error, StoreError::Failed(_)) && self.connection.is_connected() {
            // There may be none: nothing has needed it yet, or its node lost it.
            for stream in streams {
                self.connection.stream(stream).await.map_err(StoreError::Failed)?;
            }
        }
        Err(error)
    }

    /// Returns the messages of a batch.
    fn messages(&self, now: Timestamp, batch: &Batch) -> Vec<Outgoing> {
        let Batch { channel, spans, bytes, projects } = batch;
        let mut whole = wire::write_projects(projects.as_deref());
        whole.extend_from_slice(bytes);
        let room = self.connection.payload_bytes_max().saturating_sub(CHUNK_BYTES + SEAL_BYTES);
        let chunks: Vec<_> = whole.chunks(room.max(1)).collect();
        let (number, subject) =
            (self.connection.number(), wire::subject(&self.connection.prefix, *channel));
        let count = u16::try_from(chunks.len()).unwrap_or(u16::MAX);
        let publisher = self.connection.publisher;
        let message = |(index, chunk): (u16, &[u8])| {
            let head = Chunk { publisher, number, index, count, spans: *spans, at: now };
            let mut payload = Head::Chunk(head).write();
            let length = payload.len();
            payload.extend(channel.trace.as_bytes());
            let mut sealer = self.sealer.lock().unwrap_or_else(PoisonError::into_inner);
            sealer.seal(&mut payload, chunk)?;
            // The subject has the trace.
            payload.drain(length..length + channel.trace.as_bytes().len());
            Some(Outgoing { channel: *channel, subject: subject.clone(), payload: payload.into() })
        };
        (0..count).zip(chunks).filter_map(message).collect()
    }

    /// Records that spans of a trace were lost, and tells its reader.
    pub(super) fn lose(&self, now: Timestamp, channel: Channel) {
        self.spans.lose(now, channel.trace);
        self.losses.add(channel);
    }

    /// Stores losses until the bus is closed.
    pub(super) async fn tell_losses(self: Arc<Self>) {
        loop {
            let Some(channel) = self.losses.first() else {
                self.losses.news.notified().await;
                continue;
            };
            let subject = wire::subject(&self.connection.prefix, channel);
            let payload = Head::Loss(self.connection.publisher).write();
            match self.connection.store(subject, payload.into()).await {
                Ok(()) => self.losses.remove(channel),
                Err(_) => {
                    let stream = StreamNumber::of(channel.slot);
                    let _made = self.connection.stream(stream).await;
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

impl Losses {
    fn add(&self, channel: Channel) {
        self.channels().insert(channel);
        self.news.notify_one();
    }

    fn first(&self) -> Option<Channel> {
        self.channels().iter().next().copied()
    }

    fn remove(&self, channel: Channel) {
        self.channels().remove(&channel);
    }

    fn is_full(&self) -> bool {
        self.channels().len() >= LOSSES_MAX
    }

    fn channels(&self) -> std::sync::MutexGuard<'_, HashSet<Channel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Unstored<'_> {
    fn drop(&mut self) {
        let channels: HashSet<_> = self.messages.iter().map(|message| message.channel).collect();
        for channel in channels {
            self.publishing.lose(self.now, channel);
        }
    }
}

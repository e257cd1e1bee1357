//! Publishes batches: in chunks, sealed, tried again for some time; where that fails, their readers are notified. What exceeds the
//! share of its project is lost to its trace before the sender gets an answer.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use model::{Project, Timestamp};
use tokio::time::{Instant, sleep, timeout};

use super::{
    connection::{Connection, StoreError},
    outbox::{Notice, Outbox},
    shares::{MESSAGE_BYTES, StreamShares},
    sharing::{HeldNumber, SharingLog},
    wire::{self, CHUNK_BYTES, Chunk, Head, StreamNumber},
};
use crate::{
    Batch, Channel, PublishError,
    refusals::BatchDigest,
    seal::{SEAL_BYTES, Sealer},
    spans::Spans,
};

/// How long a batch is tried: longer than the election of a stream's leader.
const PUBLISH_MAX: Duration = Duration::from_secs(8);

/// How long a batch is tried without a connection.
const AWAY_MAX: Duration = Duration::from_secs(1);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Publishes batches.
#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) connection: Arc<Connection>,
    pub(super) spans: Spans,
    pub(super) sealer: Mutex<Sealer>,
    pub(super) outbox: Outbox,
    pub(super) sharing: SharingLog,
    pub(super) shares: StreamShares,
    /// When the process began to take part: shares count times from there.
    pub(super) began: Instant,
}

/// A message that is not stored yet.
struct UnsentMessage {
    /// The index of its batch in the publication.
    batch: usize,
    channel: Channel,
    /// The project that it counts for.
    owner: Option<Project>,
    subject: String,
    payload: Bytes,
}

/// The batches of a publisher that may give up; their readers are notified unless they are stored.
struct RefusalGuard<'a> {
    publisher: &'a Publisher,
    now: Timestamp,
    batches: Vec<Batch>,
    messages: Vec<UnsentMessage>,
    held: HeldNumber,
}

impl Publisher {
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
        let (mut messages, mut exceeding) = (Vec::new(), HashSet::new());
        for (index, batch) in batches.iter().enumerate() {
            match self.messages(now, (index, batch)) {
                Some(chunks) if self.has_room(&chunks) => messages.extend(chunks),
                Some(_) => drop(exceeding.insert(batch.channel)),
                None => self.lose(now, batch.channel),
            }
        }
        let traces = batches.iter().map(|batch| batch.channel.trace).collect();
        let held = self.sharing.hold(traces);
        let mut unstored = RefusalGuard { publisher: self, now, batches, messages, held };
        self.lose_stored(now, exceeding).await?;
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
                    if began.elapsed() > patience || self.outbox.is_full() {
                        return Err(PublishError::Away { reason });
                    }
                    sleep(PAUSE).await;
                }
            }
        }
        Ok(())
    }

    /// Counts the messages of a batch for its project; false if they exceed its share.
    fn has_room(&self, chunks: &[UnsentMessage]) -> bool {
        let Some(UnsentMessage { channel, owner: Some(owner), .. }) = chunks.first() else {
            return true;
        };
        let bytes = chunks.iter().map(UnsentMessage::stored_bytes).sum();
        let stream = StreamNumber::of(channel.slot);
        self.shares.take(stream, owner, bytes, self.began.elapsed())
    }

    /// Records that spans of these traces were lost, and returns when their readers will know it: the sender gets no refusal, so that
    /// a proof after its answer must find the loss. Unlike notices that wait, this is no reason for doubts in other traces.
    async fn lose_stored(
        &self,
        now: Timestamp,
        channels: HashSet<Channel>,
    ) -> Result<(), PublishError> {
        for channel in channels {
            self.spans.lose(now, channel.trace);
            if self.shares.is_lost(channel.trace) {
                continue;
            }
            match self.send_notice(&Notice::Loss(channel)).await {
                Ok(()) => self.shares.note_lost(channel.trace),
                Err(error) => {
                    self.outbox.add(Notice::Loss(channel));
                    return Err(PublishError::Away { reason: error.to_string() });
                }
            }
        }
        Ok(())
    }

    /// Sends all of these messages, then awaits their acknowledgements; keeps those that were not stored.
    async fn try_all(&self, messages: &mut Vec<UnsentMessage>) -> Result<(), StoreError> {
        let mut sent = Vec::with_capacity(messages.len());
        for message in messages.iter() {
            sent.push(self.connection.send(&message.subject, message.payload.clone()).await);
        }
        let (mut are_stored, mut error) = (Vec::with_capacity(sent.len()), None);
        for sent in sent {
            let stored = match sent {
                Ok(stored) => stored.await,
                Err(error) => Err(error),
            };
            are_stored.push(stored.is_ok());
            // A full stream is full for all.
            if let Err(reason) = stored
                && !matches!(error, Some(StoreError::Full))
            {
                error = Some(reason);
            }
        }
        // Only now: a publisher that is cancelled meanwhile has all of them to report.
        let mut are_stored = are_stored.into_iter();
        messages.retain(|_| !are_stored.next().unwrap_or(false));
        let Some(error) = error else { return Ok(()) };
        if matches!(error, StoreError::Failed(_)) && self.connection.is_connected() {
            // There may be none: nothing has needed it yet, or its node lost it.
            let streams: HashSet<_> =
                messages.iter().map(|message| StreamNumber::of(message.channel.slot)).collect();
            for stream in streams {
                self.connection.stream(stream).await.map_err(StoreError::Failed)?;
            }
        }
        Err(error)
    }

    /// Returns the messages of a batch; none if it needs more than a batch may have.
    fn messages(
        &self,
        now: Timestamp,
        (index, batch): (usize, &Batch),
    ) -> Option<Vec<UnsentMessage>> {
        let Batch { channel, spans, bytes, projects, owner } = batch;
        let mut whole = wire::write_projects(projects.as_deref());
        whole.extend_from_slice(bytes);
        let room = self.connection.payload_bytes_max().saturating_sub(CHUNK_BYTES + SEAL_BYTES);
        let chunks: Vec<_> = whole.chunks(room.max(1)).collect();
        let (number, subject) =
            (self.connection.number(), wire::subject(&self.connection.prefix, *channel));
        let count = u16::try_from(chunks.len()).ok()?;
        let publisher = self.connection.publisher;
        let message = |(part, chunk): (u16, &[u8])| {
            let head = Chunk { publisher, number, index: part, count, spans: *spans, at: now };
            // The subject has the trace.
            let payload = self.seal(
                self.connection.write(Head::Chunk(head)),
                channel.trace.as_bytes(),
                chunk,
            );
            let (subject, owner) = (subject.clone(), owner.clone());
            let payload = payload.into();
            UnsentMessage { batch: index, channel: *channel, owner, subject, payload }
        };
        Some((0..count).zip(chunks).map(message).collect())
    }

    /// Records that spans of a trace were lost, and tells its reader.
    pub(super) fn lose(&self, now: Timestamp, channel: Channel) {
        self.spans.lose(now, channel.trace);
        self.outbox.add(Notice::Loss(channel));
    }

    /// Records that a batch was refused, and tells its reader.
    fn refuse(&self, now: Timestamp, batch: &Batch) {
        let digest = BatchDigest::of(&batch.bytes);
        self.spans.refuse(now, batch.channel.trace, digest);
        self.outbox.add(Notice::Refused(batch.channel, digest));
    }

    /// Waits until all notices are stored.
    pub(super) async fn flush(&self) -> Result<(), PublishError> {
        let sent = timeout(PUBLISH_MAX, self.outbox.sent()).await;
        sent.map_err(|_| PublishError::Away { reason: "it does not answer".to_owned() })
    }

    /// Stores notices until the bus is closed.
    pub(super) async fn send_notices(self: Arc<Self>) {
        loop {
            let (number, notice) = self.outbox.next().await;
            match self.send_notice(&notice).await {
                Ok(()) => {
                    if let Some(late) = notice.late_share() {
                        self.sharing.note(late);
                    }
                    self.outbox.remove(number);
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    async fn send_notice(&self, notice: &Notice) -> Result<(), StoreError> {
        let (prefix, publisher) = (&self.connection.prefix, self.connection.publisher);
        let write = |head| self.connection.write(head);
        let (payload, channel) = match notice {
            Notice::Loss(channel) => (write(Head::Loss(publisher)), *channel),
            Notice::Refused(channel, batch) => {
                let head = write(Head::Refused(publisher));
                (self.seal(head, channel.trace.as_bytes(), batch.as_bytes()), *channel)
            }
            Notice::Log(channel, records) => (write(Head::Log(publisher, *records)), *channel),
            Notice::Unread(signal, projects, exports) => {
                let head = write(Head::Unread(publisher, *signal, *exports));
                let payload = Bytes::from(self.seal(head, &[], &projects_of(projects)));
                // A stream that does not exist has no reader.
                for stream in self.connection.existing_streams().await? {
                    self.connection.store(stream.all(prefix), payload.clone()).await?;
                }
                return Ok(());
            }
        };
        let stored = self.connection.store(wire::subject(prefix, channel), payload.into());
        if let Err(error) = stored.await {
            let made = self.connection.stream(StreamNumber::of(channel.slot)).await;
            made.map_err(StoreError::Failed)?;
            return Err(error);
        }
        Ok(())
    }

    /// Returns a head with sealed bytes behind it; both and `more` are authenticated.
    pub(super) fn seal(&self, head: Vec<u8>, more: &[u8], bytes: &[u8]) -> Vec<u8> {
        let (mut payload, length) = (head, more.len());
        let end = payload.len();
        payload.extend_from_slice(more);
        let mut sealer = self.sealer.lock().unwrap_or_else(PoisonError::into_inner);
        // It fails only for sizes that exceed any memory; the reader then finds a damaged message.
        let _sealed = sealer.seal(&mut payload, bytes);
        payload.drain(end..end + length);
        payload
    }
}

fn projects_of(projects: &Option<Vec<model::Project>>) -> Vec<u8> {
    wire::write_projects(projects.as_deref())
}

impl UnsentMessage {
    fn stored_bytes(&self) -> u64 {
        (self.payload.len() + self.subject.len()) as u64 + MESSAGE_BYTES
    }
}

impl Drop for RefusalGuard<'_> {
    fn drop(&mut self) {
        for message in &self.messages {
            if let Some(owner) = &message.owner {
                let stream = StreamNumber::of(message.channel.slot);
                self.publisher.shares.give_back(stream, owner, message.stored_bytes());
            }
        }
        let refused: BTreeSet<_> = self.messages.iter().map(|message| message.batch).collect();
        for batch in refused {
            self.publisher.refuse(self.now, &self.batches[batch]);
        }
        self.publisher.sharing.release(self.held);
    }
}

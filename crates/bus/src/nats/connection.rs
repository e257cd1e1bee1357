//! The connection to NATS, and its streams.

use std::{
    collections::HashSet,
    fmt,
    future::poll_fn,
    hash::{DefaultHasher, Hash, Hasher},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::{
    Client,
    connection::State,
    jetstream::{
        self, Context, ErrorCode,
        context::PublishErrorKind,
        message::PublishMessage,
        stream::{self, DiscardPolicy, RetentionPolicy, StorageType, Stream},
    },
};
use bytes::Bytes;
use futures_core::Stream as _;
use model::{Timestamp, TraceId};
use tokio::time::{sleep, timeout};

use super::{
    StreamLimits,
    cursor::StreamFacts,
    wire::{FIRST_VERSION, Head, MESSAGE_VERSION, PublisherId, StreamNumber},
};

/// How long one try to store a message may take.
const TRY_MAX: Duration = Duration::from_secs(2);

/// How often a process without a reader checks that NATS is the same.
const WATCH: Duration = Duration::from_secs(1);

/// The messages that may wait for their acknowledgement at a time.
const UNACKNOWLEDGED_MAX: usize = 4096;

pub(super) struct Connection {
    pub(super) client: Client,
    context: Context,
    pub(super) prefix: String,
    pub(super) publisher: PublisherId,
    pub(super) is_synced: bool,
    limits: StreamLimits,
    /// The version of the messages that this process writes.
    version: AtomicU8,
    next: AtomicU64,
    /// The traces that have a reader of their own.
    resumed: Mutex<HashSet<TraceId>>,
    /// What identified this NATS when it was last seen.
    identity: Mutex<Option<String>>,
}

/// Why a message was not stored.
#[derive(Debug)]
pub(super) enum StoreError {
    /// The stream is full.
    Full,
    /// Another try may succeed.
    Failed(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the stream of spans is full"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl Connection {
    pub(super) fn new(
        client: Client,
        prefix: String,
        publisher: [u8; 8],
        (limits, is_synced): (StreamLimits, bool),
    ) -> Self {
        let context = jetstream::context::ContextBuilder::new()
            .timeout(TRY_MAX)
            .max_ack_inflight(UNACKNOWLEDGED_MAX)
            .backpressure_on_inflight(true)
            .build(client.clone());
        Self {
            client,
            context,
            prefix,
            publisher: PublisherId(publisher),
            is_synced,
            limits,
            version: AtomicU8::new(FIRST_VERSION),
            next: AtomicU64::new(0),
            resumed: Mutex::default(),
            identity: Mutex::default(),
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Sets the version of messages that all processes on the bus read.
    pub(super) fn set_version(&self, version: u8) {
        self.version.store(version.clamp(FIRST_VERSION, MESSAGE_VERSION), Ordering::Relaxed);
    }

    /// Writes a head in the version that all processes read.
    pub(super) fn write(&self, head: Head) -> Vec<u8> {
        head.write(self.version.load(Ordering::Relaxed))
    }

    /// Returns a number for a batch.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns how large the payload of a message may be.
    pub(super) fn payload_bytes_max(&self) -> usize {
        self.client.max_payload() / 2
    }

    pub(super) fn stream_bytes_max(&self) -> i64 {
        self.limits.bytes_max
    }

    pub(super) fn is_resumed(&self, trace: TraceId) -> bool {
        self.resumed().contains(&trace)
    }

    pub(super) fn resumed(&self) -> std::sync::MutexGuard<'_, HashSet<TraceId>> {
        self.resumed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a stream and its facts; makes the stream if there is none.
    pub(super) async fn stream(
        &self,
        number: StreamNumber,
    ) -> Result<(Stream, StreamFacts), String> {
        let replicas = match self.client.server_info().cluster {
            Some(_) => self.limits.replicas,
            None => 1,
        };
        let config = stream::Config {
            name: number.name(&self.prefix),
            subjects: vec![number.subjects(&self.prefix)],
            max_bytes: self.limits.bytes_max,
            max_age: self.limits.age_max,
            discard: DiscardPolicy::New,
            retention: RetentionPolicy::Limits,
            storage: StorageType::File,
            num_replicas: replicas,
            // Equal spans are one span: nothing is gained by recognizing them here.
            duplicate_window: Duration::from_millis(100),
            description: Some("Spans on their way to the runs of Qualitytrace".to_owned()),
            ..stream::Config::default()
        };
        let stream = self.context.get_or_create_stream(config).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let facts = self.facts_of(stream.cached_info());
        Ok((stream, facts))
    }

    /// Returns the streams of this installation that exist. Another server may have more of them in its configuration.
    pub(super) async fn existing_streams(&self) -> Result<Vec<StreamNumber>, StoreError> {
        let (mut names, mut existing) = (self.context.stream_names(), Vec::new());
        while let Some(name) = poll_fn(|context| Pin::new(&mut names).poll_next(context)).await {
            let name = name.map_err(|error| StoreError::Failed(error.to_string()))?;
            existing.extend(StreamNumber::parse(&name, &self.prefix));
        }
        Ok(existing)
    }

    /// Returns the facts of a stream.
    pub(super) async fn facts(&self, number: StreamNumber) -> Result<StreamFacts, String> {
        let name = number.name(&self.prefix);
        let stream = self.context.get_stream(name).await.map_err(|error| error.to_string())?;
        Ok(self.facts_of(stream.cached_info()))
    }

    fn facts_of(&self, info: &stream::Info) -> StreamFacts {
        let mut leader = DefaultHasher::new();
        let cluster = info.cluster.as_ref();
        cluster.map(|it| (&it.leader, it.leader_since.map(timestamp))).hash(&mut leader);
        // A single node has no elections: another process has another id.
        let node = self.client.server_info();
        node.cluster.is_none().then_some(node.server_id).hash(&mut leader);
        StreamFacts {
            created: timestamp(info.created),
            leader: leader.finish(),
            first: info.state.first_sequence,
            last: info.state.last_sequence,
        }
    }

    /// Returns what identifies this NATS: when its first stream was made. Another one has another, and so has one that was wiped.
    pub(super) async fn identity(&self) -> Result<String, String> {
        let mut first = StreamNumber::first(1);
        let number = first.next().ok_or_else(|| "there is no stream".to_owned())?;
        let (_, facts) = self.stream(number).await?;
        Ok(format!("nats:{}:{}", self.prefix, facts.created.as_nanos()))
    }

    /// Finds out which NATS this is.
    pub(super) async fn know_identity(&self) -> Result<(), String> {
        let identity = self.identity().await?;
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity);
        Ok(())
    }

    /// Finds out again and again which NATS this is, and whether it answers: for a process without a reader, which would notice.
    pub(super) async fn watch(self: Arc<Self>, answers: Arc<AtomicBool>) {
        loop {
            let known = timeout(TRY_MAX, self.know_identity()).await;
            answers.store(matches!(known, Ok(Ok(()))), Ordering::Relaxed);
            sleep(WATCH).await;
        }
    }

    /// Returns what identified this NATS when it was last seen.
    pub(super) fn known_identity(&self) -> Option<String> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a message, and returns what completes when it is stored.
    pub(super) async fn send(
        &self,
        subject: &str,
        payload: Bytes,
    ) -> Result<impl Future<Output = Result<(), StoreError>> + use<>, StoreError> {
        let message = PublishMessage::build().payload(payload);
        let acknowledged = self
            .context
            .send_publish(subject.to_owned(), message)
            .await
            .map_err(|error| store_error(&error))?;
        Ok(async move { acknowledged.await.map(drop).map_err(|error| store_error(&error)) })
    }

    /// Stores a message.
    pub(super) async fn store(&self, subject: String, payload: Bytes) -> Result<(), StoreError> {
        self.send(&subject, payload).await?.await
    }
}

fn store_error(error: &jetstream::context::PublishError) -> StoreError {
    let code = std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<jetstream::Error>())
        .map(jetstream::Error::error_code);
    match (error.kind(), code) {
        (_, Some(ErrorCode::STREAM_STORE_FAILED)) => StoreError::Full,
        (PublishErrorKind::StreamNotFound, _) => {
            StoreError::Failed("NATS has no stream of spans".to_owned())
        }
        _ => StoreError::Failed(error.to_string()),
    }
}

/// Converts a time of NATS.
pub(super) fn timestamp(at: async_nats::datetime::DateTime) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(at.unix_timestamp_nanos()).unwrap_or_default())
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

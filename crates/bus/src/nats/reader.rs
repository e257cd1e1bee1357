//! Reads the messages of a slot, or of one trace, into memory, and proves by markers that none is missing.
//!
//! A marker is published behind all messages that were stored before it; when the consumer brings it, they have been read. One
//! marker is on its way at a time, and serves all who wait for a proof when it is sent. A marker that does not come in time makes
//! the reader open its consumer anew, behind the last message that it read.

use std::{
    future::{Future, pending, poll_fn},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::jetstream::{
    Message,
    consumer::{AckPolicy, DeliverPolicy, push},
};
use futures_core::Stream;
use model::{BusSlot, Project, Timestamp, TraceId};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    assembly::Assembly,
    connection::Connection,
    cursor::{Cursor, Delivery},
    markers::{MARKER_MAX, Markers, PROOF_MAX},
    wire::{self, Head, StreamNumber},
};
use crate::{
    Channel, Doubt, Era, Signal, notices::Notices, refusals::BatchDigest, seal::Opener,
    spans::Spans,
};

/// The pause between two tries to open a consumer.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a request to NATS may take.
const REQUEST_MAX: Duration = Duration::from_secs(2);

/// How often NATS reports that a consumer without messages is alive.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// The upper bound of those who wait for a proof; further ones wait for a place.
const PROOFS_MAX: usize = 1024;

/// How far the clock of NATS may be from ours.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(300);

type Reply = oneshot::Sender<Result<(), Doubt>>;

/// What a reader reads.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    /// All new messages to a slot.
    Slot(BusSlot),
    /// All messages of a trace that began at a time, in this state of the stream if it is known.
    Trace(Channel, Timestamp, Option<String>),
}

/// The interface of a reader to those who read its traces.
#[derive(Clone, Debug)]
pub(super) struct StreamReader {
    proofs: mpsc::Sender<Reply>,
    era: Arc<Mutex<Era>>,
    state: Arc<Mutex<Option<String>>>,
    is_open: Arc<AtomicBool>,
    lag: Arc<AtomicU64>,
}

/// The task of a reader.
pub(super) struct ReaderTask {
    scope: Scope,
    connection: Arc<Connection>,
    spans: Spans,
    notices: Arc<Notices>,
    opener: Opener,
    cursor: Cursor,
    assembly: Assembly,
    era: Arc<Mutex<Era>>,
    state: Arc<Mutex<Option<String>>>,
    is_open: Arc<AtomicBool>,
    lag: Arc<AtomicU64>,
    requests: mpsc::Receiver<Reply>,
    markers: Markers<Reply>,
    /// Completes when the marker on its way is stored, or is not.
    stored: Option<BoxFuture<Result<(), String>>>,
    /// The moment from which on times of markers count.
    began: Instant,
    /// Completes when the consumer was opened for the first time.
    ready: Option<oneshot::Sender<()>>,
    is_begun: bool,
}

type Messages = push::Messages;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl StreamReader {
    /// Creates a reader, and returns its task, and what completes when its consumer is open.
    pub(super) fn new(
        scope: Scope,
        connection: &Arc<Connection>,
        (spans, notices): (Spans, Arc<Notices>),
        opener: Opener,
    ) -> (Self, ReaderTask, oneshot::Receiver<()>) {
        let (proofs, requests) = mpsc::channel(PROOFS_MAX);
        let (ready, is_ready) = oneshot::channel();
        let era = Arc::new(Mutex::new(Era::default()));
        let (state, is_open, lag) = (Arc::default(), Arc::default(), Arc::default());
        let task = ReaderTask {
            scope,
            connection: Arc::clone(connection),
            opener,
            cursor: Cursor::new(connection.is_synced),
            assembly: Assembly::new(spans.limits.trace_bytes_max),
            notices,
            era: Arc::clone(&era),
            state: Arc::clone(&state),
            is_open: Arc::clone(&is_open),
            lag: Arc::clone(&lag),
            spans,
            requests,
            markers: Markers::default(),
            stored: None,
            began: Instant::now(),
            ready: Some(ready),
            is_begun: false,
        };
        (Self { proofs, era, state, is_open, lag }, task, is_ready)
    }

    /// Waits until all messages have been read that were stored before the call.
    pub(super) async fn proved(&self) -> Result<(), Doubt> {
        let (reply, proved) = oneshot::channel();
        let asked = async {
            // A reader that has ended proves nothing.
            self.proofs.send(reply).await.map_err(|_| Doubt::NotListened)?;
            proved.await.unwrap_or(Err(Doubt::NotListened))
        };
        timeout(2 * PROOF_MAX, asked).await.unwrap_or(Err(Doubt::MarkerLate(2 * PROOF_MAX)))
    }

    /// Whether NATS delivers messages, or reports that there are none.
    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Returns the number of messages that were not read when the last one was delivered.
    pub(super) fn lag(&self) -> u64 {
        self.lag.load(Ordering::Relaxed)
    }

    /// Returns the state of the stream, as it was seen last.
    pub(super) fn state(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how often the stream changed in a way that may have lost messages, and why.
    pub(super) fn era(&self) -> Era {
        self.era.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ReaderTask {
    /// Reads until the reader is dropped.
    pub(super) async fn run(mut self) {
        loop {
            let opened = timeout(REQUEST_MAX, self.open()).await;
            match opened.unwrap_or_else(|_| Err("NATS does not answer".to_owned())) {
                Ok(messages) => {
                    if let Some(ready) = self.ready.take() {
                        ready.send(()).ok();
                    }
                    self.is_open.store(true, Ordering::Relaxed);
                    let is_wanted = self.read(messages).await;
                    if !is_wanted {
                        return;
                    }
                }
                Err(_) => {
                    self.is_open.store(false, Ordering::Relaxed);
                    self.expire_marker();
                    sleep(PAUSE).await;
                    if !self.collect_requests() {
                        return;
                    }
                }
            }
        }
    }

    /// Takes requests while there is no consumer; returns false if the reader was dropped.
    fn collect_requests(&mut self) -> bool {
        loop {
            match self.requests.try_recv() {
                Ok(reply) => self.markers.wait(reply),
                Err(mpsc::error::TryRecvError::Empty) => break,
                Err(mpsc::error::TryRecvError::Disconnected) => return false,
            }
        }
        self.markers.retain(|reply| !reply.is_closed());
        true
    }

    /// Opens the consumer behind the last message that was read.
    async fn open(&mut self) -> Result<Messages, String> {
        let slot = self.slot();
        let (stream, facts) = self.connection.stream(StreamNumber::of(slot)).await?;
        if !std::mem::replace(&mut self.is_begun, true) {
            match &self.scope {
                Scope::Slot(_) => self.cursor.skip(facts),
                // Whatever was stored since the trace began is there.
                Scope::Trace(channel, _, state) => {
                    if *state == Some(facts.state(self.connection.is_synced)) {
                        self.spans.expect(channel.trace, 0);
                    }
                }
            }
        }
        if matches!(self.scope, Scope::Slot(_)) {
            self.connection.know_identity().await?;
        }
        let start_sequence = self.cursor.open(facts);
        self.share_era();
        let prefix = &self.connection.prefix;
        let filter_subjects = match self.scope {
            Scope::Slot(slot) => {
                vec![wire::subjects(prefix, slot), StreamNumber::of(slot).all(prefix)]
            }
            Scope::Trace(channel, ..) => {
                vec![wire::subject(prefix, channel), StreamNumber::of(slot).all(prefix)]
            }
        };
        let config = push::Config {
            deliver_subject: self.connection.client.new_inbox(),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
            ack_policy: AckPolicy::None,
            filter_subjects,
            flow_control: true,
            idle_heartbeat: HEARTBEAT,
            num_replicas: 1,
            memory_storage: true,
            ..push::Config::default()
        };
        let consumer = stream.create_consumer(config).await.map_err(|error| error.to_string())?;
        consumer.messages().await.map_err(|error| error.to_string())
    }

    fn slot(&self) -> BusSlot {
        match self.scope {
            Scope::Slot(slot) | Scope::Trace(Channel { slot, .. }, ..) => slot,
        }
    }

    /// Reads until the consumer has to be opened anew; returns false if the reader was dropped.
    async fn read(&mut self, mut messages: Messages) -> bool {
        // What was stored and not delivered comes again; a marker that was not stored is sent again.
        if let Some(number) = self.markers.again(self.began.elapsed()) {
            self.store_marker(number);
        }
        loop {
            self.send_marker();
            let reopen_at = self.markers.reopen_at().map(|at| self.began + at);
            // Without an order: many messages must not hold up a marker.
            tokio::select! {
                message = next(&mut messages) => match message {
                    Some(message) => if !self.take(&message).await { return true },
                    None => return true,
                },
                stored = maybe(self.stored.as_mut()) => {
                    self.stored = None;
                    self.markers.stored(stored);
                }
                request = self.requests.recv() => match request {
                    Some(reply) => self.markers.wait(reply),
                    None => return false,
                },
                () = until(reopen_at) => {
                    self.expire_marker();
                    return true;
                }
            }
        }
    }

    /// Takes a message; returns false if the consumer has to be opened anew.
    async fn take(&mut self, message: &Message) -> bool {
        let Ok(info) = message.info() else { return false };
        self.lag.store(info.pending, Ordering::Relaxed);
        match self.cursor.deliver(info.stream_sequence, info.consumer_sequence) {
            Delivery::Next => {}
            Delivery::Again => return true,
            Delivery::Gap => return false,
        }
        let trace = wire::trace_of(&message.subject);
        match (Head::read(&message.payload), trace) {
            (Some((Head::Marker(publisher, number), _)), _) => {
                if publisher == self.connection.publisher {
                    return self.marker_came(number).await;
                }
            }
            (Some((Head::Loss(publisher), _)), Some(trace)) => {
                // A loss of our own is known already.
                if publisher != self.connection.publisher || matches!(self.scope, Scope::Trace(..))
                {
                    self.spans.lose(self.now(&info), trace);
                }
            }
            (Some((Head::Refused(publisher), sealed)), Some(trace)) => {
                let batch = self.open_of(trace, &message.payload, sealed);
                let now = self.now(&info);
                if publisher != self.connection.publisher || matches!(self.scope, Scope::Trace(..))
                {
                    match batch.and_then(|batch| BatchDigest::read(&batch)) {
                        Some(batch) => self.spans.refuse(now, trace, batch),
                        None => self.spans.lose(now, trace),
                    }
                }
            }
            (Some((Head::Chunk(chunk), sealed)), Some(trace)) => {
                match self.open_of(trace, &message.payload, sealed) {
                    Some(bytes) => self.add(trace, &chunk, bytes),
                    None => self.spans.lose(chunk.at, trace),
                }
            }
            (Some((Head::Log(publisher, records), _)), Some(trace)) => {
                if publisher != self.connection.publisher {
                    self.notices.log(trace, records);
                }
            }
            (Some((Head::Unread(publisher, signal, exports), sealed)), _) => {
                let head = message.payload.len() - sealed.len();
                let projects = self.opener.open(&message.payload[..head], sealed);
                let projects = projects.and_then(|projects| wire::projects(&projects));
                if publisher != self.connection.publisher {
                    // What is damaged may be of any project.
                    self.unread(&info, signal, projects.flatten().as_deref(), exports);
                }
            }
            // What cannot be read may have been spans.
            (_, Some(trace)) => self.spans.lose(self.now(&info), trace),
            // It may have stated that exports were lost.
            (None, None) if wire::is_to_all(&message.subject) => {
                self.unread(&info, Signal::Spans, None, 1);
            }
            (_, None) => {}
        }
        true
    }

    /// Opens what is sealed for a trace behind the head of a payload.
    fn open_of(&mut self, trace: TraceId, payload: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let mut prefix = payload[..payload.len() - sealed.len()].to_vec();
        prefix.extend(trace.as_bytes());
        self.opener.open(&prefix, sealed)
    }

    /// Counts exports of others that could not be read.
    fn unread(
        &self,
        info: &async_nats::jetstream::message::Info<'_>,
        signal: Signal,
        projects: Option<&[Project]>,
        exports: u64,
    ) {
        match self.scope {
            Scope::Slot(_) => self.notices.lose_unread(signal, projects, exports),
            // The owner of the trace before this process may have known of it.
            Scope::Trace(channel, since, _) => {
                let is_of_run = self.now(info) >= since.minus(CLOCKS_DIFFER_MAX);
                if signal == Signal::Spans && is_of_run {
                    self.spans.lose_for(self.now(info), channel.trace, projects);
                }
            }
        }
    }

    fn now(&self, info: &async_nats::jetstream::message::Info<'_>) -> Timestamp {
        super::connection::timestamp(info.published)
    }

    fn add(&mut self, trace: TraceId, chunk: &wire::Chunk, bytes: Vec<u8>) {
        let assembled = self.assembly.add(trace, chunk, bytes);
        for lost in assembled.lost {
            self.spans.lose(chunk.at, lost);
        }
        let Some(batch) = assembled.batch else { return };
        // A trace that has a reader of its own is read by that.
        let is_elsewhere =
            matches!(self.scope, Scope::Slot(_)) && self.connection.is_resumed(trace);
        if !is_elsewhere {
            self.spans.store(chunk.at, trace, chunk.spans, &batch);
        }
    }

    /// Sends a marker for all who wait, unless one is on its way.
    fn send_marker(&mut self) {
        self.markers.retain(|reply| !reply.is_closed());
        if self.markers.is_due() {
            // Two readers may get the markers of both: no number is used twice in this process.
            let number = self.connection.number();
            self.markers.send(number, self.began.elapsed());
            self.store_marker(number);
        }
    }

    fn store_marker(&mut self, number: u64) {
        let subject = match self.scope {
            Scope::Slot(slot) => wire::markers(&self.connection.prefix, slot),
            Scope::Trace(channel, ..) => wire::subject(&self.connection.prefix, channel),
        };
        let payload = self.connection.write(Head::Marker(self.connection.publisher, number));
        let connection = Arc::clone(&self.connection);
        self.stored = Some(Box::pin(async move {
            connection.store(subject, payload.into()).await.map_err(|error| error.to_string())
        }));
    }

    /// Replies to those who wait for a marker that came; returns false if the consumer has to be opened anew.
    async fn marker_came(&mut self, number: u64) -> bool {
        if !self.markers.is_on_its_way(number) {
            return true;
        }
        if !self.connection.is_synced {
            let facts = timeout(MARKER_MAX, self.connection.facts(StreamNumber::of(self.slot())));
            let Ok(Ok(facts)) = facts.await else { return false };
            self.cursor.note(facts);
            self.share_era();
        }
        self.stored = None;
        for reply in self.markers.came(number) {
            reply.send(Ok(())).ok();
        }
        true
    }

    /// Gives a doubt to those who have waited for a marker for too long.
    fn expire_marker(&mut self) {
        let Some((replies, doubt)) = self.markers.expire(self.began.elapsed()) else { return };
        for reply in replies {
            reply.send(Err(doubt.clone())).ok();
        }
    }

    fn share_era(&self) {
        let mut era = self.era.lock().unwrap_or_else(PoisonError::into_inner);
        if era.number != self.cursor.era().number {
            era.clone_from(self.cursor.era());
        }
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = self.cursor.state();
    }
}

async fn next(messages: &mut Messages) -> Option<Message> {
    let next = poll_fn(|context| Pin::new(&mut *messages).poll_next(context)).await;
    next.and_then(Result::ok)
}

async fn maybe<T>(future: Option<&mut BoxFuture<T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

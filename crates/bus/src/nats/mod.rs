//! The bus over NATS: spans in JetStream, hints in plain messages.
//!
//! Each process that reads spans has a *slot*; a channel names the slot of its first reader, so that any process knows from the
//! channel alone where its spans go. A process reads all messages to its slot by one consumer, into memory ([`reader`]). It reads the
//! trace of another process by a consumer of its own, from the first message on. A full stream refuses. ADR 0040 has the reasons.

mod assembly;
mod connection;
mod cursor;
mod hints;
mod markers;
mod outbox;
mod publish;
mod reader;
mod requests;
mod shares;
mod sharing;
mod simulation;
mod usage;
mod wire;

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_nats::ConnectOptions;
use model::{BusSlot, Fault, Faulty, Project, Secret, Timestamp, TraceId};
use thiserror::Error;
use tokio::{
    sync::oneshot,
    task::{AbortHandle, JoinSet},
    time::{Instant, timeout},
};

use crate::{
    Batch, Bus, Channel, Doubt, Hints, Limits, PublishError, SealKeys, Signal, Subject,
    Subscription, notices::Notices, spans::Spans, traces::TraceTable,
};
use connection::Connection;
use hints::NatsHints;
use outbox::{Notice, Outbox};
use publish::Publisher;
use reader::{Scope, StreamReader};
pub use requests::{PeerRequest, PeerRequests};
use shares::StreamShares;
pub use sharing::HELD_MAX;
use sharing::SharingLog;
pub use simulation::{PlantedFault, PlayCounts, play};
pub(crate) use wire::read_projects;
pub use wire::{MESSAGE_VERSION, STREAM_SLOTS};

/// How long the first connection may take before the bus goes on without it.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// How often the connection is checked, so that a node that hangs is left for another one.
const PING: Duration = Duration::from_secs(2);

/// The options of a bus over NATS.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// The URLs of its nodes.
    pub servers: Vec<String>,
    /// How this process authenticates.
    pub login: Login,
    /// A file with the certificates of the authorities to trust, instead of those of the system.
    pub ca: Option<PathBuf>,
    /// The beginning of all subjects and the names of all streams.
    pub prefix: String,
    /// The upper bounds of the spans in memory.
    pub limits: Limits,
    /// The upper bounds of a stream.
    pub stream: StreamLimits,
    /// Whether NATS writes to disk before it acknowledges.
    pub is_synced: bool,
}

/// What a process needs to take part: it is known only from a database.
#[derive(Clone, Debug)]
pub struct NatsMember {
    /// The slot of this process; none if it reads no spans.
    pub slot: Option<BusSlot>,
    /// The keys under which spans are sealed.
    pub keys: SealKeys,
}

/// The upper bounds of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// The bytes of all messages.
    pub bytes_max: i64,
    /// How long a message is kept.
    pub age_max: Duration,
    /// The number of copies on a cluster; one node has one.
    pub replicas: usize,
    /// The number of streams.
    pub streams: u16,
}

/// How a process authenticates to NATS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// Not at all.
    Anonymous,
    /// By a name and a password.
    User {
        /// The name.
        name: String,
        /// The password.
        password: Secret,
    },
    /// By the seed of an NKey.
    NKey(Secret),
    /// By a file with a JWT and the seed of an NKey.
    Credentials(PathBuf),
}

/// The reason why a bus over NATS cannot be opened.
#[derive(Debug, Error)]
pub enum NatsError {
    /// The file with the credentials cannot be read.
    #[error("the file `{path}` with the credentials for NATS cannot be read: {reason}", path = .path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// NATS cannot be used now, or refuses.
    #[error("NATS at `{servers}` cannot be used: {reason}")]
    Unusable {
        /// The URLs.
        servers: String,
        /// The reason.
        reason: String,
    },
}

impl Faulty for NatsError {
    fn fault(&self) -> Fault {
        match self {
            Self::Credentials { .. } => Fault::Invalid,
            Self::Unusable { .. } => Fault::Upstream,
        }
    }
}

/// A bus that shares spans and hints among processes, over NATS.
#[derive(Debug)]
pub struct Nats {
    options: NatsOptions,
    spans: Spans,
    notices: Arc<Notices>,
    hints: NatsHints,
    /// None until NATS was reached.
    connection: OnceLock<Arc<Connection>>,
    /// None until the process takes part.
    membership: OnceLock<Membership>,
}

/// The part of this process.
#[derive(Debug)]
struct Membership {
    publisher: Arc<Publisher>,
    keys: SealKeys,
    /// Reads its slot, if it has one.
    own: Option<StreamReader>,
    /// Whether NATS answers a process without a reader.
    answers: Arc<AtomicBool>,
    slot: Option<BusSlot>,
    resumed: Mutex<ResumedTraces>,
    tasks: Mutex<JoinSet<()>>,
}

/// The traces of other processes that this one reads.
type ResumedTraces = std::collections::HashMap<TraceId, (StreamReader, AbortHandle)>;

impl Nats {
    /// Creates a bus that refuses all spans until the process takes part.
    pub fn new(options: NatsOptions) -> Self {
        let spans = Spans::new(options.limits, TraceTable::default());
        let (notices, hints) = (Arc::default(), NatsHints::default());
        let (connection, membership) = (OnceLock::new(), OnceLock::new());
        Self { options, spans, notices, hints, connection, membership }
    }

    /// Connects to NATS, within a second, unless it is connected. From then on it connects again by itself.
    pub async fn connect(&self, publisher: [u8; 8]) -> Result<(), NatsError> {
        if self.connection.get().is_some() {
            return Ok(());
        }
        let NatsOptions { prefix, stream, is_synced, .. } = &self.options;
        let client = connect(&self.options).await?;
        let connection = Connection::new(client, prefix.clone(), publisher, (*stream, *is_synced));
        let known = timeout(CONNECT_MAX, connection.know_identity()).await;
        known
            .unwrap_or_else(|_| Err("JetStream does not answer".to_owned()))
            .map_err(|reason| unusable(&self.options, reason))?;
        // Two connections at a time are one: the second one ends here.
        let _first = self.connection.set(Arc::new(connection));
        Ok(())
    }

    /// Takes part, if the process is connected and does not yet.
    pub async fn join(&self, member: NatsMember) {
        let Some(connection) = self.connection.get() else { return };
        if self.membership.get().is_some() {
            return;
        }
        let NatsMember { slot, keys } = member;
        let connection = Arc::clone(connection);
        let spans = self.spans.clone();
        let publisher = Arc::new(Publisher {
            connection: Arc::clone(&connection),
            spans: spans.clone(),
            sealer: Mutex::new(keys.sealer()),
            outbox: Outbox::default(),
            sharing: SharingLog::new(),
            shares: StreamShares::new(&self.options.stream),
            began: Instant::now(),
        });
        let exchange = self.hints.exchange(&connection);
        let mut tasks = JoinSet::new();
        tasks.spawn(exchange);
        tasks.spawn(Arc::clone(&publisher).send_notices());
        tasks.spawn(Arc::clone(&publisher).exchange_usage(keys.clone()));
        let (mut own, answers) = (None, Arc::new(AtomicBool::new(true)));
        if slot.is_none() {
            tasks.spawn(Arc::clone(&connection).watch(Arc::clone(&answers)));
        }
        if let Some(slot) = slot {
            let (scope, opener) = (Scope::Slot(slot), keys.opener());
            let (reader, task, ready) =
                StreamReader::new(scope, &connection, self.memory(), opener);
            tasks.spawn(task.run());
            own = Some(reader);
            wait(ready).await;
        }
        let (resumed, tasks) = (Mutex::default(), Mutex::new(tasks));
        // Two tries to take part at a time are one: the second one ends here.
        let _first =
            self.membership.set(Membership { publisher, keys, own, answers, slot, resumed, tasks });
    }

    /// Returns what identifies the NATS of this process, as it was last seen.
    pub fn identity(&self) -> Option<String> {
        self.connection.get()?.known_identity()
    }

    /// Whether all that this process knows is stored, or was on its way for less than a moment: also while NATS is away, as long as
    /// nothing came.
    pub fn has_shared_all(&self) -> bool {
        let publisher = self.membership.get().map(|it| &it.publisher);
        publisher.is_none_or(|it| it.sharing.is_current() && it.outbox.is_current())
    }

    /// Returns for how long all is stored that this process knows of the trace of a channel, for a run of this project: zero while
    /// something waits; none before the process takes part.
    pub fn shared_for(&self, trace: TraceId, project: &Project) -> Option<Duration> {
        let Publisher { sharing, outbox, .. } = &*self.membership.get()?.publisher;
        // A loss goes from the log to the outbox and back: whatever moves meanwhile is seen at one of them.
        let shared_since = || sharing.shared_since(trace, project);
        let is_waiting = shared_since().is_none() || outbox.concerns(trace, project);
        let since = shared_since().filter(|_| !is_waiting);
        Some(since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    /// Sets the version of the messages that this process writes: one that all processes on the bus read.
    pub fn write_version(&self, version: u8) {
        if let Some(connection) = self.connection.get() {
            connection.set_version(version);
        }
    }

    /// Returns the reader of this process's slot, if the channel has that slot.
    fn own_reader(&self, channel: Channel) -> Option<&StreamReader> {
        self.membership.get().filter(|it| it.slot == Some(channel.slot))?.own.as_ref()
    }

    /// Returns where readers store what they read.
    fn memory(&self) -> (Spans, Arc<Notices>) {
        (self.spans.clone(), Arc::clone(&self.notices))
    }

    /// Adds a notice for the readers of other processes.
    fn tell(&self, notice: Notice) {
        if let Some(membership) = self.membership.get() {
            membership.publisher.outbox.add(notice);
        }
    }

    /// Whether NATS can be reached and delivers spans; false before the process takes part.
    pub fn is_open(&self) -> bool {
        let membership = self.membership.get();
        membership.is_some_and(|it| it.is_delivered() && it.publisher.connection.is_connected())
    }

    /// Returns the number of messages to this process's slot that it has not read.
    pub fn lag(&self) -> u64 {
        let own = self.membership.get().and_then(|it| it.own.as_ref());
        own.map(StreamReader::lag).unwrap_or_default()
    }

    /// Whether NATS writes to disk before it acknowledges.
    pub fn is_synced(&self) -> bool {
        self.options.is_synced
    }

    /// Whether the process takes part.
    pub fn has_joined(&self) -> bool {
        self.membership.get().is_some()
    }

    /// Returns the slot of this process, once it takes part; none if it reads no spans.
    pub fn slot(&self) -> Option<BusSlot> {
        self.membership.get()?.slot
    }
}

impl Membership {
    /// Whether spans that are stored for this process reach it.
    fn is_delivered(&self) -> bool {
        match &self.own {
            Some(own) => own.is_open(),
            None => self.answers.load(Ordering::Relaxed),
        }
    }

    /// Returns the reader that reads a trace; none if nothing is read.
    fn reader(&self, channel: Channel) -> Option<StreamReader> {
        let resumed = self.resumed();
        let reader = resumed.get(&channel.trace).map(|(reader, _)| reader);
        reader.or(self.own.as_ref()).cloned()
    }

    fn resumed(&self) -> MutexGuard<'_, ResumedTraces> {
        self.resumed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a reader that is opened for the first time.
async fn wait(ready: oneshot::Receiver<()>) {
    // Without NATS the reader is opened later, and no marker comes until then.
    let _opened = timeout(CONNECT_MAX, ready).await;
}

async fn connect(options: &NatsOptions) -> Result<async_nats::Client, NatsError> {
    let connect = connect_options(options).await?.connection_timeout(CONNECT_MAX);
    match timeout(CONNECT_MAX, connect.connect(&options.servers)).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => Err(unusable(options, error.to_string())),
        Err(_) => Err(unusable(options, format!("no answer within {CONNECT_MAX:?}"))),
    }
}

fn unusable(options: &NatsOptions, reason: String) -> NatsError {
    NatsError::Unusable { servers: options.servers.join(","), reason }
}

async fn connect_options(options: &NatsOptions) -> Result<ConnectOptions, NatsError> {
    let connect =
        ConnectOptions::new().name("qualitytrace").ping_interval(PING).max_reconnects(None);
    let connect = match &options.login {
        Login::Anonymous => connect,
        Login::User { name, password } => {
            connect.user_and_password(name.clone(), password.expose().to_owned())
        }
        Login::NKey(seed) => connect.nkey(seed.expose().to_owned()),
        Login::Credentials(path) => {
            let read = connect.credentials_file(path).await;
            read.map_err(|reason| NatsError::Credentials { path: path.clone(), reason })?
        }
    };
    Ok(match &options.ca {
        Some(ca) => connect.add_root_certificates(ca.clone()).require_tls(true),
        None => connect,
    })
}

impl Bus for Nats {
    type Subscription = Subscription;

    async fn publish(&self, now: Timestamp, batches: Vec<Batch>) -> Result<(), PublishError> {
        let Some(membership) = self.membership.get() else {
            return Err(PublishError::Away { reason: "this server has no slot yet".to_owned() });
        };
        membership.publisher.publish(now, batches).await
    }

    fn subscribe(&self, channel: Channel, project: &Project) -> Subscription {
        self.spans.subscribe(channel.trace, project)
    }

    fn expect(&self, channel: Channel) {
        if let Some(own) = self.own_reader(channel) {
            self.spans.expect(channel.trace, own.era().number);
        }
    }

    fn state(&self, channel: Channel) -> Option<String> {
        self.own_reader(channel)?.state()
    }

    fn resume(&self, channel: Channel, since: Timestamp, state: Option<&str>) {
        let Some(membership) = self.membership.get() else { return };
        let connection = &membership.publisher.connection;
        let mut resumed = membership.resumed();
        if resumed.contains_key(&channel.trace) {
            return;
        }
        connection.resumed().insert(channel.trace);
        let scope = Scope::Trace(channel, since, state.map(str::to_owned));
        let (reader, task, _) =
            StreamReader::new(scope, connection, self.memory(), membership.keys.opener());
        let mut tasks = membership.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        resumed.insert(channel.trace, (reader, tasks.spawn(task.run())));
    }

    async fn proved(&self, channel: Channel) -> Result<u64, Doubt> {
        let reader = self.membership.get().and_then(|it| it.reader(channel));
        let reader = reader.ok_or(Doubt::NotListened)?;
        reader.proved().await?;
        self.spans.batches(channel.trace, &reader.era())
    }

    fn doubt(&self, channel: Channel) -> Option<Doubt> {
        match self.membership.get().and_then(|it| it.reader(channel)) {
            Some(reader) => self.spans.batches(channel.trace, &reader.era()).err(),
            None => Some(Doubt::NotListened),
        }
    }

    fn lose(&self, now: Timestamp, channel: Channel) {
        // Before the process takes part it has accepted nothing, and no run depends on it.
        if let Some(membership) = self.membership.get() {
            membership.publisher.lose(now, channel);
        }
    }

    fn lose_unread(&self, signal: Signal, projects: Option<&[Project]>) {
        self.notices.lose_unread(signal, projects, 1);
        self.tell(Notice::Unread(signal, projects.map(<[_]>::to_vec), 1));
    }

    fn unread(&self, signal: Signal, project: &Project) -> u64 {
        self.notices.unread(signal, project)
    }

    fn log(&self, channel: Channel) {
        self.notices.log(channel.trace, 1);
        if self.slot() != Some(channel.slot) {
            self.tell(Notice::Log(channel, 1));
        }
    }

    fn logs(&self, channel: Channel) -> u64 {
        self.notices.logs(channel.trace)
    }

    async fn flush(&self) -> Result<(), PublishError> {
        match self.membership.get() {
            Some(membership) => membership.publisher.flush().await,
            None => Ok(()),
        }
    }

    fn forget(&self, channel: Channel) {
        if let Some(membership) = self.membership.get()
            && let Some((_, task)) = membership.resumed().remove(&channel.trace)
        {
            task.abort();
            membership.publisher.connection.resumed().remove(&channel.trace);
        }
        self.spans.forget(channel.trace);
    }

    fn hint(&self, subject: Subject) {
        self.hints.send(subject);
    }

    fn hint_one(&self, subject: Subject) {
        self.hints.send_one(subject);
    }

    fn set_available(&self, is_available: bool) {
        self.hints.set_available(is_available);
    }

    fn hints(&self) -> Hints {
        self.hints.listen()
    }
}

//! The bus of a server: in one process, or over NATS.

use std::{sync::Arc, time::Duration};

use bus::{
    Batch, Bus, Channel, Doubt, Hints, Local, Nats, NatsError, NatsMember, PeerRequests,
    PublishError, SealKeys, Signal, Subject, Subscription,
};
use model::{BusSlot, Key, Project, Timestamp, TraceId, World};
use ring::digest::{Context, SHA256};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// What precedes a key of trace ids where the key of spans in NATS is derived from it.
const PURPOSE: &[u8] = b"qualitytrace spans in NATS";

/// How often the state of a shared bus is checked.
const WATCH: Duration = Duration::from_secs(1);

/// The number of messages that a server may not have read and still be ready: many times what it reads in a second.
const LAG_MAX: u64 = 100_000;

/// The bus of a server.
#[derive(Debug)]
pub(crate) enum SpanBus {
    /// Spans stay in this process.
    Local(Box<Local>),
    /// Servers share spans.
    Shared(Box<Nats>),
}

impl SpanBus {
    /// Connects to a shared bus.
    pub(crate) async fn connect(&self, world: World) -> Result<(), NatsError> {
        match self {
            Self::Local(_) => Ok(()),
            Self::Shared(nats) => nats.connect(world.random()).await,
        }
    }

    /// Takes part in a shared bus, with a slot if this server executes runs, and with keys that all servers on this database have.
    pub(crate) async fn join(&self, slot: Option<BusSlot>, keys: &[Key], world: World) {
        let Self::Shared(nats) = self else { return };
        let mut keys = keys.iter().map(seal_key);
        let first = keys.next().unwrap_or_default();
        let keys = SealKeys::new(first, keys.collect(), world.random());
        nats.join(NatsMember { slot, keys }).await;
        if !nats.is_synced() {
            tracing::warn!(
                "`nats.synced` is not set: where a node of NATS fails, runs conclude nothing from absence, because it may lose what it \
                 has acknowledged; set `sync_interval: always` in NATS, and `nats.synced: true` here"
            );
        }
    }

    /// Sets the version of the messages that this server writes to a shared bus: one that all servers read.
    pub(crate) fn write_version(&self, version: i32) {
        if let Self::Shared(nats) = self {
            nats.write_version(u8::try_from(version).unwrap_or(u8::MAX));
        }
    }

    /// Whether this server has taken part in its bus.
    fn has_joined(&self) -> bool {
        match self {
            Self::Local(_) => true,
            Self::Shared(nats) => nats.has_joined(),
        }
    }

    /// Returns the slot of this server on a shared bus, once it takes part and if it executes runs.
    pub(crate) fn slot(&self) -> Option<BusSlot> {
        match self {
            Self::Local(_) => None,
            Self::Shared(nats) => nats.slot(),
        }
    }

    /// Returns what identifies the bus that servers share, as it was last seen; none if they share none.
    pub(crate) fn identity(&self) -> Option<String> {
        match self {
            Self::Local(_) => None,
            Self::Shared(nats) => nats.identity(),
        }
    }

    /// Returns what identifies the bus over which this server has shared all that it knows; none while something waits.
    pub(crate) fn shared_identity(&self) -> Option<String> {
        match self {
            Self::Local(_) => None,
            Self::Shared(nats) => nats.identity().filter(|_| nats.has_shared_all()),
        }
    }

    /// Returns the bus, and for how long this server has shared all that it knows of a trace over it; none while something waits.
    pub(crate) fn shared_for(
        &self,
        trace: TraceId,
        project: &Project,
    ) -> Option<(String, Duration)> {
        match self {
            Self::Local(_) => None,
            Self::Shared(nats) => nats.identity().zip(nats.shared_for(trace, project)),
        }
    }

    /// Sends a request to all other servers on a shared bus, and returns their answers until these are enough, or the time is over.
    pub(crate) async fn gather(
        &self,
        request: &[u8],
        within: Duration,
        is_enough: impl FnMut(&[Vec<u8>]) -> bool,
    ) -> Vec<Vec<u8>> {
        match self {
            Self::Local(_) => Vec::new(),
            Self::Shared(nats) => nats.gather(request, within, is_enough).await,
        }
    }

    /// Returns the requests of other servers; none before this one takes part in a shared bus.
    pub(crate) async fn requests(&self) -> Option<PeerRequests> {
        match self {
            Self::Local(_) => None,
            Self::Shared(nats) => nats.requests().await,
        }
    }

    /// Whether other servers receive the spans of this one.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Whether a run that begins now would receive its spans.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Local(_) => true,
            Self::Shared(nats) => nats.is_open(),
        }
    }

    /// Returns the number of messages that this server has not read; none on a bus that is not shared.
    pub(crate) fn lag(&self) -> Option<u64> {
        match self {
            Self::Local(_) => None,
            Self::Shared(nats) => Some(nats.lag()),
        }
    }

    /// Returns why it takes no spans now; none if it does.
    pub(crate) fn broken(&self) -> Option<String> {
        match self {
            Self::Local(local) => {
                let error = local.counts().journal_error?;
                local.try_journal();
                Some(format!("the journal of spans cannot be written: {error}"))
            }
            Self::Shared(nats) => match nats.lag() {
                _ if !nats.is_open() => {
                    Some("NATS cannot be reached, or delivers no spans".to_owned())
                }
                0..=LAG_MAX => None,
                lag => Some(format!("{lag} messages in NATS wait to be read by this server")),
            },
        }
    }
}

/// Logs when a shared bus takes no more spans, and when it does again.
pub(crate) async fn watch(bus: Arc<SpanBus>, stop: CancellationToken) {
    let mut is_noted = false;
    while timeout(WATCH, stop.cancelled()).await.is_err() {
        // Until it takes part, the startup reports why not.
        let is_broken = bus.has_joined() && !bus.is_open();
        match (is_broken, std::mem::replace(&mut is_noted, is_broken)) {
            (true, false) => tracing::warn!(
                "NATS cannot be reached, or delivers no spans: spans are refused, and no run begins"
            ),
            (false, true) => tracing::info!("NATS delivers spans again"),
            _ => {}
        }
    }
}

/// Derives the key of spans from a key of trace ids: servers check that they know each other's.
fn seal_key(key: &Key) -> [u8; 32] {
    let mut digest = Context::new(&SHA256);
    digest.update(PURPOSE);
    digest.update(key.expose());
    let mut derived = [0; 32];
    derived.copy_from_slice(digest.finish().as_ref());
    derived
}

impl Bus for SpanBus {
    type Subscription = Subscription;

    async fn publish(&self, now: Timestamp, batches: Vec<Batch>) -> Result<(), PublishError> {
        match self {
            Self::Local(bus) => bus.publish(now, batches).await,
            Self::Shared(bus) => bus.publish(now, batches).await,
        }
    }

    fn subscribe(&self, channel: Channel, project: &Project) -> Subscription {
        match self {
            Self::Local(bus) => bus.subscribe(channel, project),
            Self::Shared(bus) => bus.subscribe(channel, project),
        }
    }

    fn expect(&self, channel: Channel) {
        match self {
            Self::Local(bus) => bus.expect(channel),
            Self::Shared(bus) => bus.expect(channel),
        }
    }

    fn state(&self, channel: Channel) -> Option<String> {
        match self {
            Self::Local(bus) => bus.state(channel),
            Self::Shared(bus) => bus.state(channel),
        }
    }

    fn resume(&self, channel: Channel, since: Timestamp, state: Option<&str>) {
        match self {
            Self::Local(bus) => bus.resume(channel, since, state),
            Self::Shared(bus) => bus.resume(channel, since, state),
        }
    }

    async fn proved(&self, channel: Channel) -> Result<u64, Doubt> {
        match self {
            Self::Local(bus) => bus.proved(channel).await,
            Self::Shared(bus) => bus.proved(channel).await,
        }
    }

    fn doubt(&self, channel: Channel) -> Option<Doubt> {
        match self {
            Self::Local(bus) => bus.doubt(channel),
            Self::Shared(bus) => bus.doubt(channel),
        }
    }

    fn lose(&self, now: Timestamp, channel: Channel) {
        match self {
            Self::Local(bus) => bus.lose(now, channel),
            Self::Shared(bus) => bus.lose(now, channel),
        }
    }

    fn lose_unread(&self, signal: Signal, projects: Option<&[Project]>) {
        match self {
            Self::Local(bus) => bus.lose_unread(signal, projects),
            Self::Shared(bus) => bus.lose_unread(signal, projects),
        }
    }

    fn unread(&self, signal: Signal, project: &Project) -> u64 {
        match self {
            Self::Local(bus) => bus.unread(signal, project),
            Self::Shared(bus) => bus.unread(signal, project),
        }
    }

    fn log(&self, channel: Channel) {
        match self {
            Self::Local(bus) => bus.log(channel),
            Self::Shared(bus) => bus.log(channel),
        }
    }

    fn logs(&self, channel: Channel) -> u64 {
        match self {
            Self::Local(bus) => bus.logs(channel),
            Self::Shared(bus) => bus.logs(channel),
        }
    }

    async fn flush(&self) -> Result<(), PublishError> {
        match self {
            Self::Local(bus) => bus.flush().await,
            Self::Shared(bus) => bus.flush().await,
        }
    }

    fn forget(&self, channel: Channel) {
        match self {
            Self::Local(bus) => bus.forget(channel),
            Self::Shared(bus) => bus.forget(channel),
        }
    }

    fn hint(&self, subject: Subject) {
        match self {
            Self::Local(bus) => bus.hint(subject),
            Self::Shared(bus) => bus.hint(subject),
        }
    }

    fn hint_one(&self, subject: Subject) {
        match self {
            Self::Local(bus) => bus.hint_one(subject),
            Self::Shared(bus) => bus.hint_one(subject),
        }
    }

    fn set_available(&self, is_available: bool) {
        match self {
            Self::Local(bus) => bus.set_available(is_available),
            Self::Shared(bus) => bus.set_available(is_available),
        }
    }

    fn hints(&self) -> Hints {
        match self {
            Self::Local(bus) => bus.hints(),
            Self::Shared(bus) => bus.hints(),
        }
    }
}

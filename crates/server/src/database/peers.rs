//! The servers on one database. Each one knows the others by their rows.
//!
//! If another server received spans during a run and does not share them over the same bus, their absence here proves nothing, and
//! [`Peers::others`] returns those servers. It misses none: a server accepts no span before its row is committed, nor after
//! the row may have expired ([`Peers::is_counted`]); and the rows are read after the trace was settled. Spans that a server
//! accepts after it enters later are too late for the run, on any server.
//!
//! A server enters only if each present server knows the key with which it mints trace ids, and it knows theirs: a server
//! that does not know the key of a span's trace id discards the span as a foreign span.
//!
//! Deliberately absent: the handling of a run that concludes nothing, which is in the runner; and any clock but the
//! database's for what two servers have to agree on. Durations are measured with the server's own clock.

mod others;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use bus::{MESSAGE_VERSION, STREAM_SLOTS};
use db::{BusMember, Db, DbError, Entry, NewServer};
use model::{BusSlot, Key, Progress, World};
use ring::digest;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    config::ServerRoles,
    database::{
        announcements::ProcessId,
        identity::{Identity, hex},
        refusals,
    },
    span_bus::SpanBus,
};
use others::PeerRows;
pub(crate) use others::{Announcement, OtherServers, RunTimes};

/// The interval at which a server renews its row.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a row is valid after a heartbeat.
const COUNTS_FOR: Duration = HEARTBEAT.saturating_mul(2);
/// How long before its row expires a server stops accepting spans, for clocks that run at different speeds.
const MARGIN: Duration = Duration::from_secs(1);
/// The timeout of a heartbeat.
const TRY_MAX: Duration = Duration::from_secs(2);
/// How long to wait before a failed heartbeat is retried.
const RETRY: Duration = Duration::from_millis(500);
/// The number of bytes of a key's hash in its fingerprint.
const FINGERPRINT_BYTES: usize = 8;

/// This server and the others. Clones share the same state.
#[derive(Clone, Debug)]
pub(crate) struct Peers(Arc<PeerState>);

#[derive(Debug)]
struct PeerState {
    process: ProcessId,
    roles: ServerRoles,
    world: World,
    host: String,
    /// The address of its API, which is part of its display name.
    api: OnceLock<SocketAddr>,
    /// When this process began to receive spans.
    began: Instant,
    place: Mutex<OwnRow>,
    /// The bus of this server, and its number of streams; zero if it is not shared.
    bus: (Arc<SpanBus>, u16),
    /// The bus that the row names. Held during a write, so that an older state does not replace a newer one.
    shared: tokio::sync::Mutex<Option<String>>,
    /// The rows of the others at the last read. A caller waits for the read that is in progress.
    read: tokio::sync::Mutex<Option<PeerRows>>,
    /// How many other servers received spans when that was last read.
    ingests: tokio::sync::Mutex<Option<(Instant, usize)>>,
}

/// The row of this server.
#[derive(Debug)]
struct OwnRow {
    id: [u8; 16],
    /// The row as it was written; `None` before that.
    row: Option<NewServer>,
    /// Until when the row is certainly valid, by our own clock.
    counted_until: Option<Instant>,
    /// Why the row could not be written again.
    conflict: Option<String>,
}

impl Peers {
    pub(crate) fn new(
        identity: Identity,
        bus: (Arc<SpanBus>, u16),
        roles: ServerRoles,
        world: World,
    ) -> Self {
        let Identity { id, host } = identity;
        Self(Arc::new(PeerState {
            process: world.random(),
            roles,
            world,
            host,
            api: OnceLock::new(),
            began: Instant::now(),
            place: Mutex::new(OwnRow { id, row: None, counted_until: None, conflict: None }),
            bus,
            shared: tokio::sync::Mutex::default(),
            read: tokio::sync::Mutex::default(),
            ingests: tokio::sync::Mutex::default(),
        }))
    }

    /// Sets the address of this server's API.
    pub(crate) fn listen_on(&self, api: SocketAddr) {
        // It is set once.
        let _known = self.0.api.set(api);
    }

    /// Writes this server's row, so that spans may be accepted; `keys` are those of trace ids, the one that mints first. Returns
    /// its slot, if it shares a bus, or the reason if other servers prevent that.
    pub(crate) async fn enter(
        &self,
        db: &Db,
        keys: &[Key],
    ) -> Result<Result<Option<BusSlot>, String>, DbError> {
        let before = self.place().row.as_ref().and_then(|row| row.bus.as_ref()?.slot);
        let (bus, streams) = &self.0.bus;
        let bus = bus.is_shared().then(|| BusMember {
            // Known when the row is written.
            bus: None,
            is_shared_from_start: self.place().row.is_none(),
            slot: before,
            slots: self
                .0
                .roles
                .worker
                .then(|| (streams.saturating_mul(STREAM_SLOTS), STREAM_SLOTS)),
        });
        let known: Vec<_> = keys.iter().map(fingerprint).collect();
        let row = NewServer {
            id: self.place().id,
            process: self.0.process,
            name: self.name(),
            roles: self.0.roles.names(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            bus_version: MESSAGE_VERSION.into(),
            minting_key: known.first().cloned().unwrap_or_default(),
            known_keys: known,
            bus,
        };
        self.write(db, row).await
    }

    async fn write(
        &self,
        db: &Db,
        mut row: NewServer,
    ) -> Result<Result<Option<BusSlot>, String>, DbError> {
        let began = Instant::now();
        let mut shared = self.0.shared.lock().await;
        let bus = self.0.bus.0.shared_identity();
        if let Some(member) = &mut row.bus {
            member.bus.clone_from(&bus);
        }
        let entered = db.enter_server(&row, COUNTS_FOR).await;
        if let Err(error @ DbError::TooOld { .. }) = &entered {
            self.place().conflict = Some(error.to_string());
        }
        let entry = match entered? {
            Entry::Entered(slot) => Ok(slot),
            Entry::KeyConflict(conflict) => Err(refusals::key_conflict(&conflict)),
            Entry::NoSlot => Err(refusals::no_slot(self.0.bus.1)),
        };
        {
            let mut place = self.place();
            place.conflict = entry.clone().err();
            if let Ok(slot) = entry {
                *shared = bus;
                place.id = row.id;
                place.counted_until = Some(began + COUNTS_FOR - MARGIN);
                if let Some(member) = &mut row.bus {
                    member.slot = slot;
                    member.is_shared_from_start = false;
                }
                place.row = Some(row);
            }
        }
        drop(shared);
        if entry.is_ok() {
            self.agree(db).await?;
        }
        Ok(entry)
    }

    /// Finds out which version of messages all servers read. Until then this server writes the one that it has written so far.
    async fn agree(&self, db: &Db) -> Result<(), DbError> {
        let version = db.agree_bus_version(MESSAGE_VERSION.into()).await?;
        self.0.bus.0.write_version(version);
        Ok(())
    }

    /// Renews the row, once it exists, until the returned set is dropped.
    pub(crate) fn keep_apart(self, db: Db) -> JoinSet<()> {
        let mut keeping = JoinSet::new();
        keeping.spawn(self.keep(db));
        keeping
    }

    /// Renews the row, once it exists. Never returns.
    async fn keep(self, db: Db) {
        loop {
            let row = self.place().row.clone();
            let beaten = async {
                match &row {
                    Some(row) => self.beat(&db, row).await,
                    None => Ok(()),
                }
            };
            let pause = match timeout(TRY_MAX, beaten).await {
                Ok(Ok(())) if row.is_some() => HEARTBEAT,
                Ok(Ok(())) => RETRY,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the server's row could not be renewed; trying again");
                    RETRY
                }
                Err(_) => RETRY,
            };
            sleep(pause).await;
        }
    }

    async fn beat(&self, db: &Db, row: &NewServer) -> Result<(), DbError> {
        let began = Instant::now();
        let mut shared = self.0.shared.lock().await;
        let bus = self.0.bus.0.shared_identity();
        if db.heartbeat(row.id, row.process, bus.as_deref(), COUNTS_FOR).await? {
            *shared = bus;
            self.place().counted_until = Some(began + COUNTS_FOR - MARGIN);
            drop(shared);
            return self.agree(db).await;
        }
        drop(shared);
        // The row expired, for example while the database was unavailable; or another process with a copy of our data directory has
        // it. Both would fight over the row if this one took it back, so from now on it is another server.
        let anew = NewServer { id: self.0.world.random(), ..row.clone() };
        match self.write(db, anew).await? {
            Err(conflict) => tracing::warn!(reason = conflict, "not ready: no spans are accepted"),
            Ok(_) => tracing::warn!(
                "the server's row had run out, or is another's, and was written anew"
            ),
        }
        Ok(())
    }

    /// Whether the others certainly know that this server receives spans.
    pub(crate) fn is_counted(&self) -> bool {
        self.place().counted_until.is_some_and(|until| Instant::now() < until)
    }

    /// Whether the others have refused this server since it entered: its row expired, and they have gone on without it.
    pub(crate) fn is_refused(&self) -> bool {
        self.place().conflict.is_some()
    }

    /// Returns why spans are not accepted though the server has entered once; `None` if they are.
    pub(crate) fn waits_for(&self) -> Option<String> {
        let place = self.place();
        place.row.as_ref()?;
        let is_counted = place.counted_until.is_some_and(|until| Instant::now() < until);
        let stale = "the server's row in the database could not be renewed in time";
        (!is_counted).then(|| place.conflict.clone().unwrap_or_else(|| stale.to_owned()))
    }

    /// Returns from when on other servers matter to a run. A run that was attempted before this worker leased it may be as old
    /// as this process; if it is older, no server has received its spans without a gap.
    pub(crate) fn since(&self, progress: &Progress) -> Instant {
        match progress {
            Progress::New => Instant::now(),
            Progress::Attempted(_) | Progress::Answered(..) => self.0.began,
        }
    }

    /// Whether this server receives spans.
    pub(crate) fn receives(&self) -> bool {
        self.0.roles.ingest
    }

    /// Returns the identity of this process.
    pub(crate) fn process(&self) -> ProcessId {
        self.0.process
    }

    /// Records that this server may know of spans that it cannot share now, before a sender learns that they are refused.
    pub(crate) async fn stop_sharing(&self, db: &Db) {
        let mut shared = self.0.shared.lock().await;
        let row = self.place().row.clone();
        // Once: all refusals until the next heartbeat have the same effect.
        let (Some(row), Some(_)) = (row, &*shared) else { return };
        match timeout(TRY_MAX, db.heartbeat(row.id, row.process, None, COUNTS_FOR)).await {
            Ok(Ok(_)) => *shared = None,
            Ok(Err(_)) | Err(_) => {
                tracing::warn!("other servers could not be notified that spans were refused here");
            }
        }
    }

    /// Removes this server's row. The server MUST NOT accept spans any more.
    pub(crate) async fn leave(&self, db: &Db) {
        if self.place().row.is_none() {
            return;
        }
        match timeout(TRY_MAX, db.leave_server(self.0.process)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the server's row could not be removed; other servers count it for 10 s");
            }
            Err(_) => tracing::warn!(
                "the server's row could not be removed in time; other servers count it for 10 s"
            ),
        }
    }

    /// Returns a server with a row that is valid for this long.
    #[cfg(test)]
    pub(crate) fn counted(counts_for: Duration, bus: Arc<SpanBus>, world: World) -> Self {
        let identity = Identity { id: [0; 16], host: "a".to_owned() };
        let peers = Self::new(identity, (bus, 0), ServerRoles::default(), world);
        peers.place().counted_until = Some(Instant::now() + counts_for);
        peers
    }

    fn name(&self) -> String {
        let host = &self.0.host;
        self.0.api.get().map_or_else(|| host.clone(), |api| format!("{host}:{}", api.port()))
    }

    fn place(&self) -> MutexGuard<'_, OwnRow> {
        self.0.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the fingerprint of a key, which reveals nothing of it: the first digits of its SHA-256.
fn fingerprint(key: &Key) -> String {
    let hash = digest::digest(&digest::SHA256, key.expose());
    hex(hash.as_ref().get(..FINGERPRINT_BYTES).unwrap_or_default())
}

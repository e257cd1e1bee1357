//! The servers on one database, of which each knows the others by their rows.
//!
//! Servers do not share spans yet. So where another one received spans during a run, their absence here proves nothing, and
//! [`Peers::others`] tells who that was. It misses nobody: a server accepts no span before its row is committed, nor once
//! the row may have run out ([`Peers::is_counted`]); and the rows are read after the trace was settled. What a server that
//! enters later accepts has come too late for the run, wherever it had been sent.
//!
//! A server enters only where each of those that are there knows the key it mints trace ids with, and it theirs: spans of a
//! run that reach a server which does not know their id are let go as somebody else's.
//!
//! Deliberately absent: what is done with a run that concludes nothing, which is the runner's; and any clock but the
//! database's for what two servers have to agree on. Spans of time are by our own.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use db::{Db, DbError, KeyConflict, NewServer, OtherServer, Side};
use model::{Key, Progress, World};
use ring::digest;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::identity::{Identity, hex};

/// How often a server renews its row.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a row counts after a heartbeat.
const COUNTS_FOR: Duration = HEARTBEAT.saturating_mul(2);
/// How much earlier than its row runs out a server stops to accept spans, for clocks that do not run alike.
const MARGIN: Duration = Duration::from_secs(1);
/// How long a heartbeat may take.
const TRY_MAX: Duration = Duration::from_secs(2);
/// How long to wait before a heartbeat that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// Other servers that are told of.
const OTHERS_MAX: u32 = 16;
/// By how much the database's clock and ours may differ over the time of a run: a second, and a hundredth of it.
const SLACK: Duration = Duration::from_secs(1);
const SLACK_PART: u32 = 100;
/// What every server does, as its row says it.
const ROLES: [&str; 3] = ["api", "ingest", "worker"];
/// Bytes of a key's hash by which it is named.
const FINGERPRINT_BYTES: usize = 8;

/// This server among the others. A clone is the same.
#[derive(Clone, Debug)]
pub(crate) struct Peers(Arc<PeerState>);

#[derive(Debug)]
struct PeerState {
    process: [u8; 16],
    world: World,
    host: String,
    /// Where its API is, by which people know it.
    api: OnceLock<SocketAddr>,
    /// When this process began to receive anything.
    began: Instant,
    place: Mutex<OwnRow>,
    /// What was last read of the others. Whoever wants to know waits for the reading that is under way.
    read: tokio::sync::Mutex<Option<PeerRows>>,
}

/// Our own row.
#[derive(Debug)]
struct OwnRow {
    id: [u8; 16],
    /// How it was written; none before it was.
    row: Option<NewServer>,
    /// Until when it counts for certain, by our own clock.
    counted_until: Option<Instant>,
    /// Why it could not be written anew.
    conflict: Option<String>,
}

/// The rows of the others at a moment after `began`.
#[derive(Clone, Debug)]
struct PeerRows {
    began: Instant,
    others: Arc<[OtherServer]>,
}

impl Peers {
    pub(crate) fn new(identity: Identity, world: World) -> Self {
        let Identity { id, host } = identity;
        Self(Arc::new(PeerState {
            process: world.random(),
            world,
            host,
            api: OnceLock::new(),
            began: Instant::now(),
            place: Mutex::new(OwnRow { id, row: None, counted_until: None, conflict: None }),
            read: tokio::sync::Mutex::default(),
        }))
    }

    /// Says where the API of this server is.
    pub(crate) fn listen_on(&self, api: SocketAddr) {
        // It listens once.
        let _known = self.0.api.set(api);
    }

    /// Writes this server's row, so that spans may be accepted; `keys` are those of trace ids, the one that mints first. Tells
    /// what is in the way of that where another server is.
    pub(crate) async fn enter(&self, db: &Db, keys: &[Key]) -> Result<Option<String>, DbError> {
        let known: Vec<_> = keys.iter().map(fingerprint).collect();
        let row = NewServer {
            id: self.place().id,
            process: self.0.process,
            name: self.name(),
            roles: ROLES.map(str::to_owned).to_vec(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            minting_key: known.first().cloned().unwrap_or_default(),
            known_keys: known,
        };
        self.write(db, row).await
    }

    async fn write(&self, db: &Db, row: NewServer) -> Result<Option<String>, DbError> {
        let began = Instant::now();
        let conflict = db.enter_server(&row, COUNTS_FOR).await?.map(|it| words(&it));
        let mut place = self.place();
        place.conflict.clone_from(&conflict);
        if conflict.is_none() {
            place.id = row.id;
            place.counted_until = Some(began + COUNTS_FOR - MARGIN);
            place.row = Some(row);
        }
        Ok(conflict)
    }

    /// Renews the row, once there is one, until what it returns is dropped.
    pub(crate) fn keep_apart(self, db: Db) -> JoinSet<()> {
        let mut keeping = JoinSet::new();
        keeping.spawn(self.keep(db));
        keeping
    }

    /// Renews the row, once there is one. Never ends.
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
        if db.heartbeat(row.id, row.process, COUNTS_FOR).await? {
            self.place().counted_until = Some(began + COUNTS_FOR - MARGIN);
            return Ok(());
        }
        // It ran out, as when the database was away; or another process has it, which then has a copy of our data directory.
        // To take it back would start a quarrel, so that from here on this is another server.
        let anew = NewServer { id: self.0.world.random(), ..row.clone() };
        match self.write(db, anew).await? {
            Some(conflict) => tracing::warn!(reason = conflict, "not ready: no spans are accepted"),
            None => tracing::warn!(
                "the server's row had run out, or is another's, and was written anew"
            ),
        }
        Ok(())
    }

    /// Whether the others know for certain that this server receives spans.
    pub(crate) fn is_counted(&self) -> bool {
        self.place().counted_until.is_some_and(|until| Instant::now() < until)
    }

    /// Why spans are not accepted though the server has entered once; none where they are.
    pub(crate) fn waits_for(&self) -> Option<String> {
        let place = self.place();
        place.row.as_ref()?;
        let is_counted = place.counted_until.is_some_and(|until| Instant::now() < until);
        let stale = "the server's row in the database could not be renewed in time";
        (!is_counted).then(|| place.conflict.clone().unwrap_or_else(|| stale.to_owned()))
    }

    /// From when on other servers matter to a run: one that was attempted before it came here may be as old as this process;
    /// where it is older, nobody has listened to it all along.
    pub(crate) fn since(&self, progress: &Progress) -> Instant {
        match progress {
            Progress::New => Instant::now(),
            Progress::Attempted(_) | Progress::Answered(..) => self.0.began,
        }
    }

    /// The other servers that may have received spans since a moment, by name, read after this was called.
    pub(crate) async fn others(&self, db: &Db, since: Instant) -> Result<Vec<String>, DbError> {
        let PeerRows { others, .. } = self.read(db, Instant::now()).await?;
        // After the reading, so that the time that it took is on the safe side.
        let elapsed = since.elapsed();
        let reach = elapsed + elapsed / SLACK_PART + SLACK;
        let were_there = others.iter().filter(|other| other.gone_for <= reach);
        Ok(were_there.map(|other| other.name.clone()).collect())
    }

    /// A reading that began after `asked`. Those who ask while one is under way share the next.
    async fn read(&self, db: &Db, asked: Instant) -> Result<PeerRows, DbError> {
        let mut read = self.0.read.lock().await;
        if let Some(known) = read.as_ref().filter(|known| known.began > asked) {
            return Ok(known.clone());
        }
        let began = Instant::now();
        let others = db.other_servers(self.0.process, OTHERS_MAX).await?.into();
        Ok(read.insert(PeerRows { began, others }).clone())
    }

    /// Says that this server accepts no more spans, which MUST be so.
    pub(crate) async fn leave(&self, db: &Db) {
        match timeout(TRY_MAX, db.leave_server(self.0.process)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the server's row could not be ended; it counts for a while");
            }
            Err(_) => tracing::warn!("the server's row could not be ended in time"),
        }
    }

    /// A server whose row counts for so long.
    #[cfg(test)]
    pub(crate) fn counted(counts_for: Duration, world: World) -> Self {
        let peers = Self::new(Identity { id: [0; 16], host: "a".to_owned() }, world);
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

/// What names a key and gives nothing of it away: the first digits of its SHA-256.
fn fingerprint(key: &Key) -> String {
    let hash = digest::digest(&digest::SHA256, key.expose());
    hex(hash.as_ref().get(..FINGERPRINT_BYTES).unwrap_or_default())
}

fn words(conflict: &KeyConflict) -> String {
    let KeyConflict { server, key, unknown_to } = conflict;
    match unknown_to {
        Side::Present => format!(
            "the key that this server mints trace ids with (fingerprint {key}) is unknown to the server `{server}`, which would \
             take the spans of its runs for somebody else's: add the key to `ids.keys` there, not as the first, before \
             any server mints with it; or end that server"
        ),
        Side::Entering => format!(
            "the key that the server `{server}` mints trace ids with (fingerprint {key}) is not among `ids.keys` here, so that \
             the spans of its runs would be taken for somebody else's: add the key here, not as the first; or end that server"
        ),
    }
}

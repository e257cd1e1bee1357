//! The record on its way: a server starts before its Postgres, and waits for it where it can be seen waiting.
//!
//! To be open, the record is reached, brought to this version's form, has told its key, and has this server's row beside
//! those of others. Deliberately absent: what
//! happens when Postgres goes away afterwards. Then every call fails for as long as it is away, and whoever asked tries
//! again; the pools connect anew by themselves.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use bus::Local;
use db::{Db, DbError};
use model::{Fault, Faulty, Key, KeyRing, World};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Telemetry,
    access::login_cookie::LoginKeys,
    ingest::Ingest,
    interests::Interests,
    peers::Peers,
    provision::{self, ProvisionedDocument},
};

/// How long a try may take: migrations of a large history take their time.
const TRY_MAX: Duration = Duration::from_secs(300);
/// How long the first try is waited for; what goes on then is not in the way of the start.
const FIRST_MAX: Duration = Duration::from_secs(3);
/// How long to wait between tries.
const RETRY: Duration = Duration::from_millis(500);

/// The record on its way. A clone is the same.
#[derive(Clone, Debug)]
pub(crate) struct DbStartup {
    db: Db,
    /// The keys that the configuration has; the record's own verifies what was minted before them.
    ids: Vec<Key>,
    world: World,
    keys: Keys,
    /// The keys of login cookies, which follow from those.
    login_keys: Arc<OnceLock<LoginKeys>>,
    /// Wanted before the keys are known: from then on spans are taken.
    interests: Interests,
    /// Entered before the keys are known, for the same reason.
    peers: Peers,
    /// What the server's own files bring, applied whenever the record is opened.
    provided: Arc<Option<Vec<ProvisionedDocument>>>,
    /// Why the record is not open; none once it is.
    reason: Arc<watch::Sender<Option<String>>>,
    /// What was last told to be broken since.
    broken: Arc<Mutex<Option<String>>>,
}

/// The keys of trace ids, known once the record is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(Arc<OnceLock<KeyRing>>);

impl Keys {
    /// The keys, if the record has told them.
    pub(crate) fn get(&self) -> Option<&KeyRing> {
        self.0.get()
    }

    /// The keys, for those who begin when the record is open.
    pub(crate) fn of_open(&self) -> &KeyRing {
        self.get().expect("no work on a database that is not open")
    }
}

impl From<KeyRing> for Keys {
    fn from(keys: KeyRing) -> Self {
        Self(Arc::new(OnceLock::from(keys)))
    }
}

impl DbStartup {
    /// The record, not open yet.
    pub(crate) fn new(
        db: Db,
        ids: Vec<Key>,
        (interests, peers): (Interests, Peers),
        world: World,
    ) -> Self {
        let reason = watch::Sender::new(Some("the database is being opened".to_owned()));
        let (keys, provided, reason) = (Keys::default(), Arc::default(), Arc::new(reason));
        let login_keys = Arc::default();
        let broken = Arc::default();
        Self { db, ids, world, keys, login_keys, interests, peers, provided, reason, broken }
    }

    /// The same, with what the server's own files bring.
    pub(crate) fn with(self, provided: Option<Vec<ProvisionedDocument>>) -> Self {
        Self { provided: Arc::new(provided), ..self }
    }

    pub(crate) fn keys(&self) -> Keys {
        self.keys.clone()
    }

    /// The keys of login cookies, once the record is open.
    pub(crate) fn login_keys(&self) -> Option<&LoginKeys> {
        self.login_keys.get()
    }

    /// What takes spans once the record is open.
    pub(crate) fn ingest(&self, bus: Arc<Local>) -> Ingest {
        let (unread, logs) = (Arc::default(), Arc::default());
        let (keys, interests, peers) = (self.keys(), self.interests.clone(), self.peers.clone());
        Ingest { bus, keys, interests, peers, world: self.world, unread, logs }
    }

    /// Why the record is not open; none once it is.
    pub(crate) fn waits_for(&self) -> Option<String> {
        self.reason.borrow().clone()
    }

    /// Why the server is not ready: that the record is not open, or that its row in there does not count.
    pub(crate) fn unready_reason(&self) -> Option<String> {
        self.waits_for().or_else(|| self.peers.waits_for())
    }

    /// Says in the log what is broken, once, and that it is not any more.
    pub(crate) fn tell(&self, broken: Option<&str>, telemetry: &Telemetry) {
        let mut told = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        match (told.as_deref(), broken) {
            (Some(_), None) => tracing::info!("ready again"),
            (told, Some(why)) if told != Some(why) => tracing::warn!(why, "not ready"),
            _ => return,
        }
        telemetry.tell_ready(broken);
        *told = broken.map(str::to_owned);
    }

    /// Waits until the record is open.
    pub(crate) async fn opened(self) {
        let mut reason = self.reason.subscribe();
        // An error would mean that the sender is gone, which this holds.
        let _open = reason.wait_for(Option::is_none).await;
    }

    /// Tries once, for a moment: with a Postgres that is there the server is ready when it has started, and with one that
    /// refuses it does not start.
    pub(crate) async fn first(self) -> Result<(), DbError> {
        match timeout(FIRST_MAX, self.open()).await {
            Ok(Err(error)) if error.fault().is_transient() => self.wait_for(&error.to_string()),
            Ok(Ok(Some(conflict))) => self.wait_for(&conflict),
            Ok(done) => return done.map(drop),
            Err(_) => {}
        }
        Ok(())
    }

    /// Tries until the record is open, then goes on with what needs it. Ends early where waiting cannot help.
    pub(crate) async fn then(self, work: impl Future<Output = ()>, stop: CancellationToken) {
        let insist = async {
            while self.waits_for().is_some() {
                match timeout(TRY_MAX, self.open()).await {
                    Ok(Ok(Some(conflict))) => self.wait_for(&conflict),
                    Ok(Ok(None)) => {
                        tracing::info!("ready: the database is there");
                        return true;
                    }
                    Ok(Err(error)) => {
                        self.wait_for(&error.to_string());
                        if !may_pass(&error) {
                            return false;
                        }
                    }
                    Err(_) => self.wait_for("the database did not answer in time"),
                }
                sleep(RETRY).await;
            }
            true
        };
        tokio::select! {
            is_open = insist => if is_open {
                work.await;
            },
            () = stop.cancelled() => {}
        }
    }

    /// Tries once; tells what is in the way where that is another server.
    async fn open(&self) -> Result<Option<String>, DbError> {
        self.db.greet().await?;
        self.db.migrate().await?;
        // Before the first run is accepted: what is written before its month has a table stays outside of it.
        self.db.upkeep(self.world.now(), db::Keep::default()).await?;
        let stored = self.db.id_key(Key::from_bytes(self.world.random())).await?;
        let ids: Vec<Key> = self.ids.iter().copied().chain([stored]).collect();
        let conflict = self.peers.enter(&self.db, &ids).await?;
        if conflict.is_some() {
            return Ok(conflict);
        }
        if let Some(provided) = &*self.provided {
            provision::apply(&self.db, provided.clone(), self.world.now()).await?;
        }
        self.login_keys.get_or_init(|| LoginKeys::of(&ids));
        let mut ids = ids.into_iter();
        let first = ids.next().unwrap_or(stored);
        let keys = KeyRing::new(first, ids.collect());
        self.interests.resume(&self.db, &keys).await?;
        // A second opening finds the same keys.
        self.keys.0.get_or_init(|| keys);
        self.reason.send_replace(None);
        Ok(None)
    }

    fn wait_for(&self, why: &str) {
        let told = self.reason.send_replace(Some(why.to_owned()));
        // Said once, and again when it changes.
        if told.as_deref() != Some(why) {
            tracing::warn!(reason = why, "not ready; trying again");
        }
    }
}

/// Whether waiting may help. A Postgres that comes up may still be given its roles and databases.
fn may_pass(error: &DbError) -> bool {
    let fault = error.fault();
    fault.is_transient() || matches!(fault, Fault::Denied | Fault::Missing)
}

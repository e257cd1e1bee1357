//! Database startup: a server starts before its Postgres is available, and reports that it waits for it.
//!
//! The database is open once it is connected and migrated, the key of trace ids is read, and this server's row is beside those
//! of the others. Deliberately absent: the handling of
//! a Postgres that becomes unavailable afterwards. Then every call fails for as long as that lasts, and its caller retries;
//! the pools reconnect by themselves.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use db::{Db, DbError, PartitionPeriod};
use model::{Fault, Faulty, Key, KeyRing, Secret, World};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    access::{self, login_cookie::LoginKeys},
    database::{
        keys::Keys,
        peers::Peers,
        provision::{self, ProvisionedDocument},
    },
    ingest::{Ingest, interests::Interests},
    span_bus::SpanBus,
    telemetry::export::Telemetry,
};

/// The timeout of a try: migrations of a large history take long.
const TRY_MAX: Duration = Duration::from_secs(300);
/// How long the start waits for the first try; after that, the start does not wait for it.
const FIRST_MAX: Duration = Duration::from_secs(3);
/// How long to wait between tries.
const RETRY: Duration = Duration::from_millis(500);

/// What is done with the tables when they are opened.
#[derive(Debug, Default)]
pub(crate) struct TableRules {
    /// The provisioned documents, applied whenever the database is opened.
    pub(crate) provided: Option<Vec<ProvisionedDocument>>,
    /// The period of the tables of runs.
    pub(crate) partition: PartitionPeriod,
    /// Whether missing migrations are applied, and not waited for.
    pub(crate) migrates: bool,
    /// The operator's own token.
    pub(crate) bootstrap_token: Option<Secret>,
}

/// The startup of the database. Clones share the same state.
#[derive(Clone, Debug)]
pub(crate) struct DbStartup {
    db: Db,
    /// The keys of the configuration; the key in the database verifies the ids that were minted before them.
    ids: Vec<Key>,
    world: World,
    keys: Keys,
    /// The keys of login cookies, which are derived from those.
    login_keys: Arc<OnceLock<LoginKeys>>,
    /// Registered before the keys are known: from then on spans are accepted.
    interests: Interests,
    /// Entered before the keys are known, for the same reason.
    peers: Peers,
    /// Joined before the keys are known, for the same reason.
    bus: Arc<SpanBus>,
    rules: Arc<TableRules>,
    /// Why the database is not open; `None` once it is.
    reason: Arc<watch::Sender<Option<String>>>,
    /// The last failure that was logged since the database was opened.
    broken: Arc<Mutex<Option<String>>>,
}

impl DbStartup {
    /// Returns a startup that is not open yet.
    pub(crate) fn new(
        db: Db,
        ids: Vec<Key>,
        (interests, peers, bus): (Interests, Peers, Arc<SpanBus>),
        world: World,
    ) -> Self {
        let reason = watch::Sender::new(Some("the database is being opened".to_owned()));
        let (keys, rules, reason) = (Keys::default(), Arc::default(), Arc::new(reason));
        let login_keys = Arc::default();
        let broken = Arc::default();
        Self { db, ids, world, keys, login_keys, interests, peers, bus, rules, reason, broken }
    }

    /// Sets what is done with the tables.
    pub(crate) fn with(self, rules: TableRules) -> Self {
        Self { rules: Arc::new(rules), ..self }
    }

    pub(crate) fn keys(&self) -> Keys {
        self.keys.clone()
    }

    /// The keys of login cookies, once the database is open.
    pub(crate) fn login_keys(&self) -> Option<&LoginKeys> {
        self.login_keys.get()
    }

    /// Returns the sink that accepts spans once the database is open.
    pub(crate) fn ingest(&self) -> Ingest {
        let bus = Arc::clone(&self.bus);
        let (keys, interests, peers) = (self.keys(), self.interests.clone(), self.peers.clone());
        let db = Some(self.db.clone());
        Ingest { bus, keys, interests, peers, db, world: self.world }
    }

    /// Returns why the database is not open; `None` once it is.
    pub(crate) fn waits_for(&self) -> Option<String> {
        self.reason.borrow().clone()
    }

    /// Returns why the server is not ready: the database is not open, or its row there is not valid.
    pub(crate) fn unready_reason(&self) -> Option<String> {
        self.waits_for().or_else(|| self.peers.waits_for())
    }

    /// Logs a failure once, and its end.
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

    /// Waits until the database is open.
    pub(crate) async fn opened(self) {
        let mut reason = self.reason.subscribe();
        // An error would mean that the sender is dropped, but `self` holds it.
        let _open = reason.wait_for(Option::is_none).await;
    }

    /// Tries once, for a short time: if Postgres is available, the server is ready when it has started, and if Postgres
    /// refuses, the server does not start.
    pub(crate) async fn first(self) -> Result<(), DbError> {
        match timeout(FIRST_MAX, self.open()).await {
            Ok(Err(error)) if error.fault().is_transient() => self.wait_for(&error.to_string()),
            Ok(Ok(Some(conflict))) => self.wait_for(&conflict),
            Ok(done) => return done.map(drop),
            Err(_) => {}
        }
        Ok(())
    }

    /// Retries until the database is open, then runs the work that needs it. Returns early if waiting cannot help.
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

    /// Tries once; returns the conflict if another server prevents it.
    async fn open(&self) -> Result<Option<String>, DbError> {
        self.db.greet().await?;
        let rules = &*self.rules;
        if rules.migrates {
            self.db.migrate().await?;
        } else if let Some(missing) = self.db.missing_migrations().await? {
            let what = "`server.migrate` is false: run `qualitytrace migrate` with this version";
            return Ok(Some(format!("the tables of the database lack {missing}, and {what}")));
        }
        // Before the first run is accepted: a row that is written before its period has a partition stays outside of it.
        let keep = db::Keep { partition: rules.partition, ..db::Keep::default() };
        self.db.upkeep(self.world.now(), keep).await?;
        let stored = self.db.id_key(Key::from_bytes(self.world.random())).await?;
        let ids: Vec<Key> = self.ids.iter().copied().chain([stored]).collect();
        if let Err(unusable) = self.bus.connect(self.world).await {
            return Ok(Some(unusable.to_string()));
        }
        let slot = match self.peers.enter(&self.db, &ids).await? {
            Ok(slot) => slot,
            Err(conflict) => return Ok(Some(conflict)),
        };
        self.bus.join(slot, &ids, self.world).await;
        let token = rules.bootstrap_token.as_ref();
        access::bootstrap::keep_token(&self.db, token, self.world).await?;
        if let Some(provided) = &rules.provided {
            provision::apply(&self.db, provided.clone(), self.world.now()).await?;
        }
        self.login_keys.get_or_init(|| LoginKeys::of(&ids));
        let mut ids = ids.into_iter();
        let first = ids.next().unwrap_or(stored);
        let keys = KeyRing::new(first, ids.collect());
        self.interests.resume(&self.db, &keys, self.bus.is_shared()).await?;
        // A second startup finds the same keys.
        self.keys.set(keys);
        self.reason.send_replace(None);
        Ok(None)
    }

    fn wait_for(&self, why: &str) {
        let told = self.reason.send_replace(Some(why.to_owned()));
        // Logged once, and again when the reason changes.
        if told.as_deref() != Some(why) {
            tracing::warn!(reason = why, "not ready; trying again");
        }
    }
}

/// Whether waiting may help. The roles and databases of a Postgres that is starting may still be created.
fn may_pass(error: &DbError) -> bool {
    let fault = error.fault();
    fault.is_transient() || matches!(fault, Fault::Denied | Fault::Missing)
}

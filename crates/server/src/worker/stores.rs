//! The trace stores that a run queries: those that its test names, else the default of its project.
//!
//! Their documents are those that are stored now, and only an admin can change one. A document sees the variables of the run as
//! `${var:…}` and `${env:…}`, and nothing of this process: no variable of its environment, no file.

use std::sync::{Arc, Mutex, PoisonError};

use db::{Db, DbError};
use drivers::store::{InvalidStore, ProbeStep, StoreClient, StoreDialer};
use lang::{Document, Plan, StoreInputs, TraceStore, Vars};
use model::{DocumentKind, Fault, Faulty, Project, StoreConfig, TestId, Timestamp, TraceId};
use source::Text;
use thiserror::Error;

use crate::telemetry::{call::Call, calls::Watch, traceparent::TraceParent};

/// The maximum number of stores of a project that are searched for the default, or for a name.
const STORES_MAX: u32 = 100;

/// The maximum number of stores of one test: each may hold an answer in memory.
const OF_TEST_MAX: usize = 4;

/// The maximum number of stores with open connections; the one that was opened first is closed for the next.
const OPEN_MAX: usize = 256;

/// The stores that runs of this process have queried.
#[derive(Debug)]
pub(crate) struct StoreSet {
    dialer: StoreDialer,
    open: Mutex<Vec<OpenStore>>,
}

/// A store with its connections, and the limit of its queries: one for each project, so that none waits for another.
#[derive(Debug)]
struct OpenStore {
    project: Project,
    config: StoreConfig,
    client: Arc<StoreClient>,
}

/// Why the stores of a run cannot be queried.
#[derive(Debug, Error)]
pub(crate) enum StoresError {
    #[error("there is no trace store `{0}`, which the test names: apply it first")]
    Missing(String),
    #[error("the trace store `{store}`: {reason}")]
    Document { store: String, reason: String },
    #[error("the test names {0} trace stores: a server queries at most {OF_TEST_MAX} for one")]
    TooMany(usize),
    #[error("the trace stores `{0}` and `{1}` both are the default: let one of them be it")]
    Defaults(String, String),
    #[error(transparent)]
    Invalid(#[from] InvalidStore),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Faulty for StoresError {
    fn fault(&self) -> Fault {
        match self {
            Self::Missing(_) | Self::Defaults(..) => Fault::Conflict,
            Self::Document { .. } | Self::TooMany(_) => Fault::Invalid,
            Self::Invalid(error) => error.fault(),
            Self::Db(error) => error.fault(),
        }
    }
}

/// The variables of a run.
struct Inputs<'a>(&'a Vars);

impl StoreInputs for Inputs<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        self.0.variable(name)
    }

    fn environment(&self, name: &str) -> Option<&str> {
        self.0.environment(name)
    }

    fn file(&self, path: &str) -> Result<String, String> {
        Err(format!("`{path}` is a file, which a server does not read for a document"))
    }
}

/// Where the documents of a project are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreDocuments<'a> {
    pub(crate) db: &'a Db,
    pub(crate) project: &'a Project,
    /// The database queries are children of this span.
    pub(crate) watch: (&'a Watch, TraceParent),
}

impl StoreDocuments<'_> {
    /// Returns the stores that a test queries.
    async fn of(self, plan: &Plan) -> Result<Vec<TraceStore>, StoresError> {
        if plan.stores().is_empty() {
            let default = self.default().await?;
            return Ok(default.into_iter().filter(TraceStore::can_be_queried).collect());
        }
        if plan.stores().len() > OF_TEST_MAX {
            return Err(StoresError::TooMany(plan.stores().len()));
        }
        let mut stores = Vec::new();
        for name in plan.stores() {
            let missing = || StoresError::Missing(name.clone());
            stores.push(self.named(name).await?.ok_or_else(missing)?);
        }
        stores.retain(TraceStore::is_queried);
        Ok(stores)
    }

    /// Returns the store of this id, else of this name.
    pub(crate) async fn named(self, name: &str) -> Result<Option<TraceStore>, StoresError> {
        if let Ok(id) = name.parse()
            && let Some(store) = self.read(&id).await?
        {
            return Ok(Some(store));
        }
        let listed = self.list().await?;
        match listed.into_iter().find(|(_, listed)| listed == name) {
            Some((id, _)) => self.read(&id).await,
            None => Ok(None),
        }
    }

    async fn default(self) -> Result<Option<TraceStore>, StoresError> {
        let mut default: Option<TraceStore> = None;
        for (id, _) in self.list().await? {
            let Some(store) = self.read(&id).await?.filter(|store| store.is_default) else {
                continue;
            };
            if let Some(other) = &default {
                let names = [other, &store].map(|store| store.key().to_owned());
                let [one, other] = names;
                return Err(StoresError::Defaults(one, other));
            }
            default = Some(store);
        }
        Ok(default)
    }

    async fn list(self) -> Result<Vec<(TestId, String)>, StoresError> {
        let (watch, within) = self.watch;
        let listed = self.db.documents(self.project, DocumentKind::TraceStore, None, STORES_MAX);
        let listed = watch.db(within, Call("SELECT", "documents"), listed).await?;
        Ok(listed.into_iter().map(|listed| (listed.id, listed.name)).collect())
    }

    async fn read(self, id: &TestId) -> Result<Option<TraceStore>, StoresError> {
        let (watch, within) = self.watch;
        let stored = self.db.document(self.project, DocumentKind::TraceStore, id, None);
        let stored = watch.db(within, Call("SELECT", "documents"), stored).await?;
        let Some(stored) = stored else { return Ok(None) };
        let (documents, _) = lang::read(&Text::new(&stored.file, &stored.document));
        let store = documents.into_iter().find_map(|document| match document {
            Document::TraceStore(store) => Some(*store),
            _ => None,
        });
        let reason = || "as it is stored it cannot be read any more; apply it again".to_owned();
        let invalid = || StoresError::Document { store: id.to_string(), reason: reason() };
        store.map(Some).ok_or_else(invalid)
    }
}

impl StoreSet {
    pub(crate) fn new(dialer: StoreDialer) -> Self {
        Self { dialer, open: Mutex::default() }
    }

    /// Returns the stores that a test queries, with the variables of its run.
    pub(super) async fn of(
        &self,
        plan: &Plan,
        documents: StoreDocuments<'_>,
        vars: &Vars,
    ) -> Result<Vec<Arc<StoreClient>>, StoresError> {
        let mut clients: Vec<Arc<StoreClient>> = Vec::new();
        for store in documents.of(plan).await? {
            let client = self.client(documents.project, config(&store, vars)?)?;
            // A store that is named twice is queried once.
            if !clients.iter().any(|known| Arc::ptr_eq(known, &client)) {
                clients.push(client);
            }
        }
        Ok(clients)
    }

    /// Tries out a store, step by step.
    pub(crate) async fn probe(
        &self,
        store: &TraceStore,
        vars: &Vars,
        (unknown, now): (TraceId, Timestamp),
    ) -> Result<Vec<ProbeStep>, StoresError> {
        Ok(self.dialer.probe(&config(store, vars)?, unknown, now).await)
    }

    fn client(
        &self,
        project: &Project,
        config: StoreConfig,
    ) -> Result<Arc<StoreClient>, StoresError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &&OpenStore| it.project == *project && it.config == config;
        if let Some(known) = open.iter().find(is_it) {
            return Ok(Arc::clone(&known.client));
        }
        if open.len() == OPEN_MAX {
            open.remove(0);
        }
        let client = Arc::new(self.dialer.open(&config)?);
        let store = OpenStore { project: project.clone(), config, client: Arc::clone(&client) };
        open.push(store);
        Ok(client)
    }
}

fn config(store: &TraceStore, vars: &Vars) -> Result<StoreConfig, StoresError> {
    let invalid = |reason| StoresError::Document { store: store.key().to_owned(), reason };
    store.config(&Inputs(vars)).map_err(invalid)
}

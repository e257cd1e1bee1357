//! Opens the stores that documents configure.

use std::sync::Arc;

use model::{ErrorCode, Fault, Faulty, StoreConfig};
use net::{Egress, Networks, Proxies};
use thiserror::Error;

use super::{
    QueryLimit, Store, StoreClient, StoreProfile, clickhouse, connection::StoreConnection, jaeger,
    search, tempo, zipkin,
};
use crate::trust::Trust;

/// The maximum number of queries of one store at a time, and in a second, over all runs.
const CONCURRENT_MAX: usize = 8;
const PER_SECOND_MAX: u32 = 50;

/// The maximum bytes of an answer, unless the caller sets another: the largest trace that a local run may keep, in JSON.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A type of store.
struct StoreKind {
    /// Its type in documents.
    kind: &'static str,
    profile: &'static StoreProfile,
    open: fn(StoreConnection, &StoreConfig) -> Box<dyn Store>,
}

/// The stores that can be queried.
const STORES: &[StoreKind] = &[
    StoreKind {
        kind: "jaeger",
        profile: &jaeger::PROFILE,
        open: |connection, config| jaeger::open(connection, config.is_grpc),
    },
    StoreKind {
        kind: "tempo",
        profile: &tempo::PROFILE,
        open: |connection, _| tempo::open(connection),
    },
    StoreKind {
        kind: "opensearch",
        profile: &search::OPENSEARCH,
        open: |connection, config| search::open_opensearch(connection, config.index.as_deref()),
    },
    StoreKind {
        kind: "elasticsearch",
        profile: &search::ELASTICSEARCH,
        open: |connection, config| search::open_elasticsearch(connection, config.index.as_deref()),
    },
    StoreKind {
        kind: "clickhouse",
        profile: &clickhouse::PROFILE,
        open: |connection, config| clickhouse::open(connection, config.index.as_deref()),
    },
    StoreKind {
        kind: "zipkin",
        profile: &zipkin::PROFILE,
        open: |connection, _| zipkin::open(connection),
    },
];

/// Returns the types of stores that can be queried, each with its profile.
pub fn profiles() -> impl Iterator<Item = (&'static str, &'static StoreProfile)> {
    STORES.iter().map(|store| (store.kind, store.profile))
}

/// Opens stores, all with the proxies and the network rules of one environment.
#[derive(Debug)]
pub struct StoreDialer {
    trust: Trust,
    proxies: Arc<Proxies>,
    networks: Option<Arc<Networks>>,
    answer_bytes_max: usize,
}

/// Why a store cannot be queried as it is configured.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the trace store `{store}` cannot be queried: {reason}")]
pub struct InvalidStore {
    /// The name of the store.
    pub store: String,
    /// The reason.
    pub reason: String,
}

impl Faulty for InvalidStore {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }

    fn code(&self) -> ErrorCode {
        ErrorCode::StoreInvalid
    }
}

impl StoreDialer {
    /// Creates a dialer. Without network rules it reaches all that this machine reaches.
    pub fn new(environment: &[(String, String)], networks: Option<Networks>) -> Self {
        Self {
            trust: Trust::new(environment),
            proxies: Arc::new(Proxies::new(environment)),
            networks: networks.map(Arc::new),
            answer_bytes_max: ANSWER_BYTES_MAX,
        }
    }

    /// Sets the maximum bytes of an answer, and of all parts of one.
    #[must_use]
    pub fn with_answers_up_to(self, bytes: usize) -> Self {
        Self { answer_bytes_max: bytes, ..self }
    }

    /// Opens a store. No connection is made yet.
    pub fn open(&self, config: &StoreConfig) -> Result<StoreClient, InvalidStore> {
        let store = (kind(config)?.open)(self.connection(config)?, config);
        let limit = QueryLimit::new(CONCURRENT_MAX, PER_SECOND_MAX);
        Ok(StoreClient { name: config.name.clone(), declared_lag: config.lag, store, limit })
    }

    /// Returns the connections to a store, none of which is made yet.
    pub(super) fn connection(&self, config: &StoreConfig) -> Result<StoreConnection, InvalidStore> {
        kind(config)?;
        let tls = self.trust.client(&config.tls).map_err(|reason| invalid(config, reason))?;
        let egress = Egress {
            proxies: Some((Arc::clone(&self.proxies), self.trust.to_proxy().clone())),
            networks: self.networks.clone(),
        };
        StoreConnection::new(config, (tls, egress), self.answer_bytes_max)
            .map_err(|reason| invalid(config, reason))
    }
}

fn kind(config: &StoreConfig) -> Result<&'static StoreKind, InvalidStore> {
    STORES.iter().find(|store| store.kind == config.kind).ok_or_else(|| {
        let kind = &config.kind;
        invalid(config, format!("a store of type `{kind}` is not queried by this version"))
    })
}

fn invalid(config: &StoreConfig, reason: String) -> InvalidStore {
    InvalidStore { store: config.name.clone(), reason }
}

//! The state that every handler shares.

use std::sync::Arc;

use db::Db;
use drivers::shares::Shares;
use model::{Project, World};
use runner::Pool;
use url::Url;

use super::{backlog::Backlog, liveness::Liveness};
use crate::{
    access::{Access, proxies::Origin},
    config::WebConfig,
    ingest::overview::ReceiverOverview,
    live::{followers::Followers, snapshots::Snapshots},
    shop::keeper::ShopKeeper,
    span_bus::SpanBus,
    startup::DbStartup,
    telemetry::calls::Watch,
    worker::stores::StoreSet,
};

/// The state that every handler shares.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) db: Db,
    /// A second connection pool to the same database, for probes.
    pub(crate) calm_db: Db,
    /// The runtime for all work that may block.
    pub(crate) work: tokio::runtime::Handle,
    pub(crate) bus: Arc<SpanBus>,
    pub(crate) watch: Watch,
    pub(crate) world: World,
    pub(crate) opening: DbStartup,
    /// Authenticates callers.
    pub(crate) access: Arc<Access>,
    /// The runs that wait for a worker.
    pub(crate) backlog: Arc<Backlog>,
    /// Reports whether the server makes progress.
    pub(crate) liveness: Liveness,
    /// Whether this server terminates TLS itself.
    pub(crate) is_tls: bool,
    /// The URL by which browsers reach the server.
    pub(crate) public_url: Option<Url>,
    /// The web page, and the path before all URLs.
    pub(crate) web: WebConfig,
    /// The maximum size of a request body in bytes.
    pub(crate) body_bytes_max: usize,
    /// The followers of active runs.
    pub(crate) followers: Arc<Followers>,
    /// What active runs have of their traces.
    pub(crate) snapshots: Snapshots,
    /// Permits for readers of a trace: each reader may hold tens of megabytes.
    pub(crate) readers: Shares<Project>,
    /// Permits for writers of documents: each writer may make the database compress and log megabytes.
    pub(crate) writers: Shares<Project>,
    /// The thread pool for long computations.
    pub(crate) pool: Pool,
    /// The trace stores that runs query.
    pub(crate) stores: Arc<StoreSet>,
    /// The demo shop of this process.
    pub(crate) shop: ShopKeeper,
    /// What receivers have seen, for a person who connects a system.
    pub(crate) receivers: ReceiverOverview,
    /// The endpoint to which a Collector sends to reach this server.
    pub(crate) otlp: Arc<str>,
}

impl App {
    /// Whether a browser reaches this server over TLS: directly, by its public URL, or according to a trusted proxy.
    pub(crate) fn is_reached_by_tls(&self, origin: Origin) -> bool {
        let is_tls = self.is_tls || origin.is_tls;
        is_tls || self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }
}

/// The maximum number of traces read at a time.
pub(crate) const TRACE_READS_MAX: usize = 8;

/// The maximum number of document files written at a time; one for each project.
pub(crate) const DOCUMENT_WRITES_MAX: usize = 2;

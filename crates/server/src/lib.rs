//! The server: API, ingest, workers, configuration, and the wiring of all of them.
//!
//! [`start`] lists the parts of a server. It uses two runtimes. On the work runtime, a full telemetry buffer may block a thread
//! that ends a span. On the control runtime, on which `start` is called, run health, ingest, the renewal of leases, and the
//! shutdown; telemetry is suppressed on its threads, so that they never block.
//! An address that other machines can reach is refused unless callers must authenticate.

mod access;
mod api;
mod authorities;
pub mod config;
mod database;
mod host_name;
mod http;
mod ingest;
mod live;
mod plant;
mod shop;
mod shutdown;
mod span_bus;
mod start_error;
mod startup;
mod subjects;
mod telemetry;
mod ui;
mod worker;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use db::Db;
use drivers::{
    connections,
    receiver::{self, ReceiverStats},
    shares::Shares,
    store::StoreDialer,
    trigger::{self, Triggers},
};
use model::{Key, World};
use runner::Pool;
use tokio::{net::TcpListener, runtime, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use access::{
    bootstrap::{FirstToken, create_token, migrate},
    table::{INGEST as INGEST_ROLES, Need, TABLE as ACCESS},
};
pub use api::{API_VERSION, openapi};
pub use authorities::AuthoritiesError;
pub use database::provision::ProvisionError;
pub use http::tls::TlsError;
pub use ingest::error::IngestError;
#[cfg(feature = "planted")]
pub use plant::plant;
pub use shop::{DemoError, DemoFault, DemoSettings, DemoShop, OpenShop, ShopOpening};
pub use start_error::StartError;
pub use telemetry::{
    catalogue,
    export::{CRATES, Telemetry, describe, host, probe},
    log_context::current_run,
    own_endpoint::{OwnEndpoint, TelemetryError, not_sending},
};
pub use worker::plays::{LeaseCounts, LeaseFault, play as play_lease};

use access::{Access, proxies::TrustedProxies};
use config::{Config, Mode, ServerRoles};
use database::peers::Peers;
use http::{backlog::Backlog, tls::TlsAcceptor};
use ingest::{
    interests::Interests,
    overview::{ReceiverOverview, SenderTerms},
};
use live::{followers::Followers, snapshots::Snapshots};
use shop::keeper::ShopKeeper;
use span_bus::SpanBus;
use startup::{DbStartup, TableRules};
use telemetry::{calls::Watch, own_endpoint::refuse_own_endpoints};
use worker::{
    state::{RunState, Worker},
    stores::StoreSet,
};

/// The minimum number of threads for computations.
const COMPUTE_MIN: usize = 4;

/// A running server.
#[derive(Debug)]
pub struct Handle {
    addresses: config::Listen,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    receiver: receiver::Receiver,
    telemetry: Arc<Telemetry>,
    opening: DbStartup,
    peers: Peers,
    shop: ShopKeeper,
    /// Renews the server's row until spans are no longer accepted.
    keeping: JoinSet<()>,
    dbs: [Db; 2],
}

/// Starts a server. It is ready when this returns, unless Postgres is unavailable: then it waits for it, and logs that.
/// A Collector need not be available.
///
/// Must be called on the control runtime. `telemetry` was started from the same configuration; `work` is the runtime for
/// all work that a full telemetry buffer may block. `demo` is the shop that callers may start, if the program has one.
pub async fn start(
    config: Config,
    telemetry: Arc<Telemetry>,
    world: World,
    work: runtime::Handle,
    demo: Option<DemoShop>,
) -> Result<Handle, StartError> {
    let (tls, spans) = (fits(&config)?, ingest::Settings::of(&config));
    // The provisioned documents are read before anything changes.
    let (otlp, rules) = provided(&config)?;
    let (db, calm_db) = database::pools(&config, world, &work)?;
    let (access, proxies, gate) = access(&config, &calm_db, world)?;
    let (shop, terms) = first_run(&config, demo, &access, (world, &work))?;
    let (triggers, stores, pool) = (strangers(&config, &shop), stores(&config), pool(&work));
    let Config { telemetry: exporters, roles, listen, workers, ids, retention, limits, .. } =
        config;
    let known = (ids.keys, rules);
    let parts = open_ingest(spans, gate, (&db, known), roles, (world, &work)).await?;
    let IngestParts { seen, opening, receiver } = parts;
    let (_, peers, bus) = seen.clone();
    let (listeners, addresses) = listen_on((listen, roles), &receiver, (&exporters, &peers))?;
    work.spawn(opening.clone().first()).await??;
    let keeping = peers.clone().keep_apart(calm_db.clone());
    // The API: connections are accepted here, requests are handled on the work runtime.
    let watch = Watch { telemetry: Arc::clone(&telemetry), world };
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    let snapshots = Snapshots::default();
    let app = http::app::App {
        db: db.clone(),
        calm_db: calm_db.clone(),
        work: work.clone(),
        bus: Arc::clone(&bus),
        watch: watch.clone(),
        world,
        opening: opening.clone(),
        access,
        is_tls: tls.is_some(),
        public_url: config.public_url,
        web: config.web,
        body_bytes_max: limits.body_bytes_max,
        followers: followers(&mut tasks, (&bus, &db), &work, &stop),
        snapshots: snapshots.clone(),
        readers: Shares::new(http::app::TRACE_READS_MAX),
        writers: Shares::new(http::app::DOCUMENT_WRITES_MAX),
        pool: pool.clone(),
        stores: Arc::clone(&stores),
        shop: shop.clone(),
        receivers: receivers(&shop, (terms, addresses), (&peers, receiver.witness())),
        otlp,
        backlog: Backlog::watch(&mut tasks, calm_db.clone(), limits.queued_runs_max, stop.clone()),
        liveness: liveness(&mut tasks, &work, &telemetry, &stop),
    };
    keep_ingest(&mut tasks, (&seen, &receiver), (&calm_db, &watch), (&snapshots, &pool), &stop);
    answer(&mut tasks, (listeners, roles), (tls, proxies), app, &stop);
    // The workers, once the database is open.
    let worker = Worker {
        name: worker_name(world),
        config: workers,
        db: db.clone(),
        calm_db: calm_db.clone(),
        calm: runtime::Handle::current(),
        bus,
        keys: opening.keys(),
        interests: seen.0,
        peers: peers.clone(),
        pool,
        witness: receiver.witness(),
        triggers,
        stores,
        watch,
        snapshots,
        world,
        shared: RunState::default(),
    };
    let working = working(Arc::new(worker), (roles, retention), stop.clone());
    tasks.spawn_on(opening.clone().then(working, stop.clone()), &work);
    let dbs = [db, calm_db];
    Ok(Handle { addresses, stop, tasks, receiver, telemetry, opening, peers, shop, keeping, dbs })
}

/// What receives spans.
struct IngestParts {
    seen: (Interests, Peers, Arc<SpanBus>),
    opening: DbStartup,
    receiver: receiver::Receiver,
}

/// Opens ingest, from the receiver to the bus. The bus replays the journal of the previous process, which also identifies this
/// server. The database is not open yet: migrated, it has the key with which all replicas mint trace ids.
async fn open_ingest(
    spans: ingest::Settings,
    gate: Option<receiver::Gate>,
    (db, (keys, rules)): (&Db, (Vec<Key>, TableRules)),
    roles: ServerRoles,
    (world, work): (World, &runtime::Handle),
) -> Result<IngestParts, StartError> {
    let (bus, identity) = spans.open_bus(world).await?;
    let peers = Peers::new(identity, (Arc::clone(&bus), spans.streams()), roles, world);
    let seen = (Interests::default(), peers, bus);
    let opening = DbStartup::new(db.clone(), keys, seen.clone(), world).with(rules);
    let (settings, ingest) = (spans.receiver(gate, cores(work))?, opening.ingest());
    let receiver = receiver::start(settings, Arc::new(ingest)).await?;
    Ok(IngestParts { seen, opening, receiver })
}

/// Maintains what ingest knows: the bus, the external trace ids that runs wait for, and the metrics of both.
fn keep_ingest(
    tasks: &mut JoinSet<()>,
    (seen, receiver): (&(Interests, Peers, Arc<SpanBus>), &receiver::Receiver),
    (db, watch): (&Db, &Watch),
    (snapshots, pool): (&Snapshots, &Pool),
    stop: &CancellationToken,
) {
    let ((interests, _, bus), stats) = (seen, receiver.witness());
    let observed = (stats.clone(), Arc::clone(bus));
    tasks.spawn(watch.telemetry.watch(observed, db.clone(), watch.world, stop.clone()));
    tasks.spawn(span_bus::watch(Arc::clone(bus), stop.clone()));
    tasks.spawn(interests.clone().keep(db.clone(), bus.is_shared(), stop.clone()));
    let active = (snapshots.clone(), pool.clone());
    tasks.spawn(ingest::announcements::answer(seen.clone(), stats, active, stop.clone()));
}

/// Returns the endpoint to which a Collector sends to reach this server. If the server listens on all addresses, only its
/// operator knows the host name.
fn receiver_name(config: &Config) -> String {
    let address = config.listen.otlp_grpc;
    match address.ip().is_unspecified() {
        true => format!("qualitytrace:{}", address.port()),
        false => address.to_string(),
    }
}

/// Refuses a configuration that cannot work, as far as that can be checked without a start: reads every file that it
/// names.
pub fn validate(config: &Config) -> Result<(), StartError> {
    fits(config)?;
    ::telemetry::validate(&config.telemetry.plan, &config.telemetry.roles(), &host())
        .map_err(TelemetryError::from)?;
    provided(config)?;
    Ok(())
}

/// Refuses a configuration that cannot work before anything changes; returns the TLS acceptor of the API.
fn fits(config: &Config) -> Result<Option<TlsAcceptor>, StartError> {
    if let (Some(address), Mode::Off) = (beyond(config.listen), config.access.mode) {
        return Err(StartError::NotLoopback(address));
    }
    if config.roles.are_split() && config.nats.is_none() {
        return Err(StartError::SplitWithoutBus);
    }
    let (run, age) = (config.workers.timeout, config.nats.as_ref().map(|it| it.limits.age_max));
    if let Some(age) = age.filter(|age| *age <= run) {
        return Err(StartError::SpansExpire { age, run });
    }
    if let (Some(true), Some(reason)) = (config.web.demo, shop::obstacle(config)) {
        return Err(StartError::Demo(reason));
    }
    refuse_own_endpoints(&config.telemetry, config.listen.opened_by(config.roles))?;
    ingest::Settings::of(config).receiver(None, 0)?;
    authorities::check(config)?;
    Ok(config.tls.api.as_ref().map(http::tls::acceptor).transpose()?)
}

/// Returns an address that other machines can reach.
fn beyond(listen: config::Listen) -> Option<SocketAddr> {
    let addresses = [listen.http, listen.otlp_grpc, listen.otlp_http].into_iter();
    let addresses = addresses.chain(listen.probes);
    addresses.filter(|address| !address.ip().is_loopback()).min()
}

/// Returns the authentication of callers, the trusted proxies, and the gate for senders of spans, unless ingest is open.
fn access(
    config: &Config,
    calm_db: &Db,
    world: World,
) -> Result<(Arc<Access>, TrustedProxies, Option<receiver::Gate>), StartError> {
    let access = Arc::new(Access::new(config.access.clone(), &config.limits, world)?);
    let proxies = TrustedProxies::new(&config.trusted_proxies);
    let is_gated = config.access.ingest_required;
    let gate = is_gated.then(|| access::gate(&access, calm_db, proxies.clone()));
    Ok((access, proxies, gate))
}

/// Returns the triggers for untrusted tests: their targets are bounded, and they see no variable of this process's environment.
fn strangers(config: &Config, shop: &ShopKeeper) -> Triggers {
    let listed = trigger::AllowedCommands {
        programs: config.triggers.exec_allowed.iter().map(PathBuf::from).collect(),
        variables: config.triggers.exec_env.clone(),
    };
    Triggers::new(trigger::TriggerConfig {
        limits: trigger::TriggerLimits::default(),
        environment: Vec::new(),
        commands: trigger::Commands::Listed(listed),
        networks: Some(config.triggers.networks.networks(is_own(config)).with_extra(shop.target())),
    })
}

/// Returns the trace stores that runs query: like triggers, they reach only what the operator allows, and see no environment.
fn stores(config: &Config) -> Arc<StoreSet> {
    let networks = config.stores.networks(is_own(config));
    // JSON is about twice as long as the spans in it.
    let dialer = StoreDialer::new(&[], Some(networks));
    Arc::new(StoreSet::new(dialer.with_answers_up_to(2 * config.limits.trace_bytes_max)))
}

/// Starts what passes events of active runs to the clients that follow them.
fn followers(
    tasks: &mut JoinSet<()>,
    (bus, db): (&Arc<SpanBus>, &Db),
    work: &runtime::Handle,
    stop: &CancellationToken,
) -> Arc<Followers> {
    let followers = Followers::new(stop.clone());
    tasks.spawn_on(Arc::clone(&followers).keep(Arc::clone(bus), db.clone()), work);
    followers
}

/// Returns what senders have to know of the running receiver, to which the demo shop sends its spans too.
fn receivers(
    shop: &ShopKeeper,
    (terms, addresses): (SenderTerms, config::Listen),
    (peers, stats): (&Peers, ReceiverStats),
) -> ReceiverOverview {
    shop.send_to(addresses.otlp_grpc);
    ReceiverOverview::new(terms, addresses, (peers.clone(), stats))
}

/// Returns the keeper of the demo shop, which offers none unless the configuration and the program have one; and what senders of
/// spans have to do.
fn first_run(
    config: &Config,
    demo: Option<DemoShop>,
    access: &Arc<Access>,
    (world, work): (World, &runtime::Handle),
) -> Result<(ShopKeeper, SenderTerms), StartError> {
    if config.web.demo == Some(true) && demo.is_none() {
        return Err(StartError::Demo("this program has none"));
    }
    let offered = shop::offered(demo, config, is_own(config));
    let senders = config.access.ingest_required.then(|| Arc::clone(access));
    let keeper = ShopKeeper::new(offered, senders, world, work.clone());
    Ok((keeper, SenderTerms::of(config)))
}

/// Whether only programs on this machine can send requests, and all have one owner.
fn is_own(config: &Config) -> bool {
    config.access.mode == Mode::Off && beyond(config.listen).is_none()
}

/// Returns the endpoint to which a Collector sends to reach this server, and what is done with the tables.
fn provided(config: &Config) -> Result<(Arc<str>, TableRules), StartError> {
    let otlp: Arc<str> = receiver_name(config).into();
    let provided = database::provision::logged(config.provisioning.as_deref(), &otlp)?;
    let rules = TableRules {
        provided,
        partition: config.retention.partition,
        migrates: config.migrate,
        bootstrap_token: config.access.bootstrap_token.clone(),
    };
    Ok((otlp, rules))
}

/// Monitors whether the work runtime makes progress, except while a full telemetry buffer blocks it.
fn liveness(
    tasks: &mut JoinSet<()>,
    work: &runtime::Handle,
    telemetry: &Arc<Telemetry>,
    stop: &CancellationToken,
) -> http::liveness::Liveness {
    let telemetry = Arc::clone(telemetry);
    http::liveness::Liveness::watch(tasks, work, move || telemetry.is_pressed(), stop.clone())
}

fn cores(work: &runtime::Handle) -> usize {
    work.metrics().num_workers()
}

/// Returns the thread pool for computations: it has more threads than processors, since one owner gets half of them. Threads
/// that respond to requests have priority.
fn pool(work: &runtime::Handle) -> Pool {
    Pool::new((2 * cores(work)).max(COMPUTE_MIN)).giving_way()
}

/// Runs all tasks of a worker: runs, suites, and the maintenance of the database.
async fn working(
    worker: Arc<Worker>,
    (roles, retention): (ServerRoles, config::Retention),
    stop: CancellationToken,
) {
    if !roles.worker {
        return stop.cancelled().await;
    }
    let keep =
        db::Keep { runs: retention.runs, traces: retention.traces, partition: retention.partition };
    let upkeep = database::maintenance::upkeep(
        worker.db.clone(),
        (keep, retention.audit),
        worker.world,
        stop.clone(),
    );
    let runs = worker::scheduler::work(Arc::clone(&worker), stop.clone());
    tokio::join!(runs, worker::suites::work(worker, stop), upkeep);
}

/// The HTTP listeners.
struct Listeners {
    api: TcpListener,
    probes: Option<TcpListener>,
}

/// Serves the API, and the probes separately if they have their own port.
fn answer(
    tasks: &mut JoinSet<()>,
    (listeners, roles): (Listeners, ServerRoles),
    (tls, proxies): (Option<TlsAcceptor>, TrustedProxies),
    app: http::app::App,
    stop: &CancellationToken,
) {
    if let Some(listener) = listeners.probes {
        let app = (http::router::probes(api::probes(), app.clone()), proxies.clone());
        tasks.spawn(http::listen::serve(listener, None, app, stop.clone()));
    }
    let mut routes = api::routes(roles);
    if roles.api && app.web.is_on {
        routes.control = routes.control.merge(ui::routes());
        routes.unknown = ui::unknown();
    }
    tasks.spawn(http::listen::serve(
        listeners.api,
        tls,
        (http::router::router(routes, app), proxies),
        stop.clone(),
    ));
}

/// Binds the listeners, and returns them with the actual addresses, to which no exporter may send, and which other servers learn.
fn listen_on(
    (listen, roles): (config::Listen, ServerRoles),
    receiver: &receiver::Receiver,
    (exporters, peers): (&config::TelemetryConfig, &Peers),
) -> Result<(Listeners, config::Listen), StartError> {
    let listen = listen.opened_by(roles);
    let bind = |address, setting| {
        connections::listen(address).map_err(|reason| StartError::Listen {
            setting,
            address,
            reason,
        })
    };
    let api = bind(listen.http, "--http")?;
    let probes = listen.probes.map(|address| bind(address, "server.probePort")).transpose()?;
    let addresses = config::Listen {
        http: api.local_addr().unwrap_or(listen.http),
        // Both ports accept both protocols; there are two for senders that expect OTLP's default ports.
        otlp_grpc: receiver.addresses().first().copied().unwrap_or(listen.otlp_grpc),
        otlp_http: receiver.addresses().last().copied().unwrap_or(listen.otlp_http),
        probes: probes.as_ref().and_then(|it| it.local_addr().ok()),
    };
    // Ports that the system chose are known only now.
    refuse_own_endpoints(exporters, addresses)?;
    peers.listen_on(addresses.http);
    Ok((Listeners { api, probes }, addresses))
}

impl Handle {
    /// The actual addresses that the server listens on, with the ports that the system chose.
    pub fn addresses(&self) -> config::Listen {
        self.addresses
    }

    /// Waits until a part of the server ends unexpectedly, and returns the reason.
    pub async fn ended(&mut self) -> String {
        let ended = tokio::select! {
            ended = self.tasks.join_next() => ended.and_then(Result::err).map(|error| error.to_string()),
            why = self.receiver.ended() => why,
        };
        let ended = ended.or_else(|| self.opening.waits_for());
        ended.unwrap_or_else(|| "a part of the server ended by itself".to_owned())
    }

    /// Returns why the server is not ready; `None` if it is.
    pub fn waits_for(&self) -> Option<String> {
        self.opening.waits_for()
    }

    /// Completes when the server is ready.
    pub fn ready(&self) -> impl Future<Output = ()> + use<> {
        self.opening.clone().opened()
    }
}

fn worker_name(world: World) -> String {
    let tail: String = world.random::<6>().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("worker-{tail}")
}

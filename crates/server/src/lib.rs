//! The server: API, ingest, workers, configuration, and the wiring of all of them.
//!
//! [`start`] reads as the list of what a server is made of. It stands on two runtimes. On the one for work, whoever ends a
//! span may be held by a full buffer. On the calm one, on which `start` is called, run health, ingest, the renewal of
//! leases, and whoever tells the server to stop; its threads are suppressed, so that nothing on it is ever held. Deliberately absent so far: access control, so that any address
//! but loopback is refused.

mod api;
pub mod config;
mod ingest;
mod interests;
mod listen;
mod own_spans;
mod own_telemetry;
mod traceparent;
mod watch;
mod worker;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use bus::Bus;
use db::{Connect, Db, DbError};
use drivers::{
    receiver,
    trigger::{self, Triggers},
};
use model::{Fault, Faulty, Key, KeyRing, World};
use telemetry::Report;
use thiserror::Error;
use tokio::{net::TcpListener, runtime, sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use own_telemetry::{Telemetry, describe, host, probe};

use config::Config;
use watch::Watch;

/// How long requests and runs in flight may take to end.
const SHUTDOWN_MAX: Duration = Duration::from_secs(15);
/// How long what telemetry is queued may take to be sent. What is left then is on disk, for the next start.
const TELEMETRY_MAX: Duration = Duration::from_secs(5);
/// How long tasks that were cut off, and connections, may take to be gone.
const REST_MAX: Duration = Duration::from_secs(5);
/// Connections to the record for work, and for what must not wait behind it.
const POOL_MAX: u32 = 16;
const CALM_POOL_MAX: u32 = 2;

/// A server that runs.
#[derive(Debug)]
pub struct Handle {
    addresses: config::Listen,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    receiver: receiver::Receiver,
    telemetry: Arc<Telemetry>,
    dbs: [Db; 2],
}

/// Why a server cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// An address that others could reach.
    #[error(
        "`{0}` is not a loopback address: the server has no access control yet, so it listens on \
         127.0.0.1 or [::1] only"
    )]
    NotLoopback(SocketAddr),
    /// An exporter that would feed the server's own ingest.
    #[error(
        "`{exporter}` sends to `{endpoint}`, which is this server's own OTLP port: give its `endpoint` the address \
         of your Collector, or move the port with `{port_key}` (or `{port_flag}`)"
    )]
    OwnEndpoint {
        /// The key of the exporter.
        exporter: String,
        /// Where it sends.
        endpoint: String,
        /// The key of the port.
        port_key: &'static str,
        /// The flag that overrules it.
        port_flag: &'static str,
    },
    /// An address that is taken.
    #[error("cannot listen on `{address}`: {reason}; choose another one with `--http`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        reason: io::Error,
    },
    /// The record cannot be reached.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The OTLP receiver cannot start.
    #[error(transparent)]
    Receiver(#[from] receiver::StartError),
    /// An exporter cannot be started.
    #[error(transparent)]
    Telemetry(#[from] telemetry::StartError),
    /// The runtime for work ended early.
    #[error("a part of the server could not be started: {0}")]
    Work(#[from] tokio::task::JoinError),
}

impl Faulty for StartError {
    fn fault(&self) -> Fault {
        match self {
            Self::NotLoopback(_) | Self::OwnEndpoint { .. } => Fault::Invalid,
            Self::Listen { .. } => Fault::Conflict,
            Self::Db(error) => error.fault(),
            Self::Receiver(error) => error.fault(),
            // A folder or a file that the operator named.
            Self::Telemetry(_) => Fault::Invalid,
            Self::Work(_) => Fault::Internal,
        }
    }
}

/// Starts a server. It is ready when this returns; a Collector need not be.
///
/// Called on the calm runtime. `telemetry` has been started from the same configuration; `work` is the runtime for all
/// that a full buffer may hold.
pub async fn start(
    config: Config,
    telemetry: Arc<Telemetry>,
    world: World,
    work: runtime::Handle,
) -> Result<Handle, StartError> {
    let Config { postgres, telemetry: exporters, listen, workers } = config;
    for address in [listen.http, listen.otlp_grpc, listen.otlp_http] {
        if !address.ip().is_loopback() {
            return Err(StartError::NotLoopback(address));
        }
    }
    // The record, brought to this version's form, with the key under which all replicas mint trace ids. A connection is
    // driven by the runtime that made it, so each runtime has its own.
    let (db, keys) = work.spawn(open(connect(&postgres, POOL_MAX), world)).await??;
    let calm_db = Db::connect(&connect(&postgres, CALM_POOL_MAX)).await?;
    // Spans in: receiver to bus.
    let bus = Arc::new(Bus::new(bus::Limits::default()));
    let interests = interests::Interests::default();
    let unread = Arc::new(AtomicU64::default());
    let ingest = ingest::Ingest {
        bus: Arc::clone(&bus),
        keys: keys.clone(),
        interests: interests.clone(),
        world,
        unread: Arc::clone(&unread),
    };
    let receiving = receiver::Config::new(vec![listen.otlp_grpc, listen.otlp_http]);
    let receiver = receiver::start(receiving, Arc::new(ingest)).await?;
    let http = TcpListener::bind(listen.http)
        .await
        .map_err(|reason| StartError::Listen { address: listen.http, reason })?;
    let addresses = config::Listen {
        http: http.local_addr().unwrap_or(listen.http),
        // Both take everything; that there are two is for senders that expect OTLP's usual ports.
        otlp_grpc: receiver.addresses().first().copied().unwrap_or(listen.otlp_grpc),
        otlp_http: receiver.addresses().last().copied().unwrap_or(listen.otlp_http),
    };
    // Ports that were left open are known only now.
    own_telemetry::refuse_own_endpoints(&exporters, addresses)?;
    // The API: heard here, carried out on the runtime for work.
    let watch = Watch { telemetry: Arc::clone(&telemetry), world };
    let app = api::App {
        db: db.clone(),
        calm_db: calm_db.clone(),
        work: work.clone(),
        bus: Arc::clone(&bus),
        watch: watch.clone(),
        world,
        trace_reads: Arc::new(Semaphore::new(api::TRACE_READS_MAX)),
    };
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(listen::serve(http, api::router(app), stop.clone()));
    // The workers.
    let worker = worker::Worker {
        name: worker_name(world),
        config: workers,
        db: db.clone(),
        calm_db: calm_db.clone(),
        calm: runtime::Handle::current(),
        bus,
        keys,
        interests,
        unread,
        // Tests are strangers': no commands, and nothing of this process's environment.
        triggers: Triggers::new(trigger::Config {
            limits: trigger::Limits::default(),
            environment: Vec::new(),
            exec: false,
        }),
        watch,
        world,
    };
    tasks.spawn_on(worker::work(Arc::new(worker), stop.clone()), &work);
    Ok(Handle { addresses, stop, tasks, receiver, telemetry, dbs: [db, calm_db] })
}

/// The record and the key in it.
async fn open(connect: Connect, world: World) -> Result<(Db, KeyRing), StartError> {
    let db = Db::connect(&connect).await?;
    db.migrate().await?;
    let key = db.id_key(Key::from_bytes(world.random())).await?;
    Ok((db, KeyRing::new(key, Vec::new())))
}

impl Handle {
    /// Where the server listens, ports that were left open filled in.
    pub fn addresses(&self) -> config::Listen {
        self.addresses
    }

    /// Waits until a part of the server ends that should not, and tells which way it went.
    pub async fn ended(&mut self) -> String {
        let ended = tokio::select! {
            ended = self.tasks.join_next() => ended.and_then(Result::err).map(|error| error.to_string()),
            why = self.receiver.ended() => why,
        };
        ended.unwrap_or_else(|| "a part of the server ended by itself".to_owned())
    }

    /// Stops taking work, lets runs in flight end, sends the telemetry that is queued, and tells what came of it.
    pub async fn shutdown(mut self) -> Report {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_MAX, ended).await.is_err() {
            tracing::warn!("requests or runs that would not end are cut off");
            // Not waited for yet: one that a full buffer holds is released by the end of telemetry only.
            self.tasks.abort_all();
        }
        self.receiver.shutdown().await;
        let telemetry = self.telemetry;
        // It waits for its senders, and blocks its thread meanwhile.
        let report = tokio::task::spawn_blocking(move || telemetry.shutdown(TELEMETRY_MAX)).await;
        let rest = async {
            while self.tasks.join_next().await.is_some() {}
            for db in &self.dbs {
                db.close().await;
            }
        };
        if tokio::time::timeout(REST_MAX, rest).await.is_err() {
            tracing::warn!("a part of the server would not end");
        }
        report.unwrap_or_else(|error| {
            tracing::error!(%error, "telemetry could not be shut down");
            Report::default()
        })
    }
}

fn connect(postgres: &config::Postgres, pool_max: u32) -> Connect {
    Connect {
        host: postgres.host.clone(),
        port: postgres.port,
        user: postgres.user.clone(),
        password: postgres.password.expose().to_owned(),
        dbname: postgres.dbname.clone(),
        params: postgres.params.clone(),
        pool_max,
        ..Connect::default()
    }
}

fn worker_name(world: World) -> String {
    let tail: String = world.random::<6>().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("worker-{tail}")
}

//! The server: API, ingest, workers, configuration, and the wiring of all of them.
//!
//! [`start`] reads as the list of what a server is made of. Deliberately absent so far: access control, so
//! that any address but loopback is refused.

mod api;
pub mod config;
mod ingest;
mod listen;
mod own_spans;
mod telemetry;
mod traceparent;
mod worker;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bus::Bus;
use db::{Connect, Db, DbError};
use drivers::{receiver, trigger};
use model::{Fault, Faulty, Key, KeyRing, World};
use thiserror::Error;
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use telemetry::ExporterError;

use config::Config;
use telemetry::Telemetry;

/// How long requests and runs in flight may take to end.
const SHUTDOWN_MAX: Duration = Duration::from_secs(15);

/// A server that runs.
#[derive(Debug)]
pub struct Handle {
    addresses: config::Listen,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    receiver: receiver::Receiver,
    telemetry: Arc<Telemetry>,
    db: Db,
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
        "`telemetry.exporters.{name}` sends to `{endpoint}`, which is this server's own OTLP port: give \
         `exporter.collector.endpoint` the address of your Collector, or move the port with `--otlp-grpc`"
    )]
    OwnEndpoint {
        /// The exporter.
        name: String,
        /// Where it sends.
        endpoint: String,
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
    /// The HTTP trigger cannot be made.
    #[error(transparent)]
    Trigger(#[from] trigger::BuildError),
    /// An exporter cannot be made.
    #[error(transparent)]
    Exporter(#[from] ExporterError),
}

impl Faulty for StartError {
    fn fault(&self) -> Fault {
        match self {
            Self::NotLoopback(_) | Self::OwnEndpoint { .. } => Fault::Invalid,
            Self::Listen { .. } => Fault::Conflict,
            Self::Db(error) => error.fault(),
            Self::Receiver(error) => error.fault(),
            Self::Trigger(error) => error.fault(),
            Self::Exporter(error) => error.fault(),
        }
    }
}

/// Starts a server. It is ready when this returns; a Collector need not be.
pub async fn start(config: Config, world: World) -> Result<Handle, StartError> {
    let Config { postgres, telemetry, listen, workers } = config;
    for address in [listen.http, listen.otlp_grpc, listen.otlp_http] {
        if !address.ip().is_loopback() {
            return Err(StartError::NotLoopback(address));
        }
    }
    // The record, brought to this version's form, with the key under which all replicas mint trace ids.
    let db = Db::connect(&connect(&postgres)).await?;
    db.migrate().await?;
    let keys = KeyRing::new(db.id_key(Key::from_bytes(world.random())).await?, Vec::new());
    // Spans in: receiver to bus.
    let bus = Arc::new(Bus::new(bus::Limits::default()));
    let ingest = ingest::Ingest { bus: Arc::clone(&bus), keys: keys.clone(), world };
    let receiving = receiver::Config::new(listen.otlp_grpc, listen.otlp_http);
    let receiver = receiver::start(receiving, Arc::new(ingest)).await?;
    refuse_own_endpoint(&telemetry, &receiver)?;
    // Our own spans out.
    let telemetry = Arc::new(Telemetry::start(&telemetry)?);
    // The API.
    let http = TcpListener::bind(listen.http)
        .await
        .map_err(|reason| StartError::Listen { address: listen.http, reason })?;
    let addresses = config::Listen {
        http: http.local_addr().unwrap_or(listen.http),
        otlp_grpc: receiver.grpc_addr(),
        otlp_http: receiver.http_addr(),
    };
    let app = api::App {
        db: db.clone(),
        bus: Arc::clone(&bus),
        telemetry: Arc::clone(&telemetry),
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
        bus,
        keys,
        http: trigger::Http::new(trigger::Limits::default())?,
        telemetry: Arc::clone(&telemetry),
        world,
    };
    tasks.spawn(worker::work(Arc::new(worker), stop.clone()));
    Ok(Handle { addresses, stop, tasks, receiver, telemetry, db })
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

    /// Stops taking work, lets runs in flight end, sends the telemetry that is queued.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_MAX, ended).await.is_err() {
            tracing::warn!("requests or runs that would not end are cut off");
            self.tasks.shutdown().await;
        }
        self.receiver.shutdown().await;
        let telemetry = self.telemetry;
        // The SDK's shutdown blocks its thread.
        if let Err(error) = tokio::task::spawn_blocking(move || telemetry.shutdown()).await {
            tracing::error!(%error, "telemetry could not be shut down");
        }
        self.db.close().await;
    }
}

fn connect(postgres: &config::Postgres) -> Connect {
    Connect {
        host: postgres.host.clone(),
        port: postgres.port,
        user: postgres.user.clone(),
        password: postgres.password.expose().to_owned(),
        dbname: postgres.dbname.clone(),
        params: postgres.params.clone(),
        pool_max: 16,
        ..Connect::default()
    }
}

/// Telemetry about ingest and export must not come back in as telemetry.
fn refuse_own_endpoint(
    telemetry: &config::Telemetry,
    receiver: &receiver::Receiver,
) -> Result<(), StartError> {
    let own = [receiver.grpc_addr().port(), receiver.http_addr().port()];
    for exporter in telemetry.exporter.iter().chain(&telemetry.application_exporter) {
        let Ok(uri) = exporter.endpoint.parse::<axum::http::Uri>() else { continue };
        // An exporter that names every address of this machine reaches this one.
        let host = uri.host().unwrap_or_default();
        let local = listen::names_loopback(host)
            || listen::address(host).is_some_and(|address| address.is_unspecified());
        let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        if local && own.contains(&uri.port_u16().unwrap_or(default)) {
            return Err(StartError::OwnEndpoint {
                name: exporter.name.clone(),
                endpoint: exporter.endpoint.clone(),
            });
        }
    }
    Ok(())
}

fn worker_name(world: World) -> String {
    let tail: String = world.random::<6>().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("worker-{tail}")
}

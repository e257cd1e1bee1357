//! A small instrumented shop in the binary: for the first minute of a new user, and a system under test for ourselves.
//!
//! Five services speak HTTP and a queue with each other, ask a pretend database, and tell of it by OTLP, each with a
//! resource and a pipeline of its own: in one process, or as five. What is wrong with the shop is switched on by
//! [`Fault`]. Deliberately absent: chance (an order makes the same spans each time), data that outlives the process, and
//! any knowledge of tests and verdicts.

mod database;
mod fault;
mod gateway;
mod orders;
mod payments;
mod pipeline;
mod processes;
mod queue;
mod service;
mod shipping;
mod spans;
mod stock;
mod web;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use model::{Faulty, World};
use telemetry::config::Environment;
use tokio::task::JoinSet;

pub use fault::{Fault, UnknownFault};
use pipeline::Destination;
pub use pipeline::OTLP;
use processes::Process;
pub use processes::{Program, serve_one};
pub use service::Service;
use service::{ANY_PORT, AddressBook, Assignment, RunningService};

/// Where the gateway listens if nobody says otherwise.
pub const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 11634);

/// What a shop is configured with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the gateway listens.
    pub http: SocketAddr,
    /// Where spans go, by gRPC; without it where the environment says, and at last [`OTLP`].
    pub otlp: Option<String>,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
    /// OpenTelemetry's variables.
    pub environment: Environment,
    /// How a service becomes a process of its own; without it all five share this one.
    pub processes: Option<Program>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            http: HTTP,
            otlp: None,
            faults: Vec::new(),
            environment: Environment::default(),
            processes: None,
        }
    }
}

/// A shop that is open.
#[derive(Debug)]
pub struct Handle {
    http: SocketAddr,
    /// As in [`Service::ALL`]: each after those that it calls.
    services: Vec<ServiceHandle>,
}

/// A service, here or apart.
#[derive(Debug)]
enum ServiceHandle {
    Here(RunningService),
    Apart(Process),
}

/// Opens the shop. It answers when this returns, whether or not anyone receives its spans.
pub async fn start(config: Config, world: World) -> Result<Handle, StartError> {
    let Config { http, otlp, faults, environment, processes } = config;
    let destination = Destination { otlp, environment };
    let mut book = AddressBook::empty();
    let mut services = Vec::new();
    for service in Service::ALL {
        let listen = if service == Service::Gateway { http } else { ANY_PORT };
        let (faults, destination) = (faults.clone(), destination.clone());
        let assignment = Assignment { service, listen, book, faults, destination };
        let started = match &processes {
            None => ServiceHandle::Here(RunningService::start(assignment, world).await?),
            Some(program) => ServiceHandle::Apart(Process::start(program, assignment).await?),
        };
        book.note(service, started.address());
        services.push(started);
    }
    let http = book.of(Service::Gateway);
    Ok(Handle { http, services })
}

impl Handle {
    /// Where the gateway listens.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Closes the shop: what is under way is answered and worked off, the last spans are sent if somebody takes them.
    pub async fn shutdown(mut self) {
        // Callers before those they call, and then the last spans of all that are here at once. Without the gateway
        // nobody asks any more, so processes may end together after it.
        for service in self.services.iter_mut().rev() {
            if let ServiceHandle::Here(running) = service {
                running.close().await;
            }
        }
        if let Some(ServiceHandle::Apart(gateway)) = self.services.pop_if(|it| it.is_apart()) {
            gateway.end().await;
        }
        let mut ending = JoinSet::new();
        for service in self.services {
            match service {
                ServiceHandle::Here(running) => ending.spawn(running.end()),
                ServiceHandle::Apart(process) => ending.spawn(process.end()),
            };
        }
        while ending.join_next().await.is_some() {}
    }
}

impl ServiceHandle {
    fn address(&self) -> SocketAddr {
        match self {
            Self::Here(running) => running.address,
            Self::Apart(process) => process.address,
        }
    }

    fn is_apart(&self) -> bool {
        matches!(self, Self::Apart(_))
    }
}

/// Why the shop cannot open.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Somebody listens there.
    #[error("`{0}` is taken, perhaps by another demo: end that one, or name another address")]
    Taken(SocketAddr),
    /// Nobody can listen there.
    #[error("cannot listen on `{0}`: {1}")]
    Listen(SocketAddr, io::Error),
    /// A service that should be a process of its own is none.
    #[error("the process of `{service}` did not start: {why}")]
    Process {
        /// Which one.
        service: &'static str,
        /// What it said, or what the system says.
        why: String,
    },
    /// A process that should be a service was not told what to do; it is started by the shop, not by people.
    #[error("nobody says what to do: {0}")]
    Told(io::Error),
    /// The telemetry is configured in a way that cannot be carried out.
    #[error("the shop's telemetry cannot start: {0}")]
    Telemetry(String),
}

impl Faulty for StartError {
    fn fault(&self) -> model::Fault {
        match self {
            Self::Taken(_) => model::Fault::Conflict,
            Self::Listen(..) | Self::Process { .. } | Self::Told(_) | Self::Telemetry(_) => {
                model::Fault::Invalid
            }
        }
    }
}

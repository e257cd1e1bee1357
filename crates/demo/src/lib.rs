//! A small instrumented shop in the binary: for the first minute of a new user, and as a system under test for ourselves.
//!
//! Five services call each other by HTTP and a queue, query a simulated database, and export their spans by OTLP, each
//! with a resource and a pipeline of its own: in one process, or as five. [`Fault`] switches a fault of the shop on.
//! Deliberately absent: randomness (an order creates the same spans each time), data that outlives the process, and
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

use model::{ErrorCode, Faulty, World};
use telemetry::config::Environment;
use tokio::task::JoinSet;

pub use fault::{Fault, UnknownFault};
use pipeline::Destination;
pub use pipeline::OTLP;
use processes::Process;
pub use processes::{Program, serve_one};
pub use service::Service;
use service::{ANY_PORT, AddressBook, Assignment, RunningService};

/// The default listen address of the gateway.
pub const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 11634);

/// The configuration of a shop.
#[derive(Clone, Debug)]
pub struct Config {
    /// The listen address of the gateway.
    pub http: SocketAddr,
    /// The OTLP endpoint for spans, by gRPC. The default is the endpoint of the environment variables, then [`OTLP`].
    pub otlp: Option<String>,
    /// The faults that are switched on.
    pub faults: Vec<Fault>,
    /// The environment variables of OpenTelemetry.
    pub environment: Environment,
    /// The program that starts a service in a process of its own; without it all five services share this process.
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

/// A running shop.
#[derive(Debug)]
pub struct Handle {
    http: SocketAddr,
    /// In the order of [`Service::ALL`]: each service after those that it calls.
    services: Vec<ServiceHandle>,
}

/// A running service, in this process or in its own.
#[derive(Debug)]
enum ServiceHandle {
    Here(RunningService),
    Apart(Process),
}

/// Starts the shop. It accepts requests when this returns, whether or not a receiver accepts its spans.
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
    /// Returns the listen address of the gateway.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Shuts the shop down: it responds to active requests, processes accepted messages, and exports the last spans if a
    /// receiver accepts them.
    pub async fn shutdown(mut self) {
        // Callers stop before the services that they call; then all services of this process export their last spans
        // concurrently. Without the gateway no requests arrive any more, so the other processes may end concurrently after it.
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

/// The reason why the shop cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another program listens on this address.
    #[error("`{0}` is taken, perhaps by another demo: end that one, or name another address")]
    Taken(SocketAddr),
    /// It is not possible to listen on this address.
    #[error("cannot listen on `{0}`: {1}")]
    Listen(SocketAddr, io::Error),
    /// A service could not be started in a process of its own.
    #[error("the process of `{service}` did not start: {why}")]
    Process {
        /// The service.
        service: &'static str,
        /// The error that the process reported, or the error of the operating system.
        why: String,
    },
    /// The process of a service received no configuration: the shop starts it, not a person.
    #[error("nobody says what to do: {0}")]
    Told(io::Error),
    /// The telemetry configuration is invalid.
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

    fn code(&self) -> ErrorCode {
        match self {
            Self::Taken(_) | Self::Listen(..) => ErrorCode::PortInUse,
            Self::Process { .. } | Self::Told(_) | Self::Telemetry(_) => ErrorCode::Internal,
        }
    }
}

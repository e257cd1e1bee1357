//! Why a server cannot start.

use std::{io, net::SocketAddr, time::Duration};

use db::DbError;
use drivers::receiver;
use model::{ErrorCode, Fault, Faulty};
use thiserror::Error;

use crate::{
    authorities::AuthoritiesError, database::provision::ProvisionError, http::tls::TlsError,
    ingest::error::IngestError, telemetry::own_endpoint::TelemetryError,
};

/// Why a server cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// An address that other machines can reach.
    #[error(
        "`{0}` is not a loopback address, and everyone who reaches the server may do everything: write `server.auth.mode: \
         on`, or listen on 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// Spans would not reach the runs.
    #[error(
        "a server with `ingest` and without `worker`, or the other way, passes spans to other servers, or gets them from others: set \
         `nats.endpoint`, or run both in this process (`server.roles`, `--roles`)"
    )]
    SplitWithoutBus,
    /// Spans of a run would expire before its end.
    #[error(
        "NATS keeps spans for {age:?} (`nats.maxAge`), and a run may take {run:?} (`workers.timeout`): set `nats.maxAge` to more than that"
    )]
    SpansExpire {
        /// How long NATS keeps spans.
        age: Duration,
        /// How long a run may take.
        run: Duration,
    },
    /// The demo shop that the configuration turns on cannot work.
    #[error("`server.demo` is `true`, and the demo shop cannot work here: {0}")]
    Demo(&'static str),
    /// An address that is in use.
    #[error("cannot listen on `{address}`: {reason}; choose another one with `{setting}`")]
    Listen {
        /// The flag or the key that sets the address.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        reason: io::Error,
    },
    /// The database cannot be reached.
    #[error(transparent)]
    Db(#[from] DbError),
    /// Spans cannot be stored or received.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// The API cannot be served over TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Authorities that the configuration names cannot be trusted.
    #[error(transparent)]
    Authorities(#[from] AuthoritiesError),
    /// The OTLP receiver cannot start.
    #[error(transparent)]
    Receiver(#[from] receiver::StartError),
    /// An exporter cannot be started.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// The documents that are applied at every start are invalid.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The work runtime ended early.
    #[error("a part of the server could not be started: {0}")]
    Work(#[from] tokio::task::JoinError),
}

impl Faulty for StartError {
    fn fault(&self) -> Fault {
        match self {
            Self::NotLoopback(_)
            | Self::SplitWithoutBus
            | Self::SpansExpire { .. }
            | Self::Demo(_)
            | Self::Tls(_)
            | Self::Authorities(_) => Fault::Invalid,
            Self::Listen { .. } => Fault::Conflict,
            Self::Db(error) => error.fault(),
            Self::Ingest(error) => error.fault(),
            Self::Receiver(error) => error.fault(),
            Self::Telemetry(error) => error.fault(),
            Self::Provision(error) => error.fault(),
            Self::Work(_) => Fault::Internal,
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::NotLoopback(_) => ErrorCode::AccessOff,
            Self::SplitWithoutBus | Self::SpansExpire { .. } => ErrorCode::NatsRequired,
            Self::Demo(_) => ErrorCode::ConfigurationInvalid,
            Self::Listen { .. } => ErrorCode::PortInUse,
            Self::Tls(_) | Self::Authorities(_) => ErrorCode::CertificateInvalid,
            Self::Db(error) => error.code(),
            Self::Ingest(error) => error.code(),
            Self::Receiver(error) => error.code(),
            Self::Telemetry(error) => error.code(),
            Self::Provision(error) => error.code(),
            Self::Work(_) => ErrorCode::Internal,
        }
    }
}

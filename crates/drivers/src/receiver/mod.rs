//! The OTLP receiver: gRPC on one port, protobuf over HTTP/1.1 on another.
//!
//! Traces go to a [`Sink`]; logs and metrics are accepted, counted and forgotten, so that a sender of all three is
//! content. An export is acknowledged only after the sink has taken it, and a sink that refuses makes the sender keep
//! what it has.
//!
//! Deliberately absent: OTLP in JSON, TLS and authentication (the ports are for loopback until these exist), and any
//! telemetry of its own, which could come back in here.

pub mod conformance;
mod grpc;
mod http;
mod intake;
mod listen;

use std::{
    future::Future,
    io::{self, ErrorKind},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use model::{Fault, Faulty, TraceId};
use otlp::Batch;
use thiserror::Error;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

pub use intake::Counts;
use intake::{Counters, Intake};
use listen::Listening;

/// Where to listen, and how much to take on.
#[derive(Clone, Debug)]
pub struct Config {
    /// For OTLP over gRPC. Port 0 takes a free one.
    pub grpc: SocketAddr,
    /// For OTLP over HTTP. Port 0 takes a free one.
    pub http: SocketAddr,
    /// Bytes of a message, compressed or not.
    pub message_bytes_max: usize,
    /// Connections to each port; further ones wait to be accepted.
    pub connections_max: usize,
    /// Messages in memory at a time; further ones wait to be read.
    pub messages_max: usize,
    /// How long a connection may be without a request, or take over the header of one.
    pub header_timeout: Duration,
    /// How long an export may take, from its header to the answer.
    pub export_timeout: Duration,
    /// How long exports under way may take to end at a shutdown.
    pub shutdown_timeout: Duration,
}

/// Who takes the spans.
///
/// Receivers share one sink and call it from many tasks.
pub trait Sink: Send + Sync + 'static {
    /// Whether someone waits for this trace, or may. It is asked for each span, and MUST NOT block.
    fn wants(&self, trace_id: &TraceId) -> bool;

    /// Takes batches of wanted traces.
    ///
    /// After `Ok` the sender is told that its spans are safe, so the sink MUST hold them all by then, except those of
    /// a trace that is larger than it ever holds: to offer these again would not help, so they MUST be counted as lost
    /// to their trace instead. After [`Refused`] the sender offers all of them again, so a sink MUST cope with what it
    /// has seen already; it MUST have tried every batch, since one trace's want of room is not another's. The future
    /// MAY be dropped before it ends, which counts as refused.
    fn accept(&self, batches: Vec<Batch>) -> impl Future<Output = Result<(), Refused>> + Send;

    /// Spans of this wanted trace cannot be had, now or later: from now on, absence proves nothing.
    ///
    /// It MUST be counted as lost to the trace, as far as there is room to know of the trace at all, and MUST NOT block.
    fn lost(&self, trace_id: &TraceId);
}

/// A sink has no room now.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("spans refused, send them again later: {reason}")]
pub struct Refused {
    /// What is full.
    pub reason: String,
}

/// Why a receiver did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Someone else listens there.
    #[error("`{0}` is taken; stop what listens there, or choose another port")]
    Taken(SocketAddr),
    /// The address is not ours to listen on.
    #[error("cannot listen on `{address}`: {reason}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        reason: io::Error,
    },
}

/// A receiver that listens. Dropped without [`Receiver::shutdown`], it ends at once, with what is under way.
#[derive(Debug)]
pub struct Receiver {
    grpc: SocketAddr,
    http: SocketAddr,
    counters: Arc<Counters>,
    // Dropping it tells the tasks to stop.
    stop: watch::Sender<()>,
    tasks: JoinSet<()>,
}

impl Config {
    /// The usual limits, on these two addresses.
    pub fn new(grpc: SocketAddr, http: SocketAddr) -> Self {
        Self {
            grpc,
            http,
            message_bytes_max: 16 * 1024 * 1024,
            connections_max: 512,
            messages_max: 32,
            // Longer than the minute that metrics usually take, so that no sender finds its connection just closed.
            header_timeout: Duration::from_secs(75),
            export_timeout: Duration::from_secs(10),
            shutdown_timeout: Duration::from_secs(2),
        }
    }
}

impl Faulty for Refused {
    fn fault(&self) -> Fault {
        Fault::Overloaded
    }
}

impl Faulty for StartError {
    fn fault(&self) -> Fault {
        match self {
            Self::Taken(_) => Fault::Conflict,
            Self::Address { reason, .. } if reason.kind() == ErrorKind::PermissionDenied => {
                Fault::Denied
            }
            Self::Address { .. } => Fault::Invalid,
        }
    }
}

/// Starts to listen on both ports.
pub async fn start(config: Config, sink: Arc<impl Sink>) -> Result<Receiver, StartError> {
    let grpc = bind(config.grpc).await?;
    let http = bind(config.http).await?;
    let counters = Arc::new(Counters::default());
    let (stop, stopped) = watch::channel(());
    let address = |listener: &TcpListener, asked| listener.local_addr().unwrap_or(asked);
    let mut receiver = Receiver {
        grpc: address(&grpc, config.grpc),
        http: address(&http, config.http),
        counters: Arc::clone(&counters),
        stop,
        tasks: JoinSet::new(),
    };
    let intake = Arc::new(Intake::new(&config, sink, counters));
    let listening = Listening {
        connections_max: config.connections_max,
        shutdown_timeout: config.shutdown_timeout,
        stopped,
    };
    let header_timeout = config.header_timeout;
    let over_http = Arc::clone(&intake);
    receiver.tasks.spawn(listening.clone().run(http, move |stream, stopped| {
        http::serve(stream, header_timeout, Arc::clone(&over_http), stopped)
    }));
    receiver.tasks.spawn(listening.run(grpc, move |stream, stopped| {
        grpc::serve(stream, header_timeout, Arc::clone(&intake), stopped)
    }));
    Ok(receiver)
}

impl Receiver {
    /// Where it listens for OTLP over gRPC.
    pub fn grpc_addr(&self) -> SocketAddr {
        self.grpc
    }

    /// Where it listens for OTLP over HTTP.
    pub fn http_addr(&self) -> SocketAddr {
        self.http
    }

    /// What it has received so far.
    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }

    /// Waits until a listener ends that should not, and tells why where it can.
    pub async fn ended(&mut self) -> Option<String> {
        self.tasks.join_next().await.and_then(Result::err).map(|error| error.to_string())
    }

    /// Stops to listen, lets exports under way end within the configured time, and says what it has received.
    pub async fn shutdown(mut self) -> Counts {
        drop(self.stop);
        while self.tasks.join_next().await.is_some() {}
        self.counters.counts()
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|reason| match reason.kind() {
        ErrorKind::AddrInUse => StartError::Taken(address),
        _ => StartError::Address { address, reason },
    })
}

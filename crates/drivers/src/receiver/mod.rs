//! The OTLP receiver: gRPC, and protobuf or JSON over HTTP/1.1 and HTTP/2, all of them on every address.
//!
//! Traces go to a [`Sink`]. Logs and metrics are accepted, counted and discarded, so that a sender of all three signals gets no
//! errors. An export is acknowledged only after the sink has accepted it. If the sink refuses, the sender retries.
//!
//! Foreign exports are kept for a while, as bytes, to diagnose why a trace is missing ([`ReceiverSnapshot`]).
//!
//! A [`Gate`] authorizes senders. Deliberately absent: how it decides, and any telemetry of the receiver itself, which could be
//! sent back to it.

mod body;
pub mod conformance;
mod connection;
mod error;
mod gate;
mod grpc;
mod http;
mod intake;
mod listen;
mod pack;
mod room;
mod stats;
mod tls;

use std::{
    future::Future,
    io::{self, ErrorKind},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use model::{ErrorCode, Fault, Faulty, Project, TraceId};
use otlp::Batch;
use thiserror::Error;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::connections;
use connection::Server;
pub use gate::{Entry, Gate, Sender};
pub use intake::Counts;
use intake::Intake;
use listen::Listener;
use stats::ReceiverCounters;
pub use stats::{AnsweredServers, Foreign, ReceiverSnapshot, Refusal};
pub use tls::{Tls, TlsError};

/// The addresses and limits of a receiver.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses. Each serves all protocols. Port 0 selects a free port.
    pub addresses: Vec<SocketAddr>,
    /// The TLS certificate. If it is set, all addresses accept only TLS.
    pub tls: Option<Tls>,
    /// Authorizes senders; without a gate, every sender may send.
    pub gate: Option<Gate>,
    /// The maximum bytes of a message, compressed or not.
    pub message_bytes_max: usize,
    /// The maximum of served connections for each address, half of them for one peer. Further connections wait.
    pub connections_max: usize,
    /// The maximum bytes of all messages that are being received. Messages beyond it are refused and may be retried.
    pub buffered_bytes_max: usize,
    /// The maximum bytes of the last foreign exports, which are stored unchanged.
    pub ring_bytes_max: usize,
    /// The concurrency of decoding large messages, half of it for senders of the same projects; two at least.
    pub decoders: usize,
    /// Whether these are decoded on threads of a lower priority than all others of this process. They are the blocking threads
    /// of the runtime: other blocking work there must be short.
    pub gives_way: bool,
    /// The timeout of a connection without a request, and of the header of a request.
    pub header_timeout: Duration,
    /// The timeout of an export, from its header to the response.
    pub export_timeout: Duration,
    /// The timeout of active exports at shutdown.
    pub shutdown_timeout: Duration,
}

/// A sink that accepts spans.
///
/// Receivers share one sink and call it from many tasks.
pub trait Sink: Send + Sync + 'static {
    /// Whether a run that this sender reaches waits for this trace, or may wait for it. Called for each span; MUST NOT block.
    fn wants(&self, trace_id: &TraceId, sender: &Sender) -> bool;

    /// Accepts batches of wanted traces.
    ///
    /// After `Ok` the receiver acknowledges the spans, so the sink MUST hold them all by then, except those of a trace that is
    /// larger than it ever accepts: a retry would not help, so they MUST be counted as lost for their trace instead. After
    /// [`SinkError`] the sender sends all of them again, so a sink MUST handle duplicates; it MUST have tried every batch,
    /// since the lack of room for one trace does not affect another. The future MAY be dropped before it ends, which counts as
    /// refused.
    fn accept(
        &self,
        batches: Vec<Batch>,
        sender: &Sender,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Notes that spans of this wanted trace are lost, now and later: from now on, absence proves nothing.
    ///
    /// It MUST be counted as lost for the trace, as far as there is room to track the trace at all, and MUST NOT block.
    fn lost(&self, trace_id: &TraceId, sender: &Sender);

    /// Notes that an export of unknown traces was not accepted: it was unreadable, had a wrong path, or timed out.
    ///
    /// If it may have contained spans, it MUST be counted as lost for every trace that a run waits for now and that this sender
    /// reaches; for log records, as if one had arrived for each of these traces. It MUST NOT block.
    fn lost_unread(&self, sender: &Sender, what: LostSignal);

    /// Notes that a log record of this wanted trace arrived. It is discarded: from now on the absence of events proves nothing.
    ///
    /// It MUST be counted, as far as there is room to track the trace at all, and MUST NOT block.
    fn logged(&self, trace_id: &TraceId, sender: &Sender);

    /// Waits until what was noted has reached the runs, wherever they are. Called before the answer to an export with something to note.
    fn flush(&self) -> impl Future<Output = Result<(), SinkError>> + Send {
        async { Ok(()) }
    }
}

/// The signal of an unreadable export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostSignal {
    /// Spans, or an unknown signal that may have been spans.
    Spans,
    /// Log records.
    Logs,
}

/// Why a sink accepts nothing now.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SinkError {
    /// It has no room; the text names the limit.
    #[error("spans refused, send them again later: {0}")]
    Full(String),
    /// It cannot store anything, for this reason.
    #[error("spans refused, send them again later: {0}")]
    Unavailable(String),
}

/// Why a receiver did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Another program listens on the address.
    #[error("`{0}` is taken; stop what listens there, or choose another port")]
    Taken(SocketAddr),
    /// The receiver cannot listen on the address.
    #[error("cannot listen on `{address}`: {reason}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        reason: io::Error,
    },
}

/// A running receiver. If it is dropped without [`Receiver::shutdown`], it ends at once and aborts active exports.
#[derive(Debug)]
pub struct Receiver {
    addresses: Vec<SocketAddr>,
    watch: Arc<ReceiverCounters>,
    // Dropping it stops the tasks.
    stop: watch::Sender<()>,
    tasks: JoinSet<()>,
}

/// A handle to the observations of a receiver, which stays valid after its end.
#[derive(Clone, Debug)]
pub struct ReceiverStats(Arc<ReceiverCounters>);

impl ReceiverStats {
    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// Returns the observations of senders that reach this project, to diagnose why a trace is missing.
    pub fn seen(&self, project: &Project) -> ReceiverSnapshot {
        self.0.seen(Some(project))
    }
}

impl Config {
    /// Creates a configuration with the default limits, on these addresses.
    pub fn new(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses,
            tls: None,
            gate: None,
            message_bytes_max: 16 * 1024 * 1024,
            connections_max: 512,
            buffered_bytes_max: 128 * 1024 * 1024,
            // Some seconds of a busy system: the exports that a run searches arrived while it waited.
            ring_bytes_max: 16 * 1024 * 1024,
            decoders: 4,
            gives_way: false,
            // Longer than the usual minute between metrics, so that a sender does not find its connection just closed.
            header_timeout: Duration::from_secs(75),
            export_timeout: Duration::from_secs(10),
            shutdown_timeout: Duration::from_secs(2),
        }
    }
}

impl Faulty for SinkError {
    fn fault(&self) -> Fault {
        match self {
            Self::Full(_) => Fault::Overloaded,
            Self::Unavailable(_) => Fault::Upstream,
        }
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

    fn code(&self) -> ErrorCode {
        ErrorCode::PortInUse
    }
}

/// Starts to listen on all addresses.
pub async fn start(config: Config, sink: Arc<impl Sink>) -> Result<Receiver, StartError> {
    let mut listeners = Vec::new();
    for address in &config.addresses {
        listeners.push(bind(*address)?);
    }
    let asked = config.addresses.iter();
    let address =
        |(listener, asked): (&TcpListener, &SocketAddr)| listener.local_addr().unwrap_or(*asked);
    let (stop, stopped) = watch::channel(());
    let mut receiver = Receiver {
        addresses: listeners.iter().zip(asked).map(address).collect(),
        watch: Arc::new(ReceiverCounters::new(config.ring_bytes_max)),
        stop,
        tasks: JoinSet::new(),
    };
    let intake = Arc::new(Intake::new(&config, sink, Arc::clone(&receiver.watch)));
    let tls = config.tls.as_ref().map(Tls::acceptor);
    let server = Arc::new(Server { intake, tls });
    let listening = Listener {
        connections_max: config.connections_max,
        shutdown_timeout: config.shutdown_timeout,
        stopped,
    };
    for listener in listeners {
        let server = Arc::clone(&server);
        receiver.tasks.spawn(
            listening
                .clone()
                .run(listener, move |stream, stopped| Arc::clone(&server).serve(stream, stopped)),
        );
    }
    Ok(receiver)
}

impl Receiver {
    /// Returns the bound addresses, in the configured order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.watch.counts()
    }

    /// Returns the observations so far, to diagnose why a trace is missing.
    pub fn seen(&self) -> ReceiverSnapshot {
        self.watch.seen(None)
    }

    /// Returns a handle to the observations, for callers that must not hold the receiver itself.
    pub fn witness(&self) -> ReceiverStats {
        ReceiverStats(Arc::clone(&self.watch))
    }

    /// Waits until a listener ends unexpectedly, and returns the error if there is one.
    pub async fn ended(&mut self) -> Option<String> {
        match self.tasks.join_next().await {
            Some(ended) => ended.err().map(|error| error.to_string()),
            // It listens nowhere.
            None => std::future::pending().await,
        }
    }

    /// Stops listening, lets active exports finish within the configured timeout, and returns the counts.
    pub async fn shutdown(mut self) -> Counts {
        drop(self.stop);
        while self.tasks.join_next().await.is_some() {}
        self.watch.counts()
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    connections::listen(address).map_err(|reason| match reason.kind() {
        ErrorKind::AddrInUse => StartError::Taken(address),
        _ => StartError::Address { address, reason },
    })
}

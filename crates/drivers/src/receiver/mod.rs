//! The OTLP receiver: gRPC, and protobuf or JSON over HTTP/1.1 and HTTP/2, all of them on every address.
//!
//! Traces go to a [`Sink`]; logs and metrics are accepted, counted and forgotten, so that a sender of all three is
//! content. An export is acknowledged only after the sink has taken it, and a sink that refuses makes the sender keep
//! what it has.
//!
//! Foreign exports are kept for a while, as bytes, for whoever asks why a trace is missing ([`ReceiverSnapshot`]).
//!
//! A [`Gate`] decides who may send. Deliberately absent: what it decides by, and any telemetry of its own, which could
//! come back in here.

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

use model::{Fault, Faulty, Project, TraceId};
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
pub use stats::{Foreign, ReceiverSnapshot, Refusal};
pub use tls::{Tls, TlsError};

/// Where to listen, and how much to take on.
#[derive(Clone, Debug)]
pub struct Config {
    /// Each serves everything. Port 0 takes a free one.
    pub addresses: Vec<SocketAddr>,
    /// With a certificate there is TLS on all of them, and nothing else.
    pub tls: Option<Tls>,
    /// Decides who may send; without one, everyone.
    pub gate: Option<Gate>,
    /// Bytes of a message, packed or not.
    pub message_bytes_max: usize,
    /// Connections to each address that are served at a time, half of them of one peer. Further ones wait.
    pub connections_max: usize,
    /// Bytes of all messages that are under way, each as far as it has come; what is beyond is refused for now.
    pub buffered_bytes_max: usize,
    /// Bytes of the last foreign exports, which are kept as they came.
    pub ring_bytes_max: usize,
    /// Large messages that are decoded at a time, half of them of one kind of sender; two at the least.
    pub decoders: usize,
    /// Whether these are decoded on threads that give way to all others of this process. They are the runtime's for what
    /// blocks: what else blocks there must be short.
    pub gives_way: bool,
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
    /// Whether someone whom this sender reaches waits for this trace, or may. It is asked for each span, and MUST NOT block.
    fn wants(&self, trace_id: &TraceId, sender: &Sender) -> bool;

    /// Takes batches of wanted traces.
    ///
    /// After `Ok` the sender is told that its spans are safe, so the sink MUST hold them all by then, except those of
    /// a trace that is larger than it ever holds: to offer these again would not help, so they MUST be counted as lost
    /// to their trace instead. After [`SinkError`] the sender offers all of them again, so a sink MUST cope with what it
    /// has seen already; it MUST have tried every batch, since one trace's want of room is not another's. The future
    /// MAY be dropped before it ends, which counts as refused.
    fn accept(
        &self,
        batches: Vec<Batch>,
        sender: &Sender,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Spans of this wanted trace cannot be had, now or later: from now on, absence proves nothing.
    ///
    /// It MUST be counted as lost to the trace, as far as there is room to know of the trace at all, and MUST NOT block.
    fn lost(&self, trace_id: &TraceId, sender: &Sender);

    /// An export was not taken, and nobody knows whose it was: it could not be read, was sent elsewhere, or was not waited for.
    ///
    /// Of spans it MUST be counted as lost to every trace that is waited for now and that this sender reaches, of log records as
    /// if one had come of each of these. It MUST NOT block.
    fn lost_unread(&self, sender: &Sender, what: LostSignal);

    /// A log record of this wanted trace came. It is not kept: from now on the absence of events in the trace proves nothing.
    ///
    /// It MUST be counted, as far as there is room to know of the trace at all, and MUST NOT block.
    fn logged(&self, trace_id: &TraceId, sender: &Sender);
}

/// What an export carried that nobody read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostSignal {
    /// Spans, or what may have been spans.
    Spans,
    /// Log records.
    Logs,
}

/// A sink takes nothing now.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SinkError {
    /// It has no room; this is full.
    #[error("spans refused, send them again later: {0}")]
    Full(String),
    /// It cannot keep anything, for this reason.
    #[error("spans refused, send them again later: {0}")]
    Unavailable(String),
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
    addresses: Vec<SocketAddr>,
    watch: Arc<ReceiverCounters>,
    // Dropping it tells the tasks to stop.
    stop: watch::Sender<()>,
    tasks: JoinSet<()>,
}

/// Tells what a receiver has met, also after its end.
#[derive(Clone, Debug)]
pub struct ReceiverStats(Arc<ReceiverCounters>);

impl ReceiverStats {
    /// What it has received so far.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// What it has met so far of senders that reach this project, for whoever asks why a trace of it is missing.
    pub fn seen(&self, project: &Project) -> ReceiverSnapshot {
        self.0.seen(Some(project))
    }
}

impl Config {
    /// The usual limits, on these addresses.
    pub fn new(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses,
            tls: None,
            gate: None,
            message_bytes_max: 16 * 1024 * 1024,
            connections_max: 512,
            buffered_bytes_max: 128 * 1024 * 1024,
            // Some seconds of a busy system: what a run looks for there came while it waited.
            ring_bytes_max: 16 * 1024 * 1024,
            decoders: 4,
            gives_way: false,
            // Longer than the minute that metrics usually take, so that no sender finds its connection just closed.
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
    /// Where it listens, in the order in which the addresses were given.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it has received so far.
    pub fn counts(&self) -> Counts {
        self.watch.counts()
    }

    /// What it has met so far, for whoever asks why a trace is missing.
    pub fn seen(&self) -> ReceiverSnapshot {
        self.watch.seen(None)
    }

    /// The same, for whoever must not hold the receiver itself.
    pub fn witness(&self) -> ReceiverStats {
        ReceiverStats(Arc::clone(&self.watch))
    }

    /// Waits until a listener ends that should not, and tells why where it can.
    pub async fn ended(&mut self) -> Option<String> {
        self.tasks.join_next().await.and_then(Result::err).map(|error| error.to_string())
    }

    /// Stops to listen, lets exports under way end within the configured time, and says what it has received.
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

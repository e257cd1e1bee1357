//! An OTLP peer with every relevant kind of failure, on its own thread.
//!
//! One port speaks gRPC (HTTP/2 without upgrade) and HTTP/1, plain or in TLS, and responds as configured: see
//! [`Reply`]. Requests are stored with headers, decoded items and time of arrival, see [`Seen`], so that a test can
//! count every span. `Peer::start()` starts it; dropping it closes the port and every connection.
//!
//! Included as a module where it is needed (`#[path = "…/tests/peer/mod.rs"] mod peer;`); a test that does not use all
//! of it declares so with `#[expect(dead_code, reason = "…")]`.

mod certificates;
mod reply;
mod serve;

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{logs::v1::LogRecord, trace::v1::Span};
use tokio::sync::Notify;

pub(crate) use self::{certificates::Certificates, reply::Reply};

/// A running peer.
pub(crate) struct Peer {
    address: SocketAddr,
    scheme: &'static str,
    state: Arc<State>,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// When the request was complete.
    pub(crate) at: Instant,
    pub(crate) path: String,
    pub(crate) version: http::Version,
    pub(crate) headers: http::HeaderMap,
    /// The size on the wire, without gRPC's frame.
    pub(crate) wire_bytes: usize,
    /// The body without frame and compression.
    pub(crate) body: Vec<u8>,
    pub(crate) spans: Vec<Span>,
    pub(crate) logs: Vec<LogRecord>,
    /// The number of its connection, counted from 0.
    pub(crate) connection: u64,
    /// Whether the client presented a certificate.
    pub(crate) is_known: bool,
    /// Whether its items count as delivered.
    pub(crate) is_accepted: bool,
}

/// The rules of a peer, and the requests that it received.
#[derive(Default)]
struct State {
    rules: Mutex<Rules>,
    seen: Mutex<Vec<Seen>>,
    has_seen: Condvar,
}

/// The rules of a peer.
#[derive(Clone, Default)]
struct Rules {
    /// The replies to the next requests, one each.
    next: VecDeque<Reply>,
    /// The reply to all others.
    always: Reply,
    /// The reply to a request with a span or log of this name.
    poison: Option<(String, Reply)>,
    /// A request with more bytes is rejected as too large.
    bytes_max: Option<usize>,
    /// A request to this path gets this HTTP status.
    path: Option<(&'static str, u16)>,
}

impl Peer {
    /// Starts a peer that accepts everything, on a free port.
    pub(crate) fn start() -> Self {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    /// Starts a peer on this port, where another peer was before.
    pub(crate) fn start_at(address: SocketAddr) -> Self {
        Self::run(address, None)
    }

    /// Starts a peer with TLS and these certificates, as `localhost`.
    pub(crate) fn start_tls(certificates: &Certificates) -> Self {
        Self::run((Ipv4Addr::LOCALHOST, 0).into(), Some(certificates.server()))
    }

    /// Starts a peer with TLS that requires a client certificate of the same issuer.
    pub(crate) fn start_mutual_tls(certificates: &Certificates) -> Self {
        Self::run((Ipv4Addr::LOCALHOST, 0).into(), Some(certificates.mutual_server()))
    }

    fn run(address: SocketAddr, tls: Option<rustls::ServerConfig>) -> Self {
        let listener = std::net::TcpListener::bind(address).expect("the port is free");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("bound");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (state, stop) = (Arc::<State>::default(), Arc::new(Notify::new()));
        let (of_thread, stopped) = (Arc::clone(&state), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                tokio::select! {
                    () = serve::serve(listener, tls, of_thread) => {}
                    () = stopped.notified() => {}
                }
            });
        });
        Self { address, scheme, state, stop, thread: Some(thread) }
    }

    /// The address on which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as an endpoint, with `localhost`, the name in its certificate.
    pub(crate) fn endpoint(&self) -> String {
        format!("{}://localhost:{}", self.scheme, self.address.port())
    }

    /// Sets the reply to all requests.
    pub(crate) fn reply_always(&self, reply: Reply) {
        self.rules().always = reply;
    }

    /// Sets the replies to the next requests, one each, before the reply to all.
    pub(crate) fn reply_next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.rules().next.extend(replies);
    }

    /// Sets the reply to requests with a span or a log body of this name.
    pub(crate) fn reply_to_named(&self, name: &str, reply: Reply) {
        self.rules().poison = Some((name.to_owned(), reply));
    }

    /// Rejects requests with more bytes, with 413 or `ResourceExhausted`.
    pub(crate) fn refuse_larger(&self, bytes_max: usize) {
        self.rules().bytes_max = Some(bytes_max);
    }

    /// Sets the HTTP status for requests to this path.
    pub(crate) fn refuse_path(&self, path: &'static str, status: u16) {
        self.rules().path = Some((path, status));
    }

    /// Removes the rule for a path.
    pub(crate) fn accept_paths(&self) {
        self.rules().path = None;
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().expect("no panic under this lock").clone()
    }

    /// The names of all spans and the bodies of all logs that it accepted, with duplicates, in order.
    pub(crate) fn accepted(&self) -> Vec<String> {
        self.seen().iter().filter(|seen| seen.is_accepted).flat_map(Seen::names).collect()
    }

    /// Waits until the requests so far match the condition, and returns them; fails after 20 s.
    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        let seen = self.state.seen.lock().expect("no panic under this lock");
        let wait = Duration::from_secs(20);
        let waited = self.state.has_seen.wait_timeout_while(seen, wait, |seen| !is_so(seen));
        let (seen, timeout) = waited.expect("no panic under this lock");
        assert!(!timeout.timed_out(), "waited for {what}; saw {} requests", seen.len());
        seen.clone()
    }

    /// Waits for this duration, and returns all requests so far.
    pub(crate) fn wait_until(&self, wait: Duration) -> Vec<Seen> {
        let seen = self.state.seen.lock().expect("no panic under this lock");
        let waited = self.state.has_seen.wait_timeout_while(seen, wait, |_| true);
        waited.expect("no panic under this lock").0.clone()
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.state.rules.lock().expect("no panic under this lock")
    }
}

impl Seen {
    /// The names of its spans and the bodies of its logs.
    pub(crate) fn names(&self) -> Vec<String> {
        let spans = self.spans.iter().map(|span| span.name.clone());
        let logs = self.logs.iter().filter_map(|log| {
            use opentelemetry_proto::tonic::common::v1::any_value::Value;
            match log.body.clone()?.value? {
                Value::StringValue(text) => Some(text),
                _ => None,
            }
        });
        spans.chain(logs).collect()
    }

    /// Returns the text of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

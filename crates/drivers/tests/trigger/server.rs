//! A server that echoes the request as text, or does what its path requests.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

/// The timeout for an expected event.
const PATIENCE: Duration = Duration::from_secs(10);

/// The observations of a server.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Requests, as text.
    pub(crate) requests: Mutex<Vec<String>>,
    /// Connections that are open.
    pub(crate) open: AtomicUsize,
}

/// A server, until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

/// Counts a connection for as long as it is open.
struct Open(Arc<Seen>);

impl Open {
    fn new(seen: &Arc<Seen>) -> Self {
        seen.open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(seen))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Server {
    pub(crate) async fn plain() -> Self {
        Self::start(None).await
    }

    pub(crate) async fn tls(config: ServerConfig) -> Self {
        Self::start(Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start(acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::<Seen>::default();
        let mut tasks = JoinSet::new();
        let watched = Arc::clone(&seen);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("accepted");
                let (acceptor, open) = (acceptor.clone(), Open::new(&watched));
                connections.spawn(async move {
                    let Some(acceptor) = acceptor else {
                        return serve(stream, false, open).await;
                    };
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    serve(stream, is_http2, open).await;
                });
            }
        });
        Self { address, seen, _tasks: tasks }
    }

    /// Returns a URL of the server with a name that resolves to it.
    pub(crate) fn url(&self, scheme: &str, host: &str, path: &str) -> String {
        format!("{scheme}://{host}:{}{path}", self.address.port())
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().expect("no panic").clone()
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "{what}");
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    is_http2: bool,
    open: Open,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let seen = Arc::clone(&open.0);
        async move { Ok::<_, Infallible>(answer(request, &seen).await) }
    });
    let stream = TokioIo::new(stream);
    match is_http2 {
        true => {
            http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await.ok()
        }
        false => http1::Builder::new().serve_connection(stream, service).await.ok(),
    };
}

async fn answer(request: Request<Incoming>, seen: &Seen) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut text = format!("{} {} {:?}\n", head.method, head.uri, head.version);
    for (name, value) in &head.headers {
        text.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
    }
    text.push_str(&format!("\n{}", String::from_utf8_lossy(&body)));
    seen.requests.lock().expect("no panic").push(text.clone());
    let mut response = Response::new(Full::from(text));
    let query = head.uri.query().unwrap_or_default().to_owned();
    match head.uri.path() {
        "/stalls" => std::future::pending().await,
        "/overflows" => *response.body_mut() = Full::from("x".repeat(1001)),
        // `/leads/307?/there` responds with 307 and `location: /there`.
        path => {
            let status = path.strip_prefix("/leads/").and_then(|status| status.parse().ok());
            if let Some(status) = status {
                *response.status_mut() = status;
                if !query.is_empty() {
                    let location = query.parse().expect("a location");
                    response.headers_mut().insert("location", location);
                }
            }
        }
    }
    response
}

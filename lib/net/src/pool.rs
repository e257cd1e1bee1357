//! A client of HTTP servers: requests out, responses in, connections kept.

use std::{
    error::Error,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    rt::{Read, ReadBufCursor, Write},
};
use hyper_util::{
    client::legacy::{
        self,
        connect::{Connected, Connection as PoolConnection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use tower_service::Service;

use crate::{
    dial::{ConnectError, Connection, Names, Origin, Route, Stream, connect},
    network::Networks,
    proxy::Proxies,
    tls::{PROTOCOLS, TlsClient},
};

/// Why a request got no response.
pub type SendError = legacy::Error;

/// The version of HTTP that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, without a negotiation on connections without TLS.
    Http2,
}

/// A client with a pool of connections. It opens them on demand. Clones share the pool.
#[derive(Clone, Debug)]
pub struct HttpClient {
    version: HttpVersion,
    idle_max: Duration,
    dialer: Dialer,
    pool: legacy::Client<Dialer, Full<Bytes>>,
}

/// The way of the connections of a client out of this machine.
#[derive(Clone, Debug, Default)]
pub struct Egress {
    /// The proxies, and the TLS client that connects to them; none for direct connections.
    pub proxies: Option<(Arc<Proxies>, TlsClient)>,
    /// The addresses that may be reached; none allows all.
    pub networks: Option<Arc<Networks>>,
}

/// Opens the connections of a pool.
#[derive(Clone, Debug)]
struct Dialer {
    tls: TlsClient,
    egress: Egress,
}

/// A connection of a pool.
struct PooledStream {
    stream: TokioIo<Box<dyn Stream>>,
    is_http2: bool,
    /// Whether a proxy forwards requests, each with its absolute URL.
    is_forwarding: bool,
}

impl HttpClient {
    /// Creates a client that keeps idle connections for `idle_max`. `tls` is the client for `https` URLs; the version sets its
    /// protocols.
    pub fn new(tls: impl Into<TlsClient>, version: HttpVersion, idle_max: Duration) -> Self {
        // A peer that negotiates nothing speaks HTTP/1.1.
        let protocols: &[&[u8]] = match version {
            HttpVersion::Http1 => &[],
            HttpVersion::Http2 => &PROTOCOLS[..1],
        };
        let dialer = Dialer { tls: tls.into().offering(protocols), egress: Egress::default() };
        Self { version, idle_max, pool: pool(version, idle_max, dialer.clone()), dialer }
    }

    /// Returns a client whose connections leave this way.
    #[must_use]
    pub fn leaving_by(mut self, egress: Egress) -> Self {
        self.dialer.egress = egress;
        self.without_connections()
    }

    /// Returns a client with the same settings and without connections. A peer that vanished without closing its connections would
    /// block the next request too.
    #[must_use]
    pub fn without_connections(&self) -> Self {
        let pool = pool(self.version, self.idle_max, self.dialer.clone());
        Self { pool, ..self.clone() }
    }

    /// Opens a connection to the host of a URL, and closes it: whether there can be one.
    pub async fn connect(&self, url: &Uri) -> Result<(), ConnectError> {
        self.dialer.clone().dial(url.clone()).await.map(drop)
    }

    /// Sends a request, and returns when the head of the response is received.
    pub async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, SendError> {
        if let Some(auth) = self.dialer.forwarding_auth(request.uri()) {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, auth);
        }
        self.pool.request(request).await
    }
}

/// Returns why there was no connection, if that is why a request got no response.
pub fn connect_error(error: &SendError) -> Option<&ConnectError> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref() {
            return Some(error);
        }
        source = cause.source();
    }
    None
}

impl Dialer {
    /// Returns the credentials for a proxy that forwards the request. A proxy that tunnels gets them with the tunnel.
    fn forwarding_auth(&self, url: &Uri) -> Option<HeaderValue> {
        let (proxies, _) = self.egress.proxies.as_ref()?;
        let is_forwarded = url.scheme_str() == Some("http") && self.egress.networks.is_none();
        proxies.on_the_way_to(url).ok().flatten().filter(|_| is_forwarded)?.auth
    }

    async fn dial(self, url: Uri) -> Result<PooledStream, ConnectError> {
        let Egress { proxies, networks } = &self.egress;
        let proxy = match proxies {
            Some((proxies, _)) => {
                proxies.on_the_way_to(&url).map_err(ConnectError::ProxySetting)?
            }
            None => None,
        };
        let route = Route {
            proxy: proxy.as_ref().zip(proxies.as_ref().map(|(_, tls)| tls)),
            networks: networks.as_deref(),
            names: Names::System,
            tls: &self.tls,
        };
        let connection = connect(&Origin::of(&url)?, route).await?;
        let is_http2 = matches!(connection, Connection::Http2(_));
        let is_forwarding = matches!(connection, Connection::Forwarding(_));
        let (Connection::Http1(stream)
        | Connection::Http2(stream)
        | Connection::Forwarding(stream)) = connection;
        Ok(PooledStream { stream: TokioIo::new(stream), is_http2, is_forwarding })
    }
}

fn pool(
    version: HttpVersion,
    idle_max: Duration,
    dialer: Dialer,
) -> legacy::Client<Dialer, Full<Bytes>> {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).http2_only(version == HttpVersion::Http2);
    match idle_max.is_zero() {
        true => builder.pool_max_idle_per_host(0),
        false => builder.pool_idle_timeout(idle_max),
    };
    builder.build(dialer)
}

impl Service<Uri> for Dialer {
    type Response = PooledStream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<PooledStream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        Box::pin(self.clone().dial(url))
    }
}

impl PoolConnection for PooledStream {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.is_forwarding);
        if self.is_http2 { connected.negotiated_h2() } else { connected }
    }
}

impl Read for PooledStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for PooledStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

//! A client of HTTP servers: requests out, responses in, connections kept.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, Uri};
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
    tls::{ClientConfig, PROTOCOLS, TlsClient},
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

/// Opens the connections of a pool.
#[derive(Clone, Debug)]
struct Dialer(TlsClient);

/// A connection of a pool.
struct PooledStream {
    stream: TokioIo<Box<dyn Stream>>,
    is_http2: bool,
}

impl HttpClient {
    /// Creates a client that keeps idle connections for `idle_max`. `tls` is the configuration for `https` URLs; the version sets
    /// its protocols.
    pub fn new(mut tls: ClientConfig, version: HttpVersion, idle_max: Duration) -> Self {
        // A peer that negotiates nothing speaks HTTP/1.1.
        tls.alpn_protocols = match version {
            HttpVersion::Http1 => Vec::new(),
            HttpVersion::Http2 => vec![PROTOCOLS[0].to_vec()],
        };
        let dialer = Dialer(TlsClient::new(tls));
        Self { version, idle_max, pool: pool(version, idle_max, dialer.clone()), dialer }
    }

    /// Returns a client with the same settings and without connections. A peer that vanished without closing its connections would
    /// block the next request too.
    #[must_use]
    pub fn without_connections(&self) -> Self {
        let pool = pool(self.version, self.idle_max, self.dialer.clone());
        Self { pool, ..self.clone() }
    }

    /// Sends a request, and returns when the head of the response is received.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, SendError> {
        self.pool.request(request).await
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
        let Self(tls) = self.clone();
        Box::pin(async move {
            let route = Route { proxy: None, networks: None, names: Names::System, tls: &tls };
            let (stream, is_http2) = match connect(&Origin::of(&url)?, route).await? {
                Connection::Http2(stream) => (stream, true),
                Connection::Http1(stream) | Connection::Forwarding(stream) => (stream, false),
            };
            Ok(PooledStream { stream: TokioIo::new(stream), is_http2 })
        })
    }
}

impl PoolConnection for PooledStream {
    fn connected(&self) -> Connected {
        match self.is_http2 {
            true => Connected::new().negotiated_h2(),
            false => Connected::new(),
        }
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

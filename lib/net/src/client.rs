//! A client of HTTP servers: requests out, responses in, connections kept.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::ClientConfig;

/// Why a request got no response.
pub type SendError = legacy::Error;

type Connector = HttpsConnector<HttpConnector>;

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
    connector: Connector,
    pool: legacy::Client<Connector, Full<Bytes>>,
}

impl HttpClient {
    /// Creates a client that keeps idle connections for `idle_max`. `tls` is the configuration for `https` URLs.
    pub fn new(tls: ClientConfig, version: HttpVersion, idle_max: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(idle_max).filter(|idle| !idle.is_zero()));
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let connector = match version {
            HttpVersion::Http1 => builder.enable_http1().wrap_connector(tcp),
            HttpVersion::Http2 => builder.enable_http2().wrap_connector(tcp),
        };
        Self { version, idle_max, pool: pool(version, idle_max, connector.clone()), connector }
    }

    /// Returns a client with the same settings and without connections. A peer that vanished without closing its connections would
    /// block the next request too.
    #[must_use]
    pub fn without_connections(&self) -> Self {
        let pool = pool(self.version, self.idle_max, self.connector.clone());
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
    connector: Connector,
) -> legacy::Client<Connector, Full<Bytes>> {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).http2_only(version == HttpVersion::Http2);
    match idle_max.is_zero() {
        true => builder.pool_max_idle_per_host(0),
        false => builder.pool_idle_timeout(idle_max),
    };
    builder.build(connector)
}

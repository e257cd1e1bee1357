//! Connects to a host and port that serves HTTP. Each step has its own kind of failure.
//!
//! Addresses are tried in order. With network rules, only allowed addresses are tried: the connection goes to the address that
//! was resolved and checked, also through a proxy, which then gets an address and not a name. Deliberately absent: trying two
//! addresses at once, and connection reuse for the next request.

#[cfg(test)]
mod rebinding;

use std::{fmt, io, net::SocketAddr};

use bytes::Bytes;
use http::{
    Method, Request, StatusCode, Uri,
    header::{HOST, PROXY_AUTHORIZATION},
};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use model::NoAnswerKind;
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    time::{Instant, timeout},
};

use super::{
    proxy::Proxy,
    tls::{Client, Trust},
};
use crate::trigger::network::{NetworkRefusal, Networks};

/// A bidirectional byte stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream and its protocol.
pub(super) enum Peer {
    Http1(Box<dyn Stream>),
    Http2(Box<dyn Stream>),
    /// A proxy that forwards requests, each with its absolute URL.
    Forwarding(Box<dyn Stream>),
}

/// The host and port of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// A name or an address, an IPv6 address without brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

/// The target of a request, and whether it uses TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) target: Target,
    pub(super) is_tls: bool,
}

/// The path to a target: proxy, network rules and resolver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'a> {
    pub(super) proxy: Option<&'a Proxy>,
    pub(super) networks: Option<&'a Networks>,
    pub(super) names: Names,
}

/// The name resolver.
#[derive(Clone, Copy, Debug)]
pub(super) enum Names {
    /// The resolver of the operating system, by its own configuration.
    System,
    /// A name server of a test, which can change its answer.
    #[cfg(test)]
    Server(SocketAddr),
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub(super) enum ConnectError {
    #[error("`{0}` has no address")]
    NoAddress(String),
    #[error("`{host}` has no address: {source}")]
    Lookup { host: String, source: io::Error },
    #[error("`{target}` may not be reached from this server: {rule}")]
    Forbidden { target: Target, rule: NetworkRefusal },
    #[error("nobody answers at `{target}`: {source}")]
    Refused { target: Target, source: io::Error },
    #[error("no trusted TLS session with `{target}`: {reason}{hint}")]
    Tls { target: Target, reason: String, hint: &'static str },
    #[error("on the way through the proxy: {0}")]
    Proxy(Box<ConnectError>),
    #[error("the proxy `{proxy}` does not connect to `{target}`: {reason}")]
    NoTunnel { proxy: Target, target: Target, reason: String },
}

impl Target {
    /// Returns the host and the port of a URL; none if the port is invalid.
    pub(super) fn of(url: &Uri, otherwise: u16) -> Option<Self> {
        let host = url.host().unwrap_or_default();
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let port = match (authority.strip_prefix(host), url.port_u16()) {
            (_, Some(port)) => port,
            (Some("" | ":"), None) => otherwise,
            (_, None) => return None,
        };
        // An IPv6 address has brackets only in a URL.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        Some(Self { host, port })
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_canonical().to_string(), port: address.port() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl Names {
    async fn resolve(self, Target { host, port }: &Target) -> io::Result<Vec<SocketAddr>> {
        match self {
            Self::System => Ok(lookup_host((host.as_str(), *port)).await?.collect()),
            #[cfg(test)]
            Self::Server(server) => rebinding::resolve(server, host, *port).await,
        }
    }
}

impl ConnectError {
    pub(super) fn kind(&self) -> NoAnswerKind {
        match self {
            Self::NoAddress(_) | Self::Lookup { .. } => NoAnswerKind::Dns,
            Self::Refused { .. } | Self::NoTunnel { .. } => NoAnswerKind::Refused,
            Self::Forbidden { .. } => NoAnswerKind::Invalid,
            Self::Tls { .. } => NoAnswerKind::Tls,
            Self::Proxy(error) => error.kind(),
        }
    }
}

/// Connects before the deadline, or the caller drops the future at the deadline.
///
/// `tls` is the trust of this machine, for the proxy, and that of the request.
pub(super) async fn connect(
    origin: &Origin,
    way: Way<'_>,
    tls: (&Trust, &Client),
    deadline: Instant,
) -> Result<Peer, ConnectError> {
    let Origin { target, is_tls } = origin;
    let stream = match way.proxy {
        None => Box::new(tcp(target, way, deadline).await?),
        Some(proxy) => {
            // If the proxy got the target's name, the proxy would resolve it, bypassing the rules.
            let pinned = match way.networks {
                None => None,
                Some(_) => lookup(target, way).await?.first().copied().map(Target::from),
            };
            let through = |error| ConnectError::Proxy(Box::new(error));
            let stream = to_proxy(proxy, way, tls.0, deadline).await.map_err(through)?;
            match pinned {
                Some(pinned) => tunnel(stream, proxy, &pinned).await?,
                None if *is_tls => tunnel(stream, proxy, target).await?,
                None => return Ok(Peer::Forwarding(stream)),
            }
        }
    };
    if *is_tls {
        let (stream, is_http2) = tls.1.session(target, stream).await?;
        let stream = Box::new(stream);
        return Ok(if is_http2 { Peer::Http2(stream) } else { Peer::Http1(stream) });
    }
    Ok(Peer::Http1(stream))
}

/// Resolves the allowed addresses of a target, at least one.
async fn lookup(target: &Target, way: Way<'_>) -> Result<Vec<SocketAddr>, ConnectError> {
    let host = || target.host.clone();
    let found = way.names.resolve(target).await;
    let found = found.map_err(|source| ConnectError::Lookup { host: host(), source })?;
    let mut addresses = Vec::new();
    let mut forbidden = None;
    for address in found {
        match way.networks.map_or(Ok(()), |networks| networks.check(address.ip())) {
            Ok(()) => addresses.push(address),
            Err(rule) => forbidden = forbidden.or(Some(rule)),
        }
    }
    match (addresses.is_empty(), forbidden) {
        (false, _) => Ok(addresses),
        (true, Some(rule)) => Err(ConnectError::Forbidden { target: target.clone(), rule }),
        (true, None) => Err(ConnectError::NoAddress(host())),
    }
}

async fn tcp(target: &Target, way: Way<'_>, deadline: Instant) -> Result<TcpStream, ConnectError> {
    let addresses = lookup(target, way).await?;
    let Some((last, others)) = addresses.split_last() else {
        return Err(ConnectError::NoAddress(target.host.clone()));
    };
    let mut connected = None;
    for (tried, address) in (0..).zip(others) {
        // An equal share of the remaining time, so that a silent address leaves some for the next.
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / (addresses.len() as u32 - tried);
        if let Ok(Ok(stream)) = timeout(share, TcpStream::connect(address)).await {
            connected = Some(Ok(stream));
            break;
        }
    }
    let connected = match connected {
        Some(connected) => connected,
        None => TcpStream::connect(last).await,
    };
    let stream =
        connected.map_err(|source| ConnectError::Refused { target: target.clone(), source })?;
    // A small request must not wait for a TCP acknowledgement. A failure here is harmless.
    stream.set_nodelay(true).ok();
    Ok(stream)
}

async fn to_proxy(
    proxy: &Proxy,
    way: Way<'_>,
    trust: &Trust,
    deadline: Instant,
) -> Result<Box<dyn Stream>, ConnectError> {
    let Origin { target, is_tls } = &proxy.origin;
    let stream = Box::new(tcp(target, way, deadline).await?);
    if !is_tls {
        return Ok(stream);
    }
    // There is no ALPN with a proxy: it is HTTP/1.1.
    let (stream, _) = trust.to_proxy().session(target, stream).await?;
    Ok(Box::new(stream))
}

/// Requests a proxy to connect to the target; from then on the proxy forwards bytes.
async fn tunnel(
    stream: Box<dyn Stream>,
    proxy: &Proxy,
    target: &Target,
) -> Result<Box<dyn Stream>, ConnectError> {
    let refused = |reason: String| ConnectError::NoTunnel {
        proxy: proxy.origin.target.clone(),
        target: target.clone(),
        reason,
    };
    let broken = |error: hyper::Error| refused(error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri(target.to_string())
        .header(HOST, target.to_string());
    if let Some(auth) = &proxy.auth {
        request = request.header(PROXY_AUTHORIZATION, auth);
    }
    let request =
        request.body(Empty::<Bytes>::new()).map_err(|error| refused(error.to_string()))?;
    let asking = async {
        let answer = sender.send_request(request).await.map_err(broken)?;
        match answer.status() {
            status if status.is_success() => hyper::upgrade::on(answer).await.map_err(broken),
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(refused(
                "it requires authentication: write `http://user:password@…`".to_owned(),
            )),
            status => Err(refused(format!("it says `{status}`"))),
        }
    };
    let mut asking = std::pin::pin!(asking);
    let upgraded = tokio::select! {
        biased;
        upgraded = asking.as_mut() => upgraded,
        _ = connection.with_upgrades() => asking.await,
    };
    Ok(Box::new(TokioIo::new(upgraded?)))
}

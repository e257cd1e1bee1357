//! From a name and a port to a peer that speaks HTTP, each step with its own kind of failure.
//!
//! Addresses are tried one after the other. Where there are rules about networks, only those that keep to them are: what is
//! looked up is what is connected to, also through a proxy, which is then told an address and not a name. Deliberately absent: trying two at once, and connections that are kept for the
//! next request.

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
    super::network::{NetworkRefusal, Networks},
    proxy::Proxy,
    tls::{Client, Trust},
};

/// Bytes in both directions.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream and what is spoken on it.
pub(super) enum Peer {
    Http1(Box<dyn Stream>),
    Http2(Box<dyn Stream>),
    /// A proxy that passes requests on, each with its whole URL.
    Forwarding(Box<dyn Stream>),
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// A name or an address, the latter without brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

/// Where a request goes, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) target: Target,
    pub(super) is_tls: bool,
}

/// What lies between us and where a request goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'a> {
    pub(super) proxy: Option<&'a Proxy>,
    pub(super) networks: Option<&'a Networks>,
    pub(super) names: Names,
}

/// Who resolves names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Names {
    /// The system, by its own configuration.
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
    /// The host and the port of a URL; none where the port is not one.
    pub(super) fn of(url: &Uri, otherwise: u16) -> Option<Self> {
        let host = url.host().unwrap_or_default();
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let port = match (authority.strip_prefix(host), url.port_u16()) {
            (_, Some(port)) => port,
            (Some("" | ":"), None) => otherwise,
            (_, None) => return None,
        };
        // An IPv6 address has brackets in a URL, and nowhere else.
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

/// Connects before the deadline, or is given up by the caller at the deadline.
///
/// `tls` is who is trusted by this machine, for the proxy, and by the request.
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
            // Whoever names the target to the proxy by its name lets the proxy look it up, past the rules.
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

/// The addresses of a target that may be reached, at least one.
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
        // An equal share of the time that is left, so that a silent address leaves some for the next.
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
    // A small request must not wait for its own acknowledgement. It also goes without this.
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
    // What a proxy speaks is not negotiated: it is HTTP/1.1.
    let (stream, _) = trust.to_proxy().session(target, stream).await?;
    Ok(Box::new(stream))
}

/// Has a proxy connect to the target; from then on it passes bytes on.
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

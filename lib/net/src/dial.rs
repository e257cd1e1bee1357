//! Connects to a host and port that serves HTTP. Each step has its own kind of failure.
//!
//! A name is resolved once. With network rules, only allowed addresses are tried: the connection goes to the address that was
//! resolved and checked, also through a proxy, which then gets an address and not a name. A silent address does not hold up the
//! next: attempts overlap, and the first connection wins (RFC 8305).

#[cfg(test)]
mod rebinding;

use std::{fmt, io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{
    Method, Request, StatusCode,
    header::{HOST, PROXY_AUTHORIZATION},
};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpStream, lookup_host},
    task::JoinSet,
    time::sleep,
};
use tokio_rustls::client::TlsStream;

pub use crate::target::{ConnectError, Origin, Stream, Target};
use crate::{network::Networks, proxy::Proxy, tls::TlsClient};

/// The delay before the next address is tried beside one that has not answered.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// How long a connection is silent before the operating system asks whether the peer is still there.
const KEEPALIVE: Duration = Duration::from_secs(50);

/// A connection and its protocol.
pub enum Connection {
    /// HTTP/1.1.
    Http1(Box<dyn Stream>),
    /// HTTP/2, which the peer selected.
    Http2(Box<dyn Stream>),
    /// A proxy that forwards requests of HTTP/1.1, each with its absolute URL.
    Forwarding(Box<dyn Stream>),
}

/// The path to a target.
#[derive(Clone, Copy, Debug)]
pub struct Route<'a> {
    /// The proxy, and the TLS client that connects to it.
    pub proxy: Option<(&'a Proxy, &'a TlsClient)>,
    /// The addresses that may be reached; none allows all.
    pub networks: Option<&'a Networks>,
    /// The name resolver.
    pub names: Names,
    /// The TLS client that connects to the target.
    pub tls: &'a TlsClient,
}

/// The name resolver.
#[derive(Clone, Copy, Debug)]
pub enum Names {
    /// The resolver of the operating system, by its own configuration.
    System,
    /// A name server of a test, which can change its answer.
    #[cfg(test)]
    Server(SocketAddr),
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1(_) => "Http1",
            Self::Http2(_) => "Http2",
            Self::Forwarding(_) => "Forwarding",
        })
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

/// Connects to a target. There is no timeout: the caller drops the future, which ends all attempts.
pub async fn connect(origin: &Origin, route: Route<'_>) -> Result<Connection, ConnectError> {
    let Origin { target, is_tls } = origin;
    let stream: Box<dyn Stream> = match route.proxy {
        None => Box::new(tcp(target, route).await?),
        Some((proxy, proxy_tls)) => {
            // If the proxy got the target's name, the proxy would resolve it, bypassing the rules.
            let pinned = match route.networks {
                None => None,
                Some(_) => lookup(target, route).await?.first().copied().map(Target::from),
            };
            let through = |error| ConnectError::Proxy(Box::new(error));
            let stream = to_proxy(proxy, proxy_tls, route).await.map_err(through)?;
            match pinned {
                Some(pinned) => tunnel(stream, proxy, &pinned).await?,
                None if *is_tls => tunnel(stream, proxy, target).await?,
                None => return Ok(Connection::Forwarding(stream)),
            }
        }
    };
    if *is_tls {
        let (stream, is_http2) = route.tls.session(target, stream).await?;
        let stream = Box::new(stream);
        return Ok(if is_http2 { Connection::Http2(stream) } else { Connection::Http1(stream) });
    }
    Ok(Connection::Http1(stream))
}

/// Opens a TLS session with a target, without a proxy.
pub(crate) async fn session(
    target: &Target,
    route: Route<'_>,
) -> Result<TlsStream<Box<dyn Stream>>, ConnectError> {
    let stream: Box<dyn Stream> = Box::new(tcp(target, route).await?);
    Ok(route.tls.session(target, stream).await?.0)
}

/// Resolves the allowed addresses of a target, at least one.
async fn lookup(target: &Target, route: Route<'_>) -> Result<Vec<SocketAddr>, ConnectError> {
    let host = || target.host.clone();
    let found = route.names.resolve(target).await;
    let found = found.map_err(|source| ConnectError::Lookup { host: host(), source })?;
    let mut addresses = Vec::new();
    let mut forbidden = None;
    for address in found {
        match route.networks.map_or(Ok(()), |networks| networks.check_target(address)) {
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

async fn tcp(target: &Target, route: Route<'_>) -> Result<TcpStream, ConnectError> {
    let addresses = lookup(target, route).await?;
    let stream = first_of(addresses).await;
    let stream =
        stream.map_err(|source| ConnectError::Refused { target: target.clone(), source })?;
    // A small request must not wait for a TCP acknowledgement. A failure of either is harmless.
    stream.set_nodelay(true).ok();
    SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE)).ok();
    Ok(stream)
}

/// Connects to the first of these addresses that accepts. The next one is tried after a failure, or after a delay.
async fn first_of(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut addresses = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        let next = addresses.next();
        let is_last = next.is_none();
        if let Some(address) = next {
            attempts.spawn(TcpStream::connect(address));
        }
        tokio::select! {
            ended = attempts.join_next() => match ended {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => failure = error,
                Some(Err(panic)) => failure = io::Error::other(panic),
                None => return Err(failure),
            },
            () = sleep(NEXT_ADDRESS), if !is_last => {}
        }
    }
}

async fn to_proxy(
    proxy: &Proxy,
    tls: &TlsClient,
    route: Route<'_>,
) -> Result<Box<dyn Stream>, ConnectError> {
    let Origin { target, is_tls } = &proxy.origin;
    let stream = Box::new(tcp(target, route).await?);
    if !is_tls {
        return Ok(stream);
    }
    let (stream, _) = tls.session(target, stream).await?;
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

//! What a client connects to, the stream that it gets, and why it gets none.

use std::{fmt, io, net::SocketAddr};

use http::Uri;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::network::NetworkRefusal;

/// A bidirectional byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A name or an address, an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The target of a request, and whether it uses TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The target.
    pub target: Target,
    /// Whether it uses TLS.
    pub is_tls: bool,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The URL has no host and port that can be connected to.
    #[error("{0}")]
    Url(&'static str),
    /// The name has no address.
    #[error("`{0}` has no address")]
    NoAddress(String),
    /// The name cannot be resolved.
    #[error("`{host}` has no address: {source}")]
    Lookup {
        /// The name.
        host: String,
        /// The error of the resolver.
        source: io::Error,
    },
    /// The network rules allow none of its addresses.
    #[error("`{target}` may not be reached from this server: {rule}")]
    Forbidden {
        /// The target.
        target: Target,
        /// The rule.
        rule: NetworkRefusal,
    },
    /// No address accepts a connection.
    #[error("nobody answers at `{target}`: {source}")]
    Refused {
        /// The target.
        target: Target,
        /// The error of the last address that was tried.
        source: io::Error,
    },
    /// There is no trusted TLS session.
    #[error("no trusted TLS session with `{target}`: {source}{hint}")]
    Tls {
        /// The target.
        target: Target,
        /// The error of the session.
        source: io::Error,
        /// What to do, or an empty text.
        hint: &'static str,
    },
    /// The proxy of the environment cannot be used.
    #[error("{0}")]
    ProxySetting(String),
    /// The proxy itself cannot be reached.
    #[error("on the way through the proxy: {0}")]
    Proxy(Box<ConnectError>),
    /// The proxy does not connect to the target.
    #[error("the proxy `{proxy}` does not connect to `{target}`: {reason}")]
    NoTunnel {
        /// The proxy.
        proxy: Target,
        /// The target.
        target: Target,
        /// The reason.
        reason: String,
    },
}

impl Target {
    /// Returns the host and the port of a URL; none if the port is invalid.
    pub fn of(url: &Uri, otherwise: u16) -> Option<Self> {
        let host = url.host().unwrap_or_default();
        let authority = url.authority().map_or("", |authority| authority.as_str());
        // A user in the URL is in front of the host.
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
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

impl Origin {
    /// Returns the origin of a URL with one of the schemes `http` and `https`.
    pub fn of(url: &Uri) -> Result<Self, ConnectError> {
        let is_tls = match url.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(ConnectError::Url("expected `http://` or `https://`")),
        };
        let target = Target::of(url, if is_tls { 443 } else { 80 });
        Ok(Self { target: target.ok_or(ConnectError::Url("the port is not one"))?, is_tls })
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

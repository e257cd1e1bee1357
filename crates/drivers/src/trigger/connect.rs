//! From a name and a port to a stream of bytes, each step with its own kind of failure.
//!
//! Addresses are tried one after the other. Deliberately absent: trying two at once, proxies, and connections that are
//! kept for the next request.

use std::{fmt, io, sync::Arc};

use model::NoAnswerKind;
use thiserror::Error;
use tokio::{
    net::{TcpStream, lookup_host},
    time::{Instant, timeout},
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, Error as TlsError, RootCertStore, crypto::ring, pki_types::ServerName},
};

/// Where a request goes.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// A name or an address, the latter without brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub(super) enum ConnectError {
    #[error("`{0}` has no address")]
    NoAddress(String),
    #[error("`{host}` has no address: {source}")]
    Lookup { host: String, source: io::Error },
    #[error("nobody answers at `{target}`: {source}")]
    Refused { target: Target, source: io::Error },
    #[error("no trusted TLS session with `{target}`: {reason}{hint}")]
    Tls { target: Target, reason: String, hint: &'static str },
}

/// Who is trusted.
pub(super) struct Trust {
    connector: TlsConnector,
    hint: &'static str,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl ConnectError {
    pub(super) fn kind(&self) -> NoAnswerKind {
        match self {
            Self::NoAddress(_) | Self::Lookup { .. } => NoAnswerKind::Dns,
            Self::Refused { .. } => NoAnswerKind::Refused,
            Self::Tls { .. } => NoAnswerKind::Tls,
        }
    }
}

/// Connects before the deadline, or is given up by the caller at the deadline.
pub(super) async fn tcp(target: &Target, deadline: Instant) -> Result<TcpStream, ConnectError> {
    let host = || target.host.clone();
    let found = lookup_host((target.host.as_str(), target.port)).await;
    let addresses: Vec<_> = match found {
        Ok(addresses) => addresses.collect(),
        Err(source) => return Err(ConnectError::Lookup { host: host(), source }),
    };
    let Some((last, others)) = addresses.split_last() else {
        return Err(ConnectError::NoAddress(host()));
    };
    for (tried, address) in (0..).zip(others) {
        // An equal share of the time that is left, so that a silent address leaves some for the next.
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / (addresses.len() as u32 - tried);
        if let Ok(Ok(stream)) = timeout(share, TcpStream::connect(address)).await {
            return Ok(stream);
        }
    }
    let connected = TcpStream::connect(last).await;
    connected.map_err(|source| ConnectError::Refused { target: target.clone(), source })
}

impl Trust {
    pub(super) fn new(roots: RootCertStore) -> Result<Self, TlsError> {
        let hint = if roots.is_empty() {
            " (this machine has no trusted roots: install its `ca-certificates`)"
        } else {
            ""
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), hint })
    }

    pub(super) async fn tls(
        &self,
        target: &Target,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, ConnectError> {
        let failed =
            |reason: String, hint| ConnectError::Tls { target: target.clone(), reason, hint };
        let name = ServerName::try_from(target.host.clone());
        let name = name.map_err(|error| failed(error.to_string(), ""))?;
        let connected = self.connector.connect(name, stream).await;
        connected.map_err(|error| failed(error.to_string(), self.hint))
    }
}

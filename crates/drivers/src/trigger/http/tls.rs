//! TLS trust, and client certificates.
//!
//! The trusted roots of this machine are loaded once, at the first request that needs them.

use std::{
    fmt,
    path::Path,
    sync::{Arc, OnceLock},
};

use model::{Identity, Tls, Verify};
use net::tls::{
    self, CertificateError, ClientCertificate, ClientCertificateError, ClientConfig, PemError,
    RootCertStore,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};

use super::connect::{ConnectError, Stream, Target};

/// The hint if this machine has no trusted roots.
const NO_ROOTS: &str = " (this machine has no trusted roots: install its `ca-certificates`)";

/// ALPN protocols in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The trusted roots of this machine.
pub(super) struct Trust {
    /// The locations of trusted certificates in the environment: a file, a folder.
    paths: [Option<String>; 2],
    roots: OnceLock<Arc<RootCertStore>>,
    plain: OnceLock<Client>,
}

/// The TLS client configuration of a request.
#[derive(Clone)]
pub(super) struct Client {
    config: Arc<ClientConfig>,
    /// The expected name in the peer's certificate, if it differs from the host.
    name: Option<String>,
    hint: &'static str,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl Trust {
    pub(super) fn new(environment: &[(String, String)]) -> Self {
        let named = |name: &str| {
            let variable = environment.iter().find(|(key, _)| key == name);
            variable.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
        };
        let paths = [named("SSL_CERT_FILE"), named("SSL_CERT_DIR")];
        Self { paths, roots: OnceLock::new(), plain: OnceLock::new() }
    }

    /// Builds the client configuration of a request, or returns what is wrong with it.
    pub(super) fn client(&self, request: &Tls) -> Result<Client, String> {
        if *request == Tls::default() {
            return Ok(self.plain().clone());
        }
        let roots = match &request.verify {
            Verify::System => Arc::clone(self.roots()),
            Verify::Ca(pem) => Arc::new(authorities(pem)?),
            Verify::Nothing => Arc::new(RootCertStore::empty()),
        };
        let hint = match request.verify {
            Verify::System if roots.is_empty() => NO_ROOTS,
            Verify::System | Verify::Ca(_) | Verify::Nothing => "",
        };
        let trust = match &request.verify {
            Verify::Nothing => net::tls::Trust::Any,
            Verify::System | Verify::Ca(_) => net::tls::Trust::Authorities(roots),
        };
        let certificate = request.identity.as_ref().map(known_by).transpose()?;
        let config = tls::client(&trust, certificate, &PROTOCOLS);
        let config = config.map_err(|error| format!("its `tls.certFile`: {error}"))?;
        Ok(Client { config: Arc::new(config), name: request.server_name.clone(), hint })
    }

    /// Returns the client configuration for a proxy.
    pub(super) fn to_proxy(&self) -> Client {
        let plain = self.plain();
        let mut config = ClientConfig::clone(&plain.config);
        config.alpn_protocols.clear();
        Client { config: Arc::new(config), ..plain.clone() }
    }

    fn plain(&self) -> &Client {
        self.plain.get_or_init(|| {
            let roots = Arc::clone(self.roots());
            let hint = if roots.is_empty() { NO_ROOTS } else { "" };
            Client { config: Arc::new(tls::anonymous(roots, &PROTOCOLS)), name: None, hint }
        })
    }

    fn roots(&self) -> &Arc<RootCertStore> {
        self.roots.get_or_init(|| {
            let [file, folder] = self.paths.each_ref().map(|path| path.as_deref().map(Path::new));
            Arc::new(tls::system_roots(file, folder).0)
        })
    }
}

/// Parses the certificates that are trusted instead of those of this machine.
fn authorities(pem: &str) -> Result<RootCertStore, String> {
    tls::authorities(pem.as_bytes()).map_err(|error| match error {
        CertificateError::Pem(error) => format!("its `tls.caFile`: {}", pem_words(&error)),
        CertificateError::Refused(error) => format!("its `tls.caFile`: {error}"),
    })
}

/// Parses the client certificate chain and its key.
fn known_by(identity: &Identity) -> Result<ClientCertificate, String> {
    let (chain, key) = (identity.certificates.as_bytes(), identity.key.expose().as_bytes());
    tls::client_certificate(chain, key).map_err(|error| match error {
        ClientCertificateError::Chain(error) => {
            format!("its `tls.certFile`: {}", pem_words(&error))
        }
        ClientCertificateError::Key(error) => format!("its `tls.keyFile`: {error}"),
    })
}

/// Describes why there are no certificates.
fn pem_words(error: &PemError) -> String {
    match error {
        PemError::NoItemsFound => "there is no certificate in it".to_owned(),
        error => error.to_string(),
    }
}

impl Client {
    /// Opens a TLS session, and returns whether the peer selected HTTP/2.
    pub(super) async fn session(
        &self,
        target: &Target,
        stream: Box<dyn Stream>,
    ) -> Result<(TlsStream<Box<dyn Stream>>, bool), ConnectError> {
        let failed =
            |reason: String, hint| ConnectError::Tls { target: target.clone(), reason, hint };
        let name = self.name.as_ref().unwrap_or(&target.host);
        let name = ServerName::try_from(name.clone());
        let name = name.map_err(|error| failed(error.to_string(), ""))?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let session = connector.connect(name, stream).await;
        let session = session.map_err(|error| failed(error.to_string(), self.hint))?;
        let is_http2 = session.get_ref().1.alpn_protocol() == Some(PROTOCOLS[0]);
        Ok((session, is_http2))
    }
}

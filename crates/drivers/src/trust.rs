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
    self, CertificateError, ClientCertificate, ClientCertificateError, PROTOCOLS, PemError,
    RootCertStore, TlsClient,
};

/// The trusted roots of this machine.
pub(crate) struct Trust {
    /// The locations of trusted certificates in the environment: a file, a folder.
    paths: [Option<String>; 2],
    roots: OnceLock<Arc<RootCertStore>>,
    plain: OnceLock<TlsClient>,
    to_proxy: OnceLock<TlsClient>,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl Trust {
    pub(crate) fn new(environment: &[(String, String)]) -> Self {
        let named = |name: &str| {
            let variable = environment.iter().find(|(key, _)| key == name);
            variable.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
        };
        let paths = [named("SSL_CERT_FILE"), named("SSL_CERT_DIR")];
        Self { paths, roots: OnceLock::new(), plain: OnceLock::new(), to_proxy: OnceLock::new() }
    }

    /// Builds the TLS client of a request, or returns what is wrong with its settings.
    pub(crate) fn client(&self, request: &Tls) -> Result<TlsClient, String> {
        if *request == Tls::default() {
            return Ok(self.plain().clone());
        }
        let trust = match &request.verify {
            Verify::System => tls::Trust::Authorities(Arc::clone(self.roots())),
            Verify::Ca(pem) => tls::Trust::Authorities(Arc::new(authorities(pem)?)),
            Verify::Nothing => tls::Trust::Any,
        };
        let certificate = request.identity.as_ref().map(known_by).transpose()?;
        let config = tls::client(&trust, certificate, &PROTOCOLS);
        let config = config.map_err(|error| format!("its `tls.certFile`: {error}"))?;
        let client = match request.verify {
            Verify::System => TlsClient::system(config, self.roots()),
            Verify::Ca(_) | Verify::Nothing => TlsClient::new(config),
        };
        Ok(client.expecting(request.server_name.clone()))
    }

    /// Returns the TLS client for a proxy.
    pub(crate) fn to_proxy(&self) -> &TlsClient {
        self.to_proxy.get_or_init(|| self.plain().offering(&[]))
    }

    fn plain(&self) -> &TlsClient {
        self.plain.get_or_init(|| {
            let roots = self.roots();
            TlsClient::system(tls::anonymous(Arc::clone(roots), &PROTOCOLS), roots)
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

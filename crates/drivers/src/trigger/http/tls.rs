//! TLS trust, and client certificates.
//!
//! The trusted roots of this machine are loaded once, at the first request that needs them.

use std::{
    fmt,
    path::Path,
    sync::{Arc, OnceLock},
};

use model::{Identity, Tls, Verify};
use rustls_native_certs::{load_certs_from_paths, load_native_certs};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        crypto::{self, CryptoProvider, ring},
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    },
};

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
    pub(super) fn client(&self, tls: &Tls) -> Result<Client, String> {
        if *tls == Tls::default() {
            return Ok(self.plain().clone());
        }
        let verifier = builder();
        let roots = match &tls.verify {
            Verify::System => Arc::clone(self.roots()),
            Verify::Ca(pem) => Arc::new(authorities(pem)?),
            Verify::Nothing => Arc::new(RootCertStore::empty()),
        };
        let hint = match tls.verify {
            Verify::System if roots.is_empty() => NO_ROOTS,
            Verify::System | Verify::Ca(_) | Verify::Nothing => "",
        };
        let verifier = match &tls.verify {
            Verify::Nothing => {
                let provider = ring::default_provider();
                verifier
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(NoVerification(provider)))
            }
            Verify::System | Verify::Ca(_) => verifier.with_root_certificates(roots),
        };
        let mut config = match &tls.identity {
            None => verifier.with_no_client_auth(),
            Some(identity) => {
                let (certificates, key) = known_by(identity)?;
                let config = verifier.with_client_auth_cert(certificates, key);
                config.map_err(|error| format!("its `tls.certFile`: {error}"))?
            }
        };
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Client { config: Arc::new(config), name: tls.server_name.clone(), hint })
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
            let mut config = builder().with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
            Client { config: Arc::new(config), name: None, hint }
        })
    }

    fn roots(&self) -> &Arc<RootCertStore> {
        self.roots.get_or_init(|| {
            let loaded = match self.paths.each_ref().map(|path| path.as_deref().map(Path::new)) {
                [None, None] => load_native_certs(),
                [file, folder] => load_certs_from_paths(file, folder),
            };
            let mut roots = RootCertStore::empty();
            // A certificate that cannot be parsed is ignored; the others still count.
            roots.add_parsable_certificates(loaded.certs);
            Arc::new(roots)
        })
    }
}

fn builder()
-> tokio_rustls::rustls::ConfigBuilder<ClientConfig, tokio_rustls::rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider speaks the versions that are on by default")
}

/// Parses the certificates that are trusted instead of those of this machine.
fn authorities(pem: &str) -> Result<RootCertStore, String> {
    let wrong = |why: String| format!("its `tls.caFile`: {why}");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(wrong("there is no certificate in it".to_owned())),
        false => Ok(roots),
    }
}

/// Parses the client certificate chain and its key.
fn known_by(
    identity: &Identity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let certificates = CertificateDer::pem_slice_iter(identity.certificates.as_bytes());
    let certificates = certificates.collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| format!("its `tls.certFile`: {error}"))?;
    if certificates.is_empty() {
        return Err("its `tls.certFile`: there is no certificate in it".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(identity.key.expose().as_bytes());
    let key = key.map_err(|error| format!("its `tls.keyFile`: {error}"))?;
    Ok((certificates, key))
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

/// Accepts any certificate. The peer must still prove that it has the key.
#[derive(Debug)]
struct NoVerification(CryptoProvider);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.0.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.0.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

//! The TLS configuration of a client: which authorities it trusts, and by which certificate peers know it.

use std::{io, path::Path, sync::Arc};

use rustls::{
    DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{self, CryptoProvider, ring},
    pki_types::{
        CertificateDer, PrivateKeyDer, ServerName, UnixTime,
        pem::{self, PemObject},
    },
};
use rustls_native_certs::{load_certs_from_paths, load_native_certs};
use thiserror::Error;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::target::{ConnectError, Stream, Target};

pub use rustls::{
    ClientConfig, Error as TlsError, RootCertStore, pki_types::pem::Error as PemError,
};

/// The protocols that this library speaks, the preferred one first (ALPN).
pub const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The hint if this machine has no trusted authorities.
const NO_ROOTS: &str = " (this machine has no trusted roots: install its `ca-certificates`)";

/// A client that opens TLS sessions.
#[derive(Clone, Debug)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    /// The expected name in the peer's certificate, if it differs from the host.
    name: Option<String>,
    hint: &'static str,
}

/// Which certificates of a peer are trusted.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those of these authorities.
    Authorities(Arc<RootCertStore>),
    /// Any. The peer must still prove that it has the key.
    Any,
}

/// The certificate by which peers know a client, with its chain and its key.
#[derive(Debug)]
pub struct ClientCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why certificates cannot be used.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// The text is no PEM, or it has no certificate.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// A certificate cannot be trusted.
    #[error(transparent)]
    Refused(#[from] TlsError),
}

/// Which part of a client certificate cannot be parsed.
#[derive(Debug, Error)]
pub enum ClientCertificateError {
    /// The certificate, or its chain.
    #[error(transparent)]
    Chain(PemError),
    /// The key.
    #[error(transparent)]
    Key(PemError),
}

/// Returns the configuration of a client that offers these protocols (ALPN). Fails if the certificate and its key do not match.
pub fn client(
    trust: &Trust,
    certificate: Option<ClientCertificate>,
    protocols: &[&[u8]],
) -> Result<ClientConfig, TlsError> {
    // The provider is set explicitly, because any crate that links rustls can set the default of the process.
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3");
    let builder = match trust {
        Trust::Authorities(roots) => builder.with_root_certificates(Arc::clone(roots)),
        Trust::Any => {
            let any = AnyCertificate(ring::default_provider());
            builder.dangerous().with_custom_certificate_verifier(Arc::new(any))
        }
    };
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some(ClientCertificate { chain, key }) => builder.with_client_auth_cert(chain, key)?,
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// Returns the configuration of a client that trusts these authorities, and that peers need not know.
pub fn anonymous(roots: Arc<RootCertStore>, protocols: &[&[u8]]) -> ClientConfig {
    client(&Trust::Authorities(roots), None, protocols).expect("there is no certificate to refuse")
}

/// Returns the authorities that this machine trusts, and the first error of reading them. `file` and `folder` name them instead of
/// the usual places. A certificate that cannot be parsed is left out; the others still count.
pub fn system_roots(file: Option<&Path>, folder: Option<&Path>) -> (RootCertStore, Option<String>) {
    let loaded = match (file, folder) {
        (None, None) => load_native_certs(),
        (file, folder) => load_certs_from_paths(file, folder),
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(loaded.certs);
    (roots, loaded.errors.first().map(ToString::to_string))
}

/// Parses the certificates of trusted authorities.
pub fn authorities(pem: &[u8]) -> Result<RootCertStore, CertificateError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// Parses the certificate of a client and its key.
pub fn client_certificate(
    chain: &[u8],
    key: &[u8],
) -> Result<ClientCertificate, ClientCertificateError> {
    let chain = certificates(chain).map_err(ClientCertificateError::Chain)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(ClientCertificateError::Key)?;
    Ok(ClientCertificate { chain, key })
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()?;
    if found.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(found) }
}

impl From<ClientConfig> for TlsClient {
    fn from(config: ClientConfig) -> Self {
        Self::new(config)
    }
}

impl TlsClient {
    /// Creates a client with this configuration.
    pub fn new(config: ClientConfig) -> Self {
        Self { config: Arc::new(config), name: None, hint: "" }
    }

    /// Creates a client that trusts the authorities of this machine. If there are none, its errors say so.
    pub fn system(config: ClientConfig, roots: &RootCertStore) -> Self {
        let hint = if roots.is_empty() { NO_ROOTS } else { "" };
        Self { hint, ..Self::new(config) }
    }

    /// Expects this name in the peer's certificate instead of the host.
    #[must_use]
    pub fn expecting(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }

    /// Offers these protocols (ALPN); a proxy expects none.
    #[must_use]
    pub fn offering(&self, protocols: &[&[u8]]) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Self { config: Arc::new(config), ..self.clone() }
    }

    /// Opens a session, and returns whether the peer selected HTTP/2.
    pub(crate) async fn session(
        &self,
        target: &Target,
        stream: Box<dyn Stream>,
    ) -> Result<(TlsStream<Box<dyn Stream>>, bool), ConnectError> {
        let failed = |source, hint| ConnectError::Tls { target: target.clone(), source, hint };
        let name = self.name.as_ref().unwrap_or(&target.host);
        let name = ServerName::try_from(name.clone());
        let name = name.map_err(|error| failed(io::Error::other(error), ""))?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let session = connector.connect(name, stream).await;
        let session = session.map_err(|source| failed(source, self.hint))?;
        let is_http2 = session.get_ref().1.alpn_protocol() == Some(PROTOCOLS[0]);
        Ok((session, is_http2))
    }
}

/// Accepts any certificate.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

impl ServerCertVerifier for AnyCertificate {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base64::{Engine, prelude::BASE64_STANDARD};

    use super::{CertificateError, Trust, anonymous, authorities, client, client_certificate};

    /// Returns a certificate and its key, in PEM.
    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        let key = made.signing_key.serialize_der();
        (pem("CERTIFICATE", made.cert.der()), pem("PRIVATE KEY", &key))
    }

    fn pem(label: &str, der: &[u8]) -> String {
        let text = BASE64_STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    }

    #[test]
    fn authorities_are_parsed_or_refused() {
        let (certificate, key) = made();
        let both = format!("{certificate}{}", made().0);
        assert_eq!(authorities(both.as_bytes()).expect("two").len(), 2);
        for wrong in ["", "no PEM", key.as_str()] {
            assert!(
                matches!(authorities(wrong.as_bytes()), Err(CertificateError::Pem(_))),
                "{wrong}"
            );
        }
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(authorities(broken.as_bytes()), Err(CertificateError::Refused(_))));
    }

    #[test]
    fn a_client_has_its_certificate_only_with_its_own_key() {
        let (certificate, key) = made();
        let (_, other) = made();
        let trust = Trust::Any;
        let known = client_certificate(certificate.as_bytes(), key.as_bytes()).expect("a pair");
        assert!(
            client(&trust, Some(known), &[])
                .expect("it fits")
                .client_auth_cert_resolver
                .has_certs()
        );
        let mixed = client_certificate(certificate.as_bytes(), other.as_bytes()).expect("a pair");
        assert!(client(&trust, Some(mixed), &[]).is_err());
        assert!(client_certificate(b"", key.as_bytes()).is_err());
        assert!(client_certificate(certificate.as_bytes(), b"").is_err());
    }

    #[test]
    fn protocols_are_offered_in_order() {
        let roots = Arc::new(authorities(made().0.as_bytes()).expect("one"));
        let config = anonymous(roots, &[b"h2", b"http/1.1"]);
        assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
        assert!(!config.client_auth_cert_resolver.has_certs());
    }
}

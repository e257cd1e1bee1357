//! The server certificate of a receiver.

use std::{fmt, sync::Arc};

use model::{ErrorCode, Fault, Faulty};
use thiserror::Error;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{
            CertificateDer, PrivateKeyDer,
            pem::{Error as PemError, PemObject},
        },
        server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    },
};

/// A server certificate with its key, and whether clients must present a certificate.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

/// Why a certificate or its key is unusable.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The certificate is not valid PEM.
    #[error("no certificate in PEM form: {0}")]
    Certificate(PemError),
    /// The key is not valid PEM. The error does not show it.
    #[error("no private key in PEM form: {0}")]
    Key(PemError),
    /// The certificate authority for clients is not valid PEM.
    #[error("no certificate in PEM form that signs for clients: {0}")]
    ClientCa(String),
    /// Certificate and key do not match, or are of an unsupported kind.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

impl Tls {
    /// Parses a certificate chain, the receiver's own certificate first, and the key of the first, both in PEM format.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Self::new(certificates, key, WebPkiClientVerifier::no_client_auth())
    }

    /// The same, and clients must present a certificate that one of `signers`, also in PEM format, has signed.
    pub fn with_clients(certificates: &[u8], key: &[u8], signers: &[u8]) -> Result<Self, TlsError> {
        let unusable = |error: &dyn fmt::Display| TlsError::ClientCa(error.to_string());
        let mut roots = RootCertStore::empty();
        for signer in CertificateDer::pem_slice_iter(signers) {
            roots
                .add(signer.map_err(|error| unusable(&error))?)
                .map_err(|error| unusable(&error))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| unusable(&error))?;
        Self::new(certificates, key, verifier)
    }

    fn new(
        certificates: &[u8],
        key: &[u8],
        clients: Arc<dyn ClientCertVerifier>,
    ) -> Result<Self, TlsError> {
        let certificates: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(certificates).collect();
        let certificates = certificates.map_err(TlsError::Certificate)?;
        if certificates.is_empty() {
            return Err(TlsError::Certificate(PemError::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(certificates, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(***)")
    }
}

impl Faulty for TlsError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }

    fn code(&self) -> ErrorCode {
        ErrorCode::CertificateInvalid
    }
}

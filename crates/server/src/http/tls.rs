//! The certificate of the API. Deliberately absent: client certificates (clients send a token).

use std::{fs, io, path::PathBuf, sync::Arc};

use thiserror::Error;
pub(crate) use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{
    self, ServerConfig,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{Error as PemError, PemObject},
    },
};

use crate::config::CertificateFiles;

/// Why the API cannot be served over TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("`{}` of `server.tls` cannot be read: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: io::Error,
    },
    /// A file has the wrong content.
    #[error("`{}` of `server.tls` holds no {what} in PEM form: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected content.
        what: &'static str,
        /// The error; it does not show the content.
        reason: PemError,
    },
    /// Certificate and key do not match, or have an unsupported type.
    #[error("certificate and key of `server.tls` cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// Returns the TLS acceptor of the API with this certificate.
pub(crate) fn acceptor(identity: &CertificateFiles) -> Result<TlsAcceptor, TlsError> {
    let read = |path: &PathBuf| {
        fs::read(path).map_err(|reason| TlsError::File { path: path.clone(), reason })
    };
    let pem = |path: &PathBuf, what| {
        let path = path.clone();
        move |reason| TlsError::Pem { path, what, reason }
    };
    let CertificateFiles { cert, key } = identity;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(cert)?).collect();
    let certificates = certificates.map_err(pem(cert, "certificate"))?;
    let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(pem(key, "private key"))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, private)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

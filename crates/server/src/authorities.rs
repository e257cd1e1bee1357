//! The authorities that files of the configuration name: for peers whose certificates the authorities of this machine did not sign.
//!
//! They are read before anything changes. Otherwise a wrong path would only show when the peer is connected to, and then as a peer
//! that is not trusted.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use net::tls::{self, CertificateError, RootCertStore};
use thiserror::Error;

use crate::config::Config;

/// Why the authorities of a file cannot be trusted.
#[derive(Debug, Error)]
pub enum AuthoritiesError {
    /// The file cannot be read.
    #[error("`{}` of `{key}` cannot be read: {reason}", path.display())]
    File {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: io::Error,
    },
    /// The file has the wrong content.
    #[error("`{}` of `{key}` holds no certificate of an authority in PEM form: {reason}", path.display())]
    Content {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The error; it does not show the content.
        reason: CertificateError,
    },
}

/// The key for the identity provider.
pub(crate) const OIDC_CA: &str = "server.auth.oidc.ca";

/// Reads the authorities of a file that this key names.
pub(crate) fn read(key: &'static str, path: &Path) -> Result<RootCertStore, AuthoritiesError> {
    let path = path.to_owned();
    match fs::read(&path) {
        Ok(pem) => {
            tls::authorities(&pem).map_err(|reason| AuthoritiesError::Content { key, path, reason })
        }
        Err(reason) => Err(AuthoritiesError::File { key, path, reason }),
    }
}

/// Refuses a configuration that names a file without authorities.
pub(crate) fn check(config: &Config) -> Result<(), AuthoritiesError> {
    let oidc = config.access.oidc.as_ref().and_then(|oidc| oidc.ca.as_deref());
    let nats = config.nats.as_ref().and_then(|nats| nats.ca.as_deref());
    let postgres = config.postgres.params.iter().rfind(|(name, _)| name == "sslrootcert");
    let postgres = postgres.map(|(_, path)| Path::new(path));
    let files = [(OIDC_CA, oidc), ("nats.ca", nats), ("postgres.params", postgres)];
    for (key, path) in files {
        if let Some(path) = path {
            read(key, path)?;
        }
    }
    Ok(())
}

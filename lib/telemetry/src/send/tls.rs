//! The TLS configuration of a plan: trusted certificates, and the client certificate.
//!
//! Deliberately absent: reading the files again when they change; a reload of the configuration does that.

use std::{fs, path::Path, sync::Arc};

use net::tls::{
    self, CertificateError, ClientCertificateError, ClientConfig, PemError, RootCertStore, Trust,
    client_certificate,
};

use super::client::ClientError;
use crate::plan::Tls;

/// The configuration for connections to `https` endpoints.
pub(crate) fn config(plan: &Tls) -> Result<ClientConfig, ClientError> {
    let roots = match &plan.ca_file {
        Some(path) => roots_of(path)?,
        None => system_roots()?,
    };
    let roots = Arc::new(roots);
    match (&plan.cert_file, &plan.key_file) {
        (None, None) => Ok(tls::anonymous(roots, &[])),
        (Some(cert), Some(key)) => {
            let (chain, private) = (read(cert, CERTIFICATES)?, read(key, PRIVATE_KEY)?);
            let certificate =
                client_certificate(&chain, &private).map_err(|error| match error {
                    ClientCertificateError::Chain(source) => pem_error(CERTIFICATES, cert, source),
                    ClientCertificateError::Key(source) => pem_error(PRIVATE_KEY, key, source),
                })?;
            let refused =
                |source| ClientError::Pair { cert: cert.clone(), key: key.clone(), source };
            tls::client(&Trust::Authorities(roots), Some(certificate), &[]).map_err(refused)
        }
        (Some(given), None) => Err(ClientError::Half { given: given.clone(), missing: "key" }),
        (None, Some(given)) => {
            Err(ClientError::Half { given: given.clone(), missing: "certificate" })
        }
    }
}

const CERTIFICATES: &str = "certificates";
const PRIVATE_KEY: &str = "a private key";

/// The configuration if no endpoint is `https`: reads no file, trusts no certificate.
pub(crate) fn none() -> ClientConfig {
    tls::anonymous(Arc::new(RootCertStore::empty()), &[])
}

fn roots_of(path: &Path) -> Result<RootCertStore, ClientError> {
    tls::authorities(&read(path, CERTIFICATES)?).map_err(|error| match error {
        CertificateError::Pem(source) => pem_error(CERTIFICATES, path, source),
        CertificateError::Refused(source) => ClientError::Root { path: path.to_owned(), source },
    })
}

fn read(path: &Path, what: &'static str) -> Result<Vec<u8>, ClientError> {
    fs::read(path).map_err(|error| pem_error(what, path, PemError::Io(error)))
}

fn pem_error(what: &'static str, path: &Path, source: PemError) -> ClientError {
    ClientError::Pem { what, path: path.to_owned(), source }
}

fn system_roots() -> Result<RootCertStore, ClientError> {
    let (roots, error) = tls::system_roots(None, None);
    // One invalid certificate among a hundred is no reason to fail.
    if roots.is_empty() {
        let said = error.map_or_else(String::new, |error| format!(": {error}"));
        return Err(ClientError::NoRoots { said });
    }
    Ok(roots)
}

//! The TLS configuration of a plan: trusted certificates, and the client certificate.
//!
//! Deliberately absent: reading the files again when they change; a reload of the configuration does that.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
};

use super::client::ClientError;
use crate::plan::Tls;

/// The configuration for connections to `https` endpoints.
pub(crate) fn config(tls: &Tls) -> Result<ClientConfig, ClientError> {
    let roots = match &tls.ca_file {
        Some(path) => roots_of(path)?,
        None => system_roots()?,
    };
    let builder = builder().with_root_certificates(roots);
    match (&tls.cert_file, &tls.key_file) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(cert), Some(key)) => {
            let source = |path: &Path| {
                let path = path.to_owned();
                move |source| ClientError::Pem { what: "a private key", path, source }
            };
            let private = PrivateKeyDer::from_pem_file(key).map_err(source(key))?;
            let refused =
                |source| ClientError::Pair { cert: cert.clone(), key: key.clone(), source };
            builder.with_client_auth_cert(certificates(cert)?, private).map_err(refused)
        }
        (Some(given), None) => Err(ClientError::Half { given: given.clone(), missing: "key" }),
        (None, Some(given)) => {
            Err(ClientError::Half { given: given.clone(), missing: "certificate" })
        }
    }
}

/// The configuration if no endpoint is `https`: reads no file, trusts no certificate.
pub(crate) fn none() -> ClientConfig {
    builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

fn builder() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    // The provider is set explicitly, because any crate that links rustls can set the default of the process.
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3")
}

fn roots_of(path: &Path) -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let refused = |source| ClientError::Root { path: path.to_owned(), source };
        roots.add(certificate).map_err(refused)?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let refused = |source| ClientError::Pem { what: "certificates", path: path.to_owned(), source };
    let found = CertificateDer::pem_file_iter(path).map_err(refused)?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(refused)?;
    if found.is_empty() { Err(refused(pem::Error::NoItemsFound)) } else { Ok(found) }
}

fn system_roots() -> Result<RootCertStore, ClientError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // One invalid certificate among a hundred is no reason to fail.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let said = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(ClientError::NoRoots { said });
    }
    Ok(roots)
}

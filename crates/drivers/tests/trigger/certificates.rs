//! Certificates for tests.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{Identity, Secret};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tokio_rustls::rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
};

/// A certificate authority.
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(crate) struct Certified {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

/// The flaw of a certificate, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    Expired,
}

impl Authority {
    pub(crate) fn make(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").der().clone();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn sign(&self, name: &str, flaw: Flaw) -> Certified {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        if flaw == Flaw::Expired {
            params.not_before = date_time_ymd(2000, 1, 1);
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Certified { certificate: certificate.der().clone(), key: key.serialize_der() }
    }

    pub(crate) fn pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("a certificate");
        Arc::new(roots)
    }
}

impl Certified {
    pub(crate) fn self_signed(name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let key = made.signing_key.serialize_der();
        Self { certificate: made.cert.der().clone(), key }
    }

    /// Returns the client identity with this certificate.
    pub(crate) fn identity(&self) -> Identity {
        let certificates = pem("CERTIFICATE", &self.certificate);
        Identity { certificates, key: Secret::new(pem("PRIVATE KEY", &self.key)) }
    }

    /// Returns a server configuration with this certificate and these protocols, which requires a client certificate of
    /// `clients`.
    pub(crate) fn server(&self, protocols: &[&str], clients: Option<&Authority>) -> ServerConfig {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(clients.roots(), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let key = PrivateKeyDer::Pkcs8(self.key.clone().into());
        let config = builder.with_single_cert(vec![self.certificate.clone()], key);
        let mut config = config.expect("a server");
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        config
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines = encoded.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let lines: Vec<_> = lines.collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

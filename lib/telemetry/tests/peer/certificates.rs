//! Generated test certificates: an issuer, a server `localhost` and a client, as PEM files in a folder.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};

use super::reply::base64;

/// Generated test certificates.
pub(crate) struct Certificates {
    folder: tempfile::TempDir,
    issuer: CertificateDer<'static>,
    server: (CertificateDer<'static>, Vec<u8>),
}

impl Certificates {
    /// Generates an issuer, a server `localhost` and a client.
    pub(crate) fn make() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut of_issuer = CertificateParams::new(Vec::new()).expect("no names");
        of_issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = of_issuer.self_signed(&key).expect("a certificate");
        let signer = Issuer::new(of_issuer, key);
        let signed = |name: &str| {
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
            let certificate = params.signed_by(&key, &signer).expect("a certificate");
            (certificate.der().clone(), key.serialize_der())
        };
        let (server, client) = (signed("localhost"), signed("client"));
        let made = Self { folder, issuer: issuer.der().clone(), server };
        made.write("ca.pem", "CERTIFICATE", &made.issuer);
        made.write("client.pem", "CERTIFICATE", &client.0);
        made.write("client.key", "PRIVATE KEY", &client.1);
        made
    }

    /// The file of the issuer's certificate.
    pub(crate) fn ca_file(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// The file of the client's certificate.
    pub(crate) fn cert_file(&self) -> PathBuf {
        self.path("client.pem")
    }

    /// The file of the client's key.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.path("client.key")
    }

    /// The folder of the files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn server(&self) -> ServerConfig {
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        self.shown(builder.expect("versions").with_no_client_auth())
    }

    pub(super) fn mutual_server(&self) -> ServerConfig {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.clone()).expect("a certificate");
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let verifier = verifier.build().expect("a verifier");
        self.shown(builder.expect("versions").with_client_cert_verifier(verifier))
    }

    fn shown(
        &self,
        builder: rustls::ConfigBuilder<ServerConfig, rustls::server::WantsServerCert>,
    ) -> ServerConfig {
        let (certificate, key) = &self.server;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.clone()));
        let config = builder.with_single_cert(vec![certificate.clone()], key);
        let mut config = config.expect("a certificate with its key");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, what: &str, der: &[u8]) {
        let body = base64(der);
        let lines: Vec<_> = body.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
        let text = format!("-----BEGIN {what}-----\n{}\n-----END {what}-----\n", lines.join("\n"));
        fs::write(self.path(name), text).expect("written");
    }
}

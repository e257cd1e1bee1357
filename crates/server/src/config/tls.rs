//! `server.tls` and `server.otlpTls`: the certificates of the server.

use std::path::PathBuf;

use source::Fields;

/// The certificates of the server; `None` means plaintext.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// For the port of the API.
    pub api: Option<CertificateFiles>,
    /// For the ports of OTLP.
    pub otlp: Option<OtlpTls>,
}

/// A certificate with its key, both PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and its chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// The TLS settings for senders of OTLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpTls {
    /// The certificate of the server.
    pub identity: CertificateFiles,
    /// The CA that must have signed the certificate of a client; without it, clients need none.
    pub client_ca: Option<PathBuf>,
}

pub(super) fn read(server: &mut Fields<'_>) -> Tls {
    let api = server.table("tls").and_then(|mut fields| {
        let identity = identity(&mut fields);
        fields.finish();
        identity
    });
    let otlp = server.table("otlpTls").and_then(|mut fields| {
        let identity = identity(&mut fields);
        let client_ca = fields.string("clientCa").map(PathBuf::from);
        fields.finish();
        Some(OtlpTls { identity: identity?, client_ca })
    });
    Tls { api, otlp }
}

fn identity(fields: &mut Fields<'_>) -> Option<CertificateFiles> {
    let mut file =
        |key: &str| fields.require(key).and_then(|item| item.string()).map(PathBuf::from);
    let (cert, key) = (file("cert"), file("key"));
    Some(CertificateFiles { cert: cert?, key: key? })
}

//! `server.tls` and `server.otlpTls`: by which certificates the server is known.

use std::path::PathBuf;

use source::Fields;

/// By which certificates the server is known; none is plaintext.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// On the port of the API.
    pub api: Option<CertificateFiles>,
    /// On the ports of OTLP.
    pub otlp: Option<OtlpTls>,
}

/// A certificate with its key, both files of PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and those that lead to its root.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// How senders of OTLP are met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpTls {
    /// What they are shown.
    pub identity: CertificateFiles,
    /// Who must have signed what they show; without it they need show nothing.
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

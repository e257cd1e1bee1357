//! The certificate of a server, for those who look for what is wrong with it: a client that only connects gets one error.

use std::{sync::Arc, time::Duration};

use http::Uri;
use rustls::{
    CertificateError, Error,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use crate::{
    dial::{ConnectError, Names, Origin, Route, session},
    tls::{self, RootCertStore, TlsClient, Trust},
};

/// No certificate is valid for so long.
const AFTERWARDS: Duration = Duration::from_secs(1000 * 365 * 86_400);

/// The certificate of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCertificate {
    /// Why it is not trusted, if it is not.
    pub refusal: Option<CertificateRefusal>,
    /// The end of its validity, from 1970; none if it cannot be parsed.
    pub ends: Option<Duration>,
}

/// Why a certificate is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateRefusal {
    /// It was valid until earlier.
    Expired,
    /// It will be valid later.
    NotYetValid,
    /// No trusted authority leads to it.
    UnknownAuthority,
    /// It is for other names than the host.
    OtherName,
    /// Anything else, in words.
    Other(String),
}

/// Connects to the host of a URL, and returns its certificate as these authorities judge it at this time, which counts from 1970.
/// None for a URL without TLS.
pub async fn server_certificate(
    url: &Uri,
    roots: RootCertStore,
    now: Duration,
) -> Result<Option<ServerCertificate>, ConnectError> {
    let origin = Origin::of(url)?;
    if !origin.is_tls {
        return Ok(None);
    }
    let config = tls::client(&Trust::Any, None, &[]).expect("there is no certificate to refuse");
    let tls = TlsClient::new(config);
    let route = Route { proxy: None, networks: None, names: Names::System, tls: &tls };
    let session = session(&origin.target, route).await?;
    let chain = session.get_ref().1.peer_certificates().unwrap_or_default();
    Ok(Some(judged(chain, &origin.target.host, roots, now)))
}

/// Judges a chain, the certificate of the server first.
fn judged(
    chain: &[CertificateDer<'_>],
    host: &str,
    roots: RootCertStore,
    now: Duration,
) -> ServerCertificate {
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let (Ok(verifier), Some((certificate, between)), Ok(name)) =
        (verifier, chain.split_first(), ServerName::try_from(host))
    else {
        // Without any authority there is no verifier.
        return ServerCertificate {
            refusal: Some(CertificateRefusal::UnknownAuthority),
            ends: None,
        };
    };
    let verify = |now| {
        let now = UnixTime::since_unix_epoch(now);
        verifier.verify_server_cert(certificate, between, &name, &[], now).err()
    };
    // The end of the validity is in the error of a later time.
    let ends = match verify(now + AFTERWARDS) {
        Some(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(Duration::from_secs(not_after.as_secs()))
        }
        _ => None,
    };
    ServerCertificate { refusal: verify(now).map(refusal), ends }
}

fn refusal(error: Error) -> CertificateRefusal {
    match error {
        Error::InvalidCertificate(error) => match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                CertificateRefusal::Expired
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                CertificateRefusal::NotYetValid
            }
            // Another authority can have the name of a trusted one.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                CertificateRefusal::UnknownAuthority
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                CertificateRefusal::OtherName
            }
            other => CertificateRefusal::Other(other.to_string()),
        },
        other => CertificateRefusal::Other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use rustls::pki_types::CertificateDer;

    use super::{CertificateRefusal, RootCertStore, judged};

    /// Returns a certificate for a name that is valid in the years from 2020 to 2029.
    fn made(name: &str) -> CertificateDer<'static> {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2030, 1, 1);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("signed").der().clone()
    }

    #[test]
    fn what_is_wrong_with_a_certificate_is_named() {
        let (known, other) = (made("localhost"), made("localhost"));
        let year = |year: u64| Duration::from_secs((year - 1970) * 31_556_952);
        let cases = [
            (&known, "localhost", 2025, None),
            (&known, "localhost", 2031, Some(CertificateRefusal::Expired)),
            (&known, "localhost", 2019, Some(CertificateRefusal::NotYetValid)),
            (&known, "example.com", 2025, Some(CertificateRefusal::OtherName)),
            (&other, "localhost", 2025, Some(CertificateRefusal::UnknownAuthority)),
            (&other, "localhost", 2031, Some(CertificateRefusal::Expired)),
        ];
        for (certificate, host, at, expected) in cases {
            let mut roots = RootCertStore::empty();
            roots.add(known.clone()).expect("a root");
            let found = judged(std::slice::from_ref(certificate), host, roots, year(at));
            assert_eq!(found.refusal, expected, "{host} in {at}");
            assert_eq!(found.ends, Some(Duration::from_secs(1_893_456_000)), "{host} in {at}");
        }
        let none = judged(&[known], "localhost", RootCertStore::empty(), year(2025));
        assert_eq!(none.refusal, Some(CertificateRefusal::UnknownAuthority));
    }
}

//! TLS: the certificates that we trust, and the peers that trust ours.

use super::{BOTH, client::send, otlp};
use crate::{
    plan::{Otlp, Signal, Tls, Transport},
    send::{
        Answer, Client,
        answer::WhyKind,
        peer::{Certificates, Peer},
    },
};

fn with(transport: Transport, peer: &Peer, tls: Tls) -> Otlp {
    Otlp { tls, ..otlp(transport, &peer.endpoint()) }
}

fn ca(certificates: &Certificates) -> Tls {
    Tls { ca_file: Some(certificates.ca_file()), ..Tls::default() }
}

fn mutual(certificates: &Certificates) -> Tls {
    let (cert, key) = (certificates.cert_file(), certificates.key_file());
    Tls { cert_file: Some(cert), key_file: Some(key), ..ca(certificates) }
}

#[test]
fn a_peer_of_the_right_issuer_is_believed() {
    let certificates = Certificates::make();
    for transport in BOTH {
        let peer = Peer::start_tls(&certificates);
        let otlp = with(transport, &peer, ca(&certificates));
        assert_eq!(send(&otlp, &[Signal::Spans; 2]), [Answer::Accepted, Answer::Accepted]);
        assert!(peer.seen().iter().all(|seen| !seen.is_known && seen.connection == 0));
    }
}

#[test]
fn a_peer_that_asks_is_shown_our_certificate() {
    let certificates = Certificates::make();
    for transport in BOTH {
        let peer = Peer::start_mutual_tls(&certificates);
        let otlp = with(transport, &peer, mutual(&certificates));
        assert_eq!(send(&otlp, &[Signal::Spans]), [Answer::Accepted]);
        assert!(peer.seen()[0].is_known);
    }
}

#[test]
fn what_does_not_fit_is_the_operators_to_mend() {
    let (certificates, others) = (Certificates::make(), Certificates::make());
    for transport in BOTH {
        let peer = Peer::start_tls(&certificates);
        let mutual_peer = Peer::start_mutual_tls(&certificates);
        let plain = Peer::start();
        let mut plain_otlp = with(transport, &plain, ca(&certificates));
        plain_otlp.endpoints =
            otlp(transport, &plain.endpoint().replace("http", "https")).endpoints;
        let other_client = Tls { ca_file: Some(certificates.ca_file()), ..mutual(&others) };
        let cases = [
            ("wrong issuer", with(transport, &peer, ca(&others))),
            ("not of the system's", with(transport, &peer, Tls::default())),
            ("no certificate shown", with(transport, &mutual_peer, ca(&certificates))),
            ("another's certificate shown", with(transport, &mutual_peer, other_client)),
            ("no TLS there", plain_otlp),
        ];
        for (case, otlp) in cases {
            let answer = send(&otlp, &[Signal::Spans]).remove(0);
            let Answer::Misconfigured(why) = answer else { panic!("{case}: {answer:?}") };
            assert_eq!(why.kind, WhyKind::Tls, "{case}: {why:?}");
        }
        for peer in [peer, mutual_peer, plain] {
            assert!(peer.seen().is_empty());
        }
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let certificates = Certificates::make();
    let others = Certificates::make();
    let folder = certificates.folder().display().to_string();
    std::fs::write(certificates.folder().join("noise.pem"), "noise").unwrap();
    let (cert, key) = (Some(certificates.cert_file()), Some(certificates.key_file()));
    let file = |name: &str| Some(certificates.folder().join(name));
    let ca_file = || Some(certificates.ca_file());
    let cases = [
        (
            Tls { ca_file: file("none.pem"), ..Tls::default() },
            "cannot read certificates from `{}/none.pem`: I/O error: No such file or directory (os error 2); expected a PEM file",
        ),
        (
            Tls { ca_file: file("noise.pem"), ..Tls::default() },
            "cannot read certificates from `{}/noise.pem`: no items found; expected a PEM file",
        ),
        (
            Tls { ca_file: ca_file(), cert_file: cert.clone(), key_file: None },
            "`{}/client.pem` is given without its key: expected both or none",
        ),
        (
            Tls { ca_file: ca_file(), cert_file: None, key_file: key },
            "`{}/client.key` is given without its certificate: expected both or none",
        ),
        (
            Tls { ca_file: ca_file(), cert_file: cert, key_file: Some(others.key_file()) },
            "`{}/client.pem` and `{other}/client.key` do not fit together: keys may not be consistent: KeyMismatch",
        ),
    ];
    for (tls, message) in cases {
        let otlp = Otlp { tls, ..otlp(Transport::Grpc, "https://localhost:1") };
        let other = others.folder().display().to_string();
        let message = message.replace("{}", &folder).replace("{other}", &other);
        assert_eq!(Client::new(&otlp, "shop/1.0").err().expect("refused").to_string(), message);
    }
    // No file is read if no endpoint is `https`.
    let tls = Tls { ca_file: file("none.pem"), ..Tls::default() };
    let otlp = Otlp { tls, ..otlp(Transport::Grpc, "http://localhost:1") };
    assert!(Client::new(&otlp, "shop/1.0").is_ok());
}

//! Trusted certificates, client certificates, and protocols.

use std::fs;

use model::{HttpRequest, Identity, NoAnswerKind, Secret, Tls, Verify};

use crate::{
    certificates::{Authority, Certified, Flaw},
    firing::{get, no_answer, response, triggers},
    server::Server,
};

fn asking(server: &Server, host: &str, tls: Tls) -> HttpRequest {
    HttpRequest { tls, ..get(&server.url("https", host, "/")) }
}

fn trusting(verify: Verify) -> Tls {
    Tls { verify, ..Tls::default() }
}

/// Each server with each kind of trust: a server without the expected certificate gets no request, unless the document disables
/// verification.
#[tokio::test]
async fn only_who_is_trusted_is_talked_to() {
    let (ours, theirs) = (Authority::make("ours"), Authority::make("theirs"));
    let right = ours.sign("localhost", Flaw::None);
    let expired = ours.sign("localhost", Flaw::Expired);
    let elsewhere = ours.sign("shop.test", Flaw::None);
    let alone = Certified::self_signed("localhost");
    let named =
        |name: &str| Tls { server_name: Some(name.to_owned()), ..trusting(Verify::Ca(ours.pem())) };
    let (by_us, by_them) = (Verify::Ca(ours.pem()), Verify::Ca(theirs.pem()));
    let cases = [
        (&right, trusting(by_us.clone()), None),
        (&right, trusting(by_them.clone()), Some("UnknownIssuer")),
        (&right, trusting(Verify::System), Some("UnknownIssuer")),
        (&right, named("shop.test"), Some("not valid for name")),
        (&elsewhere, trusting(by_us.clone()), Some("not valid for name")),
        (&elsewhere, named("shop.test"), None),
        (&expired, trusting(by_us.clone()), Some("expired")),
        (&alone, trusting(by_us), Some("UnknownIssuer")),
        (&right, trusting(Verify::Nothing), None),
        (&expired, trusting(Verify::Nothing), None),
        (&elsewhere, trusting(Verify::Nothing), None),
        (&alone, trusting(Verify::Nothing), None),
    ];
    // A machine that trusts another authority.
    let folder = tempfile::tempdir().expect("a folder");
    let roots = folder.path().join("roots.pem");
    fs::write(&roots, theirs.pem()).expect("written");
    let triggers = triggers(&[("SSL_CERT_FILE", roots.to_str().expect("a path"))]);
    for (number, (shown, tls, refused)) in cases.into_iter().enumerate() {
        let server = Server::tls(shown.server(&[], None)).await;
        let request = asking(&server, "localhost", tls);
        match refused {
            None => assert_eq!(response(&triggers, request).await.status, 200, "case {number}"),
            Some(words) => {
                let answer = no_answer(&triggers, request).await;
                assert_eq!(answer.kind, NoAnswerKind::Tls, "case {number}: {}", answer.message);
                assert!(answer.message.contains(words), "case {number}: {}", answer.message);
                assert!(server.requests().is_empty(), "case {number}: nothing was sent");
            }
        }
    }
}

/// A machine trusts the roots that its environment names, if it names some.
#[tokio::test]
async fn a_machine_trusts_whom_its_environment_names() {
    let authority = Authority::make("ours");
    let server = Server::tls(authority.sign("localhost", Flaw::None).server(&[], None)).await;
    let folder = tempfile::tempdir().expect("a folder");
    let (full, empty) = (folder.path().join("full.pem"), folder.path().join("empty.pem"));
    fs::write(&full, authority.pem()).expect("written");
    fs::write(&empty, "").expect("written");
    let trust =
        |file: &std::path::Path| triggers(&[("SSL_CERT_FILE", file.to_str().expect("a path"))]);
    let request = || asking(&server, "localhost", Tls::default());
    assert_eq!(response(&trust(&full), request()).await.status, 200);
    let answer = no_answer(&trust(&empty), request()).await;
    assert!(answer.message.contains("install its `ca-certificates`"), "{}", answer.message);
}

/// A server that requires a client certificate gets ours, and accepts no other.
#[tokio::test]
async fn a_server_knows_us_by_our_certificate() {
    let (ours, theirs) = (Authority::make("ours"), Authority::make("theirs"));
    let server = ours.sign("localhost", Flaw::None).server(&["h2", "http/1.1"], Some(&ours));
    let server = Server::tls(server).await;
    let known_by =
        |identity: Option<Identity>| Tls { identity, ..trusting(Verify::Ca(ours.pem())) };
    let right = ours.sign("client", Flaw::None).identity();
    let one_file = format!("{}{}", right.key.expose(), right.certificates);
    let in_one_file = Identity { certificates: one_file.clone(), key: Secret::new(one_file) };
    let triggers = triggers(&[]);
    for identity in [right, in_one_file] {
        let request = asking(&server, "localhost", known_by(Some(identity)));
        assert_eq!(response(&triggers, request).await.status, 200);
    }
    let stranger = theirs.sign("client", Flaw::None).identity();
    for identity in [None, Some(stranger)] {
        let request = asking(&server, "localhost", known_by(identity));
        let answer = no_answer(&triggers, request).await;
        assert_eq!(answer.kind, NoAnswerKind::Connection, "{}", answer.message);
        assert!(answer.message.contains("alert"), "{}", answer.message);
    }
    assert_eq!(server.requests().len(), 2, "nobody else was heard");
}

/// An invalid certificate or key is reported before anything is sent.
#[tokio::test]
async fn a_file_that_is_no_certificate_is_told() {
    let authority = Authority::make("ours");
    let Identity { certificates, key } = authority.sign("client", Flaw::None).identity();
    let other = authority.sign("other", Flaw::None).identity().key;
    let identity = |certificates: &str, key: &Secret| {
        let identity = Identity { certificates: certificates.to_owned(), key: key.clone() };
        Tls { identity: Some(identity), ..Tls::default() }
    };
    let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    let cases = [
        (trusting(Verify::Ca(String::new())), "its `tls.caFile`: there is no certificate in it"),
        (trusting(Verify::Ca(broken.to_owned())), "its `tls.caFile`: "),
        (identity("", &key), "its `tls.certFile`: there is no certificate in it"),
        (identity(broken, &key), "its `tls.certFile`: "),
        (identity(&certificates, &Secret::new("")), "its `tls.keyFile`: "),
        (identity(&certificates, &other), "its `tls.certFile`: "),
    ];
    for (tls, words) in cases {
        let request = HttpRequest { tls, ..get("https://localhost:1/") };
        let answer = no_answer(&triggers(&[]), request).await;
        assert_eq!(answer.kind, NoAnswerKind::Invalid, "{}", answer.message);
        let words = format!("the request cannot be sent: {words}");
        assert!(answer.message.starts_with(&words), "{}", answer.message);
    }
}

/// A peer selects the protocol; without a selection it is HTTP/1.1.
#[tokio::test]
async fn a_peer_chooses_what_is_spoken() {
    let authority = Authority::make("ours");
    let cases: [(&[&str], &str); 4] = [
        (&["h2", "http/1.1"], "HTTP/2.0"),
        (&["h2"], "HTTP/2.0"),
        (&["http/1.1"], "HTTP/1.1"),
        (&[], "HTTP/1.1"),
    ];
    for (protocols, version) in cases {
        let shown = authority.sign("localhost", Flaw::None);
        let server = Server::tls(shown.server(protocols, None)).await;
        let tls = trusting(Verify::Ca(authority.pem()));
        let headers = vec![("Host".to_owned(), "shop.example".to_owned())];
        let request = HttpRequest {
            method: "POST".to_owned(),
            headers,
            body: model::Body::Text("{}".into()),
            ..asking(&server, "localhost", tls)
        };
        assert_eq!(response(&triggers(&[]), request).await.status, 200);
        let seen = server.requests().remove(0);
        let (line, rest) = seen.split_once('\n').expect("a line");
        assert!(line.ends_with(version), "{protocols:?}: {line}");
        assert!(seen.contains("shop.example"), "{seen}");
        assert!(rest.ends_with("\n{}"), "{seen}");
    }
}

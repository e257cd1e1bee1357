//! TLS, and the protocols that are negotiated.

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use drivers::receiver::{Config, Counts, Tls, start};
use model::{Fault, Faulty};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    },
};

use crate::{WANTED, config, grpc::TRACES, protocols::send_http2, request, told};

/// Creates a certificate and its key, in PEM format, and the certificate for clients that trust it.
fn certificate() -> (String, String, CertificateDer<'static>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["receiver".to_owned()]).expect("a certificate");
    let key = pem("PRIVATE KEY", &signing_key.serialize_der());
    (pem("CERTIFICATE", cert.der()), key, cert.der().clone())
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

async fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    offers: &[&[u8]],
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a root");
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = offers.iter().map(|offer| offer.to_vec()).collect();
    let stream = TcpStream::connect(address).await.expect("connected");
    let name = ServerName::try_from("receiver").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a session")
}

#[tokio::test]
async fn every_protocol_is_served_under_tls() {
    let (certificate, key, trusted) = certificate();
    let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes()).expect("usable");
    let sink = told(false, 9);
    let config = Config { tls: Some(tls), ..config() };
    let receiver = start(config, Arc::clone(&sink)).await.expect("started");
    let message = request(&[&WANTED]);
    let call = [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat();
    for address in receiver.addresses() {
        let stream = connect(*address, &trusted, &[b"h2", b"http/1.1"]).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let headers = [("content-type", "application/grpc")];
        let response = send_http2(stream, TRACES, &headers, &call).await;
        assert_eq!(response.status(), 200);
        let stream = connect(*address, &trusted, &[b"h2"]).await;
        let headers = [("content-type", "application/x-protobuf")];
        let response = send_http2(stream, "/v1/traces", &headers, &message).await;
        assert_eq!(response.status(), 200);
        for offers in [&[&b"http/1.1"[..]][..], &[]] {
            let mut stream = connect(*address, &trusted, offers).await;
            assert_eq!(stream.get_ref().1.alpn_protocol(), offers.first().copied());
            let head = format!(
                "POST /v1/traces HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
                 content-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
                message.len()
            );
            stream.write_all(&[head.as_bytes(), &message].concat()).await.expect("sent");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.expect("read");
            assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
        }
    }
    let expected = Counts { kept: 8, ..Counts::default() };
    assert_eq!(receiver.shutdown().await, expected);
}

/// Connects, presents the client certificate if there is one, sends an export, and returns whether it got a response.
async fn is_answered(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    shown: Option<(CertificateDer<'static>, &CertifiedKey<KeyPair>)>,
) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a root");
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match shown {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::try_from(key.signing_key.serialize_der()).expect("a key");
            config.with_client_auth_cert(vec![certificate], key).expect("a pair")
        }
    };
    let stream = TcpStream::connect(address).await.expect("connected");
    let name = ServerName::try_from("receiver").expect("a name");
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let Ok(mut stream) = connected else { return false };
    let head = "GET /v1/traces HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let mut answer = Vec::new();
    let sent = stream.write_all(head.as_bytes()).await;
    sent.is_ok()
        && stream.read_to_end(&mut answer).await.is_ok()
        && answer.starts_with(b"HTTP/1.1 405")
}

#[tokio::test]
async fn clients_show_a_certificate_where_they_are_asked_to() {
    let (certificate, key, trusted) = certificate();
    let known = generate_simple_self_signed(vec!["sender".to_owned()]).expect("a certificate");
    let unknown = generate_simple_self_signed(vec!["sender".to_owned()]).expect("a certificate");
    let signers = pem("CERTIFICATE", known.cert.der());
    let tls = Tls::with_clients(certificate.as_bytes(), key.as_bytes(), signers.as_bytes());
    let config = Config { tls: Some(tls.expect("usable")), ..config() };
    let receiver = start(config, told(false, 0)).await.expect("started");
    let address = receiver.addresses()[0];
    let shown = Some((known.cert.der().clone(), &known));
    assert!(is_answered(address, &trusted, shown).await);
    assert!(!is_answered(address, &trusted, None).await, "nothing is shown");
    let shown = Some((unknown.cert.der().clone(), &unknown));
    assert!(!is_answered(address, &trusted, shown).await, "signed by somebody else");
    for signers in ["", "noise"] {
        let tls = Tls::with_clients(certificate.as_bytes(), key.as_bytes(), signers.as_bytes());
        let error = tls.expect_err("nobody could sign").to_string();
        assert!(error.contains("that signs for clients"), "{error}");
    }
}

#[tokio::test]
async fn who_speaks_no_tls_is_noted() {
    let (certificate, key, _) = certificate();
    let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes()).expect("usable");
    let config = Config { tls: Some(tls), ..config() };
    let receiver = start(config, told(false, 0)).await.expect("started");
    let mut stream = TcpStream::connect(receiver.addresses()[0]).await.expect("connected");
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("sent");
    stream.read_to_end(&mut Vec::new()).await.ok();
    let refusals = receiver.seen().refusals;
    assert!(refusals[0].what.starts_with("no TLS session with a client: "), "{refusals:?}");
}

#[tokio::test]
async fn a_peer_that_does_not_finish_is_let_go() {
    let (certificate, key, _) = certificate();
    let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes()).expect("usable");
    let header_timeout = std::time::Duration::from_millis(100);
    let config = Config { tls: Some(tls), header_timeout, ..config() };
    let receiver = start(config, told(false, 0)).await.expect("started");
    for said in [&b""[..], b"\x16\x03"] {
        let mut stream = TcpStream::connect(receiver.addresses()[0]).await.expect("connected");
        stream.write_all(said).await.expect("sent");
        stream.read_to_end(&mut Vec::new()).await.ok();
    }
}

#[test]
fn a_certificate_of_no_use_is_named() {
    let (certificate, key, _) = certificate();
    let (_, other_key, _) = self::certificate();
    for (certificate, key, words) in [
        ("", key.as_str(), "no certificate in PEM form"),
        (&key, &key, "no certificate in PEM form"),
        (&certificate, "noise", "no private key in PEM form"),
        (&certificate, &other_key, "cannot be used"),
    ] {
        let error = Tls::from_pem(certificate.as_bytes(), key.as_bytes()).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.fault(), Fault::Invalid);
    }
}

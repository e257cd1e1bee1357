//! All protocols on every address: HTTP versions, compressions, and unknown protocols.

use std::{io::Write, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use drivers::receiver::{Config, Counts, start};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    WANTED, config,
    grpc::TRACES,
    http::{PROTOBUF, exchange, gzip, send},
    receiver, request, told,
};

const LONG: Duration = Duration::from_secs(10);

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Sends one request over HTTP/2, on its own connection.
pub(crate) async fn send_http2(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    path: &str,
    headers: Headers<'_>,
    body: &[u8],
) -> Response<Incoming> {
    let io = TokioIo::new(stream);
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), io).await.expect("a connection");
    let mut request = Request::post(format!("http://receiver{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body))).expect("a request");
    let mut connection = Box::pin(connection);
    let response = tokio::select! {
        response = sender.send_request(request) => response.expect("an answer"),
        _ = &mut connection => panic!("the connection ended first"),
    };
    let mut driven = tokio::task::JoinSet::new();
    driven.spawn(connection);
    // The caller reads the body of the response later.
    driven.detach_all();
    response
}

async fn connected(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("connected")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 3).expect("packed")
}

#[tokio::test]
async fn otlp_over_http2_is_not_only_grpc() {
    let sink = told(false, 9);
    let receiver = receiver(&sink).await;
    let message = request(&[&WANTED]);
    let json = br#"{"resourceSpans":[]}"#;
    let cases: [(&str, &[u8], u16); 3] = [
        ("application/x-protobuf", &message, 200),
        ("application/json", json, 200),
        ("application/grpc+json", &message, 200),
    ];
    for address in receiver.addresses() {
        for (content_type, body, status) in cases {
            let headers = [("content-type", content_type)];
            let path = "/v1/traces";
            let response = send_http2(connected(*address).await, path, &headers, body).await;
            assert_eq!(response.status(), status, "{content_type}");
            let grpc_status = response.headers().get("grpc-status").cloned();
            // An unknown gRPC call gets a gRPC response.
            assert_eq!(grpc_status.is_some(), content_type.starts_with("application/grpc"));
            response.into_body().collect().await.expect("a whole answer");
        }
    }
    assert_eq!(receiver.shutdown().await, Counts { kept: 2, ..Counts::default() });
}

/// Encodes the body of a call: prefix and message.
fn call(packed: u8, len: u32, message: &[u8]) -> Vec<u8> {
    [&[packed][..], &len.to_be_bytes(), message].concat()
}

#[tokio::test]
async fn each_mistake_in_a_call_has_its_status() {
    let receiver = receiver(&told(false, 0)).await;
    let plain = [("content-type", "application/grpc+proto")];
    let gzipped = [("content-type", "application/grpc"), ("grpc-encoding", "gzip")];
    let brotli = [("content-type", "application/grpc"), ("grpc-encoding", "br")];
    let json = [("content-type", "application/grpc+json")];
    let web = [("content-type", "application/grpc-web")];
    #[rustfmt::skip]
    let cases: [(Headers<'_>, Vec<u8>, &str, &str); 10] = [
        (&plain, call(0, 0, b""), "0", ""),
        (&plain, vec![], "3", "5 bytes of head"),
        (&plain, vec![0; 4], "3", "5 bytes of head"),
        (&plain, call(0, 9, b"abc"), "3", "9 bytes announced, 3 there"),
        (&plain, call(7, 0, b""), "3", "starts with 0 or 1, not 7"),
        (&plain, call(1, 0, b""), "3", "`grpc-encoding` does not say how"),
        (&gzipped, call(1, 3, b"abc"), "3", "the message broke off: Gzip"),
        (&brotli, call(1, 3, b"abc"), "12", "`br` is not taken"),
        (&json, call(0, 0, b""), "12", "`application/grpc+json` are not taken; send `application/grpc`"),
        (&web, call(0, 0, b""), "12", "`application/grpc-web` are not taken"),
    ];
    for (headers, body, status, words) in cases {
        let stream = connected(receiver.addresses()[0]).await;
        let response = send_http2(stream, TRACES, headers, &body).await;
        assert_eq!(response.status(), 200, "{words}");
        let (head, body) = response.into_parts();
        let trailers = body.collect().await.expect("whole").trailers().cloned().unwrap_or_default();
        let said = |name: &str| {
            let value = head.headers.get(name).or(trailers.get(name));
            value.map_or("", |value| value.to_str().expect("text")).to_owned()
        };
        assert_eq!(said("grpc-status"), status, "{words}: {}", said("grpc-message"));
        assert!(said("grpc-message").contains(words), "{words}: {}", said("grpc-message"));
        let offers = said("grpc-accept-encoding");
        assert_eq!(offers, if words.contains("`br`") { "identity,gzip,zstd" } else { "" });
    }
}

#[tokio::test]
async fn a_call_over_http_1_is_told_what_it_needs() {
    let receiver = receiver(&told(false, 0)).await;
    let headers = "content-type: application/grpc\r\n";
    let line = format!("POST {TRACES}");
    let answer = send(receiver.addresses()[0], &line, headers, &call(0, 0, b"")).await;
    assert!(answer.head.starts_with("HTTP/1.1 505 "), "{}", answer.head);
    assert!(String::from_utf8_lossy(&answer.body).contains("gRPC needs HTTP/2"));
}

#[tokio::test]
async fn packed_messages_are_unpacked_within_limits() {
    let sink = told(false, 9);
    let receiver = receiver(&sink).await;
    let message = request(&[&WANTED]);
    let bomb = vec![0; 100_000_000];
    let mut wide = zstd::stream::Encoder::new(Vec::new(), 1).expect("an encoder");
    wide.window_log(27).expect("a window");
    wide.write_all(&message).expect("packed");
    let wide = wide.finish().expect("packed");
    let cut = zstd(&message);
    #[rustfmt::skip]
    let cases: [(&str, Vec<u8>, u16, &str); 9] = [
        ("identity", message.clone(), 200, ""),
        ("gzip", gzip(&message), 200, ""),
        ("GZIP", gzip(&message), 200, ""),
        ("zstd", zstd(&message), 200, ""),
        ("gzip", gzip(&bomb[..9_000_000]), 413, "more than 10000 bytes"),
        ("zstd", zstd(&bomb), 413, "more than 10000 bytes"),
        ("zstd", wide, 400, "the message broke off: Zstd"),
        ("zstd", cut[..cut.len() - 3].to_vec(), 400, "the message broke off: Zstd"),
        ("zstd", b"noise".to_vec(), 400, "the message broke off: Zstd"),
    ];
    for (packing, body, status, words) in cases {
        let headers = format!("{PROTOBUF}content-encoding: {packing}\r\n");
        let answer = send(receiver.addresses()[0], "POST /v1/traces", &headers, &body).await;
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.head.starts_with(&format!("HTTP/1.1 {status} ")), "{packing}: {said}");
        assert!(said.contains(words), "{packing}: {said}");
    }
    assert_eq!(receiver.shutdown().await, Counts { kept: 4, ..Counts::default() });
}

#[tokio::test]
async fn who_speaks_neither_is_told() {
    let receiver = receiver(&told(false, 0)).await;
    let hello = [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0];
    for (said, noted) in [
        (&b"\x00\x01\x02noise"[..], "a client spoke neither HTTP nor gRPC"),
        (b"{}", "a client spoke neither HTTP nor gRPC"),
        (&hello, "a client spoke TLS to a port without; send to `http://`"),
    ] {
        let answer = exchange(receiver.addresses()[0], said).await;
        assert!(answer.head.starts_with("HTTP/1.1 400 "), "{}", answer.head);
        let length = format!("content-length: {}\r\n", answer.body.len());
        assert!(answer.head.contains(&length), "{}", answer.head);
        let words = "this port takes OTLP over gRPC and HTTP, and this was neither\n";
        assert_eq!(String::from_utf8_lossy(&answer.body), words);
        let refusals = receiver.seen().refusals;
        assert!(refusals.last().expect("noted").what.starts_with(noted), "{refusals:?}");
    }
    let answer = exchange(receiver.addresses()[0], b"NOISE\r\n\r\n").await;
    assert!(answer.head.starts_with("HTTP/1.1 400 "), "{}", answer.head);
    let refusals = receiver.seen().refusals;
    assert!(refusals.last().expect("noted").what.contains("not HTTP/1.1"), "{refusals:?}");
}

#[tokio::test]
async fn slow_senders_do_not_hold_others_up() {
    let sink = told(false, 9);
    let config = Config { export_timeout: Duration::from_secs(60), ..config() };
    let receiver = start(config, Arc::clone(&sink)).await.expect("started");
    let address = receiver.addresses()[0];
    let head =
        format!("POST /v1/traces HTTP/1.1\r\nhost: a\r\n{PROTOBUF}content-length: 9999\r\n\r\nab");
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = connected(address).await;
        stream.write_all(head.as_bytes()).await.expect("sent");
        slow.push(stream);
    }
    let message = request(&[&WANTED]);
    let answered = send(address, "POST /v1/traces", PROTOBUF, &message);
    let answer = timeout(LONG, answered).await.expect("answered");
    assert!(answer.head.starts_with("HTTP/1.1 200 "), "{}", answer.head);
    let mut read = [0; 1];
    let first = slow.first_mut().expect("a slow one");
    let nothing = timeout(Duration::from_millis(50), first.read(&mut read)).await;
    assert!(nothing.is_err(), "it has time yet");
}

//! Which senders may send, and which errors the others get.

use std::sync::Arc;

use drivers::receiver::{Config, Counts, Entry, Gate, Sender, start};

use crate::{
    WANTED, config,
    grpc::TRACES,
    http::{PROTOBUF, send},
    protocols::send_http2,
    request, told,
};

/// A gate that accepts `good`, refuses `reader`, and cannot decide about `later`.
fn gate() -> Gate {
    Gate::new(async |token, _| match token.as_ref().map(|token| token.expose()) {
        Some("good") => Entry::Allowed(Sender::of_all()),
        Some("reader") => Entry::Forbidden,
        Some("later") => Entry::Later,
        _ => Entry::Refused,
    })
}

#[tokio::test]
async fn only_those_who_may_are_let_in() {
    let sink = told(false, 9);
    let config = Config { gate: Some(gate()), ..config() };
    let receiver = start(config, Arc::clone(&sink)).await.expect("started");
    let address = receiver.addresses()[0];
    let message = request(&[&WANTED]);
    let call = [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat();
    let cases = [
        (None, 401, "16", "nobody may send without a token here"),
        (Some(("authorization", "Bearer bad")), 401, "16", "the token is not known"),
        (Some(("authorization", "Basic good")), 401, "16", "nobody may send without a token here"),
        (Some(("authorization", "bearer later")), 503, "14", "send it again later"),
        (Some(("authorization", "Bearer reader")), 403, "7", "the token may read and not send"),
        (Some(("x-api-key", "bad")), 401, "16", "the token is not known"),
        (Some(("authorization", "bearer good")), 200, "0", ""),
        (Some(("x-api-key", "good")), 200, "0", ""),
        (Some(("api-key", "good")), 200, "0", ""),
    ];
    for (header, status, code, words) in cases {
        let line = header.map_or(String::new(), |(name, value)| format!("{name}: {value}\r\n"));
        let headers = format!("{PROTOBUF}{line}");
        let answer = send(address, "POST /v1/traces", &headers, &message).await;
        assert!(
            answer.head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{header:?}: {}",
            answer.head
        );
        let body = String::from_utf8_lossy(&answer.body);
        assert!(body.contains(words), "{header:?}: {body}");
        assert_eq!(answer.head.contains("www-authenticate: Bearer"), status == 401);
        assert_eq!(answer.head.contains("retry-after: 1"), status == 503);

        let stream = tokio::net::TcpStream::connect(address).await.expect("connected");
        let mut headers = vec![("content-type", "application/grpc")];
        headers.extend(header);
        let response = send_http2(stream, TRACES, &headers, &call).await;
        let told =
            response.headers().get("grpc-status").map_or("0", |it| it.to_str().expect("text"));
        assert_eq!(told, code, "{header:?}");
    }
    let refusals = receiver.seen().refusals;
    assert_eq!(refusals.len(), 12, "each is told to whoever asks why a trace is missing");
    assert!(refusals.iter().all(|it| !it.what.contains("bad")), "and none tells a token");
    assert_eq!(receiver.shutdown().await, Counts { kept: 6, ..Counts::default() });
}

/// The body of an unauthorized sender is not read.
#[tokio::test]
async fn a_body_is_not_read_before_its_sender_is_known() {
    let config = Config { gate: Some(gate()), ..config() };
    let receiver = start(config, told(false, 0)).await.expect("started");
    let head =
        format!("POST /v1/traces HTTP/1.1\r\nhost: a\r\n{PROTOBUF}content-length: 9999\r\n\r\n");
    let answer = crate::http::exchange(receiver.addresses()[0], head.as_bytes()).await;
    assert!(answer.head.starts_with("HTTP/1.1 401 "), "without a byte of it: {}", answer.head);
    assert!(answer.head.contains("connection: close"), "{}", answer.head);
}

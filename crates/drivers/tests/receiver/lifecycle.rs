//! The start, the limits and the shutdown of a receiver.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use drivers::receiver::{Config, Counts, StartError, start};
use model::{Fault, Faulty};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::{WANTED, any_port, config, receiver, request, told};

/// A timeout that expires only if something hangs.
const LONG: Duration = Duration::from_secs(10);
/// Long enough to serve a connection on loopback, if it is served.
const SHORT: Duration = Duration::from_millis(200);

fn export(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-protobuf\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

async fn connect(address: SocketAddr, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(sent).await.expect("sent");
    stream
}

async fn answer(stream: &mut TcpStream) -> String {
    let mut buffer = [0; 1000];
    let len = stream.read(&mut buffer).await.expect("read");
    String::from_utf8_lossy(&buffer[..len]).into_owned()
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = taken.local_addr().expect("an address");
    for addresses in [vec![address], vec![any_port(), address]] {
        let config = Config { addresses, ..config() };
        let error = start(config, told(false, 0)).await.expect_err("refused");
        assert!(matches!(error, StartError::Taken(taken) if taken == address), "{error}");
        assert_eq!(error.fault(), Fault::Conflict);
        assert!(error.to_string().starts_with(&format!("`{address}` is taken; ")), "{error}");
    }
}

#[tokio::test]
async fn an_address_that_is_not_ours_is_named() {
    // An address of a documentation network, which no machine has.
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], 0));
    let error = start(Config { addresses: vec![elsewhere], ..config() }, told(false, 0)).await;
    let error = error.expect_err("refused");
    assert_eq!(error.fault(), Fault::Invalid);
    assert!(error.to_string().starts_with("cannot listen on `192.0.2.1:0`: "), "{error}");
}

#[tokio::test]
async fn a_shutdown_lets_an_export_end() {
    let sink = told(false, 0);
    let receiver = receiver(&sink).await;
    let (grpc, http) = (receiver.addresses()[0], receiver.addresses()[1]);
    let mut under_way = connect(http, &export(&request(&[&WANTED]))).await;
    let mut idle = connect(http, &export(&[])).await;
    assert!(answer(&mut idle).await.starts_with("HTTP/1.1 200 "));
    let silent = connect(grpc, b"").await;
    let shutdown = receiver.shutdown();
    let mut shutdown = std::pin::pin!(shutdown);
    assert!(timeout(SHORT, shutdown.as_mut()).await.is_err(), "an export is under way");
    assert!(TcpStream::connect(http).await.is_err(), "nobody listens any more");
    assert!(TcpStream::connect(grpc).await.is_err(), "nobody listens any more");
    sink.go.add_permits(1);
    let counts = timeout(LONG, shutdown).await.expect("ended");
    assert_eq!(counts, Counts { kept: 1, ..Counts::default() });
    assert!(answer(&mut under_way).await.starts_with("HTTP/1.1 200 "));
    drop(silent);
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_ever() {
    let sink = told(false, 0);
    let config = Config { shutdown_timeout: SHORT, ..config() };
    let receiver = start(config, Arc::clone(&sink)).await.expect("started");
    let _under_way = connect(receiver.addresses()[1], &export(&request(&[&WANTED]))).await;
    let counts = timeout(LONG, receiver.shutdown()).await.expect("ended");
    assert_eq!(counts, Counts::default());
    assert_eq!(Arc::strong_count(&sink), 1, "no task is left");
}

#[tokio::test]
async fn what_is_dropped_no_longer_listens() {
    let receiver = receiver(&told(false, 0)).await;
    let address = receiver.addresses()[1];
    drop(receiver);
    tokio::task::yield_now().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_let_go() {
    let config = Config { header_timeout: SHORT, ..config() };
    let receiver = start(config, told(false, 0)).await.expect("started");
    for (address, said) in [
        (receiver.addresses()[1], "POST /v1/tra"),
        (receiver.addresses()[0], ""),
        (receiver.addresses()[0], "PRI * HT"),
        // HTTP/2 with only its settings frame.
        (receiver.addresses()[0], "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
    ] {
        let mut stream = connect(address, said.as_bytes()).await;
        let mut read = Vec::new();
        timeout(LONG, stream.read_to_end(&mut read)).await.expect("let go").expect("closed");
        assert!(!read.starts_with(b"HTTP/1.1 200"), "{said}");
    }
}

#[tokio::test]
async fn further_connections_wait_for_a_place() {
    let config = Config { connections_max: 1, ..config() };
    let receiver = start(config, told(false, 0)).await.expect("started");
    let mut first = connect(receiver.addresses()[1], &export(&[])).await;
    assert!(answer(&mut first).await.starts_with("HTTP/1.1 200 "));
    let mut second = connect(receiver.addresses()[1], &export(&[])).await;
    assert!(timeout(SHORT, answer(&mut second)).await.is_err(), "there is no place");
    drop(first);
    let served = timeout(LONG, answer(&mut second)).await.expect("served");
    assert!(served.starts_with("HTTP/1.1 200 "), "{served}");
}

#[tokio::test]
async fn messages_without_room_are_sent_again_later() {
    let sink = told(false, 0);
    let message = request(&[&WANTED]);
    let config = Config { buffered_bytes_max: message.len() + 10, ..config() };
    let receiver = start(config, Arc::clone(&sink)).await.expect("started");
    let mut first = connect(receiver.addresses()[1], &export(&message)).await;
    assert!(timeout(SHORT, answer(&mut first)).await.is_err(), "the sink holds it");
    let mut second = connect(receiver.addresses()[0], &export(&message)).await;
    let served = timeout(LONG, answer(&mut second)).await.expect("served");
    assert!(served.starts_with("HTTP/1.1 429 "), "{served}");
    assert!(served.contains("retry-after: 1\r\n"), "{served}");
    sink.go.add_permits(2);
    let served = timeout(LONG, answer(&mut first)).await.expect("served");
    assert!(served.starts_with("HTTP/1.1 200 "), "{served}");
    let mut third = connect(receiver.addresses()[1], &export(&message)).await;
    let served = timeout(LONG, answer(&mut third)).await.expect("served");
    assert!(served.starts_with("HTTP/1.1 200 "), "room was given back: {served}");
}

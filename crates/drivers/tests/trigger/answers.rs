//! The HTTP trigger against real listeners, which cause the faults themselves.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use model::{Answer, Body, HttpRequest, NoAnswer, NoAnswerKind, Request, Response};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{
    firing::{get, triggers},
    server::Server,
};

/// The behaviour of a listener after it has read the request.
#[derive(Clone, Debug)]
enum Does {
    Says(Vec<u8>),
    /// Sends some bytes, and then nothing.
    Stalls(&'static str),
    Resets,
}

/// A listener, its number of connections, and its last request.
struct Target {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    tasks: JoinSet<Vec<u8>>,
}

impl Target {
    async fn that(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let counter = Arc::clone(&connections);
        tasks.spawn(async move {
            let mut first = None;
            loop {
                let (mut stream, _) = listener.accept().await.expect("accepted");
                counter.fetch_add(1, Ordering::SeqCst);
                let request = read_request(&mut stream).await;
                if serve(stream, &does).await {
                    return first.unwrap_or(request);
                }
                first.get_or_insert(request);
            }
        });
        Self { address, connections, tasks }
    }

    async fn request(mut self) -> String {
        let request = self.tasks.join_next().await.expect("a task").expect("no panic");
        String::from_utf8(request).expect("text")
    }
}

/// Serves one connection, and returns whether the exchange was complete.
async fn serve(mut stream: TcpStream, does: &Does) -> bool {
    match does {
        Does::Says(answer) => {
            stream.write_all(answer).await.ok();
            stream.shutdown().await.ok();
            true
        }
        Does::Stalls(start) => {
            stream.write_all(start.as_bytes()).await.ok();
            std::future::pending::<()>().await;
            false
        }
        Does::Resets => {
            stream.set_zero_linger().expect("set");
            false
        }
    }
}

/// Reads a head and the body that it announces.
async fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                return request;
            }
        }
        if stream.read_buf(&mut request).await.expect("read") == 0 {
            return request;
        }
    }
}

async fn fire(request: HttpRequest) -> Answer {
    crate::firing::fire(&triggers(&[]), &Request::Http(request)).await
}

async fn response(does: &str) -> Response {
    let target = Target::that(Does::Says(does.as_bytes().to_vec())).await;
    let answer = fire(get(&format!("http://{}/", target.address))).await;
    answer.response().expect("a response").clone()
}

async fn no_answer(request: HttpRequest) -> NoAnswer {
    match fire(request).await {
        Answer::NoAnswer(no_answer) => Some(no_answer),
        _ => None,
    }
    .expect("no answer")
}

#[tokio::test]
async fn a_request_goes_out_as_it_was_written() {
    let target = Target::that(Does::Says(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())).await;
    let address = target.address;
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let answer = fire(HttpRequest {
        method: "POST".to_owned(),
        headers: vec![
            header("X-Second", "two"),
            header("TraceParent", "00-11111111111111111111111111111111-1111111111111111-00"),
            header("X-First", "one, \"eins\""),
            header("tracestate", "theirs=1"),
            header("x-second", "zwei"),
            header("Content-Type", "text/plain"),
            header("authorization", "replaced by what the test says of who asks"),
        ],
        auth: Some(header("Authorization", "Basic bWVvd3RoOnMzY3IzdA==")),
        body: Body::Text("grüße".into()),
        ..get(&format!("http://{address}/a%20b/?q=1&r=%2F#fragment"))
    });
    assert_eq!(answer.await.response().map(|response| response.status), Some(204));
    let expected = format!(
        "POST /a%20b/?q=1&r=%2F HTTP/1.1\r\n\
         host: {address}\r\n\
         x-second: two\r\n\
         x-second: zwei\r\n\
         x-first: one, \"eins\"\r\n\
         content-type: text/plain\r\n\
         authorization: Basic bWVvd3RoOnMzY3IzdA==\r\n\
         traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\
         tracestate: qualitytrace=true\r\n\
         content-length: 7\r\n\r\ngrüße"
    );
    assert_eq!(target.request().await, expected);
}

/// Tests every method that a document may name, with a body of any bytes.
#[tokio::test]
async fn every_method_arrives() {
    let methods =
        "GET PUT POST PATCH DELETE COPY HEAD OPTIONS LINK UNLINK PURGE LOCK UNLOCK PROPFIND VIEW";
    let server = Server::plain().await;
    for method in methods.split(' ') {
        let request = HttpRequest {
            method: method.to_owned(),
            body: Body::Bytes(vec![0xff, 0, b'x'].into()),
            ..get(&server.url("http", "127.0.0.1", "/a"))
        };
        let answer = fire(request).await;
        assert_eq!(answer.response().map(|response| response.status), Some(200), "{method}");
        let seen = server.requests().pop().expect("a request");
        assert!(seen.starts_with(&format!("{method} /a HTTP/1.1\n")), "{seen}");
        assert!(seen.contains("\ncontent-length: 3\n"), "{seen}");
        assert!(seen.ends_with("\n\n\u{fffd}\0x"), "{seen:?}");
    }
}

#[tokio::test]
async fn a_host_that_was_written_is_sent() {
    let target = Target::that(Does::Says(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())).await;
    // `localhost` may have an address without a listener: the next one is tried.
    let request = get(&format!("http://localhost:{}?q", target.address.port()));
    let headers = vec![("Host".to_owned(), "shop.example".to_owned())];
    let answer = fire(HttpRequest { headers, ..request }).await;
    assert_eq!(answer.response().map(|response| response.status), Some(204), "{answer:?}");
    let sent = target.request().await;
    assert!(sent.starts_with("GET /?q HTTP/1.1\r\nhost: shop.example\r\n"), "{sent}");
}

#[tokio::test]
async fn an_answer_is_kept_as_it_came() {
    let said = "HTTP/1.1 418 Teapot\r\nX-A: 1\r\nX-B: 2\r\ncontent-length: 3\r\n\r\n\u{e4}!";
    let said = response(said).await;
    assert_eq!(said.status, 418);
    let expected = [("x-a", "1"), ("x-b", "2"), ("content-length", "3")];
    assert_eq!(said.headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(said.body, Body::Text("\u{e4}!".into()));
    assert!(said.duration_ns > 0);
}

#[tokio::test]
async fn a_body_may_end_with_the_connection_and_be_any_bytes() {
    let answer = [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &[0xff, 0, 0xfe]].concat();
    let target = Target::that(Does::Says(answer)).await;
    let answer = fire(get(&format!("http://{}/", target.address))).await;
    let body = answer.response().map(|response| response.body.clone());
    assert_eq!(body, Some(Body::Bytes(vec![0xff, 0, 0xfe].into())));
}

#[tokio::test]
async fn an_answer_at_the_limit_is_kept() {
    let said = format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}", "x".repeat(1000));
    assert_eq!(response(&said).await.body.as_bytes().len(), 1000);
}

#[tokio::test]
async fn each_fault_has_its_kind() {
    let announced = "HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n".to_owned();
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n{}\r\n0\r\n\r\n",
        "x".repeat(1001)
    );
    let head = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(1_000_000));
    let says = |text: String| Does::Says(text.into_bytes());
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    #[rustfmt::skip]
    let cases = [
        (Does::Resets, NoAnswerKind::Connection, "broke: "),
        (says(String::new()), NoAnswerKind::Connection, "broke: connection closed before message completed"),
        (says(half.to_owned()), NoAnswerKind::Connection, "broke: "),
        (says("SSH-2.0-OpenSSH\r\n\r\n".to_owned()), NoAnswerKind::Connection, "broke: invalid HTTP"),
        (says(announced), NoAnswerKind::TooLarge, "the answer has more than 1000 bytes"),
        (says(chunked), NoAnswerKind::TooLarge, "the answer has more than 1000 bytes"),
        (says(head), NoAnswerKind::TooLarge, "the head of the answer is too large"),
        (Does::Stalls(""), NoAnswerKind::Timeout, "no complete response from `127.0.0.1:"),
        (Does::Stalls(half), NoAnswerKind::Timeout, "within 300ms"),
    ];
    for (does, kind, words) in cases {
        let target = Target::that(does.clone()).await;
        // Only a timeout case has a short timeout: a busy machine is no fault.
        let timeout = match kind {
            NoAnswerKind::Timeout => Duration::from_millis(300),
            _ => Duration::from_secs(30),
        };
        let request = get(&format!("http://{}/", target.address));
        let answer = no_answer(HttpRequest { timeout, ..request }).await;
        assert_eq!(answer.kind, kind, "{does:?}: {}", answer.message);
        assert!(answer.message.contains(words), "{does:?}: {}", answer.message);
        assert_eq!(target.connections.load(Ordering::SeqCst), 1, "{does:?}: sent once");
    }
}

#[tokio::test]
async fn nobody_there_is_told_from_no_such_name() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let refused = no_answer(get(&format!("http://{address}/"))).await;
    assert_eq!(refused.kind, NoAnswerKind::Refused);
    let words = format!("nobody answers at `{address}`: ");
    assert!(refused.message.starts_with(&words), "{}", refused.message);
    // The name is reserved, so that it never resolves.
    let unknown = no_answer(get("http://nobody.invalid/")).await;
    assert_eq!(unknown.kind, NoAnswerKind::Dns);
    let words = "`nobody.invalid` has no address";
    assert!(unknown.message.starts_with(words), "{}", unknown.message);
}

#[tokio::test]
async fn a_listener_without_tls_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("accepted");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.expect("said");
    });
    let answer = no_answer(get(&format!("https://{address}/"))).await;
    assert_eq!(answer.kind, NoAnswerKind::Tls, "{}", answer.message);
    let words = format!("no trusted TLS session with `{address}`: ");
    assert!(answer.message.starts_with(&words), "{}", answer.message);
}

#[tokio::test]
async fn what_cannot_be_sent_is_not() {
    let url = |url: &str| get(url);
    let header = |name: &str, value: &str| HttpRequest {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..url("http://127.0.0.1:1/")
    };
    let cases = [
        (url("/no/host"), "its URL: expected `http://` or `https://`"),
        (url("ftp://a/"), "its URL: expected `http://` or `https://`"),
        (url("http://a b/"), "its URL: invalid uri character"),
        (url("http://a:99999/"), "its URL: "),
        (url("http://user:secret@a/"), "its URL: a user in it is not sent"),
        (header("a b", "c"), "its header `a b`: invalid HTTP header name"),
        (header("token", "secret\n"), "its header `token`: "),
        (HttpRequest { method: "GE T".to_owned(), ..url("http://a/") }, "its method: "),
    ];
    for (request, words) in cases {
        let answer = no_answer(request).await;
        assert_eq!(answer.kind, NoAnswerKind::Invalid);
        let words = format!("the request cannot be sent: {words}");
        assert!(answer.message.starts_with(&words), "{}", answer.message);
        assert!(!answer.message.contains("secret"), "{}", answer.message);
    }
}

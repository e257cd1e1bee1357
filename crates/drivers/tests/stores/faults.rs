//! Addresses at which there is no store, or one that does not want us.
//!
//! The answers are scripted: no real store can be made to give each of these statuses.

use std::time::Duration;

use drivers::store::{QueryResult, StoreDialer};
use model::{Secret, StoreConfig, TraceId};
use net::Networks;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
    time::Instant,
};

use crate::{conformance::told, sample};

const STORES: [&str; 6] =
    ["jaeger", "tempo", "opensearch", "elasticsearch", "clickhouse", "zipkin"];

fn config(kind: &str, url: String) -> StoreConfig {
    let headers = vec![("authorization".to_owned(), Secret::new("Bearer s3cret"))];
    StoreConfig { headers, ..sample::config(kind, url) }
}

async fn queried(config: &StoreConfig, networks: Option<Networks>) -> QueryResult {
    let client = StoreDialer::new(&[], networks).open(config).expect("it can be queried");
    client.store.query(TraceId::from_random([5; 16]), None).await
}

/// Answers every request with this head and body, and returns the address. It ends with the set.
pub(crate) async fn answering(head: &str, body: &str, tasks: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _head = stream.read(&mut request).await;
            let _sent = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}")
}

/// The form of a result: whether another query may succeed, its message, and when.
pub(crate) fn form(result: &QueryResult) -> (bool, &str, Option<u64>) {
    match result {
        QueryResult::Failed { message, retry_after } => {
            (true, message, retry_after.map(|it| it.as_secs()))
        }
        QueryResult::Refused { message } => (false, message, None),
        other => unreachable!("{}", told(other)),
    }
}

/// An answer that no run may hold is refused before it is read whole.
#[tokio::test]
async fn an_answer_that_is_too_large_is_refused() {
    let mut tasks = JoinSet::new();
    for kind in STORES {
        let url = answering("200 OK", &"x".repeat(2_000), &mut tasks).await;
        let dialer = StoreDialer::new(&[], None).with_answers_up_to(1_000);
        let client = dialer.open(&config(kind, url)).expect("it can be queried");
        let result = client.store.query(TraceId::from_random([5; 16]), None).await;
        assert_eq!(form(&result), (false, "its answer has more than 1000 bytes", None), "{kind}");
    }
}

#[tokio::test]
async fn every_status_is_either_mended_by_time_or_by_the_user() {
    let cases = [
        (
            "401 Unauthorized",
            "no such token: Bearer s3cret",
            (
                false,
                "401 Unauthorized: no such token: ***; it does not accept the credentials",
                None,
            ),
        ),
        ("403 Forbidden", "", (false, "403 Forbidden; it does not accept the credentials", None)),
        ("400 Bad Request", "bad id", (false, "400 Bad Request: bad id", None)),
        ("429 Too Many Requests\r\nretry-after: 3", "", (true, "429 Too Many Requests", Some(3))),
        (
            "503 Service Unavailable\r\nretry-after: 100000",
            "starting\nup",
            (true, "503 Service Unavailable: starting up", Some(60)),
        ),
        ("500 Internal Server Error", "", (true, "500 Internal Server Error", None)),
        (
            "302 Found\r\nlocation: https://login.example/",
            "",
            (false, "302 Found to `https://login.example/`: write its address", None),
        ),
    ];
    let mut tasks = JoinSet::new();
    for kind in STORES {
        for (head, body, expected) in cases {
            let url = answering(head, body, &mut tasks).await;
            let result = queried(&config(kind, url), None).await;
            assert_eq!(form(&result), expected, "{kind}, {head}");
        }
    }
}

#[tokio::test]
async fn a_server_without_the_api_of_the_store_is_named() {
    let mut tasks = JoinSet::new();
    for kind in STORES {
        let url = answering("404 Not Found", "404 page not found", &mut tasks).await;
        let result = queried(&config(kind, url.clone()), None).await;
        let message = format!("404 Not Found: 404 page not found; its API is not at `{url}`");
        assert_eq!(form(&result), (false, message.as_str(), None), "{kind}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_trace_is_no_answer() {
    let mut tasks = JoinSet::new();
    let cases = [
        ("jaeger", "<html>"),
        ("jaeger", "{\"result\": 7}"),
        ("tempo", "\u{1}"),
        ("opensearch", "<html>"),
        ("elasticsearch", "{\"took\": 7}"),
        ("clickhouse", "<html>"),
        ("clickhouse", "{}"),
        ("zipkin", "<html>"),
        ("zipkin", "[{\"traceId\": \"1\", \"id\": \"2\"}]"),
    ];
    for (kind, body) in cases {
        let url = answering("200 OK", body, &mut tasks).await;
        let (may_succeed, message, _) = {
            let result = queried(&config(kind, url), None).await;
            let (may, message, after) = form(&result);
            (may, message.to_owned(), after)
        };
        assert!(may_succeed && !message.is_empty(), "{kind}, {body}: {message}");
    }
}

#[tokio::test]
async fn an_unreachable_store_is_told_at_once_and_may_come_back() {
    // No other test listens on this address, whichever port it gets.
    let listener = TcpListener::bind("127.0.0.2:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    for kind in STORES {
        let began = Instant::now();
        let result = queried(&config(kind, format!("http://{address}")), None).await;
        let (may_succeed, message, _) = form(&result);
        assert!(may_succeed && message.starts_with("nobody answers at `127.0.0.2:"), "{message}");
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn an_address_outside_of_the_allowed_networks_is_refused() {
    let mut tasks = JoinSet::new();
    let url = answering("200 OK", "", &mut tasks).await;
    for kind in STORES {
        let networks = Networks::public("server.stores.networks");
        let result = queried(&config(kind, url.clone()), Some(networks)).await;
        let (may_succeed, message, _) = form(&result);
        assert!(!may_succeed && message.contains("server.stores.networks"), "{message}");
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_when_the_store_is_opened() {
    let dialer = StoreDialer::new(&[], None);
    let refused =
        |config: StoreConfig| dialer.open(&config).expect_err("it is refused").to_string();
    let of = |url: &str| config("jaeger", url.to_owned());
    let url = "http://127.0.0.1:1";
    let mut named = of(url);
    named.headers = vec![("a b".to_owned(), Secret::new("c"))];
    let mut valued = of(url);
    valued.headers = vec![("a".to_owned(), Secret::new("b\r\nc: d"))];
    let cases = [
        (of("127.0.0.1"), "`127.0.0.1`: expected `http://` or `https://`"),
        (of("ftp://a"), "`ftp://a`: expected `http://` or `https://`"),
        (of("http://ann:s3cret@a"), "its URL has a user: write an `authorization` into `headers`"),
        (of("http://a?b=c"), "`http://a?b=c` has a query: the address ends with a path"),
        (named, "`a b` is not the name of a header"),
        (valued, "the value of the header `a` cannot be sent"),
        (
            config("sumologic", url.to_owned()),
            "a store of type `sumologic` is not queried by this version",
        ),
    ];
    for (config, expected) in cases {
        let expected = format!("the trace store `prod` cannot be queried: {expected}");
        assert_eq!(refused(config), expected);
    }
}

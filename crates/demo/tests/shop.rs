//! Compares the telemetry of the shop with golden files: its spans for each request and each fault.

use std::{collections::BTreeMap, fmt::Write, path::Path, sync::Arc, time::Duration};

use demo::{Config, Fault, Handle};
use golden::Golden;
use model::{
    Timestamp, Trace, TraceId, World,
    trace::{Span, SpanIx, Tree, ValueRef},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};

mod sink;

use sink::Sink;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
const ORDER: &str = r#"{"customer":"ada","lines":[{"sku":"tea","quantity":2},{"sku":"mug","quantity":1},{"sku":"kettle","quantity":1}]}"#;
/// How long spans may take to arrive on a busy machine.
const ARRIVE_MAX: Duration = Duration::from_secs(20);

/// Golden file, faults of the shop, request, body, expected status, and expected number of spans in the trace.
type Case = (&'static str, &'static [Fault], &'static str, &'static str, &'static str, usize);

const CASES: &[Case] = &[
    ("order", &[], "POST /orders", ORDER, "201", 21),
    (
        "order-refused",
        &[],
        "POST /orders",
        r#"{"customer":"ada","card":"declined","lines":[{"sku":"tea","quantity":1}]}"#,
        "402",
        16,
    ),
    (
        "order-sold-out",
        &[],
        "POST /orders",
        r#"{"customer":"ada","lines":[{"sku":"samovar","quantity":1}]}"#,
        "409",
        9,
    ),
    ("order-malformed", &[], "POST /orders", "{}", "400", 1),
    ("order-unknown", &[], "GET /orders/o-7", "", "404", 4),
    ("products", &[], "GET /products", "", "200", 4),
    ("no-such-page", &[], "GET /admin", "", "404", 1),
    ("n-plus-one", &[Fault::NPlusOne], "POST /orders", ORDER, "201", 23),
    ("lost-context", &[Fault::LostContext], "POST /orders", ORDER, "201", 18),
    ("retry-storm", &[Fault::RetryStorm], "POST /orders", ORDER, "201", 29),
    ("order", &[Fault::SlowDatabase], "POST /orders", ORDER, "201", 21),
    ("order", &[Fault::LateSpans], "POST /orders", ORDER, "201", 21),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_request_makes_the_same_spans_each_time() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut golden = Golden::default();
    for (name, faults, request, body, status, spans) in CASES {
        let sink = Sink::start().await;
        let shop = open(&sink, faults).await;
        let answer = ask(&shop, request, body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
        let trace = arrived(&sink, *spans).await;
        shop.shutdown().await;
        golden.compare(&folder.join(format!("{name}.txt")), &drawn(&trace));
        assert_eq!(sink.trace(trace.id()).len(), *spans, "{name}: nothing comes later");
    }
    golden.finish(10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_database_shows_in_the_times() {
    let sink = Sink::start().await;
    let shop = open(&sink, &[Fault::SlowDatabase]).await;
    ask(&shop, "GET /products", "").await;
    let trace = arrived(&sink, 4).await;
    let statement = trace.spans().find(|span| span.name() == "SELECT products").expect("it came");
    assert!(statement.duration() >= Duration::from_millis(300), "{:?}", statement.duration());
    shop.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_spans_come_long_after_the_answer() {
    let sink = Sink::start().await;
    let shop = open(&sink, &[Fault::LateSpans]).await;
    ask(&shop, "POST /orders", ORDER).await;
    let answered = tokio::time::Instant::now();
    arrived(&sink, 21).await;
    assert!(answered.elapsed() >= Duration::from_millis(400), "{:?}", answered.elapsed());
    shop.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shop_without_a_receiver_answers_at_once_and_closes() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr();
    let otlp = Some(format!("http://{}", port.expect("an address")));
    let config = Config { http: any_port(), otlp, ..Config::default() };
    let shop = demo::start(config, world()).await.expect("it opens");
    for _ in 0..50 {
        assert!(ask(&shop, "POST /orders", ORDER).await.starts_with("HTTP/1.1 201 "));
    }
    shop.shutdown().await;
}

#[tokio::test]
async fn a_taken_address_and_a_bad_endpoint_are_refused() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let http = taken.local_addr().expect("an address");
    let error = demo::start(Config { http, ..Config::default() }, world()).await;
    let said = error.expect_err("somebody is there").to_string();
    assert_eq!(
        said,
        format!(
            "`{http}` is taken, perhaps by another demo: end that one, or name another address"
        )
    );
    let config = Config { http: any_port(), otlp: Some("ftp://x".to_owned()), ..Config::default() };
    let said = demo::start(config, world()).await.expect_err("it is no endpoint").to_string();
    assert!(said.contains("ftp://x"), "{said}");
}

async fn open(sink: &Sink, faults: &[Fault]) -> Handle {
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", sink.address)),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf".to_owned()),
        ("OTEL_SERVICE_NAME", "ignored".to_owned()),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test".to_owned()),
    ];
    let config = Config {
        http: any_port(),
        faults: faults.to_vec(),
        environment: environment.into_iter().collect(),
        ..Config::default()
    };
    demo::start(config, world()).await.expect("it opens")
}

/// Sends a request as an instrumented client does, and returns the raw response.
async fn ask(shop: &Handle, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(shop.http()).await.expect("it listens");
    let request = format!(
        "{request} HTTP/1.1\r\nhost: shop\r\nuser-agent: test\r\nconnection: close\r\ncontent-length: {}\r\n\
         traceparent: 00-{TRACE}-{PARENT}-01\r\ntracestate: vendor=a,other=b\r\nbaggage: region=eu\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    answer
}

async fn arrived(sink: &Arc<Sink>, spans: usize) -> Trace {
    let id: TraceId = TRACE.parse().expect("an id");
    for _ in 0..ARRIVE_MAX.as_millis() / 5 {
        if sink.trace(id).len() >= spans {
            break;
        }
        // At most `ARRIVE_MAX` in all.
        sleep(Duration::from_millis(5)).await;
    }
    let trace = sink.trace(id);
    assert!(trace.len() >= spans, "{spans} spans did not come, but:\n{}", drawn(&trace));
    trace
}

/// Renders the tree with all fields that are the same in each run: no ids, no times.
fn drawn(trace: &Trace) -> String {
    let tree = Tree::of(trace);
    let mut text = String::new();
    let mut services = BTreeMap::new();
    for &ix in tree.order() {
        let span = trace.span(ix);
        let depth = depth(&tree, ix);
        write!(
            text,
            "{:indent$}{}  {} {:?}",
            "",
            span.name(),
            service(span),
            span.kind(),
            indent = 2 * depth
        )
        .expect("a text grows");
        if !span.status_message().is_empty() {
            write!(text, " {:?} ({})", span.status(), span.status_message()).expect("a text grows");
        }
        if span.links().next().is_some() {
            text.push_str(" linked");
        }
        assert_eq!(span.trace_state(), "vendor=a,other=b", "{} keeps the tracestate", span.name());
        text.push('\n');
        let mut attributes: Vec<_> = span.attributes().iter().collect();
        attributes.sort_by_key(|(key, _)| *key);
        for (key, value) in attributes {
            writeln!(text, "{:indent$}| {key} {}", "", shown(value), indent = 2 * depth + 2)
                .expect("a text grows");
        }
        services.entry(service(span)).or_insert(span);
    }
    for (name, span) in services {
        write!(text, "\n{name}:").expect("a text grows");
        for (key, value) in span.resource().attributes().iter() {
            let value = match key {
                "service.instance.id" | "process.pid" => "…".to_owned(),
                _ => shown(value),
            };
            write!(text, " {key} {value}").expect("a text grows");
        }
    }
    text.push('\n');
    text
}

fn depth(tree: &Tree, span: SpanIx) -> usize {
    std::iter::successors(tree.parent(span), |above| tree.parent(*above)).count()
}

fn service(span: Span<'_>) -> String {
    span.resource().attributes().get("service.name").map(shown).unwrap_or_default()
}

fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Str(text) => text.to_owned(),
        ValueRef::Int(number) => number.to_string(),
        ValueRef::Bool(truth) => truth.to_string(),
        other => format!("{other:?}"),
    }
}

fn any_port() -> std::net::SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

fn world() -> World {
    World::new(|| Timestamp::from_nanos(0), || [7; 32])
}

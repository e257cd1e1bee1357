//! OTLP over HTTP, byte by byte.

use std::{io::Write, net::SocketAddr, sync::atomic::Ordering, time::Duration};

use drivers::receiver::{Config, Counts, start};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceResponse,
    logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs},
    metrics::v1::{
        Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
    },
};
use prost::Message;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{WANTED, config, receiver, request, request_of, told};

pub(crate) const PROTOBUF: &str = "content-type: application/x-protobuf\r\n";

/// A response, its head as text.
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// Sends these bytes, reads to the end, and returns the response.
pub(crate) async fn exchange(address: SocketAddr, sent: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(sent).await.expect("sent");
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.expect("read");
    let end = read.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    let body = read.split_off(end);
    Answer { head: String::from_utf8(read).expect("text"), body }
}

pub(crate) async fn send(address: SocketAddr, line: &str, headers: &str, body: &[u8]) -> Answer {
    let head = format!(
        "{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    exchange(address, &[head.as_bytes(), body].concat()).await
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("compressed");
    encoder.finish().expect("compressed")
}

#[tokio::test]
async fn each_mistake_has_its_answer() {
    let sink = told(false, 0);
    let receiver = receiver(&sink).await;
    let text = "content-type: text/plain\r\n";
    let brotli = format!("{PROTOBUF}content-encoding: br\r\n");
    let gzipped = format!("{PROTOBUF}content-encoding: gzip\r\n");
    let bomb = gzip(&vec![0; 1_000_000]);
    assert!(bomb.len() < 10_000, "it must pass the first limit");
    let broken = &gzip(b"abc")[..15];
    #[rustfmt::skip]
    let cases: [(&str, &str, &[u8], u16, &str); 14] = [
        ("POST /v1/traces", text, b"{}", 415, "`text/plain` is not taken; send `application/x-protobuf` or `application/json`"),
        ("POST /v1/traces", "", b"", 415, "send `application/x-protobuf` or `application/json`"),
        ("POST /v1/traces", &brotli, b"noise", 415, "`br` is not taken; send it as it is, or with `gzip` or `zstd`"),
        ("POST /v1/spans", PROTOBUF, b"noise", 404, "nothing is at `/v1/spans`; send to `/v1/traces`"),
        ("POST /", PROTOBUF, b"", 404, "nothing is at `/`; send to `/v1/traces`"),
        ("PUT /v1/traces", PROTOBUF, b"noise", 405, "`PUT` does nothing here; send a POST"),
        ("POST /otlp/v1/metrics", PROTOBUF, b"noise", 404, "nothing is at `/otlp/v1/metrics`"),
        ("GET /v1/traces", PROTOBUF, b"", 405, "`GET` does nothing here; send a POST"),
        ("POST /v1/traces", PROTOBUF, b"noise", 400, "not OTLP protobuf"),
        ("POST /v1/logs", PROTOBUF, b"noise", 400, "not OTLP protobuf"),
        ("POST /v1/metrics", PROTOBUF, b"noise", 400, "not OTLP protobuf"),
        ("POST /v1/traces", &gzipped, broken, 400, "the message broke off: Gzip"),
        ("POST /v1/traces", PROTOBUF, &[0; 10_001], 413, "more than 10000 bytes; send smaller batches"),
        ("POST /v1/traces", &gzipped, &bomb, 413, "more than 10000 bytes; send smaller batches"),
    ];
    for (line, headers, body, status, words) in cases {
        let unread = || [&sink.unread, &sink.unread_logs].map(|it| it.load(Ordering::SeqCst));
        let [spans, logs] = unread();
        let answer = send(receiver.addresses()[1], line, headers, body).await;
        let is_lost = |what: bool| u64::from(what && !body.is_empty());
        let lost = [!line.ends_with("logs") && !line.ends_with("metrics"), line.ends_with("logs")];
        let [lost_spans, lost_logs] = lost.map(is_lost);
        assert_eq!(unread(), [spans + lost_spans, logs + lost_logs], "{line}: what may be lost");
        let Answer { head, body } = answer;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {head}");
        assert_eq!(status == 405, head.contains("allow: POST"), "{head}");
        assert!(head.contains(PROTOBUF), "{head}");
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains(words), "{line}: {body}");
    }
    assert_eq!(receiver.shutdown().await, Counts::default());
}

#[tokio::test]
async fn a_length_that_nobody_announced_is_limited_too() {
    let sink = told(false, 0);
    let receiver = receiver(&sink).await;
    let chunk = [b"fa0\r\n".as_slice(), &[0; 4000], b"\r\n"].concat();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: a\r\n{PROTOBUF}transfer-encoding: chunked\r\n\r\n"
    );
    let sent = [head.as_bytes(), &chunk, &chunk, &chunk].concat();
    let answer = exchange(receiver.addresses()[1], &sent).await;
    assert!(answer.head.starts_with("HTTP/1.1 413 "), "{}", answer.head);
}

#[tokio::test]
async fn spans_are_kept_foreign_or_invalid() {
    let sink = told(false, 9);
    let receiver = receiver(&sink).await;
    let body = request(&[&WANTED, &[8; 16], &[8; 16], &[0; 16], &[1; 3], &[]]);
    let answer = send(receiver.addresses()[1], "POST /v1/traces", PROTOBUF, &body).await;
    assert!(answer.head.starts_with("HTTP/1.1 200 "), "{}", answer.head);
    let said = ExportTraceServiceResponse::decode(answer.body.as_slice()).expect("an answer");
    let partial = said.partial_success.expect("partial success");
    assert_eq!(partial.rejected_spans, 3);
    assert_eq!(partial.error_message, "3 spans whose ids are malformed");
    let taken = sink.taken.lock().expect("no panic").clone();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].trace_id.as_bytes(), &WANTED);
    let expected = Counts { kept: 1, foreign: 2, invalid: 3, ..Counts::default() };
    assert_eq!(receiver.shutdown().await, expected);
}

#[tokio::test]
async fn an_invalid_span_of_a_wanted_trace_is_told_to_be_lost() {
    // Whether the sink accepts the other spans or not.
    for refuses in [false, true] {
        let sink = told(refuses, 9);
        let receiver = receiver(&sink).await;
        let (id, bad): (&[u8], &[u8]) = (&[1; 8], &[1; 5]);
        for (ids, lost) in [
            (vec![[&WANTED[..], id, id], [&[8; 16], bad, &[]], [bad, id, &[]]], 0),
            (vec![[&WANTED, id, bad]], 1),
            (vec![[&WANTED, id, id], [&WANTED, bad, &[]], [&WANTED, id, bad]], 1),
        ] {
            let body = request_of(ids);
            send(receiver.addresses()[1], "POST /v1/traces", PROTOBUF, &body).await;
            let told = std::mem::take(&mut *sink.lost.lock().expect("no panic"));
            let told: Vec<_> = told.iter().map(|trace_id| *trace_id.as_bytes()).collect();
            assert_eq!(told, vec![WANTED; lost]);
        }
    }
}

#[tokio::test]
async fn a_refusal_asks_to_come_back() {
    let sink = told(true, 9);
    let receiver = receiver(&sink).await;
    let body = request(&[&WANTED, &[8; 16]]);
    let answer = send(receiver.addresses()[1], "POST /v1/traces", PROTOBUF, &body).await;
    assert!(answer.head.starts_with("HTTP/1.1 429 "), "{}", answer.head);
    assert!(answer.head.contains("retry-after: 1\r\n"), "{}", answer.head);
    let said = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(said.contains("spans refused, send them again later: full"), "{said}");
    assert_eq!(receiver.shutdown().await, Counts { refused: 1, ..Counts::default() });
}

#[tokio::test]
async fn logs_and_metrics_are_counted() {
    let sink = told(false, 0);
    let receiver = receiver(&sink).await;
    let log_records = vec![LogRecord::default(); 3];
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    let logs = ResourceLogs { scope_logs, ..ResourceLogs::default() };
    let logs = LogsData { resource_logs: vec![logs] }.encode_to_vec();
    let data = Data::Gauge(Gauge { data_points: vec![NumberDataPoint::default(); 2] });
    let metrics = vec![Metric { data: Some(data), ..Metric::default() }];
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    let metrics = ResourceMetrics { scope_metrics, ..ResourceMetrics::default() };
    let metrics = MetricsData { resource_metrics: vec![metrics] }.encode_to_vec();
    let gzipped = format!("{PROTOBUF}content-encoding: gzip\r\n");
    let address = receiver.addresses()[1];
    for (line, headers, body) in
        [("POST /v1/logs", PROTOBUF, logs), ("POST /v1/metrics", gzipped.as_str(), gzip(&metrics))]
    {
        let answer = send(address, line, headers, &body).await;
        assert!(answer.head.starts_with("HTTP/1.1 200 "), "{}", answer.head);
        assert!(answer.body.is_empty(), "nothing was rejected");
    }
    assert_eq!(receiver.shutdown().await, Counts { logs: 3, metrics: 2, ..Counts::default() });
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let config = Config { export_timeout: Duration::from_millis(50), ..config() };
    let receiver = start(config, told(false, 0)).await.expect("started");
    let sent = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{PROTOBUF}content-length: 9\r\n\r\n"
    );
    let answer = exchange(receiver.addresses()[1], sent.as_bytes()).await;
    assert!(answer.head.starts_with("HTTP/1.1 503 "), "{}", answer.head);
    let said = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(said.contains("not done within 50ms; send it again"), "{said}");
}

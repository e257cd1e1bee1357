//! OTLP over gRPC, with messages that are bytes.

use bytes::{Buf, BufMut, Bytes};
use drivers::receiver::Counts;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::{Channel, Endpoint},
};

use crate::{WANTED, receiver, request, told};

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sent {
    Plain,
    Gzip,
}

async fn send(
    address: std::net::SocketAddr,
    path: &'static str,
    sent: Sent,
    message: &[u8],
) -> Result<Bytes, Status> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let channel: Channel = endpoint.connect().await.expect("connected");
    let mut client = Grpc::new(channel);
    if sent == Sent::Gzip {
        client = client.send_compressed(CompressionEncoding::Gzip);
    }
    client.ready().await.expect("ready");
    let message = Request::new(Bytes::copy_from_slice(message));
    let path = http::uri::PathAndQuery::from_static(path);
    client.unary(message, path, Raw).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn each_mistake_has_its_status() {
    let sink = told(false, 0);
    let receiver = receiver(&sink).await;
    #[rustfmt::skip]
    let cases: [(&str, Sent, &[u8], Code, &str); 7] = [
        (TRACES, Sent::Plain, b"noise", Code::InvalidArgument, "not OTLP protobuf"),
        (LOGS, Sent::Plain, b"noise", Code::InvalidArgument, "not OTLP protobuf"),
        (METRICS, Sent::Gzip, b"noise", Code::InvalidArgument, "not OTLP protobuf"),
        (TRACES, Sent::Plain, &[0; 10_001], Code::ResourceExhausted, "more than 10000 bytes; send smaller batches"),
        (TRACES, Sent::Gzip, &[0; 1_000_000], Code::ResourceExhausted, "more than 10000 bytes; send smaller batches"),
        ("/a.B/C", Sent::Plain, b"", Code::Unimplemented, "nothing is at `/a.B/C`"),
        ("/", Sent::Plain, b"", Code::Unimplemented, "nothing is at `/`"),
    ];
    for (path, sent, message, code, words) in cases {
        let status = send(receiver.grpc_addr(), path, sent, message).await.expect_err(words);
        assert_eq!(status.code(), code, "{path}: {status}");
        assert!(status.message().contains(words), "{path}: {status}");
    }
    assert_eq!(receiver.shutdown().await, Counts::default());
}

#[tokio::test]
async fn spans_are_kept_foreign_or_invalid() {
    let sink = told(false, 9);
    let receiver = receiver(&sink).await;
    let message = request(&[&WANTED, &[8; 16], &[0; 16], &[1; 3]]);
    let answer = send(receiver.grpc_addr(), TRACES, Sent::Gzip, &message).await.expect("taken");
    let said = ExportTraceServiceResponse::decode(answer).expect("an answer");
    assert_eq!(said.partial_success.map(|it| it.rejected_spans), Some(2));
    let answer = send(receiver.grpc_addr(), TRACES, Sent::Plain, &[]).await.expect("taken");
    assert!(answer.is_empty(), "nothing was rejected");
    assert_eq!(sink.taken.lock().expect("no panic").len(), 1);
    let expected = Counts { kept: 1, foreign: 1, invalid: 2, ..Counts::default() };
    assert_eq!(receiver.shutdown().await, expected);
}

#[tokio::test]
async fn a_refusal_asks_to_come_back() {
    let sink = told(true, 9);
    let receiver = receiver(&sink).await;
    let message = request(&[&WANTED]);
    let refused = send(receiver.grpc_addr(), TRACES, Sent::Plain, &message).await;
    let status = refused.expect_err("refused");
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.message(), "spans refused, send them again later: full");
    assert_eq!(receiver.shutdown().await, Counts { refused: 1, ..Counts::default() });
}

#[tokio::test]
async fn a_sender_that_mistakes_the_port_is_told() {
    let receiver = receiver(&told(false, 0)).await;
    let mut stream = TcpStream::connect(receiver.grpc_addr()).await.expect("connected");
    let sent = "POST /v1/traces HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(sent.as_bytes()).await.expect("sent");
    let mut answer = vec![0; 400];
    let mut len = 0;
    while !String::from_utf8_lossy(&answer[..len]).contains("4318") {
        let more = stream.read(&mut answer[len..]).await.expect("read");
        assert!(more > 0, "{}", String::from_utf8_lossy(&answer[..len]));
        len += more;
    }
    let answer = String::from_utf8_lossy(&answer[..len]).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 505 "), "{head}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}: {}", body.len());
}

/// Messages as bytes, in both directions.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}

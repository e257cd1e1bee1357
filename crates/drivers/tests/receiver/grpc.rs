//! OTLP over gRPC, with messages as raw bytes.

use bytes::{Buf, BufMut, Bytes};
use drivers::receiver::Counts;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::{Channel, Endpoint},
};

use crate::{WANTED, receiver, request, told};

pub(crate) const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sent {
    Plain,
    Gzip,
    Zstd,
}

pub(crate) async fn send(
    address: std::net::SocketAddr,
    path: &'static str,
    sent: Sent,
    message: &[u8],
) -> Result<Bytes, Status> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let channel: Channel = endpoint.connect().await.expect("connected");
    let mut client = Grpc::new(channel);
    client = match sent {
        Sent::Plain => client,
        Sent::Gzip => client.send_compressed(CompressionEncoding::Gzip),
        Sent::Zstd => client.send_compressed(CompressionEncoding::Zstd),
    };
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
    let cases: [(&str, Sent, &[u8], Code, &str); 9] = [
        (TRACES, Sent::Plain, b"noise", Code::InvalidArgument, "not OTLP protobuf"),
        (LOGS, Sent::Plain, b"noise", Code::InvalidArgument, "not OTLP protobuf"),
        (METRICS, Sent::Gzip, b"noise", Code::InvalidArgument, "not OTLP protobuf"),
        (TRACES, Sent::Plain, &[0; 10_001], Code::ResourceExhausted, "more than 10000 bytes; send smaller batches"),
        (TRACES, Sent::Gzip, &[0; 1_000_000], Code::ResourceExhausted, "more than 10000 bytes; send smaller batches"),
        (TRACES, Sent::Zstd, &[0; 1_000_000], Code::ResourceExhausted, "more than 10000 bytes; send smaller batches"),
        (TRACES, Sent::Zstd, b"noise", Code::InvalidArgument, "not OTLP protobuf"),
        ("/a.B/C", Sent::Plain, b"", Code::Unimplemented, "nothing is at `/a.B/C`"),
        ("/", Sent::Plain, b"", Code::Unimplemented, "nothing is at `/`"),
    ];
    for (path, sent, message, code, words) in cases {
        let status = send(receiver.addresses()[0], path, sent, message).await.expect_err(words);
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
    // Each address serves all protocols.
    for (address, sent) in [(0, Sent::Plain), (1, Sent::Gzip), (1, Sent::Zstd)] {
        let address = receiver.addresses()[address];
        let answer = send(address, TRACES, sent, &message).await.expect("taken");
        let said = ExportTraceServiceResponse::decode(answer).expect("an answer");
        assert_eq!(said.partial_success.map(|it| it.rejected_spans), Some(2));
    }
    let answer = send(receiver.addresses()[0], TRACES, Sent::Plain, &[]).await.expect("taken");
    assert!(answer.is_empty(), "nothing was rejected");
    assert_eq!(sink.taken.lock().expect("no panic").len(), 3);
    let expected = Counts { kept: 3, foreign: 3, invalid: 6, ..Counts::default() };
    assert_eq!(receiver.shutdown().await, expected);
}

#[tokio::test]
async fn a_refusal_asks_to_come_back() {
    let sink = told(true, 9);
    let receiver = receiver(&sink).await;
    let message = request(&[&WANTED]);
    let refused = send(receiver.addresses()[0], TRACES, Sent::Plain, &message).await;
    let status = refused.expect_err("refused");
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.message(), "spans refused, send them again later: full");
    let told = RpcStatus::decode(status.details()).expect("a status");
    assert_eq!((told.code, told.message.as_str()), (14, status.message()));
    let [detail] = &told.details[..] else { panic!("{told:?}") };
    assert_eq!(detail.type_url, "type.googleapis.com/google.rpc.RetryInfo");
    let info = RetryInfo::decode(detail.value.as_slice()).expect("retry info");
    assert_eq!(info.retry_delay, Some(Delay { seconds: 1, nanos: 0 }));
    assert_eq!(receiver.shutdown().await, Counts { refused: 1, ..Counts::default() });
}

/// `google.rpc.Status`, with the fields in use here.
#[derive(Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

#[derive(PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
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

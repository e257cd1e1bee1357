//! The replies that a peer can be configured to send.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::{Body, Frame};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message;
use tokio::sync::Notify;

/// The body of every response.
pub(super) type Answered = UnsyncBoxBody<Bytes, Infallible>;

/// A reply that a peer can be configured to send.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reply {
    /// Success.
    #[default]
    Accept,
    /// Success except for `rejected` items.
    Partial { rejected: i64, message: &'static str },
    /// An HTTP response without a gRPC status: from a server, or from a proxy before one.
    Http { status: u16, headers: Vec<(&'static str, String)>, body: &'static str },
    /// A gRPC status, with the literal value of `grpc-status-details-bin`.
    Grpc { code: i32, message: &'static str, details: String },
    /// No response, for as long as the connection lasts.
    Hang,
    /// The connection is reset when the request has only begun.
    ResetInRequest,
    /// The items are accepted, then the connection is reset before the response.
    ResetBeforeAnswer,
    /// The items are accepted, then the connection is reset in the middle of the response.
    ResetInAnswer,
}

impl Reply {
    /// A bare HTTP status.
    pub(crate) fn status(status: u16) -> Self {
        Self::Http { status, headers: Vec::new(), body: "" }
    }

    /// An HTTP status as an OTLP receiver sends it for data that it has read: with a `google.rpc.Status`.
    pub(crate) fn refused(status: u16) -> Self {
        let headers = vec![("content-type", "application/x-protobuf".to_owned())];
        Self::Http { status, headers, body: "\x12\x06poison" }
    }

    /// A bare gRPC status.
    pub(crate) fn grpc(code: i32, message: &'static str) -> Self {
        Self::Grpc { code, message, details: String::new() }
    }

    /// A gRPC status that requests a retry after some milliseconds.
    pub(crate) fn grpc_after(code: i32, millis: i64) -> Self {
        Self::Grpc { code, message: "later", details: base64(&retry_info(millis)) }
    }

    /// Returns whether the items of a request with this reply are delivered.
    pub(super) fn accepts(&self) -> bool {
        matches!(
            self,
            Self::Accept | Self::Partial { .. } | Self::ResetBeforeAnswer | Self::ResetInAnswer
        )
    }

    /// Returns the response on the wire; `None` if there is none. `kill` ends the connection.
    pub(super) fn answer(&self, is_grpc: bool, kill: &Arc<Notify>) -> Option<Response<Answered>> {
        let partial_success = match self {
            Self::Partial { rejected, message } => Some(ExportTracePartialSuccess {
                rejected_spans: *rejected,
                error_message: (*message).to_owned(),
            }),
            _ => None,
        };
        let message = ExportTraceServiceResponse { partial_success }.encode_to_vec();
        Some(match self {
            Self::Hang | Self::ResetInRequest | Self::ResetBeforeAnswer => return None,
            Self::ResetInAnswer => broken(is_grpc, kill),
            Self::Accept | Self::Partial { .. } if is_grpc => grpc(0, "", "", Some(&message)),
            Self::Accept | Self::Partial { .. } => {
                let mut response = Response::new(Full::new(Bytes::from(message)).boxed_unsync());
                let media = HeaderValue::from_static("application/x-protobuf");
                response.headers_mut().insert(http::header::CONTENT_TYPE, media);
                response
            }
            Self::Http { status, headers, body } => {
                let mut response = Response::new(Full::new(Bytes::from(*body)).boxed_unsync());
                *response.status_mut() = http::StatusCode::from_u16(*status).expect("a status");
                for (name, value) in headers {
                    let value = HeaderValue::from_str(value).expect("a header");
                    response.headers_mut().insert(*name, value);
                }
                response
            }
            Self::Grpc { code, message, details } => grpc(*code, message, details, None),
        })
    }
}

/// Builds a gRPC response: with a message the status is in the trailers, without one in the headers.
fn grpc(code: i32, said: &str, details: &str, message: Option<&[u8]>) -> Response<Answered> {
    let mut status = HeaderMap::new();
    status.insert("grpc-status", HeaderValue::from(code));
    for (name, text) in [
        ("grpc-message", said.replace(' ', "%20")),
        ("grpc-status-details-bin", details.to_owned()),
    ] {
        if !text.is_empty() {
            status.insert(name, HeaderValue::from_str(&text).expect("a header"));
        }
    }
    let media = HeaderValue::from_static("application/grpc");
    let mut response = match message {
        Some(message) => {
            let body = Full::new(Bytes::from(framed(message)));
            Response::new(body.with_trailers(async { Some(Ok(status)) }).boxed_unsync())
        }
        None => {
            let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
            *response.headers_mut() = status;
            response
        }
    };
    response.headers_mut().insert(http::header::CONTENT_TYPE, media);
    response
}

/// Builds the beginning of a response, after which the connection ends.
fn broken(is_grpc: bool, kill: &Arc<Notify>) -> Response<Answered> {
    let body = Broken { is_begun: false, kill: Arc::clone(kill) };
    let mut response = Response::new(body.boxed_unsync());
    let media = if is_grpc { "application/grpc" } else { "application/x-protobuf" };
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static(media));
    if !is_grpc {
        response.headers_mut().insert(http::header::CONTENT_LENGTH, HeaderValue::from(100));
    }
    response
}

struct Broken {
    is_begun: bool,
    kill: Arc<Notify>,
}

impl Body for Broken {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_begun {
            self.kill.notify_one();
            return Poll::Pending;
        }
        self.is_begun = true;
        context.waker().wake_by_ref();
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0, 0, 0])))))
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("small").to_be_bytes();
    [&[0], &length[..], message].concat()
}

/// Encodes a `google.rpc.Status` with a `RetryInfo`.
fn retry_info(millis: i64) -> Vec<u8> {
    #[derive(Clone, PartialEq, Message)]
    struct Status {
        #[prost(message, repeated, tag = "3")]
        details: Vec<Detail>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Detail {
        #[prost(string, tag = "1")]
        type_url: String,
        #[prost(message, optional, tag = "2")]
        value: Option<Info>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Info {
        #[prost(message, optional, tag = "1")]
        delay: Option<Delay>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Delay {
        #[prost(int64, tag = "1")]
        seconds: i64,
        #[prost(int32, tag = "2")]
        nanos: i32,
    }
    let nanos = i32::try_from(millis % 1000 * 1_000_000).expect("below a second");
    let delay = Some(Delay { seconds: millis / 1000, nanos });
    let type_url = "type.googleapis.com/google.rpc.RetryInfo".to_owned();
    Status { details: vec![Detail { type_url, value: Some(Info { delay }) }] }.encode_to_vec()
}

/// Encodes base64 with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= group.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

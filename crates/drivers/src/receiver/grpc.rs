//! OTLP over gRPC: one message in, one message out.
//!
//! A call is a request with a body that is a message after a prefix of five bytes. Its response ends with a status in trailers,
//! or has the status in its headers if it has no message. An export needs no more of gRPC, so it is implemented here, over the
//! same HTTP/2 connection that serves everything else (ADR 0011).

use std::{net::IpAddr, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header::CONTENT_TYPE};
use hyper::body::Incoming;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{
    Sender, Sink,
    body::{Limit, Reply, read},
    error::ExportError,
    intake::{ExportTarget, Intake, Signal},
    pack::Encoding,
};

/// The length of the prefix: whether the message is compressed, and its length.
const HEAD_BYTES: usize = 5;

/// The response to an export that was accepted completely: an empty message.
static TAKEN: [u8; HEAD_BYTES] = [0; HEAD_BYTES];

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const OK: HeaderValue = HeaderValue::from_static("0");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// The path of trace exports.
const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Characters that must be percent-encoded in a text header.
const UNPRINTABLE: &AsciiSet = &CONTROLS.add(b'%');

/// Whether a request is a gRPC call, by its content type.
pub(super) fn is_call(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    content_type.starts_with(b"application/grpc")
}

/// Responds to a call.
pub(super) async fn respond<S: Sink>(
    intake: &Intake<S>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Response<Reply> {
    let target = ExportTarget::of(&request);
    let sender = match intake.admit(request.headers(), peer).await {
        Ok(sender) => sender,
        Err(error) => return refuse(&error, &intake.refused(&target, None, &error).await),
    };
    match call(intake, &sender, request).await {
        Ok(message) => {
            let mut trailers = HeaderMap::with_capacity(1);
            trailers.insert(STATUS, OK);
            with_type(Response::new(Reply::with_trailers(message, trailers)))
        }
        Err(error) => refuse(&error, &intake.refused(&target, Some(&sender), &error).await),
    }
}

async fn call<S: Sink>(
    intake: &Intake<S>,
    sender: &Sender,
    request: Request<Incoming>,
) -> Result<Bytes, ExportError> {
    let (head, body) = request.into_parts();
    let signal = match head.uri.path() {
        TRACES => Signal::Traces,
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Signal::Logs,
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Signal::Metrics,
        other => return Err(ExportError::GrpcPath(other.to_owned())),
    };
    if head.method != Method::POST {
        return Err(ExportError::Method(head.method));
    }
    check_type(&head.headers)?;
    intake.in_time(export(intake, (signal, sender), &head.headers, body)).await
}

async fn export<S: Sink>(
    intake: &Intake<S>,
    (signal, sender): (Signal, &Sender),
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Bytes, ExportError> {
    let bytes_max = intake.message_bytes_max;
    let mut room = intake.room(sender);
    let limit = Limit { bytes_max, head_bytes: HEAD_BYTES, room: &mut room };
    let mut message =
        read(body, limit, |first| first.first_chunk().map_or(0, |head| HEAD_BYTES + length(head)))
            .await?;
    let Some(head) = message.first_chunk::<HEAD_BYTES>().copied() else {
        return Err(ExportError::Broken(format!("a call has {HEAD_BYTES} bytes of head")));
    };
    let message = message.split_off(HEAD_BYTES);
    if length(&head) != message.len() {
        let reason = format!("{} bytes announced, {} there", length(&head), message.len());
        return Err(ExportError::Broken(reason));
    }
    let message = match head[0] {
        0 => message,
        1 => packing(headers)?.unpack(message, bytes_max, &mut room).await?,
        other => {
            return Err(ExportError::Broken(format!("a call starts with 0 or 1, not {other}")));
        }
    };
    let rejected = intake.take((signal, sender), &message).await?;
    if rejected.items == 0 {
        return Ok(Bytes::from_static(&TAKEN));
    }
    let answer = otlp::partial_success(rejected.items, &rejected.reason);
    let mut framed = vec![0];
    framed.extend((answer.len() as u32).to_be_bytes());
    framed.extend(answer);
    Ok(framed.into())
}

fn length(head: &[u8; HEAD_BYTES]) -> usize {
    let [_, length @ ..] = *head;
    u32::from_be_bytes(length) as usize
}

/// Validates the content type: messages are protobuf, with or without the suffix.
fn check_type(headers: &HeaderMap) -> Result<(), ExportError> {
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let rest = content_type.strip_prefix(b"application/grpc").unwrap_or_default();
    match rest.strip_prefix(b"+proto").unwrap_or(rest) {
        [] | [b';' | b' ', ..] => Ok(()),
        _ => Err(ExportError::GrpcType(String::from_utf8_lossy(content_type).into_owned())),
    }
}

fn packing(headers: &HeaderMap) -> Result<Encoding, ExportError> {
    let name = headers.get(ENCODING).map_or(&b""[..], HeaderValue::as_bytes);
    let name = String::from_utf8_lossy(name);
    match Encoding::parse(&name) {
        Some(Encoding::None) => Err(ExportError::Broken(
            "it is packed, and `grpc-encoding` does not say how".to_owned(),
        )),
        Some(packing) => Ok(packing),
        None => Err(ExportError::Encoding(name.into_owned())),
    }
}

/// Builds a response without a message: the status is in its headers.
fn refuse(error: &ExportError, said: &str) -> Response<Reply> {
    let mut response = with_type(Response::new(Reply::default()));
    let headers = response.headers_mut();
    headers.insert(STATUS, HeaderValue::from(error.code() as u16));
    let message = utf8_percent_encode(said, UNPRINTABLE).to_string();
    insert(headers, MESSAGE, message);
    if let Some(delay) = error.retry_after() {
        insert(headers, DETAILS, details(error, said, delay));
    }
    if matches!(error, ExportError::Encoding(_)) {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(Encoding::NAMES));
    }
    response
}

/// Encodes the status details, with the retry delay.
fn details(error: &ExportError, said: &str, delay: Duration) -> String {
    BASE64_STANDARD_NO_PAD.encode(otlp::status(error.code() as i32, said, Some(delay)))
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: String) {
    // Both texts consist of printable characters only.
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

fn with_type(mut response: Response<Reply>) -> Response<Reply> {
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

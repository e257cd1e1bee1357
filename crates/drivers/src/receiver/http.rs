//! OTLP over HTTP/1.1, in protobuf.

use std::{convert::Infallible, io::Read, sync::Arc, time::Duration};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, RETRY_AFTER},
};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::{net::TcpStream, sync::watch};
use tonic::Code;

use super::{
    Sink,
    intake::{Intake, NotTaken, Signal},
    listen::drive,
};

const PROTOBUF: &str = "application/x-protobuf";

/// Why a request was not answered with what it asked for.
#[derive(Debug, Error)]
enum Unanswered {
    #[error("nothing is at `{0}`; send to `/v1/traces`, `/v1/logs` or `/v1/metrics`")]
    Path(String),
    #[error("`{0}` does nothing here; send a POST")]
    Method(Method),
    #[error("content of type `{0}` is not taken; send `{PROTOBUF}`")]
    Type(String),
    #[error("content encoded as `{0}` is not taken; send it as it is, or with `gzip`")]
    Encoding(String),
    #[error("the message broke off: {0}")]
    Broken(String),
    #[error(transparent)]
    NotTaken(#[from] NotTaken),
}

#[derive(Clone, Copy)]
enum Encoding {
    Identity,
    Gzip,
}

/// Serves one connection.
pub(super) async fn serve<S: Sink>(
    stream: TcpStream,
    header_timeout: Duration,
    intake: Arc<Intake<S>>,
    stopped: watch::Receiver<()>,
) {
    let service = service_fn(move |request| {
        let intake = Arc::clone(&intake);
        async move { Ok::<_, Infallible>(respond(handle(&intake, request).await)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .serve_connection(TokioIo::new(stream), service);
    drive(connection, stopped).await;
}

async fn handle<S: Sink>(
    intake: &Intake<S>,
    request: Request<Incoming>,
) -> Result<Bytes, Unanswered> {
    let signal = match request.uri().path() {
        "/v1/traces" => Signal::Traces,
        "/v1/logs" => Signal::Logs,
        "/v1/metrics" => Signal::Metrics,
        other => return Err(Unanswered::Path(other.to_owned())),
    };
    if request.method() != Method::POST {
        return Err(Unanswered::Method(request.method().clone()));
    }
    let content_type = text(request.headers(), &CONTENT_TYPE);
    // What follows a semicolon is a parameter, and means nothing for protobuf.
    if content_type.split(';').next().map(str::trim) != Some(PROTOBUF) {
        return Err(Unanswered::Type(content_type));
    }
    let encoding = match text(request.headers(), &CONTENT_ENCODING).as_str() {
        "" | "identity" => Encoding::Identity,
        "gzip" => Encoding::Gzip,
        other => return Err(Unanswered::Encoding(other.to_owned())),
    };
    let work = async {
        let body = read(request.into_body(), intake.message_bytes_max).await?;
        let message = match encoding {
            Encoding::Identity => body,
            Encoding::Gzip => gunzip(&body, intake.message_bytes_max)?,
        };
        Ok(intake.take(signal, &message).await?)
    };
    intake.admit(work).await?
}

async fn read(body: Incoming, bytes_max: usize) -> Result<Bytes, Unanswered> {
    // What is announced as too large is not read at all.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(NotTaken::TooLarge(bytes_max).into());
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(NotTaken::TooLarge(bytes_max).into()),
        Err(error) => Err(Unanswered::Broken(error.to_string())),
    }
}

fn gunzip(body: &[u8], bytes_max: usize) -> Result<Bytes, Unanswered> {
    let mut message = Vec::new();
    // One byte more than allowed tells a message that is too large from one that just fits.
    let mut decoder = MultiGzDecoder::new(body).take(bytes_max as u64 + 1);
    if let Err(error) = decoder.read_to_end(&mut message) {
        return Err(Unanswered::Broken(format!("gzip: {error}")));
    }
    if message.len() > bytes_max {
        return Err(NotTaken::TooLarge(bytes_max).into());
    }
    Ok(message.into())
}

fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
    String::from_utf8_lossy(value).trim().to_ascii_lowercase()
}

/// The answer. An error is a `google.rpc.Status`, as OTLP asks for.
fn respond(answer: Result<Bytes, Unanswered>) -> Response<Full<Bytes>> {
    let (status, code, body) = match answer {
        Ok(body) => (StatusCode::OK, Code::Ok, body),
        Err(error) => {
            let (status, code) = error.status();
            (status, code, otlp::status(code.into(), &error.to_string()).into())
        }
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF));
    if code == Code::Unavailable {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

impl Unanswered {
    fn status(&self) -> (StatusCode, Code) {
        match self {
            Self::Path(_) => (StatusCode::NOT_FOUND, Code::Unimplemented),
            Self::Method(_) => (StatusCode::METHOD_NOT_ALLOWED, Code::Unimplemented),
            Self::Type(_) | Self::Encoding(_) => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidArgument)
            }
            Self::Broken(_) | Self::NotTaken(NotTaken::Undecodable(_)) => {
                (StatusCode::BAD_REQUEST, Code::InvalidArgument)
            }
            Self::NotTaken(NotTaken::TooLarge(_)) => {
                (StatusCode::PAYLOAD_TOO_LARGE, Code::ResourceExhausted)
            }
            Self::NotTaken(NotTaken::Refused(_) | NotTaken::Late(_)) => {
                (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable)
            }
        }
    }
}

//! OTLP over HTTP, of either version, in protobuf or JSON.

use std::net::IpAddr;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{
        ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, RETRY_AFTER,
        WWW_AUTHENTICATE,
    },
};
use hyper::body::{Body, Incoming};

use super::{
    Sender, Sink,
    body::{self, Limit, Reply},
    error::ExportError,
    grpc,
    intake::{ExportTarget, Intake, PartialSuccess, Signal},
    pack::Encoding,
};

/// The encoding of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Protobuf,
    Json,
}

/// The path of trace exports.
const TRACES: &str = "/v1/traces";

/// The head of an export request.
struct ExportHead {
    signal: Signal,
    form: Form,
    packing: Encoding,
}

/// Responds to a request.
pub(super) async fn respond<S: Sink>(
    intake: &Intake<S>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Response<Reply> {
    let known = Form::of(request.headers());
    // An error is reported in the encoding of the request.
    let form = known.unwrap_or_default();
    let version = request.version();
    let target = ExportTarget::of(&request);
    let sender = match intake.admit(request.headers(), peer).await {
        Ok(sender) => sender,
        Err(error) => {
            let said = intake.refused(&target, None, &error).await;
            return refuse(form, version, &error, &said);
        }
    };
    match export(intake, &sender, known, request).await {
        Ok((signal, rejected)) => with_type(form, form.answer(signal, &rejected)),
        Err(error) => {
            let said = intake.refused(&target, Some(&sender), &error).await;
            refuse(form, version, &error, &said)
        }
    }
}

async fn export<S: Sink>(
    intake: &Intake<S>,
    sender: &Sender,
    form: Option<Form>,
    request: Request<Incoming>,
) -> Result<(Signal, PartialSuccess), ExportError> {
    let bytes_max = intake.message_bytes_max;
    let ExportHead { signal, form, packing } = match export_head(form, &request) {
        Ok(asked) => asked,
        Err(error) => {
            // The body is read anyway; otherwise the connection could not be reused.
            let ignored = body::pass_over(request.into_body(), bytes_max);
            intake.in_time(Box::pin(ignored)).await.ok();
            return Err(error);
        }
    };
    let work = async {
        let mut room = intake.room(sender);
        let announced = request.body().size_hint().lower() as usize;
        let limit = Limit { bytes_max, head_bytes: 0, room: &mut room };
        let message = body::read(request.into_body(), limit, |_| announced).await?;
        let message = packing.unpack(message, bytes_max, &mut room).await?;
        let rejected = match form {
            Form::Protobuf => intake.take((signal, sender), &message).await?,
            // Boxed, as for compressed messages: rare paths must not enlarge the future of the usual path.
            Form::Json => Box::pin(intake.take_json((signal, sender), &message, &mut room)).await?,
        };
        Ok((signal, rejected))
    };
    intake.in_time(work).await
}

fn export_head(form: Option<Form>, request: &Request<Incoming>) -> Result<ExportHead, ExportError> {
    let headers = request.headers();
    if grpc::is_call(headers) {
        return Err(ExportError::GrpcVersion);
    }
    let signal = match request.uri().path() {
        TRACES => Signal::Traces,
        "/v1/logs" => Signal::Logs,
        "/v1/metrics" => Signal::Metrics,
        other => return Err(ExportError::Path(other.to_owned())),
    };
    if request.method() != Method::POST {
        return Err(ExportError::Method(request.method().clone()));
    }
    let form = form.ok_or_else(|| ExportError::Type(text(headers, &CONTENT_TYPE)))?;
    let packing = match headers.get(CONTENT_ENCODING) {
        None => Encoding::None,
        Some(_) => {
            let name = text(headers, &CONTENT_ENCODING);
            Encoding::parse(&name).ok_or(ExportError::Encoding(name))?
        }
    };
    Ok(ExportHead { signal, form, packing })
}

fn refuse(form: Form, version: Version, error: &ExportError, said: &str) -> Response<Reply> {
    let mut response = with_type(form, form.refusal(error, said));
    *response.status_mut() = error.status();
    let headers = response.headers_mut();
    if let Some(delay) = error.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(delay.as_secs()));
    }
    if let ExportError::Method(_) = error {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    if error.status() == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if error.may_be_unread() && version < Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn with_type(form: Form, body: Bytes) -> Response<Reply> {
    let mut response = Response::new(Reply::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.name()));
    response
}

impl Form {
    fn of(headers: &HeaderMap) -> Option<Self> {
        // Parameters follow a semicolon; the only usual one states that JSON is UTF-8, which it always is.
        let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let name = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
        let is = |form: &Self| name.trim_ascii().eq_ignore_ascii_case(form.name().as_bytes());
        [Self::Protobuf, Self::Json].into_iter().find(is)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }

    fn answer(self, signal: Signal, rejected: &PartialSuccess) -> Bytes {
        match (self, rejected) {
            (Self::Protobuf, PartialSuccess { items: 0, .. }) => Bytes::new(),
            (Self::Protobuf, PartialSuccess { items, reason }) => {
                otlp::partial_success(*items, reason).into()
            }
            (Self::Json, PartialSuccess { items: 0, .. }) => Bytes::from_static(b"{}"),
            (Self::Json, PartialSuccess { items, reason }) => {
                let field = match signal {
                    Signal::Traces => "rejectedSpans",
                    Signal::Logs => "rejectedLogRecords",
                    Signal::Metrics => "rejectedDataPoints",
                };
                otlp::partial_success_json(field, *items, reason).into()
            }
        }
    }

    /// An error is a `google.rpc.Status`, as OTLP requires.
    fn refusal(self, error: &ExportError, said: &str) -> Bytes {
        let code = error.code() as i32;
        match self {
            Self::Protobuf => otlp::status(code, said, error.retry_after()).into(),
            Self::Json => otlp::status_json(code, said).into(),
        }
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).map_or(&b""[..], HeaderValue::as_bytes);
    String::from_utf8_lossy(value).trim().to_ascii_lowercase()
}

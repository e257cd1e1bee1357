//! OTLP over HTTP, of either version, in protobuf or JSON.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, RETRY_AFTER},
};
use hyper::body::{Body, Incoming};

use super::{
    Sink,
    body::{Limit, Reply, read},
    grpc,
    intake::{Intake, Rejected, Signal},
    pack::Packing,
    unanswered::Unanswered,
};

/// How a message is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Protobuf,
    Json,
}

/// Answers a request.
pub(super) async fn respond<S: Sink>(
    intake: &Intake<S>,
    request: Request<Incoming>,
) -> Response<Reply> {
    // A mistake is told in the form in which it was made.
    let form = Form::of(request.headers());
    let form_told = form.unwrap_or_default();
    let (status, body, refused) = match export(intake, form, request).await {
        Ok((signal, rejected)) => (StatusCode::OK, form_told.answer(signal, &rejected), None),
        Err(error) => {
            let said = error.to_string();
            intake.watch.refusal(&said);
            (error.status(), form_told.refusal(&error, &said), Some(error))
        }
    };
    let mut response = Response::new(Reply::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form_told.name()));
    if let Some(delay) = refused.as_ref().and_then(Unanswered::retry_after) {
        headers.insert(RETRY_AFTER, HeaderValue::from(delay.as_secs()));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

async fn export<S: Sink>(
    intake: &Intake<S>,
    form: Option<Form>,
    request: Request<Incoming>,
) -> Result<(Signal, Rejected), Unanswered> {
    if grpc::is_call(request.headers()) {
        return Err(Unanswered::GrpcVersion);
    }
    let signal = match request.uri().path() {
        "/v1/traces" => Signal::Traces,
        "/v1/logs" => Signal::Logs,
        "/v1/metrics" => Signal::Metrics,
        other => return Err(Unanswered::Path(other.to_owned())),
    };
    if request.method() != Method::POST {
        return Err(Unanswered::Method(request.method().clone()));
    }
    let Some(form) = form else {
        return Err(Unanswered::Type(text(request.headers(), &CONTENT_TYPE)));
    };
    let packing = match request.headers().get(CONTENT_ENCODING) {
        None => Packing::None,
        Some(_) => {
            let name = text(request.headers(), &CONTENT_ENCODING);
            Packing::parse(&name).ok_or(Unanswered::Encoding(name))?
        }
    };
    let work = async {
        let bytes_max = intake.message_bytes_max;
        let mut room = intake.room();
        let announced = request.body().size_hint().lower() as usize;
        let limit = Limit { bytes_max, head_bytes: 0, room: &mut room };
        let body = read(request.into_body(), limit, |_| announced).await?;
        let message = packing.unpack(body, bytes_max, &mut room)?;
        let rejected = match form {
            Form::Protobuf => intake.take(signal, &message).await?,
            Form::Json => intake.take_json(signal, &message, &mut room).await?,
        };
        Ok((signal, rejected))
    };
    intake.in_time(work).await
}

impl Form {
    fn of(headers: &HeaderMap) -> Option<Self> {
        // What follows a semicolon is a parameter; the only usual one says that JSON is UTF-8, which it always is.
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

    fn answer(self, signal: Signal, rejected: &Rejected) -> Bytes {
        match (self, rejected) {
            (Self::Protobuf, Rejected { items: 0, .. }) => Bytes::new(),
            (Self::Protobuf, Rejected { items, reason }) => {
                otlp::partial_success(*items, reason).into()
            }
            (Self::Json, Rejected { items: 0, .. }) => Bytes::from_static(b"{}"),
            (Self::Json, Rejected { items, reason }) => {
                let field = match signal {
                    Signal::Traces => "rejectedSpans",
                    Signal::Logs => "rejectedLogRecords",
                    Signal::Metrics => "rejectedDataPoints",
                };
                otlp::partial_success_json(field, *items, reason).into()
            }
        }
    }

    /// A mistake is a `google.rpc.Status`, as OTLP asks for.
    fn refusal(self, error: &Unanswered, said: &str) -> Bytes {
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

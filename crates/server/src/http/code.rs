//! The codes of problems, for programs: a code stays the same when the words of a message change.

use axum::http::StatusCode;
use model::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request failed, in one word for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProblemCode {
    /// The request is invalid: a parameter, a header or the body.
    InvalidRequest,
    /// A document is invalid; `diagnostics` has every error, with its location.
    InvalidDocument,
    /// The request is larger than the server accepts, or its response would be.
    TooLarge,
    /// The request did not arrive in time.
    RequestTimeout,
    /// The path does not support the method.
    MethodNotAllowed,
    /// The server has no representation that `Accept` allows.
    NotAcceptable,
    /// The path, or what it names, does not exist.
    NotFound,
    /// What the path names is in a state that forbids this.
    Conflict,
    /// The document has another version than `If-Match` requires.
    VersionChanged,
    /// The `Idempotency-Key` belongs to another request.
    KeyUsed,
    /// The run has not ended.
    RunActive,
    /// The caller is not authenticated.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden,
    /// The request comes from a web page of another origin.
    CrossOrigin,
    /// The caller or the project has exceeded its rate limit; `Retry-After` tells when to retry.
    RateLimited,
    /// The server has as much of this work as it accepts at a time; retry later.
    Overloaded,
    /// An exporter cannot deliver the server's own telemetry, so that no new runs are accepted; retry later.
    TelemetryBlocked,
    /// The server is not ready; retry later.
    NotReady,
    /// A system that the server depends on failed; retry later.
    Unavailable,
    /// The document may hold secrets, and the server has no key to encrypt them.
    SecretKeyMissing,
    /// The document was encrypted with a key that the server does not have.
    SecretKeyLost,
    /// The server has a bug.
    Internal,
}

impl ProblemCode {
    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        ErrorCode::from(self).as_str()
    }

    /// Returns the code of a status that no more specific code explains.
    pub(super) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthenticated,
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::NOT_ACCEPTABLE => Self::NotAcceptable,
            StatusCode::REQUEST_TIMEOUT => Self::RequestTimeout,
            StatusCode::CONFLICT => Self::Conflict,
            StatusCode::PRECONDITION_FAILED => Self::VersionChanged,
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge,
            StatusCode::TOO_MANY_REQUESTS => Self::Overloaded,
            StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable,
            StatusCode::INTERNAL_SERVER_ERROR => Self::Internal,
            _ => Self::InvalidRequest,
        }
    }
}

impl From<ProblemCode> for ErrorCode {
    fn from(code: ProblemCode) -> Self {
        match code {
            ProblemCode::InvalidRequest => Self::InvalidRequest,
            ProblemCode::InvalidDocument => Self::InvalidDocument,
            ProblemCode::TooLarge => Self::TooLarge,
            ProblemCode::RequestTimeout => Self::RequestTimeout,
            ProblemCode::MethodNotAllowed => Self::MethodNotAllowed,
            ProblemCode::NotAcceptable => Self::NotAcceptable,
            ProblemCode::NotFound => Self::NotFound,
            ProblemCode::Conflict => Self::Conflict,
            ProblemCode::VersionChanged => Self::VersionChanged,
            ProblemCode::KeyUsed => Self::KeyUsed,
            ProblemCode::RunActive => Self::RunActive,
            ProblemCode::Unauthenticated => Self::Unauthenticated,
            ProblemCode::Forbidden => Self::Forbidden,
            ProblemCode::CrossOrigin => Self::CrossOrigin,
            ProblemCode::RateLimited => Self::RateLimited,
            ProblemCode::Overloaded => Self::Overloaded,
            ProblemCode::TelemetryBlocked => Self::TelemetryBlocked,
            ProblemCode::NotReady => Self::NotReady,
            ProblemCode::Unavailable => Self::Unavailable,
            ProblemCode::SecretKeyMissing => Self::SecretKeyMissing,
            ProblemCode::SecretKeyLost => Self::SecretKeyLost,
            ProblemCode::Internal => Self::Internal,
        }
    }
}

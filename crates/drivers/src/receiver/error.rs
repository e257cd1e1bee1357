//! Why an export request failed, and how HTTP and gRPC report it.

use std::time::Duration;

use http::{Method, StatusCode};
use otlp::{DecodeError, ReadError};
use thiserror::Error;

use super::SinkError;

/// How long a sender that was refused for lack of room should wait before it retries.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why an export request failed.
#[derive(Debug, Error)]
pub(super) enum ExportError {
    #[error(
        "nobody may send without a token here: set the header `authorization` to `Bearer` and a token that may send, as by \
         `OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20<token>`"
    )]
    TokenMissing,
    #[error(
        "the token is not known, or has expired: make another one, and set the header `authorization` to it"
    )]
    TokenRefused,
    #[error(
        "the token may read and not send, since whoever sends spans decides what runs find: send with the token of a role \
         that may"
    )]
    TokenForbidden,
    #[error("whether the token may send cannot be told now; send it again later")]
    TokenUnread,
    #[error("nothing is at `{0}`; send to `/v1/traces`, `/v1/logs` or `/v1/metrics`")]
    Path(String),
    #[error(
        "nothing is at `{0}`; there are the `Export` methods of OTLP's trace, logs and metrics services"
    )]
    GrpcPath(String),
    #[error("`{0}` does nothing here; send a POST")]
    Method(Method),
    #[error(
        "content of type `{0}` is not taken; send `application/x-protobuf` or `application/json`"
    )]
    Type(String),
    #[error("gRPC messages of type `{0}` are not taken; send `application/grpc`")]
    GrpcType(String),
    #[error("gRPC needs HTTP/2; this request came by HTTP/1")]
    GrpcVersion,
    #[error("content encoded as `{0}` is not taken; send it as it is, or with `gzip` or `zstd`")]
    Encoding(String),
    #[error("the message broke off: {0}")]
    Broken(String),
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
    #[error("not an export in JSON: {0}")]
    Json(#[from] ReadError),
    #[error("the message has more than {0} bytes; send smaller batches")]
    TooLarge(usize),
    #[error("the JSON takes more than {0} bytes to read; send smaller batches, or protobuf")]
    TooIntricate(usize),
    #[error(transparent)]
    Refused(#[from] SinkError),
    #[error("messages of {0} bytes are being received already; send it again later")]
    NoRoom(usize),
    #[error("the export was not done within {0:?}; send it again")]
    Late(Duration),
}

/// The gRPC status codes in use, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    InvalidArgument = 3,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl ExportError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Path(_) | Self::GrpcPath(_) => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Type(_) | Self::GrpcType(_) | Self::Encoding(_) => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::GrpcVersion => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::Broken(_) | Self::Undecodable(_) | Self::Json(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge(_) | Self::TooIntricate(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Refused(SinkError::Full(_)) | Self::NoRoom(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Refused(SinkError::Unavailable(_)) | Self::Late(_) | Self::TokenUnread => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::TokenMissing | Self::TokenRefused => StatusCode::UNAUTHORIZED,
            Self::TokenForbidden => StatusCode::FORBIDDEN,
        }
    }

    pub(super) fn code(&self) -> Code {
        match self {
            Self::Path(_)
            | Self::GrpcPath(_)
            | Self::Method(_)
            | Self::GrpcType(_)
            | Self::GrpcVersion
            | Self::Encoding(_) => Code::Unimplemented,
            Self::Type(_) | Self::Broken(_) | Self::Undecodable(_) | Self::Json(_) => {
                Code::InvalidArgument
            }
            // Without a retry delay, this code states that the request will never fit.
            Self::TooLarge(_) | Self::TooIntricate(_) => Code::ResourceExhausted,
            Self::Refused(_) | Self::NoRoom(_) | Self::Late(_) | Self::TokenUnread => {
                Code::Unavailable
            }
            Self::TokenMissing | Self::TokenRefused => Code::Unauthenticated,
            Self::TokenForbidden => Code::PermissionDenied,
        }
    }

    /// Whether a part of the request may be unread, so that the connection cannot be reused.
    pub(super) fn may_be_unread(&self) -> bool {
        matches!(
            self,
            Self::TooLarge(_)
                | Self::NoRoom(_)
                | Self::Late(_)
                | Self::TokenMissing
                | Self::TokenRefused
                | Self::TokenForbidden
                | Self::TokenUnread
        )
    }

    /// Returns when to retry the same request, if that can help.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        (self.code() == Code::Unavailable).then_some(RETRY_AFTER)
    }
}

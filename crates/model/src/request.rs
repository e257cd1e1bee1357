//! What is fired and what comes back, resolved: no template reaches this form.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A resolved request, ready to be fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// One HTTP request.
    Http(HttpRequest),
}

/// A resolved HTTP request. `Debug` shows headers and body: log it only where secrets may stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, in capitals.
    pub method: String,
    /// An absolute URL, `http` or `https`.
    pub url: String,
    /// Headers in the order written; a name may stand twice.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: String,
    /// How long the whole exchange may take.
    pub timeout: Duration,
}

/// How a fired trigger ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The system answered, with whatever status.
    Response(Response),
    /// It did not, and why.
    NoAnswer(NoAnswer),
}

/// What the system answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Headers in the order received; a name may stand twice.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Body,
    /// From the first byte sent to the last byte received, as measured here, in nanoseconds.
    pub duration_ns: u64,
}

/// A body, kept as text where it is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NoAnswer {
    /// The kind, for programs.
    pub kind: NoAnswerKind,
    /// What happened, where, for people.
    pub message: String,
}

/// The kinds of [`NoAnswer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NoAnswerKind {
    /// The request cannot be sent as it stands.
    Invalid,
    /// Nobody listens there.
    Refused,
    /// The connection broke after the request was on its way.
    Connection,
    /// The name has no address.
    Dns,
    /// No trusted TLS session could be made.
    Tls,
    /// The request's own timeout passed.
    Timeout,
    /// The answer is larger than the limit, so that no part of it is kept.
    TooLarge,
    /// The worker died between sending and recording: whether the system got it is not known.
    Unknown,
}

impl NoAnswerKind {
    /// Whether the system cannot have got the request, so that it will not tell of it either.
    pub fn is_unsent(self) -> bool {
        match self {
            Self::Invalid | Self::Refused | Self::Dns | Self::Tls => true,
            Self::Connection | Self::Timeout | Self::TooLarge | Self::Unknown => false,
        }
    }
}

impl Body {
    /// The body in these bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }

    /// The body's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Answer {
    /// The response, where there is one.
    pub fn response(&self) -> Option<&Response> {
        match self {
            Self::Response(response) => Some(response),
            Self::NoAnswer(_) => None,
        }
    }
}

//! How triggers end: the answers to requests.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How a fired trigger ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The system responded, with any status.
    Response(Response),
    /// The program exited, with any code.
    Exit(Exit),
    /// The system replied by a further protocol, with any status.
    Reply(Reply),
    /// Nothing was fired: the run uses an external trace id.
    NotFired,
    /// The system did not respond, and why.
    NoAnswer(NoAnswer),
}

/// The result of a program that exited by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exit {
    /// The exit code; zero means success.
    pub code: i32,
    /// The complete standard output.
    pub stdout: Body,
    /// The end of the standard error, for people.
    pub stderr: String,
    /// From its start to its end, as measured here, in nanoseconds.
    pub duration_ns: u64,
}

/// The response of the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Headers in the order received; a name may occur twice.
    pub headers: Vec<(String, String)>,
    /// The complete body.
    pub body: Body,
    /// From the first byte sent to the last byte received, as measured here, in nanoseconds.
    pub duration_ns: u64,
}

/// The reply of the system by a further protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reply {
    /// The protocol, which is the type of the trigger.
    pub protocol: String,
    /// The status, as the protocol numbers it.
    pub status: i32,
    /// The name of the status in the protocol; empty if it has none.
    pub status_name: String,
    /// Whether the protocol counts the status as a failure.
    pub is_error: bool,
    /// Headers, metadata or trailers in the order received; a name may occur twice.
    pub headers: Vec<(String, String)>,
    /// The complete message.
    pub body: Body,
    /// From the first byte sent to the last byte received, as measured here, in nanoseconds.
    pub duration_ns: u64,
}

/// How a trigger ended, whatever its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggerStatus<'a> {
    /// The status, or the exit code of a program.
    pub code: i32,
    /// The name of the status; empty if it has none.
    pub name: &'a str,
    /// The measured duration, in nanoseconds.
    pub duration_ns: u64,
    /// Whether a program ended.
    pub is_program: bool,
}

/// A body, stored as text if it is valid UTF-8. It may be large; a clone shares the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    /// UTF-8.
    Text(Arc<str>),
    /// Anything else.
    Bytes(Arc<[u8]>),
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NoAnswer {
    /// The kind, for programs.
    pub kind: NoAnswerKind,
    /// The error and its location, for people.
    pub message: String,
}

/// The kinds of [`NoAnswer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NoAnswerKind {
    /// The request is invalid and cannot be sent.
    Invalid,
    /// No server listens on the address.
    Refused,
    /// The connection broke after the request was sent.
    Connection,
    /// The name has no address.
    Dns,
    /// No trusted TLS session could be established.
    Tls,
    /// The request's own timeout expired.
    Timeout,
    /// There were more redirects than allowed.
    Redirects,
    /// A signal ended the program, and not one of ours.
    Killed,
    /// The response is larger than the limit, so that no part of it is stored.
    TooLarge,
    /// The worker died between sending and storing: whether the system received the request is unknown.
    Unknown,
}

impl NoAnswerKind {
    /// Returns the kind as one word, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Refused => "refused",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Redirects => "redirects",
            Self::Killed => "killed",
            Self::TooLarge => "tooLarge",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the system cannot have received the request, so that it will send no spans for it either.
    pub fn is_unsent(self) -> bool {
        match self {
            Self::Invalid | Self::Refused | Self::Dns | Self::Tls => true,
            Self::Connection
            | Self::Timeout
            | Self::Redirects
            | Self::Killed
            | Self::TooLarge
            | Self::Unknown => false,
        }
    }
}

impl Body {
    /// Creates a body from these bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text.into()),
            Err(error) => Self::Bytes(error.into_bytes().into()),
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of the body.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Answer {
    /// Returns the response, if there is one.
    pub fn response(&self) -> Option<&Response> {
        match self {
            Self::Response(response) => Some(response),
            Self::Exit(_) | Self::Reply(_) | Self::NotFired | Self::NoAnswer(_) => None,
        }
    }

    /// Whether the trigger is finished: it has its response, or needs none.
    pub fn is_answered(&self) -> bool {
        match self {
            Self::Response(_) | Self::Exit(_) | Self::Reply(_) | Self::NotFired => true,
            Self::NoAnswer(_) => false,
        }
    }

    /// Returns the number of bytes of the body, or of a program's output.
    pub fn body_len(&self) -> usize {
        match self {
            Self::Response(response) => response.body.len(),
            Self::Exit(exit) => exit.stdout.len(),
            Self::Reply(reply) => reply.body.len(),
            Self::NotFired | Self::NoAnswer(_) => 0,
        }
    }

    /// Returns how the trigger ended, if it was answered.
    pub fn status(&self) -> Option<TriggerStatus<'_>> {
        let answered =
            |code, name, duration_ns| TriggerStatus { code, name, duration_ns, is_program: false };
        match self {
            Self::Response(it) => Some(answered(it.status.into(), "", it.duration_ns)),
            Self::Reply(it) => Some(answered(it.status, &it.status_name, it.duration_ns)),
            Self::Exit(it) => {
                Some(TriggerStatus { is_program: true, ..answered(it.code, "", it.duration_ns) })
            }
            Self::NotFired | Self::NoAnswer(_) => None,
        }
    }

    /// Whether the trigger failed by the rules of its own kind. A status of HTTP is never a failure by itself.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Exit(exit) => exit.code != 0,
            Self::Reply(reply) => reply.is_error,
            Self::Response(_) | Self::NotFired | Self::NoAnswer(_) => false,
        }
    }

    /// Returns the measured duration, in nanoseconds, if there is one.
    pub fn duration_ns(&self) -> Option<u64> {
        self.status().map(|status| status.duration_ns)
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::Text("".into())
    }
}

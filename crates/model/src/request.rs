//! What is fired and what comes back, resolved: no template reaches this form.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Secret, TraceId};

/// A resolved request, ready to be fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// One HTTP request.
    Http(HttpRequest),
    /// One program, run to its end.
    Exec(ExecRequest),
    /// Nothing: the trace is there already, or somebody else makes it.
    TraceId(TraceId),
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
    /// The header by which the system knows who asks. It does not follow a redirect to another origin.
    pub auth: Option<(String, String)>,
    /// The body; empty for none.
    pub body: Body,
    /// The names of headers that hold a secret. They do not follow a redirect to another origin either.
    pub secret_headers: Vec<String>,
    /// Whether the body holds a secret. A redirect that would take it to another origin is not followed.
    pub is_body_secret: bool,
    /// How long the whole exchange may take, redirects included.
    pub timeout: Duration,
    /// In which forms it tells of the trace.
    pub propagation: Vec<Propagator>,
    /// By what the peer is known, and we to it.
    pub tls: Tls,
    /// How many redirects are followed; with none, a redirect is the answer.
    pub redirects_max: u32,
}

/// By what a peer is known, and we to it. PEM is text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Who is taken for the peer.
    pub verify: Verify,
    /// Our certificates and the key of the first one; none where the peer need not know us.
    pub identity: Option<Identity>,
    /// The name in the peer's certificate, where it is not the host of the URL.
    pub server_name: Option<String>,
}

/// Whose certificate is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// One that this machine trusts.
    #[default]
    System,
    /// One that these certificates, as PEM, have signed, or that is among them.
    Ca(String),
    /// Anybody's: the document says so.
    Nothing,
}

/// By what a peer knows us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those between it and one that the peer trusts.
    pub certificates: String,
    /// The key of the certificate.
    pub key: Secret,
}

/// A resolved command. `Debug` shows words and environment: log it only where secrets may stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecRequest {
    /// What is run.
    pub command: Command,
    /// What its environment has beyond ours.
    pub env: Vec<(String, String)>,
    /// The folder in which it is run; none for the one that we are in.
    pub workdir: Option<String>,
    /// How long it may take.
    pub timeout: Duration,
    /// In which forms it is told of the trace, besides that of W3C.
    pub propagation: Vec<Propagator>,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A line for the shell.
    Line(String),
    /// A program and its arguments, each as it is; no shell sees them.
    Words {
        /// A path, or a name that is looked for in `PATH`.
        program: String,
        /// What it is given.
        arguments: Vec<String>,
    },
}

/// A form in which a request tells of the trace that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagator {
    /// `traceparent` and `tracestate`.
    W3c,
    /// `b3`
    B3,
    /// `x-b3-traceid` and its kin.
    B3Multi,
    /// `uber-trace-id`
    Jaeger,
}

/// How a fired trigger ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The system answered, with whatever status.
    Response(Response),
    /// The program ended, with whatever code.
    Exit(Exit),
    /// There was nothing to fire: the trace is somebody else's.
    NotFired,
    /// The system did not answer, and why.
    NoAnswer(NoAnswer),
}

/// How a program ended that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exit {
    /// Zero where it says that all went well.
    pub code: i32,
    /// What it wrote to its standard output, whole.
    pub stdout: Body,
    /// The end of what it wrote to its standard error, for people.
    pub stderr: String,
    /// From its start to its end, as measured here, in nanoseconds.
    pub duration_ns: u64,
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

/// A body, kept as text where it is text. It may be large, and a clone is the same.
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
    /// One redirect led to the next, more often than is followed.
    Redirects,
    /// The program was ended by a signal, and not by us.
    Killed,
    /// The answer is larger than the limit, so that no part of it is kept.
    TooLarge,
    /// The worker died between sending and recording: whether the system got it is not known.
    Unknown,
}

impl NoAnswerKind {
    /// The kind as one word, as it is kept.
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

    /// Whether the system cannot have got the request, so that it will not tell of it either.
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
    /// The body in these bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text.into()),
            Err(error) => Self::Bytes(error.into_bytes().into()),
        }
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
            Self::Exit(_) | Self::NotFired | Self::NoAnswer(_) => None,
        }
    }

    /// Whether nothing is to be waited for any more: the trigger has its answer, or needs none.
    pub fn is_answered(&self) -> bool {
        match self {
            Self::Response(_) | Self::Exit(_) | Self::NotFired => true,
            Self::NoAnswer(_) => false,
        }
    }

    /// How many bytes its body has, or what a program wrote.
    pub fn body_len(&self) -> usize {
        match self {
            Self::Response(response) => response.body.len(),
            Self::Exit(exit) => exit.stdout.len(),
            Self::NotFired | Self::NoAnswer(_) => 0,
        }
    }

    /// How long it took, where it was measured, in nanoseconds.
    pub fn duration_ns(&self) -> Option<u64> {
        match self {
            Self::Response(response) => Some(response.duration_ns),
            Self::Exit(exit) => Some(exit.duration_ns),
            Self::NotFired | Self::NoAnswer(_) => None,
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::Text("".into())
    }
}

impl Propagator {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::W3c, Self::B3, Self::B3Multi, Self::Jaeger];

    /// The name by which a document chooses it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::W3c => "w3c",
            Self::B3 => "b3",
            Self::B3Multi => "b3multi",
            Self::Jaeger => "jaeger",
        }
    }
}

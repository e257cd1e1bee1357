//! Resolved requests and their answers: they contain no templates.

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
    /// Nothing is fired: the trace already exists, or another program creates it.
    TraceId(TraceId),
    /// A call by a further protocol.
    Call(CallRequest),
}

/// How a trigger passes on the trace context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextCarrier {
    /// In headers of the request, or in metadata.
    Headers,
    /// In variables of its environment.
    Environment,
}

impl Request {
    /// Whether something is sent or started.
    pub fn is_fired(&self) -> bool {
        self.external_trace().is_none()
    }

    /// Returns the id of the trace if it is not minted for the run.
    pub fn external_trace(&self) -> Option<TraceId> {
        match self {
            Self::TraceId(id) => Some(*id),
            Self::Http(_) | Self::Exec(_) | Self::Call(_) => None,
        }
    }

    /// Returns the URL of the peer that it calls; none if it calls none that sends spans of the call.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Http(http) => Some(&http.url),
            Self::Call(call) => call.text(call.peer),
            Self::Exec(_) | Self::TraceId(_) => None,
        }
    }

    /// Returns the method of the call, as spans of its peer name it.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Http(http) => Some(&http.method),
            Self::Call(call) => call.text(call.method?),
            Self::Exec(_) | Self::TraceId(_) => None,
        }
    }

    /// Returns the attributes of the request for the trigger's span, by the semantic conventions.
    pub fn span_attributes(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Http(http) => vec![("http.request.method", &http.method)],
            Self::Exec(_) | Self::TraceId(_) | Self::Call(_) => Vec::new(),
        }
    }

    /// Returns how it passes on the trace context, and in which formats.
    pub fn propagation(&self) -> (ContextCarrier, &[Propagator]) {
        match self {
            Self::Http(http) => (ContextCarrier::Headers, &http.propagation),
            Self::Exec(exec) => (ContextCarrier::Environment, &exec.propagation),
            Self::Call(call) => (ContextCarrier::Headers, &call.propagation),
            Self::TraceId(_) => (ContextCarrier::Headers, &[]),
        }
    }

    /// Describes that it has ended, as the begin of a sentence.
    pub fn end_words(&self) -> &'static str {
        match self {
            Self::Http(_) | Self::Call(_) => "the system answered",
            Self::Exec(_) => "the trigger's command ended",
            Self::TraceId(_) => "the trace was waited for",
        }
    }
}

/// A resolved HTTP request. `Debug` shows headers and body: log it only where secrets are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, in capitals.
    pub method: String,
    /// An absolute URL, `http` or `https`.
    pub url: String,
    /// Headers in the order written; a name may occur twice.
    pub headers: Vec<(String, String)>,
    /// The authentication header. It is not sent to another origin on a redirect.
    pub auth: Option<(String, String)>,
    /// The body; empty for none.
    pub body: Body,
    /// The names of headers that contain a secret. They are not sent to another origin on a redirect either.
    pub secret_headers: Vec<String>,
    /// Whether the body contains a secret. A redirect that would send it to another origin is not followed.
    pub is_body_secret: bool,
    /// The timeout of the complete exchange, including redirects.
    pub timeout: Duration,
    /// The formats in which it propagates the trace context.
    pub propagation: Vec<Propagator>,
    /// The TLS settings.
    pub tls: Tls,
    /// The maximum number of redirects; with zero, a redirect is the response.
    pub redirects_max: u32,
}

/// A resolved call by a further protocol: its fields, as the table of the protocol names them. `Debug` shows them all: log it only
/// where secrets are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRequest {
    /// The protocol, which is the type of the trigger.
    pub protocol: &'static str,
    /// The field with the address of the peer.
    pub peer: &'static str,
    /// The field with the method, if the protocol has one.
    pub method: Option<&'static str>,
    /// The fields that are written.
    pub fields: Vec<(&'static str, CallValue)>,
    /// The timeout of the complete exchange.
    pub timeout: Duration,
    /// The formats in which it propagates the trace context.
    pub propagation: Vec<Propagator>,
    /// The TLS settings.
    pub tls: Tls,
}

/// The value of a field of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallValue {
    /// A text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// Names and values: headers, the header of an authentication, or a user name and a password.
    Pairs(Vec<(String, String)>),
    /// A text or the content of a file.
    Body(Body),
    /// Yes or no.
    Boolean(bool),
}

impl CallRequest {
    /// Returns a field, if it is written.
    pub fn field(&self, name: &str) -> Option<&CallValue> {
        self.fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns a field that is a text; of a list the first one.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.field(name)? {
            CallValue::Text(text) => Some(text),
            CallValue::Texts(texts) => texts.first().map(String::as_str),
            CallValue::Pairs(_) | CallValue::Body(_) | CallValue::Boolean(_) => None,
        }
    }
}

/// The TLS settings of a request. PEM is text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// How the peer's certificate is verified.
    pub verify: Verify,
    /// Our client certificates and the key of the first one; none if the peer requires none.
    pub identity: Option<Identity>,
    /// The expected name in the peer's certificate, if it differs from the host of the URL.
    pub server_name: Option<String>,
}

/// The certificates that are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// A certificate that this machine trusts.
    #[default]
    System,
    /// A certificate that these certificates, in PEM format, have signed, or that is among them.
    Ca(String),
    /// Any certificate: the document disables verification.
    Nothing,
}

/// A client certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and the intermediate certificates up to one that the peer trusts.
    pub certificates: String,
    /// The key of the certificate.
    pub key: Secret,
}

/// A resolved command. `Debug` shows arguments and environment: log it only where secrets are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecRequest {
    /// The command to run.
    pub command: Command,
    /// The environment variables in addition to ours.
    pub env: Vec<(String, String)>,
    /// The working directory; none for the current one.
    pub workdir: Option<String>,
    /// The timeout.
    pub timeout: Duration,
    /// The formats in which it gets the trace context, in addition to that of W3C.
    pub propagation: Vec<Propagator>,
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A command line for the shell.
    Line(String),
    /// A program and its arguments, unchanged; no shell evaluates them.
    Words {
        /// A path, or a name that is searched in `PATH`.
        program: String,
        /// The arguments.
        arguments: Vec<String>,
    },
}

/// A format of trace context propagation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagator {
    /// `traceparent` and `tracestate`.
    W3c,
    /// `b3`
    B3,
    /// `x-b3-traceid` and related headers.
    B3Multi,
    /// `uber-trace-id`
    Jaeger,
}

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
pub struct Ending<'a> {
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
    pub fn ending(&self) -> Option<Ending<'_>> {
        let answered =
            |code, name, duration_ns| Ending { code, name, duration_ns, is_program: false };
        match self {
            Self::Response(it) => Some(answered(it.status.into(), "", it.duration_ns)),
            Self::Reply(it) => Some(answered(it.status, &it.status_name, it.duration_ns)),
            Self::Exit(it) => {
                Some(Ending { is_program: true, ..answered(it.code, "", it.duration_ns) })
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
        self.ending().map(|ending| ending.duration_ns)
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::Text("".into())
    }
}

impl Propagator {
    /// All propagators.
    pub const ALL: [Self; 4] = [Self::W3c, Self::B3, Self::B3Multi, Self::Jaeger];

    /// Returns the name by which a document selects it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::W3c => "w3c",
            Self::B3 => "b3",
            Self::B3Multi => "b3multi",
            Self::Jaeger => "jaeger",
        }
    }
}

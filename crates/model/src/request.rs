//! Resolved requests: they contain no templates.

use std::time::Duration;

use crate::{Body, Secret, TraceId};

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
            CallValue::Pairs(_) | CallValue::Body(_) => None,
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

//! The response of a destination to a request, classified into six outcomes on which the lane acts.
//!
//! This module maps every response of both transports and every failure of the network and of TLS, so that the rule
//! "accepted items are never lost by an ambiguous response" is implemented in one place: only a response that rejects
//! the data itself leads to a dead letter. Deliberately absent: the reaction to a response, which belongs to the lane.

use std::{error::Error, io, time::Duration};

use net::{HttpError, dial::ConnectError};
use prost::Message;

use super::calendar;
use crate::plan::Secret;

/// The maximum number of characters of a peer's text in a message.
const SAID_CHARS_MAX: usize = 300;

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// All items are delivered.
    Accepted,
    /// All items are delivered except `rejected` of them, which are not identified.
    Partial { rejected: u64, message: String },
    /// A temporary failure: the same request may succeed later, not before `after` if the peer stated a time.
    Later { after: Option<Duration>, why: Why },
    /// A failure until an operator changes the configuration, here or at the destination.
    Misconfigured(Why),
    /// The request is too large.
    TooLarge(Why),
    /// A permanent failure: the destination rejects the data.
    Poison(Why),
}

/// The reason why a request was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) kind: WhyKind,
    /// The message for a person: the endpoint, what happened, what to do; without secrets.
    pub(crate) message: String,
}

/// The machine-readable reason why a request was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WhyKind {
    /// The host name has no address.
    Dns,
    /// No server listens at the address.
    Refused,
    /// The connection ended before the response.
    Reset,
    /// No response in time.
    Timeout,
    /// Certificates or TLS versions do not match.
    Tls,
    /// The peer does not speak the protocol.
    Protocol,
    /// Another I/O failure: no route, a file that cannot be written.
    Io,
    /// This HTTP status.
    Status(u16),
    /// This gRPC status.
    Grpc(i32),
}

/// `google.rpc.Status`, only the fields that are needed.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<RpcDetail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct RpcDetail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<RetryDelay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
struct RetryDelay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// The export response: the three signals use the same field numbers.
#[derive(Clone, PartialEq, Message)]
struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// The sender of a response.
#[derive(Clone, Copy)]
pub(crate) struct Peer<'a> {
    /// Its endpoint, as [`shown`](crate::plan::shown).
    pub(crate) place: &'a str,
    /// Secrets to remove from its text, the longest first.
    pub(crate) secrets: &'a [Secret],
    /// Whether it has accepted a request of this signal before: then the endpoint is the intended one.
    pub(crate) has_accepted: bool,
}

impl Why {
    pub(crate) fn new(kind: WhyKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl Peer<'_> {
    /// Formats its text as one line, truncated, and without the secrets that it repeats.
    fn words(self, said: &str) -> String {
        let mut said = said.to_owned();
        // Before truncating, which could leave half of a secret.
        for secret in self.secrets {
            if said.contains(secret.expose()) {
                said = said.replace(secret.expose(), "***");
            }
        }
        let clean = said.chars().map(|it| if it.is_control() { ' ' } else { it });
        let clean: String = clean.take(SAID_CHARS_MAX).collect();
        clean.trim().to_owned()
    }
}

/// Maps a successful response, which may be a partial success.
pub(crate) fn success(peer: Peer<'_>, message: &[u8]) -> Answer {
    // A success with an unreadable body is still a success, by its status.
    match ExportResponse::decode(message).ok().and_then(|response| response.partial_success) {
        Some(PartialSuccess { rejected: rejected @ 1.., error_message }) => Answer::Partial {
            rejected: rejected.unsigned_abs(),
            message: peer.words(&error_message),
        },
        _ => Answer::Accepted,
    }
}

/// Maps an HTTP response that is not a success.
pub(crate) fn http(peer: Peer<'_>, head: &http::response::Parts, body: &[u8]) -> Answer {
    let status = head.status;
    let said = http_words(peer, head, body);
    let why = |todo: &str| {
        let message = format!("`{}` answered {status}{said}{todo}", peer.place);
        Why::new(WhyKind::Status(status.as_u16()), message)
    };
    match status.as_u16() {
        300..400 => {
            let to = head.headers.get(http::header::LOCATION);
            let to = to.and_then(|to| to.to_str().ok()).unwrap_or("another address");
            // A query is secret like that of the endpoint, which it may repeat.
            let to = to.split(['?', '#']).next().unwrap_or_default();
            Answer::Misconfigured(why(&format!("; set the endpoint to `{}`", peer.words(to))))
        }
        401 | 403 | 407 => Answer::Misconfigured(why("; check the headers of this exporter")),
        404 | 405 | 406 | 410 | 415 | 421 | 426 | 431 | 505 => {
            Answer::Misconfigured(why("; check the endpoint and the transport of this exporter"))
        }
        413 => Answer::TooLarge(why("; smaller batches are tried")),
        // The Collector reports it this way.
        400 if speaks_of_size(&said) => Answer::TooLarge(why("; smaller batches are tried")),
        408 | 425 | 429 => {
            Answer::Later { after: retry_after(head), why: why("; it is tried again") }
        }
        400..500 if is_otlp(head) => Answer::Poison(why("")),
        // A web server or a proxy may use this status for the connection. It is attributed to the data only if the peer
        // accepted data before.
        400..500 if !peer.has_accepted || wants_tls(body) => {
            Answer::Misconfigured(why("; check the endpoint, and whether it is `http` or `https`"))
        }
        400..500 => Answer::Poison(why("")),
        _ => Answer::Later { after: retry_after(head), why: why("; it is tried again") },
    }
}

/// Maps a gRPC response that is not a success. The codes are those of the gRPC specification.
pub(crate) fn grpc(peer: Peer<'_>, code: i32, message: &str, details: &[u8]) -> Answer {
    let (said, name) = (peer.words(message), grpc_name(code));
    let why = |todo: &str| {
        let colon = if said.is_empty() { "" } else { ": " };
        let message = format!("`{}` answered {name}{colon}{said}{todo}", peer.place);
        Why::new(WhyKind::Grpc(code), message)
    };
    match code {
        // NotFound, PermissionDenied, Unimplemented, Unauthenticated.
        7 | 16 => Answer::Misconfigured(why("; check the headers of this exporter")),
        5 | 12 => {
            Answer::Misconfigured(why("; check the endpoint, and that it takes this kind of data"))
        }
        // Servers use ResourceExhausted and OutOfRange for a message over their limit; their other uses are temporary.
        8 | 11 if speaks_of_size(&said) || speaks_of_bytes(&said) => {
            Answer::TooLarge(why("; smaller batches are tried"))
        }
        // InvalidArgument, AlreadyExists, FailedPrecondition.
        3 | 6 | 9 => Answer::Poison(why("")),
        // Cancelled, Unknown, DeadlineExceeded, ResourceExhausted, Aborted, OutOfRange, Internal, Unavailable,
        // DataLoss, and any code of a later version.
        _ => Answer::Later { after: retry_info(details), why: why("; it is tried again") },
    }
}

/// Maps a response over HTTP/2 without a gRPC status: it comes from a proxy, or from another kind of server.
pub(crate) fn not_grpc(peer: Peer<'_>, head: &http::response::Parts, body: &[u8]) -> Answer {
    let media = head.headers.get(http::header::CONTENT_TYPE).map(|media| media.as_bytes());
    let is_grpc = media.is_some_and(|media| media.starts_with(b"application/grpc"));
    let place = peer.place;
    match http(Peer { has_accepted: true, ..peer }, head, body) {
        // A 400 of a proxy is about the connection, not about the data.
        Answer::Poison(why) => Answer::Later { after: None, why },
        _ if head.status.is_success() && !is_grpc => Answer::Misconfigured(Why::new(
            WhyKind::Protocol,
            format!("`{place}` does not answer in gRPC; check the port and the transport"),
        )),
        _ if head.status.is_success() => Answer::Later {
            after: None,
            why: Why::new(WhyKind::Protocol, format!("`{place}` ended without a gRPC status")),
        },
        answer => answer,
    }
}

/// Maps a success with a web page, as from a wrong port or a login form: nothing was delivered.
pub(crate) fn web_page(place: &str) -> Answer {
    let message = format!("`{place}` answered with a web page; check the endpoint");
    Answer::Misconfigured(Why::new(WhyKind::Protocol, message))
}

/// Maps a timeout.
pub(crate) fn timeout(place: &str, waited: Duration) -> Answer {
    let message = format!("`{place}` did not answer within {waited:?}; it is tried again");
    Answer::Later { after: None, why: Why::new(WhyKind::Timeout, message) }
}

/// Maps a connection that failed, or ended before the response.
pub(crate) fn failed(peer: Peer<'_>, error: &(dyn Error + 'static)) -> Answer {
    let (kind, said) = cause(error);
    let what = match kind {
        WhyKind::Dns => "has no address",
        WhyKind::Refused => "refused the connection: is it running?",
        WhyKind::Reset => {
            "ended the connection before its answer: does it speak this transport on this port?"
        }
        WhyKind::Timeout => "did not answer in time",
        WhyKind::Tls => "and this exporter do not agree on TLS: check `tls` and the certificates",
        WhyKind::Protocol => "does not answer as expected: check the port and the transport",
        _ => "cannot be reached",
    };
    let why = Why::new(kind, format!("`{}` {what} ({})", peer.place, peer.words(&said)));
    if kind == WhyKind::Tls {
        Answer::Misconfigured(why)
    } else {
        Answer::Later { after: None, why }
    }
}

/// Returns the kind and the text of the innermost error.
fn cause(error: &(dyn Error + 'static)) -> (WhyKind, String) {
    let mut kind = WhyKind::Protocol;
    let (mut next, mut said) = (Some(error), String::new());
    while let Some(error) = next {
        said = error.to_string();
        if error.is::<net::tls::TlsError>() {
            return (WhyKind::Tls, said);
        }
        if matches!(
            error.downcast_ref(),
            Some(ConnectError::Lookup { .. } | ConnectError::NoAddress(_))
        ) {
            kind = WhyKind::Dns;
        }
        if let Some(error) = error.downcast_ref::<HttpError>()
            && (error.is_incomplete_message() || error.is_closed() || error.is_canceled())
        {
            kind = WhyKind::Reset;
        }
        next = error.source();
        if let Some(error) = error.downcast_ref::<io::Error>() {
            // The inner error of an `io::Error` is not among its sources.
            next = error.get_ref().map(|inner| inner as &(dyn Error + 'static)).or(next);
            kind = io_kind(error.kind(), kind);
        }
    }
    // HTTP/2 errors come from another crate, which keeps socket and TLS errors only as text.
    if kind == WhyKind::Protocol {
        let has = |words: [&str; 3]| words.iter().any(|words| said.to_lowercase().contains(words));
        if has(["received fatal alert", "peer certificate", "corrupt message"]) {
            kind = WhyKind::Tls;
        } else if has(["broken pipe", "connection reset", "unexpected end of file"]) {
            kind = WhyKind::Reset;
        }
    }
    (kind, said)
}

fn io_kind(kind: io::ErrorKind, before: WhyKind) -> WhyKind {
    match kind {
        _ if before == WhyKind::Dns => WhyKind::Dns,
        io::ErrorKind::ConnectionRefused => WhyKind::Refused,
        io::ErrorKind::TimedOut => WhyKind::Timeout,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected
        | io::ErrorKind::UnexpectedEof => WhyKind::Reset,
        io::ErrorKind::Other | io::ErrorKind::InvalidData => before,
        _ => WhyKind::Io,
    }
}

/// Returns whether a rejection is about the size of the message: matches the texts of grpc-go, grpc-java, grpc-c, tonic
/// and Go's HTTP. Any other limit, such as the size of an attribute, would also fail in a smaller message.
fn speaks_of_size(said: &str) -> bool {
    let said = said.to_lowercase();
    let of = ["message", "message length", "request", "body", "payload", "entity", "content"];
    let is = ["too large", "is too large", "larger than max", "exceeds maximum size"];
    of.iter().any(|of| is.iter().any(|is| said.contains(&format!("{of} {is}"))))
}

/// Matches the texts of servers that report their size limit as a lack of resources.
fn speaks_of_bytes(said: &str) -> bool {
    let said = said.to_lowercase();
    said.contains("more than") && said.contains("bytes")
}

/// Returns whether a response has an OTLP media type: then its sender has read the request.
fn is_otlp(head: &http::response::Parts) -> bool {
    let media = head.headers.get(http::header::CONTENT_TYPE).map(|media| media.as_bytes());
    let media = media.unwrap_or_default().to_ascii_lowercase();
    [&b"application/x-protobuf"[..], b"application/json"].iter().any(|it| media.starts_with(it))
}

/// Returns whether a server reports that it requires TLS: matches the texts of Go, nginx and Apache.
fn wants_tls(body: &[u8]) -> bool {
    let said = String::from_utf8_lossy(body).to_lowercase();
    ["https server", "https port", "https scheme"].iter().any(|it| said.contains(it))
}

/// Parses `Retry-After`: seconds, or a date. A date is compared with the `Date` of the response, so that no clock is
/// needed and a wrong clock does no harm.
fn retry_after(head: &http::response::Parts) -> Option<Duration> {
    let text = head.headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = calendar::read_http_date(text)?;
    let now = head.headers.get(http::header::DATE)?.to_str().ok()?;
    Some(Duration::from_secs(then.saturating_sub(calendar::read_http_date(now)?)))
}

fn retry_info(details: &[u8]) -> Option<Duration> {
    let status = RpcStatus::decode(details).ok()?;
    let mut infos =
        status.details.iter().filter(|it| it.type_url.ends_with("google.rpc.RetryInfo"));
    let delay = RetryInfo::decode(infos.next()?.value.as_slice()).ok()?.retry_delay?;
    let seconds = u64::try_from(delay.seconds).ok()?;
    Some(Duration::new(seconds, u32::try_from(delay.nanos).ok()?))
}

/// Returns the text of an HTTP peer beside the status, as `: text`.
fn http_words(peer: Peer<'_>, head: &http::response::Parts, body: &[u8]) -> String {
    let media = head.headers.get(http::header::CONTENT_TYPE).map(|media| media.as_bytes());
    let said = match media {
        Some(media) if media.starts_with(b"application/x-protobuf") => {
            RpcStatus::decode(body).map(|status| status.message).unwrap_or_default()
        }
        Some(media) if media.starts_with(b"text/html") => String::new(),
        _ => String::from_utf8_lossy(body).into_owned(),
    };
    let said = peer.words(&said);
    if said.is_empty() { said } else { format!(": {said}") }
}

fn grpc_name(code: i32) -> String {
    #[rustfmt::skip]
    let names = [
        "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
        "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
        "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
    ];
    let name = usize::try_from(code).ok().and_then(|code| names.get(code));
    name.map_or_else(|| format!("gRPC status {code}"), |name| (*name).to_owned())
}

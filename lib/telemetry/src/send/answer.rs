//! What a destination said to a request, in the six words that the lane acts upon.
//!
//! Every answer of both transports, every failure of the network and of TLS is mapped here, so that the rule "what was
//! accepted is never lost by a doubtful answer" can be read in one place: only an answer that blames the data itself
//! leads to a dead letter. Deliberately absent: what is done about an answer, which is the lane's.

use std::{error::Error, io, time::Duration};

use prost::Message;

use super::calendar;
use crate::plan::Secret;

/// How many characters of a peer's own words go into a message.
const SAID_CHARS_MAX: usize = 300;

/// What a destination said to a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// All of it is delivered.
    Accepted,
    /// Delivered but for so many items, which are not named.
    Partial { rejected: u64, message: String },
    /// Not now: the same request may succeed later, not before `after` if the peer named a time.
    Later { after: Option<Duration>, why: Why },
    /// Not until an operator changes something, here or there.
    Misconfigured(Why),
    /// Not in one piece.
    TooLarge(Why),
    /// Never: something in the data is refused.
    Poison(Why),
}

/// Why something was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) kind: WhyKind,
    /// For a person: the endpoint, what happened, what to do; no secret.
    pub(crate) message: String,
}

/// Why something was not delivered, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WhyKind {
    /// The host's name has no address.
    Dns,
    /// Nothing listens there.
    Refused,
    /// The connection ended before the answer.
    Reset,
    /// No answer in time.
    Timeout,
    /// Certificates or versions do not fit.
    Tls,
    /// The peer does not speak the protocol.
    Protocol,
    /// Some other failure of the machine: no route, a file that cannot be written.
    Io,
    /// This HTTP status.
    Status(u16),
    /// This gRPC status.
    Grpc(i32),
}

/// `google.rpc.Status`, as far as it is read.
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

/// The export response: the three signals number their fields alike.
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

/// Who answers.
#[derive(Clone, Copy)]
pub(crate) struct Peer<'a> {
    /// Its endpoint, as [`shown`](crate::plan::shown).
    pub(crate) place: &'a str,
    /// What it must not be heard to say, the longest first.
    pub(crate) secrets: &'a [Secret],
    /// Whether it has accepted something of this kind before: then it is what the operator thinks it is.
    pub(crate) has_accepted: bool,
}

impl Why {
    pub(crate) fn new(kind: WhyKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl Peer<'_> {
    /// What it said in one line, not too long, and without the secrets that it repeats.
    fn words(self, said: &str) -> String {
        let mut said = said.to_owned();
        // Before the cut, which could leave half of one.
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

/// The answer that says so far nothing but success.
pub(crate) fn success(peer: Peer<'_>, message: &[u8]) -> Answer {
    // A success that cannot be read is still one: the status said so.
    match ExportResponse::decode(message).ok().and_then(|response| response.partial_success) {
        Some(PartialSuccess { rejected: rejected @ 1.., error_message }) => Answer::Partial {
            rejected: rejected.unsigned_abs(),
            message: peer.words(&error_message),
        },
        _ => Answer::Accepted,
    }
}

/// An HTTP answer that is no success.
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
            // A query is as secret as that of the endpoint, which it may repeat.
            let to = to.split(['?', '#']).next().unwrap_or_default();
            Answer::Misconfigured(why(&format!("; set the endpoint to `{}`", peer.words(to))))
        }
        401 | 403 | 407 => Answer::Misconfigured(why("; check the headers of this exporter")),
        404 | 405 | 406 | 410 | 415 | 421 | 426 | 431 | 505 => {
            Answer::Misconfigured(why("; check the endpoint and the transport of this exporter"))
        }
        413 => Answer::TooLarge(why("; smaller batches are tried")),
        // So does the Collector call it.
        400 if speaks_of_size(&said) => Answer::TooLarge(why("; smaller batches are tried")),
        408 | 425 | 429 => {
            Answer::Later { after: retry_after(head), why: why("; it is tried again") }
        }
        400..500 if is_otlp(head) => Answer::Poison(why("")),
        // A web server or a proxy may say so of the connection; that it is about the data is believed where data was
        // accepted before.
        400..500 if !peer.has_accepted || wants_tls(body) => {
            Answer::Misconfigured(why("; check the endpoint, and whether it is `http` or `https`"))
        }
        400..500 => Answer::Poison(why("")),
        _ => Answer::Later { after: retry_after(head), why: why("; it is tried again") },
    }
}

/// A gRPC answer that is no success. The codes are those of the gRPC specification.
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
        // ResourceExhausted and OutOfRange are what servers say to a message over their limit; what else they say with
        // them passes.
        8 | 11 if speaks_of_size(&said) || speaks_of_bytes(&said) => {
            Answer::TooLarge(why("; smaller batches are tried"))
        }
        // InvalidArgument, AlreadyExists, FailedPrecondition.
        3 | 6 | 9 => Answer::Poison(why("")),
        // Cancelled, Unknown, DeadlineExceeded, ResourceExhausted, Aborted, OutOfRange, Internal, Unavailable, DataLoss,
        // and whatever a later version adds.
        _ => Answer::Later { after: retry_info(details), why: why("; it is tried again") },
    }
}

/// An answer over HTTP/2 in which no gRPC status is: some proxy's, or some other server's.
pub(crate) fn not_grpc(peer: Peer<'_>, head: &http::response::Parts, body: &[u8]) -> Answer {
    let media = head.headers.get(http::header::CONTENT_TYPE).map(|media| media.as_bytes());
    let is_grpc = media.is_some_and(|media| media.starts_with(b"application/grpc"));
    let place = peer.place;
    match http(Peer { has_accepted: true, ..peer }, head, body) {
        // A proxy's 400 is about the exchange, not about the data.
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

/// A success that carries a web page, as a wrong port or a login form gives: nothing was delivered.
pub(crate) fn web_page(place: &str) -> Answer {
    let message = format!("`{place}` answered with a web page; check the endpoint");
    Answer::Misconfigured(Why::new(WhyKind::Protocol, message))
}

/// No answer in time.
pub(crate) fn timeout(place: &str, waited: Duration) -> Answer {
    let message = format!("`{place}` did not answer within {waited:?}; it is tried again");
    Answer::Later { after: None, why: Why::new(WhyKind::Timeout, message) }
}

/// The connection failed, or ended before the answer.
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

/// The innermost error that says something.
fn cause(error: &(dyn Error + 'static)) -> (WhyKind, String) {
    let mut kind = WhyKind::Protocol;
    let (mut next, mut said) = (Some(error), String::new());
    while let Some(error) = next {
        said = error.to_string();
        if error.is::<rustls::Error>() {
            return (WhyKind::Tls, said);
        }
        // The connector's own error is private; its words are all there is.
        if said == "dns error" {
            kind = WhyKind::Dns;
        }
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && (error.is_incomplete_message() || error.is_closed() || error.is_canceled())
        {
            kind = WhyKind::Reset;
        }
        next = error.source();
        if let Some(error) = error.downcast_ref::<io::Error>() {
            // What an `io::Error` was made of is not among its sources.
            next = error.get_ref().map(|inner| inner as &(dyn Error + 'static)).or(next);
            kind = io_kind(error.kind(), kind);
        }
    }
    // Errors of HTTP/2 are another crate's, and keep the socket's and TLS' errors as text.
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

/// Whether a refusal is about the size of the message: the words of grpc-go, grpc-java, grpc-c, tonic and Go's HTTP.
/// What else is too large, an attribute perhaps, is so in a smaller message as well.
fn speaks_of_size(said: &str) -> bool {
    let said = said.to_lowercase();
    let of = ["message", "message length", "request", "body", "payload", "entity", "content"];
    let is = ["too large", "is too large", "larger than max", "exceeds maximum size"];
    of.iter().any(|of| is.iter().any(|is| said.contains(&format!("{of} {is}"))))
}

/// The words of servers that call their limit a lack of resources.
fn speaks_of_bytes(said: &str) -> bool {
    let said = said.to_lowercase();
    said.contains("more than") && said.contains("bytes")
}

/// Whether an answer is in a form of OTLP: then it is from somebody who has read the request.
fn is_otlp(head: &http::response::Parts) -> bool {
    let media = head.headers.get(http::header::CONTENT_TYPE).map(|media| media.as_bytes());
    let media = media.unwrap_or_default().to_ascii_lowercase();
    [&b"application/x-protobuf"[..], b"application/json"].iter().any(|it| media.starts_with(it))
}

/// Whether a server says that it should be spoken to in TLS: the words of Go, nginx and Apache.
fn wants_tls(body: &[u8]) -> bool {
    let said = String::from_utf8_lossy(body).to_lowercase();
    ["https server", "https port", "https scheme"].iter().any(|it| said.contains(it))
}

/// `Retry-After`: seconds, or a date, which is compared with the answer's own `Date` so that no clock is needed and a
/// wrong one does no harm.
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

/// What an HTTP peer said beside the status, as `: words`.
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

//! The HTTP trigger: one request over one new connection, sent at most once.
//!
//! The request goes out as it was written: its headers, in their order (those of one name together, as HTTP allows),
//! and none that nobody asked for, except `host`, the length of the body, and `traceparent` and `tracestate`. These two
//! are ours and replace what was written, since the trace is the run's.
//!
//! Deliberately absent: following redirects (a redirect is the answer), cookies, decompression, HTTP/2, connections
//! that are kept (the second use of one may find it closed, and then nobody knows whether the request arrived), and
//! users in URLs.

use std::{error::Error, fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header::HOST, uri::Authority};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    body::{Body as _, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use model::{
    Answer, Body, Fault, Faulty, HttpRequest, NoAnswer, NoAnswerKind, Request, Response, SpanId,
    TraceId,
};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, timeout_at},
};
use tokio_rustls::rustls::{Error as TlsError, RootCertStore};

use super::connect::{ConnectError, Target, Trust, tcp};

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// A year stands for every timeout that is too long to be told.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How much an answer may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of its body.
    pub response_bytes_max: usize,
}

/// Fires HTTP requests.
pub struct Http {
    limits: Limits,
    trust: Trust,
}

/// The TLS library has no use for its own defaults.
#[derive(Debug, Error)]
#[error("cannot prepare TLS: {0}")]
pub struct BuildError(#[from] TlsError);

/// Whether the request may still be sent.
type Permit<'a> = &'a (dyn Fn() -> bool + Sync);

/// Why there is no response.
#[derive(Debug, Error)]
enum Unanswered {
    #[error("the request was not sent")]
    Withheld,
    #[error("the request cannot be sent: {0}")]
    Unsendable(String),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the connection to `{target}` broke: {reason}")]
    Broken { target: Target, reason: String },
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    #[error("the head of the answer is too large")]
    HeadTooLarge,
    #[error("no whole answer from `{target}` within {timeout:?}")]
    Timeout { target: Target, timeout: Duration },
}

/// A request, and where it goes.
struct Prepared {
    target: Target,
    is_tls: bool,
    request: http::Request<Full<Bytes>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { response_bytes_max: 16 * 1024 * 1024 }
    }
}

impl Faulty for BuildError {
    fn fault(&self) -> Fault {
        Fault::Internal
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Http {
    /// A trigger that trusts whom this machine trusts.
    pub fn new(limits: Limits) -> Result<Self, BuildError> {
        let mut roots = RootCertStore::empty();
        // A certificate that cannot be read trusts nobody; the others still count.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self::trusting(roots, limits)
    }

    fn trusting(roots: RootCertStore, limits: Limits) -> Result<Self, BuildError> {
        Ok(Self { limits, trust: Trust::new(roots)? })
    }

    /// Sends a request as part of a trace, under this span, and waits for the whole answer.
    ///
    /// `permit` is asked when all is connected, right before the first byte of the request. Where it says no,
    /// nothing of the request is sent, and there is no answer to speak of.
    pub async fn fire(
        &self,
        request: &Request,
        trace: TraceId,
        span: SpanId,
        permit: impl Fn() -> bool + Sync,
    ) -> Option<Answer> {
        let Request::Http(request) = request;
        match self.answer(request, trace, span, &permit).await {
            Ok(response) => Some(Answer::Response(response)),
            Err(Unanswered::Withheld) => None,
            Err(error) => {
                Some(Answer::NoAnswer(NoAnswer { kind: error.kind(), message: error.to_string() }))
            }
        }
    }

    async fn answer(
        &self,
        request: &HttpRequest,
        trace: TraceId,
        span: SpanId,
        permit: Permit<'_>,
    ) -> Result<Response, Unanswered> {
        let prepared = prepare(request, trace, span)?;
        let target = prepared.target.clone();
        let timeout = request.timeout;
        let now = Instant::now();
        let deadline = now.checked_add(timeout).unwrap_or(now + TIMEOUT_MAX);
        let exchange = self.exchange(prepared, deadline, permit);
        match timeout_at(deadline, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(Unanswered::Timeout { target, timeout }),
        }
    }

    async fn exchange(
        &self,
        prepared: Prepared,
        deadline: Instant,
        permit: Permit<'_>,
    ) -> Result<Response, Unanswered> {
        let Prepared { target, is_tls, request } = prepared;
        let stream = tcp(&target, deadline).await?;
        // A small request must not wait for its own acknowledgement. It also goes without this.
        stream.set_nodelay(true).ok();
        if is_tls {
            let stream = self.trust.tls(&target, stream).await?;
            self.converse(&target, stream, request, permit).await
        } else {
            self.converse(&target, stream, request, permit).await
        }
    }

    async fn converse(
        &self,
        target: &Target,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        request: http::Request<Full<Bytes>>,
        permit: Permit<'_>,
    ) -> Result<Response, Unanswered> {
        let broken = |error: hyper::Error| broken(target, &error);
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        if !permit() {
            return Err(Unanswered::Withheld);
        }
        let bytes_max = self.limits.response_bytes_max;
        let exchange = async {
            let sent_at = Instant::now();
            let (head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
            let body = read(target, body, bytes_max).await?;
            let duration = sent_at.elapsed();
            Ok(Response {
                status: head.status.as_u16(),
                headers: head.headers.iter().map(as_text).collect(),
                body: Body::from_bytes(body),
                duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
            })
        };
        let mut exchange = std::pin::pin!(exchange);
        tokio::select! {
            biased;
            answer = exchange.as_mut() => answer,
            // A server may close as soon as it has answered: what it said is still to be read. Why a connection
            // ended is told to the exchange.
            _ = connection => exchange.await,
        }
    }
}

/// Makes a request of what was written, or says why it cannot be one.
fn prepare(request: &HttpRequest, trace: TraceId, span: SpanId) -> Result<Prepared, Unanswered> {
    let url: Uri = request.url.parse().map_err(|error| unsendable("its URL", error))?;
    let is_tls = match url.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(unsendable("its URL", "expected `http://` or `https://`")),
    };
    let authority = url.authority().map(Authority::as_str).unwrap_or_default();
    if authority.contains('@') {
        let instead = "a user in it is not sent; write an `Authorization` header";
        return Err(unsendable("its URL", instead));
    }
    let host = url.host().unwrap_or_default();
    let port = match (authority.strip_prefix(host), url.port_u16()) {
        (_, Some(port)) => port,
        (Some("" | ":"), None) if is_tls => 443,
        (Some("" | ":"), None) => 80,
        (_, None) => return Err(unsendable("its URL", "the port is not one")),
    };
    // An IPv6 address has brackets in a URL, and nowhere else.
    let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let target = Target { host: name, port };
    let method = Method::from_bytes(request.method.as_bytes());
    let path = url.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let mut sent = http::Request::new(Full::new(Bytes::from(request.body.clone())));
    *sent.method_mut() = method.map_err(|error| unsendable("its method", error))?;
    *sent.uri_mut() = path.parse().map_err(|error| unsendable("its URL", error))?;
    *sent.headers_mut() = headers(request, authority, trace, span)?;
    Ok(Prepared { target, is_tls, request: sent })
}

fn headers(
    request: &HttpRequest,
    authority: &str,
    trace: TraceId,
    span: SpanId,
) -> Result<HeaderMap, Unanswered> {
    let is_ours = |name: &str| {
        name.eq_ignore_ascii_case(TRACEPARENT) || name.eq_ignore_ascii_case(TRACESTATE)
    };
    let names_host = |(name, _): &(String, String)| name.eq_ignore_ascii_case(HOST.as_str());
    let traceparent = format!("00-{trace}-{span}-01");
    let host = (!request.headers.iter().any(names_host)).then_some((HOST.as_str(), authority));
    let written = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let ours = [(TRACEPARENT, traceparent.as_str()), (TRACESTATE, "qualitytrace=true")];
    let mut headers = HeaderMap::new();
    for (name, value) in host.into_iter().chain(written.filter(|it| !is_ours(it.0))).chain(ours) {
        let what = format!("its header `{name}`");
        let key = HeaderName::from_bytes(name.as_bytes());
        let key = key.map_err(|error| unsendable(&what, error))?;
        // The value is not repeated in the message: it may be a secret.
        let value = HeaderValue::from_bytes(value.as_bytes());
        let value = value.map_err(|error| unsendable(&what, error))?;
        headers.try_append(key, value).map_err(|error| unsendable(&what, error))?;
    }
    Ok(headers)
}

async fn read(target: &Target, body: Incoming, bytes_max: usize) -> Result<Vec<u8>, Unanswered> {
    // What is announced as too large is not read at all.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(Unanswered::TooLarge(bytes_max));
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => Err(Unanswered::TooLarge(bytes_max)),
        Err(error) => Err(broken(target, &*error)),
    }
}

fn as_text((name, value): (&HeaderName, &HeaderValue)) -> (String, String) {
    (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn unsendable(what: &str, why: impl fmt::Display) -> Unanswered {
    Unanswered::Unsendable(format!("{what}: {why}"))
}

fn broken(target: &Target, error: &(dyn Error + 'static)) -> Unanswered {
    let head_too_large = error.downcast_ref().is_some_and(hyper::Error::is_parse_too_large);
    if head_too_large {
        return Unanswered::HeadTooLarge;
    }
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    Unanswered::Broken { target: target.clone(), reason }
}

impl Unanswered {
    fn kind(&self) -> NoAnswerKind {
        match self {
            Self::Unsendable(_) | Self::Withheld => NoAnswerKind::Invalid,
            Self::Broken { .. } => NoAnswerKind::Connection,
            Self::Connect(error) => error.kind(),
            Self::TooLarge(_) | Self::HeadTooLarge => NoAnswerKind::TooLarge,
            Self::Timeout { .. } => NoAnswerKind::Timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use model::{Answer, HttpRequest, NoAnswerKind, Request, SpanId, TraceId};
    use rcgen::CertifiedKey;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        task::JoinSet,
    };
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{RootCertStore, ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
    };

    use super::{Http, Limits, prepare};

    fn get(url: &str) -> HttpRequest {
        HttpRequest {
            method: "GET".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: String::new(),
            timeout: Duration::from_secs(10),
        }
    }

    fn ids() -> (TraceId, SpanId) {
        let trace = TraceId::from_bytes([1; 16]).expect("an id");
        (trace, SpanId::from_random([1; 8]))
    }

    #[test]
    fn a_url_says_where_and_what() {
        let cases = [
            ("http://a", "a:80", "a", "/"),
            ("https://a/b", "a:443", "a", "/b"),
            ("https://a:1/b?c#d", "a:1", "a:1", "/b?c"),
            ("http://a:/", "a:80", "a:", "/"),
            ("http://[::1]:2/", "[::1]:2", "[::1]:2", "/"),
            ("https://[::1]?q", "[::1]:443", "[::1]", "/?q"),
        ];
        let (trace, span) = ids();
        for (url, target, host, path) in cases {
            let Ok(prepared) = prepare(&get(url), trace, span) else { panic!("{url}") };
            assert_eq!(prepared.target.to_string(), target, "{url}");
            assert_eq!(prepared.request.headers()["host"], host, "{url}");
            assert_eq!(prepared.request.uri(), path, "{url}");
            assert_eq!(prepared.is_tls, url.starts_with("https"), "{url}");
        }
    }

    #[tokio::test]
    async fn only_who_is_trusted_is_talked_to() {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a server");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let port = listener.local_addr().expect("an address").port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("accepted");
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                assert_ne!(stream.read(&mut [0; 1000]).await.expect("a request"), 0);
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.expect("said");
                stream.shutdown().await.ok();
            }
        });
        let mut trusted = RootCertStore::empty();
        trusted.add(cert.der().clone()).expect("a root");
        let (trace, span) = ids();
        let cases = [
            (trusted.clone(), "localhost", None),
            (trusted, "127.0.0.1", Some("not valid for name")),
            (RootCertStore::empty(), "localhost", Some("install its `ca-certificates`")),
        ];
        for (roots, host, refused) in cases {
            let http = Http::trusting(roots, Limits::default()).expect("built");
            let request = Request::Http(get(&format!("https://{host}:{port}/")));
            match (http.fire(&request, trace, span, || true).await.expect("permitted"), refused) {
                (Answer::Response(response), None) => assert_eq!(response.status, 204),
                (Answer::NoAnswer(answer), Some(words)) => {
                    assert_eq!(answer.kind, NoAnswerKind::Tls, "{}", answer.message);
                    assert!(answer.message.contains(words), "{}", answer.message);
                }
                (answer, _) => panic!("{host}: {answer:?}"),
            }
        }
    }
}

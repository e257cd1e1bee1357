//! A client of one OTLP endpoint: sends encoded requests over gRPC or HTTP.
//!
//! Both transports are POST requests of one `hyper` client, over HTTP/2 with gRPC's framing or over HTTP/1, so that
//! they share one connector, one TLS configuration and one mapping of failures. Connections are opened on demand and
//! kept alive. Deliberately absent: retries and batches, which belong to the lane.

use std::{
    cmp::Reverse,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use net::{
    HttpClient, HttpError, HttpVersion, Incoming,
    tls::{PemError, TlsError},
};
use thiserror::Error;

use super::{
    answer::{self, Answer, Peer},
    body, grpc, tls,
};
use crate::plan::{Compression, Header, Otlp, Secret, Signal, Transport, shown};

/// The maximum number of bytes of a response body that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long an idle connection is kept: less than the usual 60 s or more of servers and load balancers.
const IDLE_MAX: Duration = Duration::from_secs(50);
/// The minimum length of a secret: shorter words occur in every sentence, and are not secrets.
const SECRET_BYTES_MIN: usize = 3;

/// A client of one OTLP endpoint. Used on the runtime of one lane.
pub(crate) struct Client {
    transport: Transport,
    compression: Compression,
    timeout: Duration,
    traces: Uri,
    logs: Uri,
    metrics: Uri,
    headers: HeaderMap,
    secrets: Vec<Secret>,
    /// Whether a request of each signal was accepted.
    accepted: [AtomicBool; 3],
    connections: Mutex<HttpClient>,
}

/// Why a client cannot be created.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error("cannot read {what} from `{}`: {source}; expected a PEM file", path.display())]
    Pem { what: &'static str, path: PathBuf, source: PemError },
    #[error("`{}` holds a certificate that cannot be trusted: {source}", path.display())]
    Root { path: PathBuf, source: TlsError },
    #[error("`{}` and `{}` do not fit together: {source}", cert.display(), key.display())]
    Pair { cert: PathBuf, key: PathBuf, source: TlsError },
    #[error("`{}` is given without its {missing}: expected both or none", given.display())]
    Half { given: PathBuf, missing: &'static str },
    #[error("this system has no trusted certificates{said}; name a file of them as `ca_file`")]
    NoRoots { said: String },
    #[error("the value of header `{name}` cannot be sent: expected visible ASCII letters")]
    Header { name: http::HeaderName },
    #[error("`{endpoint}` is not an endpoint: expected `http://host:port` or `https://host:port`")]
    Endpoint { endpoint: String },
}

impl Client {
    /// Reads the files that the plan names; opens no connection.
    pub(crate) fn new(otlp: &Otlp, user_agent: &str) -> Result<Self, ClientError> {
        let uris =
            Signal::ALL.map(|signal| destination(otlp.transport, otlp.endpoint(signal), signal));
        let [traces, logs, metrics] = uris;
        let (traces, logs, metrics) = (traces?, logs?, metrics?);
        let is_tls = [&traces, &logs, &metrics].iter().any(|it| it.scheme_str() == Some("https"));
        let config = if is_tls { tls::config(&otlp.tls)? } else { tls::none() };
        let version = match otlp.transport {
            Transport::Grpc => HttpVersion::Http2,
            Transport::Http => HttpVersion::Http1,
        };
        Ok(Self {
            transport: otlp.transport,
            compression: otlp.compression,
            timeout: otlp.timeout,
            traces,
            logs,
            metrics,
            headers: headers(otlp, user_agent)?,
            secrets: secrets(otlp),
            accepted: Default::default(),
            connections: Mutex::new(HttpClient::new(config, version, IDLE_MAX)),
        })
    }

    /// Sends an export request, given uncompressed, and returns the outcome.
    pub(crate) async fn send(&self, signal: Signal, message: Bytes) -> Answer {
        let uri = self.uri(signal);
        let place = shown(uri);
        let accepted = &self.accepted[signal as usize];
        let has_accepted = accepted.load(Ordering::Relaxed);
        let peer = Peer { place: &place, secrets: &self.secrets, has_accepted };
        match tokio::time::timeout(self.timeout, self.exchange(uri, peer, message)).await {
            Ok(answer) => {
                if matches!(answer, Answer::Accepted | Answer::Partial { .. }) {
                    accepted.store(true, Ordering::Relaxed);
                }
                answer
            }
            Err(_) => {
                self.reconnect();
                answer::timeout(&place, self.timeout)
            }
        }
    }

    async fn exchange(&self, uri: &Uri, peer: Peer<'_>, message: Bytes) -> Answer {
        let body = match self.transport {
            Transport::Grpc => grpc::frame(&message, self.compression).into(),
            Transport::Http if self.compression == Compression::Gzip => {
                body::gzip(Vec::new(), &message).into()
            }
            Transport::Http => message,
        };
        let request = || {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = http::Method::POST;
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = self.headers.clone();
            if self.transport == Transport::Grpc {
                *request.version_mut() = http::Version::HTTP_2;
            }
            request
        };
        let connections = self.connections.lock().expect("no panic under this lock").clone();
        let mut sent = connections.send(request()).await;
        if sent.as_ref().is_err_and(|error| has_only_waited(error)) {
            // The request waited for a connection that another request failed to open. None of it was sent, and only
            // the request that opens the connection gets the error.
            sent = connections.send(request()).await;
        }
        let (head, body) = match sent {
            Ok(response) => response.into_parts(),
            Err(error) => return answer::failed(peer, &error),
        };
        let (body, trailers) = match read(body, self.transport).await {
            Ok(read) => read,
            Err(error) => return answer::failed(peer, &error),
        };
        match self.transport {
            Transport::Grpc => grpc::answer(peer, &head, trailers.as_ref(), &body),
            Transport::Http if !head.status.is_success() => answer::http(peer, &head, &body),
            Transport::Http if is_web_page(&head.headers) => answer::web_page(peer.place),
            Transport::Http => answer::success(peer, &body),
        }
    }

    /// Drops connections on which a request timed out: a peer that vanished without closing them would block the next
    /// request too.
    fn reconnect(&self) {
        let mut connections = self.connections.lock().expect("no panic under this lock");
        *connections = connections.without_connections();
    }

    fn uri(&self, signal: Signal) -> &Uri {
        match signal {
            Signal::Spans => &self.traces,
            Signal::Logs => &self.logs,
            Signal::Metrics => &self.metrics,
        }
    }
}

/// Returns the secrets of our headers that a peer may repeat, the longest first, so that no secret hides only a part of
/// another.
fn secrets(otlp: &Otlp) -> Vec<Secret> {
    // Not only the full value: of `Bearer x` a peer repeats the `x`.
    let words = otlp.headers.iter().flat_map(|header| {
        let value = header.value.expose();
        value.split_ascii_whitespace().chain([value])
    });
    let mut words: Vec<_> = words.filter(|word| word.len() >= SECRET_BYTES_MIN).collect();
    words.sort_unstable_by_key(|word| (Reverse(word.len()), *word));
    words.dedup();
    words.into_iter().map(Secret::new).collect()
}

/// Returns the URL to which a signal is posted.
fn destination(transport: Transport, endpoint: &Uri, signal: Signal) -> Result<Uri, ClientError> {
    let refused = || ClientError::Endpoint { endpoint: shown(endpoint) };
    if !matches!(endpoint.scheme_str(), Some("http" | "https")) || endpoint.host().is_none() {
        return Err(refused());
    }
    let mut parts = endpoint.clone().into_parts();
    if transport == Transport::Grpc {
        parts.path_and_query = Some(http::uri::PathAndQuery::from_static(grpc::path(signal)));
    }
    Uri::from_parts(parts).map_err(|_| refused())
}

/// Returns whether a request ended before it had a connection. The pool's own error type is private; only its text is
/// available.
fn has_only_waited(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string() == "request was canceled"
}

/// Returns the headers of every request. Ours are set last, because another content type would change the meaning of
/// the request; the user may only override the user agent.
fn headers(otlp: &Otlp, user_agent: &str) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    let agent = HeaderValue::from_str(user_agent);
    let agent = agent.map_err(|_| ClientError::Header { name: header::USER_AGENT })?;
    for Header { name, value } in &otlp.headers {
        let refused = |_| ClientError::Header { name: name.clone() };
        let mut value = HeaderValue::from_str(value.expose()).map_err(refused)?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    headers.entry(header::USER_AGENT).or_insert(agent);
    match otlp.transport {
        Transport::Grpc => grpc::add_headers(&mut headers, otlp.compression, otlp.timeout),
        Transport::Http => {
            let protobuf = HeaderValue::from_static("application/x-protobuf");
            headers.insert(header::CONTENT_TYPE, protobuf);
            headers.remove(header::CONTENT_ENCODING);
            if otlp.compression == Compression::Gzip {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
    }
    // The connection sets the length and the framing of the body.
    for name in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION] {
        headers.remove(name);
    }
    Ok(headers)
}

/// Reads the body up to the limit, and the trailers, which come after it.
async fn read(
    mut body: Incoming,
    transport: Transport,
) -> Result<(Vec<u8>, Option<HeaderMap>), HttpError> {
    let (mut bytes, mut trailers) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => {
                let room = ANSWER_BYTES_MAX - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
        if transport == Transport::Http && bytes.len() == ANSWER_BYTES_MAX {
            break;
        }
    }
    Ok((bytes, trailers))
}

fn is_web_page(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE);
    media.is_some_and(|media| media.as_bytes().to_ascii_lowercase().starts_with(b"text/html"))
}

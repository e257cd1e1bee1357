//! Sends queries to the address of a store, and decides what an answer without a trace means.
//!
//! Connections are kept from query to query. A failure that time may mend is distinguished from one that only the user can mend.
//! No message contains a credential, also where the store repeats one.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use http_body_util::{BodyExt, Full};
use model::{Secret, StoreConfig};
use net::{
    Egress, HttpClient, HttpVersion, Incoming, SendError, connect_error,
    dial::ConnectError,
    error_chain,
    grpc::{self, Status},
};
use tokio::time::timeout;

use super::QueryResult;

/// The maximum duration of one query.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long an idle connection is kept.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// The maximum characters of a text of the store in a message.
const QUOTED_CHARS_MAX: usize = 200;

/// The longest time for which a store may ask to be left alone.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The connections to a store.
#[derive(Debug)]
pub(super) struct StoreConnection {
    client: HttpClient,
    base: String,
    headers: HeaderMap,
    /// The maximum bytes of an answer.
    answer_bytes_max: usize,
    /// Texts that no message may contain.
    secrets: Vec<Secret>,
}

/// A complete response.
#[derive(Debug)]
pub(super) struct StoreResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    trailers: Option<HeaderMap>,
}

impl StoreConnection {
    /// Opens nothing yet. Fails if the configuration cannot be sent.
    pub(super) fn new(
        config: &StoreConfig,
        (tls, egress): (net::tls::TlsClient, Egress),
        answer_bytes_max: usize,
    ) -> Result<Self, String> {
        let base = config.url.trim_end_matches('/').to_owned();
        // A message must not repeat it.
        if base.split('/').nth(2).is_some_and(|authority| authority.contains('@')) {
            return Err("its URL has a user: write an `authorization` into `headers`".to_owned());
        }
        let url: Uri = base.parse().map_err(|_| format!("`{base}` is not a URL"))?;
        net::dial::Origin::of(&url).map_err(|error| format!("`{base}`: {error}"))?;
        if url.query().is_some() {
            return Err(format!("`{base}` has a query: the address ends with a path"));
        }
        let version = if config.is_grpc { HttpVersion::Http2 } else { HttpVersion::Http1 };
        let client = HttpClient::new(tls, version, IDLE_MAX).leaving_by(egress);
        // A message may repeat a whole value, or the words behind its scheme.
        let parts = |(_, value): &(String, Secret)| {
            let word = value.expose().split_whitespace().last().unwrap_or_default();
            [value.clone(), Secret::new(word)]
        };
        let mut secrets: Vec<_> = config.headers.iter().flat_map(parts).collect();
        secrets.retain(|secret| !secret.expose().is_empty());
        Ok(Self { client, base, headers: headers(config)?, answer_bytes_max, secrets })
    }

    /// Opens a connection and closes it again. The error is why there is none.
    pub(super) async fn connect(&self) -> Result<(), String> {
        let url = self.base.parse().map_err(|_| "its address is not a URL".to_owned())?;
        let late = |_| format!("no connection within {TIMEOUT:?}");
        let connected = timeout(TIMEOUT, self.client.connect(&url)).await.map_err(late)?;
        connected.map_err(|error| self.hidden(error.to_string()))
    }

    /// Sends a `GET` for a path below the address.
    pub(super) async fn get(
        &self,
        path: &str,
        accept: &'static str,
    ) -> Result<StoreResponse, QueryResult> {
        let mut headers = self.headers.clone();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        self.exchange(Method::GET, path, (headers, Bytes::new())).await
    }

    /// Sends a `POST` of a body of this type for a path below the address.
    pub(super) async fn post(
        &self,
        path: &str,
        (content_type, body): (&'static str, Bytes),
    ) -> Result<StoreResponse, QueryResult> {
        let mut headers = self.headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        self.exchange(Method::POST, path, (headers, body)).await
    }

    /// Sends JSON, or nothing, to a path below the address, and expects JSON.
    pub(super) async fn send_json(
        &self,
        method: Method,
        path: &str,
        json: Option<&serde_json::Value>,
    ) -> Result<StoreResponse, QueryResult> {
        let mut headers = self.headers.clone();
        for name in [header::ACCEPT, header::CONTENT_TYPE] {
            headers.insert(name, HeaderValue::from_static("application/json"));
        }
        let body = json.map_or_else(Bytes::new, |json| json.to_string().into());
        self.exchange(method, path, (headers, body)).await
    }

    /// Calls a method by gRPC, and returns the messages of its response. A status of `NOT_FOUND` is no message.
    pub(super) async fn call(
        &self,
        method: &str,
        message: &[u8],
    ) -> Result<Vec<Bytes>, QueryResult> {
        let mut headers = self.headers.clone();
        grpc::add_headers(&mut headers, TIMEOUT);
        let body = grpc::frame(message).into();
        let response = self.exchange(Method::POST, method, (headers, body)).await?;
        let Some(status) = Status::of(&response.headers, response.trailers.as_ref()) else {
            return Err(match response.status {
                StatusCode::OK => self.refused("what answers there does not speak gRPC".to_owned()),
                _ => self.without_trace(&response),
            });
        };
        match status.code {
            0 => grpc::messages(response.body).map_err(|error| self.failed(error.to_string())),
            NOT_FOUND => Ok(Vec::new()),
            code => {
                let words = format!("gRPC status {code}: {}", quoted(&status.message));
                // Cancelled, unknown, too late, too much, aborted, internal, unavailable, lost: another query may succeed.
                Err(match code {
                    1 | 2 | 4 | 8 | 10 | 13 | 14 | 15 => self.failed(words),
                    16 => self.refused(format!("{words}; it does not accept the credentials")),
                    _ => self.refused(words),
                })
            }
        }
    }

    /// Returns what follows from a response that is no trace.
    pub(super) fn without_trace(&self, response: &StoreResponse) -> QueryResult {
        let StoreResponse { status, headers, body, .. } = response;
        let text = String::from_utf8_lossy(&body[..body.len().min(4 * QUOTED_CHARS_MAX)]);
        let words = match text.trim() {
            "" => status.to_string(),
            text => format!("{status}: {}", quoted(text)),
        };
        let is_transient = status.is_server_error()
            || matches!(*status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
        match *status {
            _ if is_transient => {
                let message = self.hidden(words);
                QueryResult::Failed { message, retry_after: retry_after(headers) }
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                self.refused(format!("{words}; it does not accept the credentials"))
            }
            StatusCode::NOT_FOUND => {
                self.refused(format!("{words}; its API is not at `{}`", self.base))
            }
            status if status.is_redirection() => {
                let to = headers.get(header::LOCATION).and_then(|to| to.to_str().ok());
                let to = to.unwrap_or("nowhere");
                self.refused(format!("{status} to `{}`: write its address", quoted(to)))
            }
            _ => self.refused(words),
        }
    }

    /// Returns what follows from an answer, or several parts of one, with more bytes than allowed.
    pub(super) fn too_large(&self) -> QueryResult {
        self.refused(format!("its answer has more than {} bytes", self.answer_bytes_max))
    }

    /// Returns the maximum bytes of an answer.
    pub(super) fn answer_bytes_max(&self) -> usize {
        self.answer_bytes_max
    }

    pub(super) fn refused(&self, message: String) -> QueryResult {
        QueryResult::Refused { message: self.hidden(message) }
    }

    pub(super) fn failed(&self, message: String) -> QueryResult {
        QueryResult::Failed { message: self.hidden(message), retry_after: None }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        (headers, body): (HeaderMap, Bytes),
    ) -> Result<StoreResponse, QueryResult> {
        let url = format!("{}{path}", self.base);
        let mut request = Request::new(Full::new(body));
        *request.uri_mut() =
            url.parse().map_err(|_| self.refused(format!("`{url}` is not a URL")))?;
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        let response = async {
            let response =
                self.client.send(request).await.map_err(|error| self.not_connected(&error))?;
            self.read(response).await
        };
        let late = |_| self.failed(format!("no complete answer within {TIMEOUT:?}"));
        timeout(TIMEOUT, response).await.map_err(late)?
    }

    async fn read(&self, response: Response<Incoming>) -> Result<StoreResponse, QueryResult> {
        let (head, mut incoming) = response.into_parts();
        let (mut body, mut trailers) = (BytesMut::new(), None);
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|error| {
                self.failed(format!("its answer broke off: {}", error_chain(&error)))
            })?;
            match frame.into_data() {
                Ok(data) if body.len() + data.len() > self.answer_bytes_max => {
                    return Err(self.too_large());
                }
                Ok(data) => body.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        let (status, headers) = (head.status, head.headers);
        Ok(StoreResponse { status, headers, body: body.freeze(), trailers })
    }

    fn not_connected(&self, error: &SendError) -> QueryResult {
        match connect_error(error) {
            Some(
                error @ (ConnectError::Forbidden { .. }
                | ConnectError::Tls { .. }
                | ConnectError::Url(_)
                | ConnectError::ProxySetting(_)),
            ) => self.refused(error.to_string()),
            Some(error) => self.failed(error.to_string()),
            None => self.failed(format!("the connection broke: {}", error_chain(error))),
        }
    }

    /// Masks the credentials in a message.
    fn hidden(&self, message: String) -> String {
        let hide = |message: String, secret: &Secret| message.replace(secret.expose(), "***");
        self.secrets.iter().fold(message, hide)
    }
}

/// The status of gRPC for something that does not exist.
const NOT_FOUND: i32 = 5;

/// Returns the headers of every query.
fn headers(config: &StoreConfig) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &config.headers {
        let key: HeaderName =
            name.parse().map_err(|_| format!("`{name}` is not the name of a header"))?;
        let mut value = HeaderValue::from_str(value.expose())
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(headers)
}

/// Returns the time after which the store wants the next query, in seconds; a date is not read.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// Shortens a text of the store to one line.
pub(super) fn quoted(text: &str) -> String {
    let line: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    match line.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

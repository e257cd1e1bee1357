//! HTTP to a server, with TLS for `https` URLs.
//!
//! `https` trusts the certificate authorities of this machine, or only those of one file. Deliberately absent: redirects,
//! which could send a token to another host, and proxies, which would come from the environment.

use std::{fs, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, Method, StatusCode,
    header::{AUTHORIZATION, HeaderValue},
    request::Builder,
};
use http_body_util::{BodyExt, Full};
use model::Secret;
use net::{
    HttpClient, HttpVersion, Incoming, error_chain,
    tls::{self, CertificateError, PemError, RootCertStore},
};
use url::form_urlencoded;

use super::error::ClientError;

/// How long an idle connection is kept.
const IDLE_MAX: Duration = Duration::from_secs(50);

/// The HTTP client.
pub(super) struct Http(HttpClient);

/// A request before it is sent.
pub(super) struct Request {
    url: String,
    builder: Builder,
    body: Bytes,
}

/// A response with an unread body.
pub(super) struct HttpResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Incoming,
}

impl Http {
    /// Returns a client for this URL. `ca` names a file with the trusted certificate authorities.
    pub(super) fn new(url: &str, ca: Option<&Path>) -> Result<Self, ClientError> {
        let tls = tls::anonymous(Arc::new(roots(url, ca)?), &[]);
        Ok(Self(HttpClient::new(tls, HttpVersion::Http1, IDLE_MAX)))
    }

    /// Sends a request, and returns when the head of the response is received.
    pub(super) async fn send(&self, request: Request) -> Result<HttpResponse, String> {
        let Request { url, builder, body } = request;
        let request =
            builder.uri(url).body(Full::new(body)).map_err(|error| error_chain(&error))?;
        let (parts, body) =
            self.0.send(request).await.map_err(|error| error_chain(&error))?.into_parts();
        Ok(HttpResponse { status: parts.status, headers: parts.headers, body })
    }
}

impl Request {
    pub(super) fn new(method: Method, url: String, token: Option<&Secret>) -> Self {
        let mut builder = Builder::new().method(method);
        if let Some(token) = token {
            // A token that is not a valid header value makes an invalid request, so that the error does not contain the token.
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
            builder = match value {
                Ok(mut value) => {
                    value.set_sensitive(true);
                    builder.header(AUTHORIZATION, value)
                }
                Err(_) => builder.header(AUTHORIZATION, "\n"),
            };
        }
        Self { url, builder, body: Bytes::new() }
    }

    /// Appends parameters to the query string.
    pub(super) fn query(mut self, pairs: &[(&str, &str)]) -> Self {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let between = if self.url.contains('?') { '&' } else { '?' };
        self.url = format!("{}{between}{query}", self.url);
        self
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.builder = self.builder.header(name, value);
        self
    }

    pub(super) fn body(mut self, body: String) -> Self {
        self.body = body.into();
        self
    }
}

impl HttpResponse {
    /// Returns the next chunk of the body; none at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame.map_err(|error| error_chain(&error))?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

/// Returns the authorities by which the server of this URL is trusted; none are read for a URL without TLS.
pub(super) fn roots(url: &str, ca: Option<&Path>) -> Result<RootCertStore, ClientError> {
    let is_tls = url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    match ca {
        Some(path) => authorities(path),
        None if is_tls => Ok(tls::system_roots(None, None).0),
        None => Ok(RootCertStore::empty()),
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, ClientError> {
    let wrong = |reason: String| ClientError::Ca { path: path.display().to_string(), reason };
    let pem = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    tls::authorities(&pem).map_err(|error| match error {
        CertificateError::Pem(PemError::NoItemsFound) => {
            wrong("it holds no certificate in PEM form".to_owned())
        }
        error => wrong(error.to_string()),
    })
}

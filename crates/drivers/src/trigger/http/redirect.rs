//! A request and its target, and the next request of a redirect.

use std::fmt;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
    header::{
        AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, COOKIE,
        HOST, LOCATION, PROXY_AUTHORIZATION,
    },
    response::Parts,
    uri::Authority,
};
use http_body_util::Full;
use model::{Attempt, HttpRequest};
use net::{
    Proxy,
    dial::{Connection, Origin},
};
use url::Url;

use super::HttpError;
use crate::trigger::context::propagate;

/// Headers with credentials. They are not sent to another origin.
const CREDENTIALS: [HeaderName; 3] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];
const MORE_CREDENTIALS: [&str; 3] = ["cookie2", "x-api-key", "x-auth-token"];

/// Headers that describe the body. They are removed together with it.
const OF_THE_BODY: [HeaderName; 4] =
    [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION];

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) origin: Origin,
    pub(super) url: Uri,
    method: Method,
    /// The headers, including `host`.
    headers: HeaderMap,
    body: Bytes,
    /// The names of the headers that contain an authentication or a secret.
    confidential: Vec<HeaderName>,
    is_body_secret: bool,
}

impl Hop {
    /// Builds a request from the document, or returns why it is invalid.
    pub(super) fn first(request: &HttpRequest, attempt: &Attempt) -> Result<Self, HttpError> {
        let url: Uri = request.url.parse().map_err(|error| unsendable("its URL", error))?;
        let origin = origin(&url).map_err(|why| unsendable("its URL", why))?;
        let method = Method::from_bytes(request.method.as_bytes());
        let method = method.map_err(|error| unsendable("its method", error))?;
        let auth = request.auth.iter().map(|(name, _)| name);
        let confidential = auth.chain(&request.secret_headers).map(|name| name.parse());
        let confidential = confidential.collect::<Result<Vec<HeaderName>, _>>();
        let confidential = confidential.map_err(|error| unsendable("its authentication", error))?;
        let headers = headers(request, authority(&url), attempt)?;
        let body = Bytes::copy_from_slice(request.body.as_bytes());
        let is_body_secret = request.is_body_secret;
        Ok(Self { origin, url, method, headers, body, confidential, is_body_secret })
    }

    /// Returns the next request if the response is a redirect. A redirect that cannot be followed counts as a normal response.
    pub(super) fn next(&self, head: &Parts) -> Option<Self> {
        let keeps_all = match head.status {
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => false,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            _ => return None,
        };
        let location = head.headers.get(LOCATION)?.to_str().ok()?;
        let url = Url::parse(&self.url.to_string()).ok()?.join(location).ok()?;
        let url: Uri = url.as_str().parse().ok()?;
        let origin = origin(&url).ok()?;
        let mut next = Self { origin, url, ..self.clone() };
        if !keeps_all && ![Method::GET, Method::HEAD].contains(&self.method) {
            next.method = Method::GET;
            next.body = Bytes::new();
            OF_THE_BODY.iter().for_each(|name| drop(next.headers.remove(name)));
        }
        if next.origin != self.origin {
            if self.is_body_secret && !next.body.is_empty() {
                return None;
            }
            let ours = CREDENTIALS.iter().chain(&self.confidential);
            ours.for_each(|name| drop(next.headers.remove(name)));
            MORE_CREDENTIALS.iter().for_each(|name| drop(next.headers.remove(*name)));
            let host = HeaderValue::from_str(authority(&next.url)).ok()?;
            next.headers.insert(HOST, host);
        }
        Some(next)
    }

    /// Builds the request for this connection.
    pub(super) fn request(
        &self,
        connection: &Connection,
        proxy: Option<&Proxy>,
    ) -> http::Request<Full<Bytes>> {
        let mut request = http::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = self.headers.clone();
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        let path = Uri::builder().path_and_query(path);
        *request.uri_mut() = match connection {
            Connection::Http1(_) => path.build(),
            Connection::Http2(_) => {
                let host = request.headers_mut().remove(HOST);
                let host = host.as_ref().and_then(|host| host.to_str().ok());
                path.scheme("https").authority(host.unwrap_or_else(|| authority(&self.url))).build()
            }
            Connection::Forwarding(_) => {
                let auth = proxy.and_then(|proxy| proxy.auth.clone());
                auth.map(|auth| request.headers_mut().insert(PROXY_AUTHORIZATION, auth));
                path.scheme("http").authority(authority(&self.url)).build()
            }
        }
        // A valid URL stays valid without its fragment.
        .unwrap_or_else(|_| self.url.clone());
        request
    }
}

fn authority(url: &Uri) -> &str {
    url.authority().map(Authority::as_str).unwrap_or_default()
}

/// Returns the origin of a URL.
fn origin(url: &Uri) -> Result<Origin, String> {
    if authority(url).contains('@') {
        return Err("a user in it is not sent; write an `Authorization` header".to_owned());
    }
    Origin::of(url).map_err(|error| error.to_string())
}

fn headers(
    request: &HttpRequest,
    authority: &str,
    attempt: &Attempt,
) -> Result<HeaderMap, HttpError> {
    let context = propagate(&request.propagation, attempt.trace_id, attempt.span_id);
    let ours = context.iter().map(|(name, value)| (*name, value.as_str()));
    let auth = request.auth.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let ours: Vec<_> = auth.chain(ours).collect();
    let is_ours = |name: &str| ours.iter().any(|(our, _)| name.eq_ignore_ascii_case(our));
    let names_host = |(name, _): &(String, String)| name.eq_ignore_ascii_case(HOST.as_str());
    let host = (!request.headers.iter().any(names_host)).then_some((HOST.as_str(), authority));
    let written = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let written = written.filter(|(name, _)| !is_ours(name));
    let mut headers = HeaderMap::new();
    for (name, value) in host.into_iter().chain(written).chain(ours.iter().copied()) {
        let what = format!("its header `{name}`");
        let key = HeaderName::from_bytes(name.as_bytes());
        let key = key.map_err(|error| unsendable(&what, error))?;
        // The message does not repeat the value: it may be a secret.
        let value = HeaderValue::from_bytes(value.as_bytes());
        let value = value.map_err(|error| unsendable(&what, error))?;
        headers.try_append(key, value).map_err(|error| unsendable(&what, error))?;
    }
    Ok(headers)
}

fn unsendable(what: &str, why: impl fmt::Display) -> HttpError {
    HttpError::Unsendable(format!("{what}: {why}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Attempt, Body, HttpRequest, SpanId, Timestamp, Tls, TraceId};

    use net::dial::Connection;

    use super::Hop;

    fn hop(url: &str) -> Hop {
        let request = HttpRequest {
            method: "GET".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            auth: None,
            body: Body::default(),
            secret_headers: Vec::new(),
            is_body_secret: false,
            timeout: Duration::from_secs(1),
            propagation: Vec::new(),
            tls: Tls::default(),
            redirects_max: 0,
        };
        let attempt = Attempt {
            trace_id: TraceId::from_random([1; 16]),
            span_id: SpanId::from_random([1; 8]),
            at: Timestamp::from_nanos(0),
        };
        Hop::first(&request, &attempt).unwrap_or_else(|failed| panic!("{url}: {failed}"))
    }

    #[test]
    fn a_url_says_where_and_what() {
        let cases = [
            ("http://a", "a:80", "a", "/"),
            ("https://A/b", "a:443", "A", "/b"),
            ("https://a:1/b?c#d", "a:1", "a:1", "/b?c"),
            ("http://a:/", "a:80", "a:", "/"),
            ("http://[::1]:2/", "[::1]:2", "[::1]:2", "/"),
            ("https://[::1]?q", "[::1]:443", "[::1]", "/?q"),
        ];
        for (url, target, host, path) in cases {
            let hop = hop(url);
            assert_eq!(hop.origin.target.to_string(), target, "{url}");
            assert_eq!(hop.origin.is_tls, url.starts_with("https"), "{url}");
            let stream = || Box::new(tokio::io::duplex(1).0);
            let direct = hop.request(&Connection::Http1(stream()), None);
            assert_eq!(direct.headers()["host"], host, "{url}");
            assert_eq!(direct.uri(), path, "{url}");
            // HTTP/2 has both in the URL.
            let second = hop.request(&Connection::Http2(stream()), None);
            assert_eq!(second.headers().get("host"), None, "{url}");
            assert_eq!(second.uri().to_string(), format!("https://{host}{path}"), "{url}");
            let passed_on = hop.request(&Connection::Forwarding(stream()), None);
            assert_eq!(passed_on.uri().to_string(), format!("http://{host}{path}"), "{url}");
        }
    }
}

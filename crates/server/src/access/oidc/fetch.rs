//! Fetches JSON from an identity provider, with bounds on time and size.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    Request,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full, Limited};
use net::{
    HttpClient, HttpVersion, error_chain,
    tls::{self, RootCertStore},
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use url::{Url, form_urlencoded};

/// The timeout of a response.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The maximum size of a response in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// An HTTP client for a provider.
#[derive(Debug)]
pub(super) struct Fetch(HttpClient);

impl Fetch {
    /// Creates a client that trusts these authorities, or those of this machine.
    pub(super) fn new(authorities: Option<RootCertStore>) -> Self {
        let roots = authorities.unwrap_or_else(|| tls::system_roots(None, None).0);
        let tls = tls::anonymous(Arc::new(roots), &[]);
        // Logins are rare: the provider would close an idle connection before the next login.
        Self(HttpClient::new(tls, HttpVersion::Http1, Duration::ZERO))
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, url: &Url) -> Result<T, String> {
        self.send(Request::get(url.as_str()), Bytes::new()).await
    }

    /// Sends a form. `proof` is the client id and secret for HTTP Basic authentication.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        url: &Url,
        form: &[(&str, &str)],
        proof: Option<(&str, &str)>,
    ) -> Result<T, String> {
        let encoded =
            |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let mut request =
            Request::post(url.as_str()).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some((name, password)) = proof {
            let proof = STANDARD.encode(format!("{}:{}", encoded(name), encoded(password)));
            request = request.header(AUTHORIZATION, format!("Basic {proof}"));
        }
        self.send(request, body.into()).await
    }

    /// Sends a request and decodes the response. Errors do not contain the request, which is secret.
    async fn send<T: DeserializeOwned>(
        &self,
        request: http::request::Builder,
        body: Bytes,
    ) -> Result<T, String> {
        let request = request.header(ACCEPT, "application/json").body(Full::new(body));
        let request = request.map_err(|error| format!("cannot be asked: {error}"))?;
        let answering = async {
            let answer = self.0.send(request).await;
            let answer =
                answer.map_err(|error| format!("does not answer: {}", error_chain(&error)))?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body =
                body.map_err(|error| format!("does not answer in full: {error}"))?.to_bytes();
            match status.is_success() {
                true => serde_json::from_slice(&body)
                    .map_err(|error| format!("answers what is not understood: {error}")),
                false => Err(format!("says `{status}`{}", ErrorBody(&body))),
            }
        };
        let late = || Err(format!("does not answer within {} s", ANSWER_MAX.as_secs()));
        timeout(ANSWER_MAX, answering).await.unwrap_or_else(|_| late())
    }
}

/// The OAuth error in a response body.
struct ErrorBody<'a>(&'a [u8]);

impl std::fmt::Display for ErrorBody<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let said: serde_json::Value = serde_json::from_slice(self.0).unwrap_or_default();
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        match text("error") {
            error if error.is_empty() => Ok(()),
            error => write!(f, " ({error} {})", text("error_description")),
        }
    }
}

//! The HTTP trigger: one request over one new connection, sent at most once; the same applies to each redirect.
//!
//! The request is sent as written: its headers, in their order (those with the same name together, as HTTP allows), and no
//! others, except `host`, the length of the body, and the propagation headers. These are ours and replace those of the
//! document, since the trace belongs to the run. HTTP/2 is used if a TLS peer selects it.
//!
//! Redirects follow Go's client, which the predecessor uses: 301, 302 and 303 with `GET`, unless the method was `HEAD`, 307 and
//! 308 with method and body. Credentials are not sent to another origin.
//!
//! Deliberately absent: cookies, decompression, connection reuse (a reused connection may be closed, and then it is unknown
//! whether the request arrived), users in URLs, and SOCKS proxies.

mod read;
mod redirect;

use std::time::Duration;

use http::{HeaderName, HeaderValue, response::Parts};
use model::{Attempt, Body, HttpRequest, NoAnswer, NoAnswerKind, Response, Tls};
use net::{
    Networks, Proxies,
    dial::{ConnectError, Names, Route, Target, connect},
};
use thiserror::Error;
use tokio::time::Instant;

use self::{
    read::{TimedResponse, send},
    redirect::Hop,
};
use super::{AnswerHold, SendPermit, TriggerConfig, TriggerError, TriggerLimits};
use crate::trust::Trust;

/// One year replaces every longer timeout.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Fires HTTP requests.
#[derive(Debug)]
pub(super) struct Http {
    limits: TriggerLimits,
    trust: Trust,
    proxies: Proxies,
    networks: Option<Networks>,
}

/// Why there is no response.
#[derive(Debug, Error)]
enum HttpError {
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
    #[error("no complete response from `{target}` within {timeout:?}")]
    Timeout { target: Target, timeout: Duration },
    #[error("redirected more than {max} times, the last time by `{target}`")]
    Redirects { max: u32, target: Target },
    #[error("redirected to `{target}`: {failed}")]
    Redirected { target: Target, failed: Box<HttpError> },
}

/// The settings of a request and of all its redirects.
struct Terms<'a> {
    permit: SendPermit<'a>,
    redirects_max: u32,
    hold: &'a AnswerHold,
}

impl Http {
    pub(super) fn new(config: &TriggerConfig) -> Self {
        let TriggerConfig { limits, environment, networks, .. } = config;
        Self {
            limits: *limits,
            trust: Trust::new(environment),
            proxies: Proxies::new(environment),
            networks: networks.clone(),
        }
    }

    pub(super) async fn fire(
        &self,
        request: &HttpRequest,
        attempt: &Attempt,
        permit: SendPermit<'_>,
        hold: &AnswerHold,
    ) -> Result<Response, TriggerError> {
        let answered = match Hop::first(request, attempt) {
            Err(failed) => Err(failed),
            Ok(hop) => {
                let target = hop.origin.target.clone();
                let timeout = request.timeout;
                let now = Instant::now();
                let deadline = now.checked_add(timeout).unwrap_or(now + TIMEOUT_MAX);
                let redirects_max = request.redirects_max;
                let terms = Terms { permit, redirects_max, hold };
                hold.in_time(deadline, self.follow(hop, &request.tls, &terms))
                    .await
                    .unwrap_or(Err(HttpError::Timeout { target, timeout }))
            }
        };
        answered.map_err(|failed| match failed {
            HttpError::Withheld => TriggerError::Withheld,
            failed => {
                TriggerError::Because(NoAnswer { kind: failed.kind(), message: failed.to_string() })
            }
        })
    }

    /// Sends the request, and follows its redirects.
    async fn follow(
        &self,
        mut hop: Hop,
        tls: &Tls,
        terms: &Terms<'_>,
    ) -> Result<Response, HttpError> {
        // Another origin does not get our client certificate.
        let elsewhere = Tls { verify: tls.verify.clone(), ..Tls::default() };
        let mut tls = tls;
        let mut said = self.exchange(&hop, tls, terms).await?;
        let sent_at = said.sent_at;
        for _ in 0..terms.redirects_max {
            let Some(next) = hop.next(&said.head) else { break };
            if next.origin != hop.origin {
                tls = &elsewhere;
            }
            hop = next;
            said = self.exchange(&hop, tls, &Terms { permit: &|| true, ..*terms }).await.map_err(
                |failed| {
                    let target = hop.origin.target.clone();
                    HttpError::Redirected { target, failed: Box::new(failed) }
                },
            )?;
        }
        if terms.redirects_max > 0 && hop.next(&said.head).is_some() {
            let target = hop.origin.target;
            return Err(HttpError::Redirects { max: terms.redirects_max, target });
        }
        let duration = said.ended_at.duration_since(sent_at).saturating_sub(terms.hold.waited());
        Ok(Response {
            status: said.head.status.as_u16(),
            headers: said.head.headers.iter().map(as_text).collect(),
            body: Body::from_bytes(said.body),
            duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        })
    }

    /// Sends one request over one connection. The body of a redirect that is followed is not read.
    async fn exchange(
        &self,
        hop: &Hop,
        tls: &Tls,
        terms: &Terms<'_>,
    ) -> Result<TimedResponse, HttpError> {
        let proxy = self.proxies.on_the_way_to(&hop.url).map_err(HttpError::Unsendable)?;
        let tls = self.trust.client(tls).map_err(HttpError::Unsendable)?;
        let route = Route {
            proxy: proxy.as_ref().map(|proxy| (proxy, self.trust.to_proxy())),
            networks: self.networks.as_ref(),
            names: Names::System,
            tls: &tls,
        };
        let connection = connect(&hop.origin, route).await?;
        let request = hop.request(&connection, proxy.as_ref());
        if !(terms.permit)() {
            return Err(HttpError::Withheld);
        }
        let leads_on = |head: &Parts| terms.redirects_max > 0 && hop.next(head).is_some();
        let bytes_max = self.limits.response_bytes_max;
        send(connection, request, (&hop.origin.target, bytes_max, terms.hold), &leads_on).await
    }
}

fn as_text((name, value): (&HeaderName, &HeaderValue)) -> (String, String) {
    (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
}

impl HttpError {
    fn kind(&self) -> NoAnswerKind {
        match self {
            Self::Unsendable(_) | Self::Withheld => NoAnswerKind::Invalid,
            Self::Broken { .. } => NoAnswerKind::Connection,
            Self::Connect(error) => kind(error),
            Self::TooLarge(_) | Self::HeadTooLarge => NoAnswerKind::TooLarge,
            Self::Timeout { .. } => NoAnswerKind::Timeout,
            Self::Redirects { .. } => NoAnswerKind::Redirects,
            // The system received the first request, whatever the result of this one is.
            Self::Redirected { failed, .. } if failed.kind().is_unsent() => {
                NoAnswerKind::Connection
            }
            Self::Redirected { failed, .. } => failed.kind(),
        }
    }
}

fn kind(error: &ConnectError) -> NoAnswerKind {
    match error {
        ConnectError::NoAddress(_) | ConnectError::Lookup { .. } => NoAnswerKind::Dns,
        ConnectError::Refused { .. } | ConnectError::NoTunnel { .. } => NoAnswerKind::Refused,
        ConnectError::Forbidden { .. } | ConnectError::Url(_) | ConnectError::ProxySetting(_) => {
            NoAnswerKind::Invalid
        }
        ConnectError::Tls { .. } => NoAnswerKind::Tls,
        ConnectError::Proxy(error) => kind(error),
    }
}

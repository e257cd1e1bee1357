//! Who may send: decided by somebody else from what a request shows, before anything of its body is read.
//!
//! Deliberately absent: what a token is. A receiver without a gate takes from everyone.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};
use model::Secret;

use super::unanswered::Unanswered;

/// The headers of those who cannot say `authorization`.
const API_KEYS: [HeaderName; 2] =
    [HeaderName::from_static("x-api-key"), HeaderName::from_static("api-key")];

/// Asks somebody whether a sender may send.
#[derive(Clone)]
pub struct Gate(Arc<Ask>);

type Ask = dyn Fn(Option<Secret>) -> Pin<Box<dyn Future<Output = Entry> + Send>> + Send + Sync;

/// Whether a sender may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It may.
    Allowed,
    /// It may not: what it shows is no token, or not any more.
    Refused,
    /// It may not: its token is good, and its role is not one that sends.
    Forbidden,
    /// Nobody can say now; it is told to come back.
    Later,
}

impl Gate {
    /// A gate that asks this function, with the token that a request shows: the one behind `Bearer` in `authorization`,
    /// else the whole of `x-api-key` or `api-key`; none where there is none. It is asked for each export.
    pub fn new<F>(ask: impl Fn(Option<Secret>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Entry> + Send + 'static,
    {
        Self(Arc::new(move |token| Box::pin(ask(token))))
    }

    /// Lets a request in, or says why not.
    pub(super) async fn pass(&self, headers: &HeaderMap) -> Result<(), Unanswered> {
        let token = shown(headers);
        let is_shown = token.is_some();
        match (self.0)(token).await {
            Entry::Allowed => Ok(()),
            Entry::Refused if is_shown => Err(Unanswered::TokenRefused),
            Entry::Refused => Err(Unanswered::TokenMissing),
            Entry::Forbidden => Err(Unanswered::TokenForbidden),
            Entry::Later => Err(Unanswered::TokenUnread),
        }
    }
}

/// The token that a request shows.
fn shown(headers: &HeaderMap) -> Option<Secret> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let key = || API_KEYS.iter().find_map(|name| headers.get(name)?.to_str().ok());
    let token = bearer.or_else(key).map(str::trim);
    token.filter(|token| !token.is_empty()).map(Secret::new)
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

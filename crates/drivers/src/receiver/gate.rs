//! The gate: a callback authorizes a sender by its request headers, before its body is read.
//!
//! Deliberately absent: the definition of a token. A receiver without a gate accepts exports from every sender.

use std::{fmt, future::Future, net::IpAddr, pin::Pin, sync::Arc};

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};
use model::{Project, Secret};

use super::error::ExportError;

/// Headers for clients that cannot set `authorization`.
const API_KEYS: [HeaderName; 2] =
    [HeaderName::from_static("x-api-key"), HeaderName::from_static("api-key")];

/// Authorizes senders by a callback.
#[derive(Clone)]
pub struct Gate {
    ask: Arc<AskFn>,
    origin: Arc<OriginFn>,
}

type OriginFn = dyn Fn(IpAddr, &HeaderMap) -> IpAddr + Send + Sync;

type AskFn =
    dyn Fn(Option<Secret>, IpAddr) -> Pin<Box<dyn Future<Output = Entry> + Send>> + Send + Sync;

/// The sender of an export, by the projects of the runs that it reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sender {
    projects: Option<Arc<[Project]>>,
}

impl Sender {
    /// A sender that reaches the runs of every project.
    pub fn of_all() -> Self {
        Self::default()
    }

    /// A sender that reaches the runs of these projects.
    pub fn of(projects: impl IntoIterator<Item = Project>) -> Self {
        let mut projects: Vec<_> = projects.into_iter().collect();
        projects.sort_unstable();
        projects.dedup();
        Self { projects: Some(projects.into()) }
    }

    /// Returns the projects of the runs that it reaches; none means all projects.
    pub fn projects(&self) -> Option<&[Project]> {
        self.projects.as_deref()
    }

    /// Whether it reaches the runs of a project.
    pub fn reaches(&self, project: &Project) -> bool {
        self.projects().is_none_or(|projects| projects.contains(project))
    }
}

/// Whether a sender may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The sender may send.
    Allowed(Sender),
    /// The sender may not: it has no token, or the token is invalid, expired or revoked.
    Refused,
    /// The sender may not: its token is valid, but its role may not send.
    Forbidden,
    /// The decision is not possible now; the sender should retry.
    Later,
}

impl Gate {
    /// Creates a gate that calls this function for each export, with the optional token and the source address. The token is
    /// the one after `Bearer` in `authorization`, else the complete value of `x-api-key` or `api-key`.
    pub fn new<F>(ask: impl Fn(Option<Secret>, IpAddr) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Entry> + Send + 'static,
    {
        let ask: Arc<AskFn> = Arc::new(move |token, peer| Box::pin(ask(token, peer)));
        Self { ask, origin: Arc::new(|peer, _| peer) }
    }

    /// The same gate, with a function that computes the source address from the peer of the connection and the headers.
    #[must_use]
    pub fn with_origin(
        self,
        origin: impl Fn(IpAddr, &HeaderMap) -> IpAddr + Send + Sync + 'static,
    ) -> Self {
        Self { origin: Arc::new(origin), ..self }
    }

    /// Authorizes a request, or returns why not.
    pub(super) async fn pass(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Sender, ExportError> {
        let token = shown(headers);
        let is_shown = token.is_some();
        match (self.ask)(token, (self.origin)(peer, headers)).await {
            Entry::Allowed(sender) => Ok(sender),
            Entry::Refused if is_shown => Err(ExportError::TokenRefused),
            Entry::Refused => Err(ExportError::TokenMissing),
            Entry::Forbidden => Err(ExportError::TokenForbidden),
            Entry::Later => Err(ExportError::TokenUnread),
        }
    }
}

/// Returns the token of a request.
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

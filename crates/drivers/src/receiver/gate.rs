//! Who may send: decided by somebody else from what a request shows, before anything of its body is read.
//!
//! Deliberately absent: what a token is. A receiver without a gate takes from everyone.

use std::{fmt, future::Future, net::IpAddr, pin::Pin, sync::Arc};

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};
use model::{Project, Secret};

use super::error::ExportError;

/// The headers of those who cannot say `authorization`.
const API_KEYS: [HeaderName; 2] =
    [HeaderName::from_static("x-api-key"), HeaderName::from_static("api-key")];

/// Asks somebody whether a sender may send.
#[derive(Clone)]
pub struct Gate {
    ask: Arc<AskFn>,
    origin: Arc<OriginFn>,
}

type OriginFn = dyn Fn(IpAddr, &HeaderMap) -> IpAddr + Send + Sync;

type AskFn =
    dyn Fn(Option<Secret>, IpAddr) -> Pin<Box<dyn Future<Output = Entry> + Send>> + Send + Sync;

/// Whoever sends, as far as it says what may become of it: whose runs it reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sender {
    projects: Option<Arc<[Project]>>,
}

impl Sender {
    /// One that reaches the runs of every project.
    pub fn of_all() -> Self {
        Self::default()
    }

    /// One that reaches the runs of these projects.
    pub fn of(projects: impl IntoIterator<Item = Project>) -> Self {
        let mut projects: Vec<_> = projects.into_iter().collect();
        projects.sort_unstable();
        projects.dedup();
        Self { projects: Some(projects.into()) }
    }

    /// The projects whose runs it reaches; none for all of them.
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
    /// It may.
    Allowed(Sender),
    /// It may not: what it shows is no token, or not any more.
    Refused,
    /// It may not: its token is good, and its role is not one that sends.
    Forbidden,
    /// Nobody can say now; it is told to come back.
    Later,
}

impl Gate {
    /// A gate that asks this function, with the token that a request shows: the one behind `Bearer` in `authorization`,
    /// else the whole of `x-api-key` or `api-key`; none where there is none; and from where. It is asked for each export.
    pub fn new<F>(ask: impl Fn(Option<Secret>, IpAddr) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Entry> + Send + 'static,
    {
        let ask: Arc<AskFn> = Arc::new(move |token, peer| Box::pin(ask(token, peer)));
        Self { ask, origin: Arc::new(|peer, _| peer) }
    }

    /// The same, which asks about the address that this function finds from the peer of the connection and the headers.
    #[must_use]
    pub fn with_origin(
        self,
        origin: impl Fn(IpAddr, &HeaderMap) -> IpAddr + Send + Sync + 'static,
    ) -> Self {
        Self { origin: Arc::new(origin), ..self }
    }

    /// Lets a request in, or says why not.
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

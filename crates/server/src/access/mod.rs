//! Authentication and authorization of callers.
//!
//! A program sends a token, and a browser sends a session cookie; [`Access::at_once`] and [`Access::ask`] return the caller.
//! [`table`] lists what each route requires. The middleware of the API (`http/guard.rs`) checks a caller against it; no handler
//! does. [`token`] defines tokens and how they are stored, [`token_cache`] caches them, [`oidc`] the login of people, [`login_cookie`] and [`session`] their
//! cookies, [`shop_sender`] the token of the demo shop, [`rate_limit`] the rate limits, [`failures`] which failed logins the audit log has.
//!
//! Deliberately absent: permissions on single documents, and passwords.

pub(crate) mod bootstrap;
pub(crate) mod failures;
pub(crate) mod login_cookie;
pub(crate) mod oidc;
pub(crate) mod proxies;
pub(crate) mod rate_limit;
pub(crate) mod session;
pub(crate) mod shop_sender;
pub(crate) mod table;
pub(crate) mod token;
mod token_cache;

use std::{net::IpAddr, sync::Arc, time::Duration};

use db::{Db, DbError, PersonId, Starter, StoredToken, TokenKind};
use drivers::{
    connections,
    receiver::{Entry, Gate, Sender},
};
use model::{Project, Role, Timestamp, TokenId, World};
use tokio::time::Instant;

use self::{
    failures::LoginFailures,
    oidc::Oidc,
    rate_limit::RateLimiter,
    shop_sender::ShopSender,
    token_cache::{CachedToken, TokenCache},
};
use crate::{
    access::proxies::TrustedProxies,
    authorities::AuthoritiesError,
    config::{self, Limits, Mode},
};

/// The minimum interval between two writes of a session's last-seen time.
const SEEN_EVERY: Duration = Duration::from_secs(60);

/// Authenticates callers and limits their request rates.
#[derive(Debug)]
pub(crate) struct Access {
    /// Whether callers must authenticate.
    pub(crate) mode: Mode,
    /// The identity provider for logins.
    pub(crate) oidc: Option<Oidc>,
    world: World,
    cache: TokenCache,
    /// The rate limit for each caller.
    pub(crate) callers: RateLimiter<RateKey>,
    /// The rate limit for all callers of a project.
    pub(crate) projects: RateLimiter<Project>,
    /// The rate limit for requests with an invalid, expired or revoked token, by address.
    strangers: RateLimiter<IpAddr>,
    /// Decides which failed logins the audit log has.
    pub(crate) failures: LoginFailures,
    /// The token of the demo shop.
    pub(crate) shop: ShopSender,
}

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The display name.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The projects in which the role holds; `None` for all projects.
    pub(crate) projects: Option<Vec<Project>>,
    /// The id of the token or session; `None` if authentication is off.
    pub(crate) token: Option<TokenId>,
    /// The identity of a person who has logged in.
    pub(crate) person: Option<PersonId>,
}

/// The key by which requests are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RateKey {
    /// The requests of one token or one session. A name is no identity: another project may give it to another token.
    Token(TokenId),
    /// The unauthenticated requests from one address, or one IPv6 network.
    Peer(IpAddr),
}

impl RateKey {
    /// Returns the key for unauthenticated requests from an address.
    pub(crate) fn peer(address: IpAddr) -> Self {
        Self::Peer(connections::peer(address))
    }
}

/// Why authentication failed.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// The token is invalid, expired or revoked.
    Nobody,
    /// The address sends too many invalid tokens; holds the time to wait.
    Guesses(Duration),
    /// The database query failed.
    Db(DbError),
}

impl From<DbError> for Unknown {
    fn from(error: DbError) -> Self {
        Self::Db(error)
    }
}

impl Caller {
    /// Returns the caller of every request when authentication is off.
    pub(crate) fn anyone() -> Self {
        let name = "anyone".to_owned();
        Self { name, role: Role::Admin, projects: None, token: None, person: None }
    }

    /// Returns the kind of starter that is recorded for a run of this caller.
    pub(crate) fn starter(&self) -> Starter {
        match (&self.token, &self.person) {
            (_, Some(_)) => Starter::Person,
            (Some(_), None) => Starter::Token,
            (None, None) => Starter::Anyone,
        }
    }

    /// Returns the OTLP sender: it reaches the runs of the caller's projects.
    fn sender(&self) -> Sender {
        self.projects.clone().map_or_else(Sender::of_all, Sender::of)
    }

    /// Whether the caller has access to a project.
    pub(crate) fn may_in(&self, project: &Project) -> bool {
        self.projects.as_ref().is_none_or(|projects| projects.contains(project))
    }
}

impl From<StoredToken> for Caller {
    fn from(token: StoredToken) -> Self {
        let StoredToken { id, name, role, projects, person, .. } = token;
        Self { name, role, projects, token: Some(id), person }
    }
}

impl Access {
    pub(crate) fn new(
        config: config::AccessConfig,
        limits: &Limits,
        world: World,
    ) -> Result<Self, AuthoritiesError> {
        Ok(Self {
            mode: config.mode,
            oidc: config.oidc.map(Oidc::new).transpose()?,
            world,
            cache: TokenCache::default(),
            callers: RateLimiter::new(limits.requests_per_second_max),
            projects: RateLimiter::new(limits.project_requests_per_second_max),
            strangers: RateLimiter::new(STRANGERS_PER_SECOND_MAX),
            failures: LoginFailures::default(),
            shop: ShopSender::default(),
        })
    }

    /// Authenticates a credential without a database query. Returns `None` if the database has to decide.
    pub(crate) fn at_once(
        &self,
        (kind, shown): (TokenKind, &str),
    ) -> Option<Result<Caller, Unknown>> {
        // A text that does not look like a token costs no query.
        let Some(hash) = token::hash(shown) else { return Some(Err(Unknown::Nobody)) };
        let known = self.cache.get(kind, &hash)?;
        let is_good = known.expires_at > self.world.now();
        Some(if is_good { Ok(known.into()) } else { Err(Unknown::Nobody) })
    }

    /// Authenticates a credential from an address with a database query. `db` must be the pool of the calling runtime.
    pub(crate) async fn ask(
        &self,
        db: &Db,
        (kind, shown): (TokenKind, &str),
        peer: IpAddr,
    ) -> Result<Caller, Unknown> {
        let hash = token::hash(shown).ok_or(Unknown::Nobody)?;
        let peer = connections::peer(peer);
        let now = self.world.now();
        // A guessed token costs a query each time; a valid token gets its count in the rate limit back. A token that was valid
        // before is no guess, so the guesses of other clients do not lock its owner out.
        if !self.cache.contains(kind, &hash) {
            self.strangers.count(peer).map_err(Unknown::Guesses)?;
        }
        let asked = Instant::now();
        let Some(token) = db.token(kind, &hash, now).await? else {
            // The token was valid before and is not any more: from now on it counts as a guess.
            self.cache.remove(&hash);
            return Err(Unknown::Nobody);
        };
        self.strangers.give_back(&peer);
        if kind == TokenKind::Session {
            seen(db, &token, now).await;
        }
        self.cache.insert(hash, CachedToken { token: token.clone(), kind, asked });
        Ok(token.into())
    }

    /// Authenticates a sender of OTLP.
    async fn sender(&self, db: &Db, shown: &str, peer: IpAddr) -> Result<Caller, Unknown> {
        if let Some(shop) = self.shop.caller(shown) {
            return Ok(shop);
        }
        let shown = (TokenKind::Token, shown);
        match self.at_once(shown) {
            Some(known) => known,
            None => self.ask(db, shown, peer).await,
        }
    }

    /// Removes a revoked token from the cache.
    pub(crate) fn forget(&self, id: TokenId) {
        self.cache.forget(id);
    }
}

/// Writes that a session was seen, unless that was written a moment ago. The time is only displayed and decides nothing, so a
/// failure does not stop the request.
async fn seen(db: &Db, session: &StoredToken, now: Timestamp) {
    let age = session.seen_at.map(|seen| now.as_nanos().saturating_sub(seen.as_nanos()));
    if age.is_some_and(|age| u128::from(age) < SEEN_EVERY.as_nanos()) {
        return;
    }
    if let Err(error) = db.session_seen(session.id, now).await {
        tracing::debug!(%error, "that a session was seen could not be written");
    }
}

/// Returns the gate for senders of OTLP: it admits tokens of the roles in [`table::INGEST`]. It runs on the control runtime.
pub(crate) fn gate(access: &Arc<Access>, calm_db: &Db, proxies: TrustedProxies) -> Gate {
    let (access, db) = (Arc::clone(access), calm_db.clone());
    let gate = Gate::new(move |shown, peer| {
        let (access, db) = (Arc::clone(&access), db.clone());
        async move {
            let Some(shown) = shown else { return Entry::Refused };
            match access.sender(&db, shown.expose(), peer).await {
                Ok(caller) if table::INGEST.contains(&caller.role) => {
                    Entry::Allowed(caller.sender())
                }
                Ok(_) => Entry::Forbidden,
                Err(Unknown::Nobody) => Entry::Refused,
                Err(Unknown::Guesses(_) | Unknown::Db(_)) => Entry::Later,
            }
        }
    });
    gate.with_origin(move |peer, headers| proxies.origin(peer, headers).address)
}

/// The maximum number of requests a second of one address that send an invalid, expired or revoked token.
const STRANGERS_PER_SECOND_MAX: u32 = 20;

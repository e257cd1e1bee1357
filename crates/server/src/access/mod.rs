//! Who asks, and whether they may.
//!
//! A caller shows a token, or a browser the cookie of a session; [`Access::caller`] says who that is. What each route
//! needs is in [`table`]; the middleware of the API (`api/guard.rs`) holds one against the other, and no handler does. What a
//! token is and how it is kept is in [`token`], how people log in in [`oidc`],
//! their cookies in [`login_cookie`] and [`session`], how often one may ask in [`pace`], which failed logins are noted in [`failures`].
//!
//! Deliberately absent: rights on single documents, and passwords.

pub(crate) mod bootstrap;
pub(crate) mod failures;
pub(crate) mod login_cookie;
pub(crate) mod oidc;
pub(crate) mod rate_limit;
pub(crate) mod session;
pub(crate) mod table;
pub(crate) mod token;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use db::{Db, DbError, PersonId, Starter, StoredToken, TokenKind};
use drivers::{
    connections,
    receiver::{Entry, Gate, Sender},
};
use model::{Project, Role, Timestamp, TokenId, World};
use tokio::time::Instant;

use self::{failures::LoginFailures, oidc::Oidc, rate_limit::RateLimiter, token::Hash};
use crate::{
    config::{self, Limits, Mode},
    proxies::TrustedProxies,
};

/// How long a token that was good is taken for good without asking the record. So long may one that was taken back
/// elsewhere still be used here.
const KNOWN_FOR: Duration = Duration::from_secs(5);
/// How often it is written that a session was seen.
const SEEN_EVERY: Duration = Duration::from_secs(60);
/// Tokens that are remembered.
const KNOWN_MAX: usize = 4096;

/// Who may ask.
#[derive(Debug)]
pub(crate) struct Access {
    /// Whether callers must say who they are.
    pub(crate) mode: Mode,
    /// How people log in.
    pub(crate) oidc: Option<Oidc>,
    world: World,
    known: Mutex<HashMap<Hash, CachedToken>>,
    /// How often callers ask.
    pub(crate) callers: RateLimiter<RateKey>,
    /// How often all callers of a project ask.
    pub(crate) projects: RateLimiter<Project>,
    /// How often what is shown is good for nothing, by address.
    strangers: RateLimiter<IpAddr>,
    /// Which failed logins are noted.
    pub(crate) failures: LoginFailures,
}

/// Somebody who may ask for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// What people call them.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Where they may; none for everywhere.
    pub(crate) projects: Option<Vec<Project>>,
    /// By what they are known; none where nobody need be.
    pub(crate) token: Option<TokenId>,
    /// Who they are, for a person who has logged in.
    pub(crate) person: Option<PersonId>,
}

/// Whose requests are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RateKey {
    /// Those of one token or one session. A name is no identity: another project may give it to another token.
    Token(TokenId),
    /// Those from one address, or one network of IPv6, that need not say whose they are.
    Peer(IpAddr),
}

impl RateKey {
    /// Those of whoever asks from there.
    pub(crate) fn peer(address: IpAddr) -> Self {
        Self::Peer(connections::peer(address))
    }
}

/// Why a caller is not known.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// What is shown is good for nothing.
    Nobody,
    /// There is too much of that from there; so long to wait.
    Guesses(Duration),
    /// The record does not say.
    Db(DbError),
}

impl From<DbError> for Unknown {
    fn from(error: DbError) -> Self {
        Self::Db(error)
    }
}

/// A token that was good a moment ago.
#[derive(Clone, Debug)]
struct CachedToken {
    token: StoredToken,
    kind: TokenKind,
    asked: Instant,
}

impl Caller {
    /// Whoever asks where nobody is asked who they are.
    pub(crate) fn anyone() -> Self {
        let name = "anyone".to_owned();
        Self { name, role: Role::Admin, projects: None, token: None, person: None }
    }

    /// As what they start a run.
    pub(crate) fn starter(&self) -> Starter {
        match (&self.token, &self.person) {
            (_, Some(_)) => Starter::Person,
            (Some(_), None) => Starter::Token,
            (None, None) => Starter::Anyone,
        }
    }

    /// Whose runs what they send reaches.
    fn sender(&self) -> Sender {
        self.projects.clone().map_or_else(Sender::of_all, Sender::of)
    }

    /// Whether they may do something in a project.
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
    pub(crate) fn new(config: config::AccessConfig, limits: &Limits, world: World) -> Self {
        Self {
            mode: config.mode,
            oidc: config.oidc.map(Oidc::new),
            world,
            known: Mutex::default(),
            callers: RateLimiter::new(limits.requests_per_second_max),
            projects: RateLimiter::new(limits.project_requests_per_second_max),
            strangers: RateLimiter::new(STRANGERS_PER_SECOND_MAX),
            failures: LoginFailures::default(),
        }
    }

    /// Whoever shows this, if that is known without asking the record.
    pub(crate) fn at_once(
        &self,
        (kind, shown): (TokenKind, &str),
    ) -> Option<Result<Caller, Unknown>> {
        // What does not look like a token costs nothing.
        let Some(hash) = token::hash(shown) else { return Some(Err(Unknown::Nobody)) };
        let known = self.remembered(kind, &hash)?;
        let is_good = known.expires_at > self.world.now();
        Some(if is_good { Ok(known.into()) } else { Err(Unknown::Nobody) })
    }

    /// Whoever shows this from there, asked of the record, which is that of the runtime on which this is called.
    pub(crate) async fn ask(
        &self,
        db: &Db,
        (kind, shown): (TokenKind, &str),
        peer: IpAddr,
    ) -> Result<Caller, Unknown> {
        let hash = token::hash(shown).ok_or(Unknown::Nobody)?;
        let peer = connections::peer(peer);
        let now = self.world.now();
        // Whoever guesses asks the record each time; who does not gets the place back. What was good before is no guess, so
        // that nobody is kept out by the guesses of others.
        if !self.has_been_good(kind, &hash) {
            self.strangers.count(peer).map_err(Unknown::Guesses)?;
        }
        let asked = Instant::now();
        let Some(token) = db.token(kind, &hash, now).await? else {
            // Good before, and good no longer: from now on it is a guess as any other.
            self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&hash);
            return Err(Unknown::Nobody);
        };
        self.strangers.give_back(&peer);
        if kind == TokenKind::Session {
            seen(db, &token, now).await;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.retain(|_, known| known.asked.elapsed() < KNOWN_FOR);
        }
        if known.len() < KNOWN_MAX {
            known.insert(hash, CachedToken { token: token.clone(), kind, asked });
        }
        Ok(token.into())
    }

    /// Whoever sends OTLP from there.
    async fn sender(&self, db: &Db, shown: &str, peer: IpAddr) -> Result<Caller, Unknown> {
        let shown = (TokenKind::Token, shown);
        match self.at_once(shown) {
            Some(known) => known,
            None => self.ask(db, shown, peer).await,
        }
    }

    /// Forgets what is remembered of a token: it was taken back.
    pub(crate) fn forget(&self, id: TokenId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| known.token.id != id);
    }

    /// Whether this was a token not long ago, and may still be.
    fn has_been_good(&self, kind: TokenKind, hash: &Hash) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(hash).is_some_and(|known| known.kind == kind)
    }

    fn remembered(&self, kind: TokenKind, hash: &Hash) -> Option<StoredToken> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(hash).filter(|known| known.kind == kind)?;
        (known.asked.elapsed() < KNOWN_FOR).then(|| known.token.clone())
    }
}

/// Notes that a session was seen, unless that was noted a moment ago. It is told to people and decides nothing, so that a
/// request goes on without it.
async fn seen(db: &Db, session: &StoredToken, now: Timestamp) {
    let age = session.seen_at.map(|seen| now.as_nanos().saturating_sub(seen.as_nanos()));
    if age.is_some_and(|age| u128::from(age) < SEEN_EVERY.as_nanos()) {
        return;
    }
    if let Err(error) = db.session_seen(session.id, now).await {
        tracing::debug!(%error, "that a session was seen could not be written");
    }
}

/// Who may send OTLP: whoever shows a token of a role that may ([`table::INGEST`]). Asked on the calm runtime.
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

/// Requests a second of one address that show what is good for nothing.
const STRANGERS_PER_SECOND_MAX: u32 = 20;

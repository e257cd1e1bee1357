//! The cache of tokens, so that most requests need no database query.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use db::{StoredToken, TokenKind};
use model::TokenId;
use tokio::time::Instant;

use super::token::Hash;

/// How long a valid token is used without a database query. A token that was revoked on another server may still be used here
/// for this long.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// The maximum number of cached tokens.
const TOKENS_MAX: usize = 4096;

/// A token that was valid when the database was last queried.
#[derive(Clone, Debug)]
pub(super) struct CachedToken {
    pub(super) token: StoredToken,
    pub(super) kind: TokenKind,
    /// When the database was queried.
    pub(super) asked: Instant,
}

/// The cached tokens.
#[derive(Debug, Default)]
pub(super) struct TokenCache(Mutex<HashMap<Hash, CachedToken>>);

impl TokenCache {
    /// Returns the token, unless the database has to be queried again.
    pub(super) fn get(&self, kind: TokenKind, hash: &Hash) -> Option<StoredToken> {
        let tokens = self.lock();
        let cached = tokens.get(hash).filter(|cached| cached.kind == kind)?;
        (cached.asked.elapsed() < FRESH_FOR).then(|| cached.token.clone())
    }

    /// Whether this token was valid not long ago, and may still be.
    pub(super) fn contains(&self, kind: TokenKind, hash: &Hash) -> bool {
        self.lock().get(hash).is_some_and(|cached| cached.kind == kind)
    }

    /// Adds a token, if there is room or an old one can be removed.
    pub(super) fn insert(&self, hash: Hash, cached: CachedToken) {
        let mut tokens = self.lock();
        if tokens.len() >= TOKENS_MAX {
            tokens.retain(|_, cached| cached.asked.elapsed() < FRESH_FOR);
        }
        if tokens.len() < TOKENS_MAX {
            tokens.insert(hash, cached);
        }
    }

    /// Removes a token that is not valid any more.
    pub(super) fn remove(&self, hash: &Hash) {
        self.lock().remove(hash);
    }

    /// Removes a revoked token.
    pub(super) fn forget(&self, id: TokenId) {
        self.lock().retain(|_, cached| cached.token.id != id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Hash, CachedToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

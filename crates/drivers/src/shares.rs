//! Permits that owners share: one owner gets at most half of them, or less, and permits are granted in turn. However many
//! permits one owner requests, the others get theirs.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The minimum number of permits: a single permit would give its owner all.
const PERMITS_MIN: usize = 2;

/// A set of permits. A clone shares the same permits.
#[derive(Debug)]
pub struct Shares<K>(Arc<Inner<K>>);

/// One permit, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    _own: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
struct Inner<K> {
    all: Arc<Semaphore>,
    /// The maximum number of permits of one owner.
    share: usize,
    /// The owners that have a permit, or wait for one.
    owners: Mutex<HashMap<K, Weak<Semaphore>>>,
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// Creates this many permits; two at least.
    pub fn new(permits: usize) -> Self {
        Self::with_share(permits, permits / 2)
    }

    /// Creates this many permits, and a limit for one owner: one at least, half at most.
    pub fn with_share(permits: usize, share: usize) -> Self {
        let permits = permits.clamp(PERMITS_MIN, Semaphore::MAX_PERMITS);
        Self(Arc::new(Inner {
            all: Arc::new(Semaphore::new(permits)),
            share: share.clamp(1, permits / 2),
            owners: Mutex::default(),
        }))
    }

    /// Waits for a permit.
    pub async fn acquire(&self, owner: &K) -> Permit {
        // Neither semaphore is ever closed.
        let own = self.0.own(owner).acquire_owned().await.ok();
        Permit { _own: own, _all: Arc::clone(&self.0.all).acquire_owned().await.ok() }
    }

    /// Returns a permit, if one is free now.
    pub fn try_acquire(&self, owner: &K) -> Option<Permit> {
        let own = self.0.own(owner).try_acquire_owned().ok()?;
        let all = Arc::clone(&self.0.all).try_acquire_owned().ok()?;
        Some(Permit { _own: Some(own), _all: Some(all) })
    }
}

impl<K: Clone + Eq + Hash> Inner<K> {
    /// Returns the permits of one owner.
    fn own(&self, owner: &K) -> Arc<Semaphore> {
        let mut owners = self.owners();
        if let Some(own) = owners.get(owner).and_then(Weak::upgrade) {
            return own;
        }
        owners.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(self.share));
        owners.insert(owner.clone(), Arc::downgrade(&own));
        own
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<K, Weak<Semaphore>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Clone for Shares<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, time::Duration};

    use tokio::time::timeout;

    use super::Shares;

    #[tokio::test(start_paused = true)]
    async fn one_owner_has_half_and_others_get_theirs() {
        let shares = Shares::new(4);
        let held = [shares.try_acquire(&"a"), shares.try_acquire(&"a")];
        assert!(held.iter().all(Option::is_some));
        assert!(shares.try_acquire(&"a").is_none(), "half is what one owner has");
        let mut third = pin!(shares.acquire(&"a"));
        assert!(timeout(Duration::from_secs(60), &mut third).await.is_err(), "it waits");
        let others = [shares.try_acquire(&"b"), shares.try_acquire(&"c")];
        assert!(others.iter().all(Option::is_some), "its waiting takes nothing from others");
        assert!(shares.try_acquire(&"d").is_none(), "all are taken");
        drop(held);
        let third = third.await;
        drop((third, others));
        assert_eq!(shares.0.all.available_permits(), 4);
        assert!(shares.try_acquire(&"e").is_some());
        assert_eq!(shares.0.owners().len(), 1, "owners without a permit are forgotten");
    }
}

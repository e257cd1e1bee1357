//! A rate limiter: N requests a second for each key, with a burst of N after a pause.
//!
//! It stores one instant for each key (the generic cell rate algorithm): the one at which the requests so far would have been
//! due. Deliberately absent: a common count over several servers.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The maximum number of keys. Above it, keys without recent requests are removed; if none can be removed, a request with a
/// new key is admitted without being counted: a limit must not become a way to lock others out.
const KEPT_MAX: usize = 10_000;

/// A rate limiter with one count for each key.
#[derive(Debug)]
pub(crate) struct RateLimiter<K> {
    /// The time that one request costs.
    step: Duration,
    /// How far the due time may be in the future.
    credit: Duration,
    due: Mutex<HashMap<K, Instant>>,
}

impl<K: Hash + Eq> RateLimiter<K> {
    pub(crate) fn new(per_second_max: u32) -> Self {
        Self::within(Duration::from_secs(1), per_second_max)
    }

    /// Returns a limiter for `times_max` requests in a period, with a burst of as many after a pause.
    pub(crate) fn within(period: Duration, times_max: u32) -> Self {
        Self { step: period / times_max.max(1), credit: period, due: Mutex::default() }
    }

    /// Counts a request, or returns how long to wait before the next.
    pub(crate) fn count(&self, who: K) -> Result<(), Duration> {
        let now = Instant::now();
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if due.len() >= KEPT_MAX {
            due.retain(|_, due| *due > now);
        }
        let is_full = due.len() >= KEPT_MAX;
        let next = due.get(&who).map_or(now, |due| (*due).max(now)) + self.step;
        if next > now + self.credit {
            return Err(next - now - self.credit);
        }
        if !is_full || due.contains_key(&who) {
            due.insert(who, next);
        }
        Ok(())
    }

    /// Takes back the count of a request.
    pub(crate) fn give_back(&self, who: &K) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(due) = due.get_mut(who) {
            *due -= self.step;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::{KEPT_MAX, RateLimiter};

    #[tokio::test(start_paused = true)]
    async fn a_second_holds_so_many_and_no_more() {
        let pace = RateLimiter::new(10);
        for _ in 0..10 {
            assert_eq!(pace.count("a"), Ok(()));
        }
        assert_eq!(pace.count("a"), Err(Duration::from_millis(100)));
        pace.give_back(&"a");
        assert_eq!(pace.count("a"), Ok(()));
        assert_eq!(pace.count("a"), Err(Duration::from_millis(100)));
        assert_eq!(pace.count("b"), Ok(()), "another has a count of its own");
        advance(Duration::from_millis(100)).await;
        assert_eq!(pace.count("a"), Ok(()));
        assert!(pace.count("a").is_err());
        advance(Duration::from_secs(60)).await;
        let counted = (0..100).filter(|_| pace.count("a").is_ok()).count();
        assert_eq!(counted, 10, "a pause gives no more than a second");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded() {
        let pace = RateLimiter::new(1000);
        for who in 0..3 * KEPT_MAX {
            assert_eq!(pace.count(who), Ok(()));
        }
        assert_eq!(pace.due.lock().expect("no panic").len(), KEPT_MAX);
        advance(Duration::from_secs(1)).await;
        assert_eq!(pace.count(0), Ok(()));
        assert_eq!(pace.due.lock().expect("no panic").len(), 1);
    }
}

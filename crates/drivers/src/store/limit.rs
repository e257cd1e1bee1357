//! Limits the queries of one store, over all traces.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep_until},
};

/// The limit of the queries of one store: how many at a time, and how many in a second. Waiting queries are served in order.
#[derive(Debug)]
pub struct QueryLimit {
    permits: Semaphore,
    /// The time between the beginnings of two queries.
    gap: Duration,
    next: Mutex<Option<Instant>>,
}

impl QueryLimit {
    /// Creates a limit of queries at a time and of queries in a second, at least one of each.
    pub fn new(concurrent_max: usize, per_second_max: u32) -> Self {
        Self {
            permits: Semaphore::new(concurrent_max.clamp(1, Semaphore::MAX_PERMITS)),
            gap: Duration::from_secs(1) / per_second_max.max(1),
            next: Mutex::default(),
        }
    }

    /// Waits for a turn. The query may run as long as the permit exists.
    pub(super) async fn turn(&self) -> SemaphorePermit<'_> {
        let permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let at = next.map_or_else(Instant::now, |next| next.max(Instant::now()));
            *next = Some(at + self.gap);
            at
        };
        sleep_until(at).await;
        permit
    }
}

//! Limits the queries of one store, over all traces.

use std::time::Duration;

use tokio::{
    sync::{Mutex, Semaphore, SemaphorePermit},
    time::{Instant, sleep_until},
};

/// The limit of the queries of one store: how many at a time, and how many in a second. Waiting queries are served in order.
#[derive(Debug)]
pub struct QueryLimit {
    permits: Semaphore,
    /// The time between the beginnings of two queries.
    gap: Duration,
    /// When the next query may begin. The query that waits for it holds the lock.
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
        let mut next = self.next.lock().await;
        if let Some(at) = *next {
            sleep_until(at).await;
        }
        // A timer may fire late: the gap counts from the beginning that was, so that no window has more queries.
        *next = Some(Instant::now() + self.gap);
        permit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, timeout};

    /// A timer that fires late lets one query begin, not all that would have begun meanwhile.
    #[tokio::test(start_paused = true)]
    async fn a_late_timer_does_not_bring_two_queries_together() {
        let limit = QueryLimit::new(8, 50);
        drop(limit.turn().await);
        let (mut second, mut third) = (Box::pin(limit.turn()), Box::pin(limit.turn()));
        let soon = Duration::from_millis(1);
        assert!(timeout(soon, &mut second).await.is_err(), "its gap is not over");
        assert!(timeout(soon, &mut third).await.is_err(), "nor that of the next");
        advance(Duration::from_secs(1)).await;
        drop(timeout(soon, &mut second).await.expect("its gap is over"));
        assert!(timeout(soon, &mut third).await.is_err(), "a gap begins anew");
        drop(timeout(limit.gap, &mut third).await.expect("its gap is over"));
    }
}

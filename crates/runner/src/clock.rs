//! The run's clock: a wall clock that was looked at once, and moves with tokio's.
//!
//! So that moments of arrival, of spans and of timers can be compared, and a test that pauses tokio's clock holds them
//! all. Deliberately absent: corrections of the wall clock in mid-run, which would only confuse.

use std::time::Duration;

use model::Timestamp;
use tokio::time::Instant;

/// The clock of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    anchor: Instant,
    wall: Timestamp,
}

impl Clock {
    /// A clock by which it is `wall` now.
    pub(crate) fn new(wall: Timestamp) -> Self {
        Self { anchor: Instant::now(), wall }
    }

    /// The moment.
    pub(crate) fn now(self) -> Timestamp {
        self.at(Instant::now())
    }

    /// What the clock shows at a moment.
    pub(crate) fn at(self, moment: Instant) -> Timestamp {
        match moment.checked_duration_since(self.anchor) {
            Some(later) => self.wall.plus(later),
            None => {
                let earlier = nanos(self.anchor.duration_since(moment));
                Timestamp::from_nanos(self.wall.as_nanos().saturating_sub(earlier))
            }
        }
    }

    /// When the clock shows this, at the latest in a day: nobody waits for longer.
    pub(crate) fn instant(self, at: Timestamp) -> Instant {
        self.anchor + at.since(self.wall).min(Duration::from_secs(24 * 60 * 60))
    }
}

/// A duration in nanoseconds.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

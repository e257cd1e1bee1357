//! The run's clock: it reads the wall clock once and then advances with tokio's clock.
//!
//! Arrival times, span times and timers can therefore be compared, and a test that pauses tokio's clock pauses all of them.
//! Deliberately absent: corrections of the wall clock during a run, which would only confuse.

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
    /// Creates a clock that shows `wall` now.
    pub(crate) fn new(wall: Timestamp) -> Self {
        Self { anchor: Instant::now(), wall }
    }

    /// Returns the current time.
    pub(crate) fn now(self) -> Timestamp {
        self.at(Instant::now())
    }

    /// Returns the time that the clock shows at an instant.
    pub(crate) fn at(self, moment: Instant) -> Timestamp {
        match moment.checked_duration_since(self.anchor) {
            Some(later) => self.wall.plus(later),
            None => {
                let earlier = nanos(self.anchor.duration_since(moment));
                Timestamp::from_nanos(self.wall.as_nanos().saturating_sub(earlier))
            }
        }
    }

    /// Returns the instant at which the clock shows this time, at most one day ahead: no wait is longer.
    pub(crate) fn instant(self, at: Timestamp) -> Instant {
        self.anchor + at.since(self.wall).min(Duration::from_secs(24 * 60 * 60))
    }
}

/// Converts a duration to nanoseconds.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

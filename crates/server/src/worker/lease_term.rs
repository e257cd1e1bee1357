//! What a worker decides by its lease on a run: decisions without I/O and without a clock.
//!
//! A lease counts from before it was requested, so that it ends here no later than in the database, if both clocks run at about the
//! same speed. Half of it is the margin of the one effect that no database can take back: the trigger. [`plays`](super::plays)
//! plays these decisions with clocks that differ and stop.

use std::time::Duration;

/// How many workers may stall or die while they own a run. A run that stalls each of them ends as inconclusive.
pub(super) const STALLS_MAX: i32 = 2;

/// A worker's lease on a run. Times count from any moment, by a clock that never goes back.
#[derive(Clone, Debug)]
pub(super) struct LeaseTerm {
    length: Duration,
    until: Duration,
    is_lost: bool,
}

/// The state of a lease, as far as its worker knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseState {
    /// The worker owns the run.
    Held,
    /// Another worker was seen to own the run.
    Lost,
    /// Another worker may own the run.
    Expired,
}

impl LeaseTerm {
    /// Returns a lease that was requested at a time.
    pub(super) fn new(asked: Duration, length: Duration) -> Self {
        Self { length, until: asked + length, is_lost: false }
    }

    /// Takes note of a renewal that was requested at a time, and that the database confirmed.
    pub(super) fn renewed(&mut self, asked: Duration) {
        self.until = asked + self.length;
    }

    /// Takes note of another owner.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    /// Returns the time at which it expires.
    pub(super) fn until(&self) -> Duration {
        self.until
    }

    /// Returns its state; a worker works on the run only while it holds the lease.
    pub(super) fn state(&self, now: Duration) -> LeaseState {
        match self.until.saturating_sub(now) {
            _ if self.is_lost => LeaseState::Lost,
            Duration::ZERO => LeaseState::Expired,
            _ => LeaseState::Held,
        }
    }

    /// Whether an attempt may be recorded, or the first byte of a trigger sent.
    pub(super) fn allows_trigger(&self, now: Duration) -> bool {
        !self.is_lost && self.until.saturating_sub(now) * 2 >= self.length
    }
}

/// Whether a run has stalled so many owners that the next one ends it without executing it.
pub(super) fn is_given_up(stalls: i32) -> bool {
    stalls >= STALLS_MAX
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LeaseState, LeaseTerm, is_given_up};

    #[test]
    fn a_lease_counts_from_the_request_and_half_of_it_is_for_the_trigger() {
        let at = Duration::from_secs;
        let mut term = LeaseTerm::new(at(100), at(10));
        let cases = [
            (100, LeaseState::Held, true),
            (105, LeaseState::Held, true),
            (106, LeaseState::Held, false),
            (109, LeaseState::Held, false),
            (110, LeaseState::Expired, false),
            (200, LeaseState::Expired, false),
        ];
        for (now, state, allows) in cases {
            assert_eq!(
                (term.state(at(now)), term.allows_trigger(at(now))),
                (state, allows),
                "{now}"
            );
        }
        term.renewed(at(103));
        assert_eq!((term.until(), term.state(at(112))), (at(113), LeaseState::Held));
        term.lose();
        assert_eq!((term.state(at(104)), term.allows_trigger(at(104))), (LeaseState::Lost, false));
    }

    #[test]
    fn the_third_owner_gives_up() {
        assert_eq!([0, 1, 2, 3].map(is_given_up), [false, false, true, true]);
    }
}

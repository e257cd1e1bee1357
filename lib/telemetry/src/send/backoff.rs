//! The pause before a failing destination is retried.

use std::time::{Duration, Instant};

use crate::plan::Retry;

/// The longest pause that a peer may request.
const AFTER_MAX: Duration = Duration::from_secs(300);

/// The outage of a destination: since when it fails, and when it is retried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outage {
    /// Requests that were sent before this time do not count.
    since: Instant,
    attempts: u32,
    pub(crate) resume_at: Instant,
}

/// A further failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    /// When the request that failed was sent.
    pub(crate) sent: Instant,
    pub(crate) now: Instant,
    /// The pause that the peer requested.
    pub(crate) after: Option<Duration>,
    /// The random number for the jitter.
    pub(crate) random: u64,
}

impl Outage {
    /// Returns the state after a further failure. Requests that were in progress when the first one failed count as
    /// that one.
    pub(crate) fn next(before: Option<Self>, failure: Failure, retry: Retry) -> Self {
        let Failure { sent, now, after, random } = failure;
        let asked = after.map(|after| now + after.min(AFTER_MAX));
        let mut outage = match before {
            Some(outage) if sent < outage.since => outage,
            before => {
                let attempts = before.map_or(0, |outage| outage.attempts);
                let resume_at = now + jittered(wait(retry, attempts), random);
                Self { since: now, attempts: attempts.saturating_add(1), resume_at }
            }
        };
        outage.resume_at = outage.resume_at.max(asked.unwrap_or(now));
        outage
    }

    /// Returns whether the success of a request that was sent at this time ends the outage. A request that was in
    /// progress when the outage began does not end it: another signal may succeed while this one fails.
    pub(crate) fn is_over(&self, sent: Instant) -> bool {
        sent >= self.since
    }

    /// Creates an outage that ends at a fixed time.
    pub(crate) fn until(now: Instant, resume_at: Instant) -> Self {
        Self { since: now, attempts: 0, resume_at }
    }
}

/// Returns `initial`, doubled with each attempt up to `max`.
fn wait(retry: Retry, attempts: u32) -> Duration {
    let doubled = 2u32.checked_pow(attempts).and_then(|times| retry.initial.checked_mul(times));
    doubled.unwrap_or(retry.max).min(retry.max)
}

/// Returns a random pause between half of `wait` and all of it, so that many clients do not retry at once.
fn jittered(wait: Duration, random: u64) -> Duration {
    let share = (random >> 32) as u32;
    wait / 2 + (wait / 2).mul_f64(f64::from(share) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Failure, Outage};
    use crate::plan::Retry;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an instant can be had from the clock alone")]
    fn waits_double_within_bounds() {
        let retry = Retry { initial: Duration::from_millis(100), max: Duration::from_secs(2) };
        let now = Instant::now();
        let mut least: Option<Outage> = None;
        let mut most: Option<Outage> = None;
        for millis in [100, 200, 400, 800, 1600, 2000, 2000] {
            let failure = Failure { sent: now, now, after: None, random: 0 };
            least = Some(Outage::next(least, failure, retry));
            most = Some(Outage::next(most, Failure { random: u64::MAX, ..failure }, retry));
            let whole = Duration::from_millis(millis);
            assert_eq!(least.unwrap().resume_at - now, whole / 2);
            assert_eq!(most.unwrap().resume_at - now, whole);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an instant can be had from the clock alone")]
    fn a_peer_may_ask_for_more_but_not_for_everything() {
        let now = Instant::now();
        let sent = now - Duration::from_secs(1);
        let cases = [(None, 100), (Some(3), 3_000), (Some(100_000), 300_000)];
        for (after, millis) in cases {
            let after = after.map(Duration::from_secs);
            let failure = Failure { sent, now, after, random: u64::MAX };
            let outage = Outage::next(None, failure, Retry::default());
            assert_eq!(outage.resume_at - now, Duration::from_millis(millis));
            // A second request that was in progress at that time changes nothing, unless its peer requests a longer
            // pause.
            let again =
                Outage::next(Some(outage), Failure { after: None, ..failure }, Retry::default());
            assert_eq!(again.resume_at, outage.resume_at);
        }
    }
}

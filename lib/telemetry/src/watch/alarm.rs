//! A condition that is on or off, and when a person is notified of it.
//!
//! The alarm reports the begin once, and the end once. For a condition that comes and goes, it reports the begin at
//! most once a minute, and the end only after a minute without the condition.

use std::time::{Duration, Instant};

/// How long a condition that comes and goes is not reported again.
pub(super) const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// A condition that is on or off.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// How long the condition must be off until it is over, unless it comes and goes.
    calm: Duration,
    is_on: bool,
    /// Whether the last report was that it began.
    is_said: bool,
    /// The time of the last report.
    said_at: Option<Instant>,
    /// How often the condition came on since then.
    times: u32,
    off_since: Option<Instant>,
}

/// A report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Say {
    /// The condition is on; `times` is how often it came on since the last report.
    Began { times: u32 },
    /// The condition is over.
    Over,
}

impl Alarm {
    /// Creates an alarm that is over after this time without the condition.
    pub(super) fn over_after(calm: Duration) -> Self {
        Self { calm, ..Self::default() }
    }

    /// Updates the condition, and returns the report that is due.
    pub(super) fn observe(&mut self, now: Instant, is_on: bool) -> Option<Say> {
        if is_on {
            // A short interruption does not count as off.
            let was_off = self.off_since.is_none_or(|since| now >= since + self.calm);
            self.times += u32::from(!self.is_on && was_off);
            (self.is_on, self.off_since) = (true, None);
            let is_early = self.said_at.is_some_and(|at| now < at + AGAIN_AFTER);
            return (!self.is_said && !is_early).then(|| self.say(now, true));
        }
        self.is_on = false;
        let off_since = *self.off_since.get_or_insert(now);
        // The condition returned after its begin was reported, or it came on more than once before that.
        let calm = if self.times > 0 { self.calm.max(AGAIN_AFTER) } else { self.calm };
        (self.is_said && now >= off_since + calm).then(|| self.say(now, false))
    }

    /// Returns whether the last report was that it began.
    pub(super) fn is_reported(&self) -> bool {
        self.is_said
    }

    fn say(&mut self, now: Instant, is_said: bool) -> Say {
        let times = std::mem::take(&mut self.times);
        // A condition that comes and goes counts as such until it is over.
        self.times = if is_said { times.saturating_sub(1) } else { 0 };
        (self.is_said, self.said_at) = (is_said, Some(now));
        if is_said { Say::Began { times } } else { Say::Over }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Alarm, Say};

    /// Observes a condition every second, and returns each report with its time.
    #[expect(clippy::disallowed_methods, reason = "a moment to count from")]
    fn reports(calm: u64, seconds: u64, is_on: impl Fn(u64) -> bool) -> Vec<(u64, Say)> {
        let (begin, mut alarm) = (Instant::now(), Alarm::over_after(Duration::from_secs(calm)));
        let observe = |second| {
            let said = alarm.observe(begin + Duration::from_secs(second), is_on(second));
            said.map(|said| (second, said))
        };
        (0..seconds).filter_map(observe).collect()
    }

    #[test]
    fn what_begins_and_ends_is_said_once_each() {
        let once = [(10, Say::Began { times: 1 }), (25, Say::Over)];
        assert_eq!(reports(5, 600, |second| (10..20).contains(&second)), once);
        assert_eq!(reports(0, 600, |_| false), []);
        assert_eq!(reports(0, 600, |_| true), [(0, Say::Began { times: 1 })]);
        // Later it is reported again.
        let twice = reports(0, 600, |second| second % 300 < 50);
        let (began, over) = (Say::Began { times: 1 }, Say::Over);
        assert_eq!(twice, [(0, began), (50, over), (300, began), (350, over)]);
    }

    #[test]
    fn what_comes_and_goes_is_said_at_most_once_a_minute() {
        // Ten seconds on, ten off, for ten minutes, then quiet.
        let said = reports(0, 1200, |second| second < 600 && second % 20 < 10);
        let [first, end, again, over] = said[..] else { panic!("{said:?}") };
        assert_eq!([first, end], [(0, Say::Began { times: 1 }), (10, Say::Over)]);
        assert_eq!(again, (80, Say::Began { times: 4 }));
        assert_eq!(over, (650, Say::Over), "a minute without it");
    }
}

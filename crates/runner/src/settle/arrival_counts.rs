//! When the spans of a process arrived, in few numbers: how many in each of at most 64 equal times.
//!
//! Once a span arrives behind the last of them, each two become one of double length.

use std::time::Duration;

use model::{Arrivals, Timestamp};

use crate::clock::nanos;

/// The maximum number of times.
const TIMES_MAX: usize = 64;
/// How long each is at first.
const EVERY: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct ArrivalCounts {
    first: Timestamp,
    every: Duration,
    spans: Vec<u64>,
}

impl Default for ArrivalCounts {
    fn default() -> Self {
        Self { first: Timestamp::default(), every: EVERY, spans: Vec::new() }
    }
}

impl ArrivalCounts {
    /// Counts a span. One that arrived before the first counts with it.
    pub(super) fn add(&mut self, at: Timestamp) {
        if self.spans.is_empty() {
            self.first = at;
        }
        let after = at.since(self.first);
        while after >= self.every * TIMES_MAX as u32 {
            self.every *= 2;
            self.spans = self.spans.chunks(2).map(|two| two.iter().sum()).collect();
        }
        // Less than the maximum, by the loop above.
        let time = (after.as_nanos() / self.every.as_nanos()) as usize;
        self.spans.resize(self.spans.len().max(time + 1), 0);
        self.spans[time] += 1;
    }

    /// Returns the counts at the time of the decision; none if no span arrived.
    pub(super) fn report(&self, now: Timestamp) -> Option<Arrivals> {
        (!self.spans.is_empty()).then(|| Arrivals {
            first_ns: nanos(now.since(self.first)),
            every_ns: nanos(self.every),
            spans: self.spans.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;

    use super::{ArrivalCounts, TIMES_MAX};

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(1_000_000 * millis)
    }

    fn counts(arrivals: &[u64]) -> (u64, u64, Vec<u64>) {
        let mut counts = ArrivalCounts::default();
        for millis in arrivals {
            counts.add(at(*millis));
        }
        let report = counts.report(at(10_000)).expect("spans arrived");
        (report.first_ns / 1_000_000, report.every_ns / 1_000_000, report.spans)
    }

    #[test]
    fn each_span_counts_in_its_time() {
        assert_eq!(counts(&[5, 5, 8]), (9_995, 1, vec![2, 0, 0, 1]));
        assert_eq!(counts(&[5, 4]), (9_995, 1, vec![2]), "our clock does not go back");
        assert!(ArrivalCounts::default().report(at(1)).is_none());
    }

    #[test]
    fn times_become_longer_and_lose_no_span() {
        assert_eq!(counts(&[0, 63]).1, 1);
        let (_, every, spans) = counts(&[0, 1, 2, 64]);
        assert_eq!((every, spans.len()), (2, 33));
        assert_eq!((spans[0], spans[1], spans[32]), (2, 1, 1));
        let all: Vec<u64> = (0..3_000).map(|it| it * 3).collect();
        let (_, every, spans) = counts(&all);
        assert_eq!(every, 256);
        assert!(spans.len() <= TIMES_MAX);
        assert_eq!(spans.iter().sum::<u64>(), 3_000);
    }

    #[test]
    fn a_time_as_long_as_a_clock_can_count_is_bounded() {
        let mut counts = ArrivalCounts::default();
        counts.add(at(0));
        counts.add(Timestamp::from_nanos(u64::MAX));
        let report = counts.report(Timestamp::from_nanos(u64::MAX)).expect("spans arrived");
        assert!(report.spans.len() <= TIMES_MAX);
        assert_eq!(report.spans.iter().sum::<u64>(), 2);
    }
}

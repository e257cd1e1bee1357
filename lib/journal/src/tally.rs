//! The counters, and how a snapshot of the counts is computed from them.

use std::{
    io,
    time::{Duration, Instant},
};

use crate::{counts::Counts, segment::OnDisk, state::State};

/// The running totals. All counters only grow, except those of waiting producers.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) recovered: u64,
    pub(crate) acknowledged: u64,
    /// Items that `append` dropped.
    pub(crate) refused: u64,
    pub(crate) damaged: u64,
    /// Items that were only in memory when the journal was closed.
    pub(crate) abandoned: u64,
    pub(crate) cut_bytes: u64,
    pub(crate) write_errors: u64,
    pub(crate) last_write_error: Option<String>,
    /// The total waiting time of producers that no longer wait.
    pub(crate) held: Duration,
    pub(crate) holding: u64,
    /// The sum of the start times of the producers that wait now, as durations since `open`.
    pub(crate) holding_since: Duration,
}

impl Tally {
    /// Counts a write error of the disk.
    pub(crate) fn blame(&mut self, error: &io::Error) {
        self.write_errors += 1;
        self.last_write_error = Some(error.to_string());
    }
}

impl State {
    /// Returns a snapshot of the counters; `opened` is the time at which the journal was opened.
    pub(crate) fn counts(&self, now: Instant, opened: Instant) -> Counts {
        let tally = &self.tally;
        let cursor = self.settled.cursor().at;
        let waiting = now.saturating_duration_since(opened).saturating_mul(tally.holding as u32);
        Counts {
            accepted: self.end.items - tally.recovered + tally.refused,
            recovered: tally.recovered,
            acknowledged: tally.acknowledged,
            queued: self.queued(),
            dropped: tally.refused + tally.damaged + tally.abandoned,
            damaged: tally.damaged,
            cut_bytes: tally.cut_bytes,
            memory_bytes: self.memory_bytes(),
            disk_bytes: self.disk_bytes(),
            held: tally.held + waiting.saturating_sub(tally.holding_since),
            holding: tally.holding,
            oldest: (cursor < self.end.at)
                .then(|| self.ages.of(cursor).map(|then| now.saturating_duration_since(then)))
                .flatten(),
            write_errors: tally.write_errors,
            last_write_error: tally.last_write_error.clone(),
        }
    }

    fn disk_bytes(&self) -> u64 {
        let live = self.segments.iter().filter(|segment| segment.on_disk == OnDisk::Ready);
        let lengths = live.map(|segment| segment.length(segment.filled.at));
        self.left_alone
            + lengths.sum::<u64>()
            + self.doomed.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }
}

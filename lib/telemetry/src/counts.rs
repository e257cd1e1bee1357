//! Counters of all items that an exporter accepted, by outcome.
//!
//! The guarantee of this crate in numbers: `accepted = delivered + queued + rejected + dropped`, at all times.

use std::{sync::atomic::Ordering, time::Duration};

use crate::pipeline::{Outlet, Pipeline};

/// The outcomes of the spans and logs of one exporter, and its current buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The name of the exporter.
    pub exporter: String,
    /// All items that the exporter accepted, including recovered items.
    pub accepted: u64,
    /// The part of them that was found at the start, left by an earlier process.
    pub recovered: u64,
    /// Items that the destination acknowledged.
    pub delivered: u64,
    /// Items to be delivered. After a shutdown: items on disk, for the next start.
    pub queued: u64,
    /// Items that the destination rejected permanently.
    pub rejected: u64,
    /// Items that were dropped for lack of room or at shutdown, as the plan configures.
    pub dropped: u64,
    /// Bytes of the buffer in memory.
    pub memory_bytes: u64,
    /// Bytes of the buffer on disk.
    pub disk_bytes: u64,
    /// The total time for which producers were blocked.
    pub held: Duration,
    /// The number of producers that are blocked now.
    pub holding: u64,
    /// The age of the oldest item that is not delivered.
    pub oldest: Option<Duration>,
    /// The number of retried requests.
    pub retries: u64,
    /// The number of requests stored in the dead-letter folder.
    pub dead_letters: u64,
    /// Damaged bytes that were skipped when the files of an earlier process were read.
    pub cut_bytes: u64,
    /// Why no item is delivered at the moment, as text.
    pub trouble: Option<String>,
}

/// The result of a shutdown, exporter by exporter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "its report has what was not delivered"]
pub struct Report {
    /// The exporters that ended, now or because of an earlier plan; exporters with the same name are merged.
    pub exporters: Vec<Counts>,
}

impl Counts {
    /// Adds the counts of another exporter with the same name.
    pub(crate) fn add(&mut self, before: &Self) {
        self.accepted += before.accepted;
        self.recovered += before.recovered;
        self.delivered += before.delivered;
        self.queued += before.queued;
        self.rejected += before.rejected;
        self.dropped += before.dropped;
        self.memory_bytes += before.memory_bytes;
        self.disk_bytes += before.disk_bytes;
        self.held += before.held;
        self.holding += before.holding;
        self.oldest = self.oldest.max(before.oldest);
        self.retries += before.retries;
        self.dead_letters += before.dead_letters;
        self.cut_bytes += before.cut_bytes;
        self.trouble = self.trouble.take().or_else(|| before.trouble.clone());
    }

    /// Returns whether every accepted item is accounted for.
    pub fn is_balanced(&self) -> bool {
        self.accepted == self.delivered + self.queued + self.rejected + self.dropped
    }
}

impl Report {
    /// Adds an exporter, and merges it with an earlier one of the same name.
    pub(crate) fn add(&mut self, counts: Counts) {
        match self.exporters.iter_mut().find(|known| known.exporter == counts.exporter) {
            Some(known) => known.add(&counts),
            None => self.exporters.push(counts),
        }
    }

    /// Returns whether all accepted items were delivered.
    pub fn is_delivered(&self) -> bool {
        self.exporters.iter().all(|counts| counts.accepted == counts.delivered)
    }

    /// Returns the sum of `part` over all exporters.
    pub fn sum(&self, part: impl Fn(&Counts) -> u64) -> u64 {
        self.exporters.iter().map(part).sum()
    }
}

impl Pipeline {
    /// Returns the counts of all exporters.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        let mut report = Report::default();
        self.outlets.iter().for_each(|outlet| report.add(outlet.counts()));
        report.exporters
    }
}

impl Outlet {
    /// Returns how full the buffer is, if a full buffer would block a producer.
    pub(crate) fn pressure(&self) -> f64 {
        if self.lossy { 0.0 } else { self.journal.pressure() }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts_and_write_error().0
    }

    /// Returns the counts, and the error of the last write to the buffer, as one snapshot.
    pub(crate) fn counts_and_write_error(&self) -> (Counts, Option<String>) {
        let (journal, delivered, rejected) = self.lane.counts();
        let tally = &self.lane.tally;
        let write_error = journal.last_write_error;
        let counts = Counts {
            exporter: self.name.clone(),
            accepted: journal.accepted + journal.recovered,
            recovered: journal.recovered,
            delivered,
            queued: journal.queued,
            rejected,
            dropped: journal.dropped,
            memory_bytes: journal.memory_bytes,
            disk_bytes: journal.disk_bytes,
            held: journal.held,
            holding: journal.holding,
            oldest: journal.oldest,
            retries: tally.retries.load(Ordering::Relaxed),
            dead_letters: tally.dead_letters.load(Ordering::Relaxed),
            cut_bytes: journal.cut_bytes,
            trouble: trouble(write_error.as_deref(), tally.trouble().map(|why| why.message)),
        };
        (counts, write_error)
    }
}

/// Joins the failure reasons. The disk error comes first: it blocks producers, while an error of the destination alone
/// fills the buffer.
fn trouble(disk: Option<&str>, destination: Option<String>) -> Option<String> {
    let disk = disk.map(|said| format!("the buffer cannot be used: {said}"));
    let all: Vec<_> = disk.into_iter().chain(destination).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

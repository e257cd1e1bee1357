//! What became of everything that an exporter was given.
//!
//! The promise of this crate in numbers: `accepted = delivered + queued + rejected + dropped`, at every moment.

use std::{sync::atomic::Ordering, time::Duration};

use crate::pipeline::{Outlet, Pipeline};

/// What became of the spans and logs of one exporter, and what it holds now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The exporter.
    pub exporter: String,
    /// Everything that it was given, what it found from before included.
    pub accepted: u64,
    /// Of those, found at the start: left by an earlier process.
    pub recovered: u64,
    /// Acknowledged by the destination.
    pub delivered: u64,
    /// Still to be delivered. After a shutdown: on disk, for the next start.
    pub queued: u64,
    /// Refused by the destination for good.
    pub rejected: u64,
    /// Given up for lack of room or at shutdown, each as the plan says.
    pub dropped: u64,
    /// Bytes held in memory.
    pub memory_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// How long producers were held in all.
    pub held: Duration,
    /// How many producers are held now.
    pub holding: u64,
    /// The age of the oldest that is not delivered.
    pub oldest: Option<Duration>,
    /// Requests that were tried again.
    pub retries: u64,
    /// Requests kept in the dead-letter folder.
    pub dead_letters: u64,
    /// Damaged bytes that were left out when an earlier process's files were read.
    pub cut_bytes: u64,
    /// Why nothing gets through at the moment, in words.
    pub trouble: Option<String>,
}

/// How a shutdown went, exporter by exporter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "its report has what was not delivered"]
pub struct Report {
    /// The exporters that ended, now or by an earlier plan; what had one name is one.
    pub exporters: Vec<Counts>,
}

impl Counts {
    /// Adds what another of the same name has done.
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

    /// Whether nothing is unaccounted for.
    pub fn is_balanced(&self) -> bool {
        self.accepted == self.delivered + self.queued + self.rejected + self.dropped
    }
}

impl Report {
    /// Adds an exporter; one that had its name before is the same to whoever reads this.
    pub(crate) fn add(&mut self, counts: Counts) {
        match self.exporters.iter_mut().find(|known| known.exporter == counts.exporter) {
            Some(known) => known.add(&counts),
            None => self.exporters.push(counts),
        }
    }

    /// Whether everything that was accepted has been delivered.
    pub fn is_delivered(&self) -> bool {
        self.exporters.iter().all(|counts| counts.accepted == counts.delivered)
    }

    /// The sum over all exporters of what this takes from each.
    pub fn sum(&self, part: impl Fn(&Counts) -> u64) -> u64 {
        self.exporters.iter().map(part).sum()
    }
}

impl Pipeline {
    /// What became of everything, exporter by exporter.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        let mut report = Report::default();
        self.outlets.iter().for_each(|outlet| report.add(outlet.counts()));
        report.exporters
    }
}

impl Outlet {
    /// How full it is, if that would hold a producer.
    pub(crate) fn pressure(&self) -> f64 {
        if self.lossy { 0.0 } else { self.journal.pressure() }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts_and_write_error().0
    }

    /// The counts, and why the last write to the buffer failed, at the same moment.
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

/// The disk's trouble comes first: it holds producers, while the destination's alone fills the buffer.
fn trouble(disk: Option<&str>, destination: Option<String>) -> Option<String> {
    let disk = disk.map(|said| format!("the buffer cannot be used: {said}"));
    let all: Vec<_> = disk.into_iter().chain(destination).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

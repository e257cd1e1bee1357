//! Replay of the journal into memory when the bus is opened.
//!
//! The journal is read twice: first for the forgotten traces, so that memory holds only live batches. A copied batch may occur
//! twice, and its copy before a later batch; the numbers identify it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use journal::{Journal, Stretch};
use model::{Timestamp, TraceId};

use crate::{
    Limits,
    record::{HEAD, PREFIX_BYTES, Record},
    seal::Opener,
    traces::{BatchSize, PendingBatches, StoredBatch, TraceTable},
};

/// The read size in bytes.
const READ_BYTES: usize = 1 << 20;

/// How much longer replayed batches are kept for a subscriber: a server may wait for its database before it can continue.
const GRACE: Duration = Duration::from_secs(10 * 60);

/// A summary of the journal replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    /// Traces with at least one replayed batch.
    pub traces: usize,
    /// Spans of these traces.
    pub spans: u64,
    /// Torn or damaged bytes, which were skipped. The end of a process tears at most batches that were not acknowledged.
    pub damaged_bytes: u64,
    /// Spans that were found and not replayed: written by another version, sealed under an unknown key, or beyond the bounds.
    pub left_out_spans: u64,
}

/// Replays all live batches, and returns the next batch number.
pub(crate) fn replay(
    journal: &Journal,
    limits: &Limits,
    opener: &mut Opener,
    now: Timestamp,
) -> (TraceTable, u64, ReplaySummary) {
    let forgotten = forgotten(journal);
    journal.rewind();
    let mut found = JournalContents { forgotten, ..JournalContents::default() };
    let mut settled = Vec::new();
    while let Some(batch) = journal.read(u64::MAX, READ_BYTES) {
        for (stretch, record) in batch.placed() {
            let read = Record::read(record.bytes).filter(|_| batch.head() == HEAD);
            let opened = match &read {
                Some(Record::Batch { bytes, .. }) => {
                    opener.open(&record.bytes[..PREFIX_BYTES], bytes)
                }
                _ => None,
            };
            if !found.take((stretch, record.items), read, opened) {
                settled.push(stretch);
            }
        }
    }
    let next = found.next;
    let mut replayed =
        ReplaySummary { left_out_spans: found.unread_spans, ..ReplaySummary::default() };
    let kept = found.keep(limits, now, &mut replayed, &mut settled);
    for stretch in settled {
        journal.settle(stretch);
    }
    let counts = journal.counts();
    replayed.damaged_bytes = counts.cut_bytes;
    replayed.left_out_spans += counts.damaged;
    (kept, next, replayed)
}

/// Returns, for each forgotten trace, the number below which its batches are forgotten.
fn forgotten(journal: &Journal) -> HashMap<TraceId, u64> {
    let mut forgotten = HashMap::new();
    while let Some(batch) = journal.read(u64::MAX, READ_BYTES) {
        for record in batch.records() {
            if let Some(Record::Forgotten { before, trace }) = Record::read(record.bytes)
                && batch.head() == HEAD
            {
                let last: &mut u64 = forgotten.entry(trace).or_default();
                *last = before.max(*last);
            }
        }
    }
    forgotten
}

#[derive(Default)]
struct JournalContents {
    forgotten: HashMap<TraceId, u64>,
    traces: HashMap<TraceId, Vec<StoredBatch>>,
    numbers: HashSet<u64>,
    next: u64,
    unread_spans: u64,
}

impl JournalContents {
    /// Stores a record. Returns whether a subscriber may need it.
    fn take(
        &mut self,
        (stretch, spans): (Stretch, u32),
        record: Option<Record<'_>>,
        opened: Option<Vec<u8>>,
    ) -> bool {
        match record {
            None => {
                self.unread_spans += u64::from(spans);
                false
            }
            Some(Record::Forgotten { before, .. }) => {
                self.next = self.next.max(before);
                false
            }
            Some(Record::Batch { number, trace, .. }) => {
                self.next = self.next.max(number.saturating_add(1));
                let is_forgotten =
                    self.forgotten.get(&trace).is_some_and(|before| number < *before);
                if is_forgotten {
                    return false;
                }
                let Some(bytes) = opened.map(Bytes::from) else {
                    self.unread_spans += u64::from(spans);
                    return false;
                };
                if !self.numbers.insert(number) {
                    return false;
                }
                self.traces.entry(trace).or_default().push(StoredBatch {
                    number,
                    spans,
                    bytes,
                    stretch,
                });
                true
            }
        }
    }

    fn keep(
        self,
        limits: &Limits,
        now: Timestamp,
        replayed: &mut ReplaySummary,
        settled: &mut Vec<Stretch>,
    ) -> TraceTable {
        let mut kept = TraceTable::default();
        let until = Timestamp::from_nanos(now.as_nanos().saturating_add(GRACE.as_nanos() as u64));
        for (trace, mut batches) in self.traces {
            batches.sort_unstable_by_key(|stored| stored.number);
            replayed.traces += 1;
            for stored in batches {
                let StoredBatch { spans, bytes, .. } = &stored;
                let size = BatchSize { trace, spans: *spans, bytes: bytes.len() };
                match kept.room(limits, &mut PendingBatches::default(), size) {
                    Ok(()) => {
                        replayed.spans += u64::from(*spans);
                        kept.add(until, trace, stored);
                    }
                    Err(_) => {
                        replayed.left_out_spans += u64::from(*spans);
                        kept.lose(until, trace);
                        settled.push(stored.stretch);
                    }
                }
            }
        }
        kept
    }
}

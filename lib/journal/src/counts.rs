//! The results and counters that a journal reports: whether a record was appended, and how many items had which
//! outcome.

use std::time::Duration;

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a dropped record is gone"]
pub enum AppendResult {
    /// The journal has stored the record.
    Kept,
    /// The journal has discarded the record, and has counted it.
    Dropped(Why),
}

/// Why a record was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There was no room, and the allowed waiting time is over.
    Full,
    /// The journal was closed, perhaps while the producer waited for room.
    Closed,
    /// The record would not fit into an empty journal, or its head is longer than 16 MiB.
    TooLarge,
}

/// A snapshot of the counters. Always `accepted + recovered == acknowledged + queued + dropped`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Items passed to `append`, dropped items included.
    pub accepted: u64,
    /// Items that `open` and `adopt` found on disk.
    pub recovered: u64,
    /// Items that the reader has acknowledged.
    pub acknowledged: u64,
    /// Items that the reader has not acknowledged.
    pub queued: u64,
    /// Items that no reader will receive, for any reason.
    pub dropped: u64,
    /// Items that were written but could not be read back: part of `dropped`.
    pub damaged: u64,
    /// Torn or damaged bytes that `open` and `adopt` skipped, including files that could not be read at all. Their
    /// number of items is unknown.
    pub cut_bytes: u64,
    /// Bytes of records in memory, with the overhead of their chunks and the heads of all segments but the last.
    pub memory_bytes: u64,
    /// The total length of the segments on disk, including damaged segments that the journal does not touch.
    pub disk_bytes: u64,
    /// The total time for which producers waited for room, including producers that are waiting now.
    pub held: Duration,
    /// The number of producers that are waiting for room now.
    pub holding: u64,
    /// The age of the oldest item that is not acknowledged. Recovered items count from `open` or `adopt`.
    pub oldest: Option<Duration>,
    /// The number of write errors of the disk.
    pub write_errors: u64,
    /// The last write error, unless a later write succeeded.
    pub last_write_error: Option<String>,
}

/// The items that remain after closing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloseReport {
    /// Items on disk, for the next journal that opens the directory.
    pub queued: u64,
    /// Items that were in memory only; part of [`Counts::dropped`].
    pub dropped: u64,
}

//! What a journal answers: what became of a record, and how many went which way.

use std::time::Duration;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a dropped record is gone"]
pub enum AppendResult {
    /// The journal has it.
    Kept,
    /// The journal does not have it, and has counted it.
    Dropped(Why),
}

/// Why a record was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There was no room, for as long as was to be waited.
    Full,
    /// The journal was closed, perhaps while the record waited for room.
    Closed,
    /// It would not fit into an empty journal, or its head is longer than 16 MiB.
    TooLarge,
}

/// Numbers of one moment. Always `accepted + recovered == acknowledged + queued + dropped`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Items offered to `append`, those that it dropped included.
    pub accepted: u64,
    /// Items that were found on disk by `open` and `adopt`.
    pub recovered: u64,
    /// Items that the reader is done with.
    pub acknowledged: u64,
    /// Items that the reader is not done with.
    pub queued: u64,
    /// Items that no reader will see, for whatever reason.
    pub dropped: u64,
    /// Items that were written, and could not be read back: part of `dropped`.
    pub damaged: u64,
    /// Torn or damaged bytes that `open` and `adopt` left out, whole files that could not be read included; how many
    /// items they were, nobody knows.
    pub cut_bytes: u64,
    /// Bytes of records in memory, with what keeps them there and the heads of all segments but the last.
    pub memory_bytes: u64,
    /// Lengths of the segments on disk, those of damaged ones that are left alone included.
    pub disk_bytes: u64,
    /// How long producers waited for room, in sum; those who wait now included.
    pub held: Duration,
    /// How many producers wait for room now.
    pub holding: u64,
    /// The age of the oldest item that the reader is not done with; recovered ones count from `open` or `adopt`.
    pub oldest: Option<Duration>,
    /// How often the disk refused.
    pub write_errors: u64,
    /// What it said the last time, unless it has taken something since.
    pub last_write_error: Option<String>,
}

/// What closing left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloseReport {
    /// Items on disk, for whoever opens the directory next.
    pub queued: u64,
    /// Items that were in memory only; part of [`Counts::dropped`].
    pub dropped: u64,
}

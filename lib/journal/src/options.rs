//! The options of a journal. Deliberately absent: reading any option from a file or an environment variable.

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

const MIB: u64 = 1024 * 1024;

/// The options with which a journal is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The parent directory of the folders of journals, one per journal: `0`, `1`, and so on. Without it the journal
    /// does not use the disk.
    pub directory: Option<PathBuf>,
    /// The maximum bytes in memory: records, about 128 bytes per chunk of them, and the heads of all segments but the
    /// last. Batches that the reader holds are not counted.
    pub memory_max: u64,
    /// The maximum bytes that the folder of this journal takes on disk, as `du` counts them.
    pub disk_max: u64,
    /// The size from which a segment is closed and a new one begins. Disk space is released in entire segments.
    pub segment_max: u64,
    /// Which failures an accepted record survives, and from when on.
    pub durability: Durability,
    /// What happens to a record that finds no room.
    pub full: Full,
    /// When the reader is notified that there are records to read.
    pub ready: Ready,
    /// The monotonic clock.
    pub now: fn() -> Instant,
}

impl Options {
    /// Options for a journal without a directory: records that are queued when it is closed are dropped and counted.
    pub fn in_memory(memory_max: u64, now: fn() -> Instant) -> Self {
        Self {
            directory: None,
            memory_max,
            disk_max: 0,
            segment_max: u64::MAX,
            durability: Durability::Memory,
            full: Full::Hold,
            ready: Ready::never(),
            now,
        }
    }

    /// Options for a journal that survives its process: 32 MiB of memory, 1 GiB of disk, written within milliseconds.
    pub fn in_directory(directory: impl Into<PathBuf>, now: fn() -> Instant) -> Self {
        let disk_max = 1024 * MIB;
        Self {
            directory: Some(directory.into()),
            memory_max: 32 * MIB,
            disk_max,
            segment_max: Self::segment_max_of(disk_max),
            durability: Durability::Process,
            full: Full::Hold,
            ready: Ready::never(),
            now,
        }
    }

    /// Sets another disk limit, and a segment size that fits it.
    #[must_use]
    pub fn disk_max(self, disk_max: u64) -> Self {
        Self { disk_max, segment_max: Self::segment_max_of(disk_max), ..self }
    }

    /// Returns the segment size for a disk limit: a sixteenth of it, from 64 KiB to 16 MiB.
    pub fn segment_max_of(disk_max: u64) -> u64 {
        (disk_max / 16).clamp(64 * 1024, 16 * MIB)
    }
}

/// Which failures an accepted record survives, and from when on. Without a directory only [`Durability::Memory`]
/// applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Records are written when memory runs out, at [`flush`](crate::Journal::flush) and at
    /// [`close`](crate::Journal::close).
    Memory,
    /// Records are written within a few milliseconds: the end of the process loses only the records of that time.
    Process,
    /// Records are written before `append` returns: the end of the process loses no record.
    WriteThrough,
    /// Like `Process`, and synced to the device every 100 ms: the end of the machine loses only the records of that
    /// time.
    Host,
}

/// What happens to a record that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// `append` waits until there is room.
    Hold,
    /// `append` waits for at most this duration, and then drops the record.
    HoldFor(Duration),
    /// `append` drops the record at once; every drop is counted.
    Count,
}

/// When the reader is notified that there are records to read.
#[derive(Clone)]
pub struct Ready {
    /// The number of unread items that triggers a notification.
    pub items: u64,
    /// The number of unread bytes that triggers a notification.
    pub bytes: u64,
    /// The callback. The producer that appends the record that reaches either threshold calls it, and again only after
    /// the reader fell below both. A producer that finds no room calls it too. It must neither block nor call the
    /// journal.
    pub wake: Arc<dyn Fn() + Send + Sync>,
}

impl Ready {
    /// For a reader that polls.
    pub fn never() -> Self {
        Self { items: u64::MAX, bytes: u64::MAX, wake: Arc::new(|| {}) }
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready")
            .field("items", &self.items)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

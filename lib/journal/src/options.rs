//! What the owner of a journal chooses. Deliberately absent: reading any of it from a file or an environment.

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

const MIB: u64 = 1024 * 1024;

/// How a journal is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The parent of the folders that journals take, one each: `0`, `1`, and so on. Without it there is no disk.
    pub directory: Option<PathBuf>,
    /// The most bytes that are kept in memory: records, about 128 bytes per chunk of them, and the heads of all segments
    /// but the last. Batches in flight are not counted.
    pub memory_max: u64,
    /// The most bytes that this journal's folder takes on disk, with everything that is counted by `du`.
    pub disk_max: u64,
    /// The size from which a segment is closed and another one is begun. Room on disk comes back by whole segments.
    pub segment_max: u64,
    /// When an accepted record is safe from what.
    pub durability: Durability,
    /// What happens to a record that finds no room.
    pub full: Full,
    /// When the reader is told that there is something to read.
    pub ready: Ready,
    /// The monotonic clock.
    pub now: fn() -> Instant,
}

impl Options {
    /// A journal without a directory: what is queued when it is closed is dropped, and counted.
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

    /// A journal that survives its process: 32 MiB of memory, 1 GiB of disk, written within milliseconds.
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

    /// The same with another bound on disk, and the size of segments that fits it.
    #[must_use]
    pub fn disk_max(self, disk_max: u64) -> Self {
        Self { disk_max, segment_max: Self::segment_max_of(disk_max), ..self }
    }

    /// A sixteenth of what may be on disk, from 64 KiB to 16 MiB.
    pub fn segment_max_of(disk_max: u64) -> u64 {
        (disk_max / 16).clamp(64 * 1024, 16 * MIB)
    }
}

/// When an accepted record is safe from what. Without a directory there is only [`Durability::Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Written for lack of memory, at [`flush`](crate::Journal::flush) and at [`close`](crate::Journal::close).
    Memory,
    /// Written within a few milliseconds: the end of the process costs no more than those.
    Process,
    /// Written before `append` returns: the end of the process costs nothing.
    WriteThrough,
    /// As `Process`, and synced to the device every 100 ms: the end of the machine costs no more than those.
    Host,
}

/// What happens to a record that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// `append` waits until there is room.
    Hold,
    /// `append` waits for at most so long, and then drops the record.
    HoldFor(Duration),
    /// The record is dropped at once; every drop is counted.
    Count,
}

/// When the reader is told that there is something to read.
#[derive(Clone)]
pub struct Ready {
    /// So many unread items are worth a call.
    pub items: u64,
    /// So many unread bytes are worth a call.
    pub bytes: u64,
    /// Called by the producer whose record reached either, and again only after the reader fell below both; also when a
    /// producer finds no room. It must neither block nor call the journal.
    pub wake: Arc<dyn Fn() + Send + Sync>,
}

impl Ready {
    /// For a reader that looks by itself.
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

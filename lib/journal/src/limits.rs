//! The effective limits: the configured limits minus the overhead of files and folders.

use crate::{chunk::CHUNK_BYTES, options::Options, segment::length_within};

/// The bytes that the folders and their lock file take on disk.
const FOLDERS_BYTES: u64 = 16 * 1024;

/// The minimum memory with a directory: the records being written and the records being appended must fit.
const MEMORY_BYTES_MIN: u64 = 4 * CHUNK_BYTES as u64;

/// The maximum bytes of records in a segment, so that the length of a gap fits into its header.
const SEGMENT_BYTES_MAX: u64 = 1 << 30;

/// The effective limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) memory_max: u64,
    /// The limit for all segments together, in full blocks; `None` without a directory.
    pub(crate) disk_max: Option<u64>,
    pub(crate) segment_max: u64,
    pub(crate) chunk_bytes: usize,
}

impl Limits {
    pub(crate) fn of(options: &Options) -> Self {
        let has_directory = options.directory.is_some();
        let memory_max = if has_directory {
            options.memory_max.max(MEMORY_BYTES_MIN)
        } else {
            options.memory_max
        };
        let disk_max = length_within(options.disk_max.saturating_sub(FOLDERS_BYTES));
        let segment_max = if has_directory {
            options.segment_max.min(disk_max / 4).min(SEGMENT_BYTES_MAX)
        } else {
            u64::MAX
        };
        Self {
            memory_max,
            disk_max: has_directory.then_some(disk_max),
            segment_max,
            // Full-size chunks, unless the memory limit is tiny.
            chunk_bytes: (memory_max / 16).min(CHUNK_BYTES as u64) as usize,
        }
    }
}

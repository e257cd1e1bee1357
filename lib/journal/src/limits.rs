//! The bounds, as they are held to: what the options say, less what files and folders take besides.

use crate::{chunk::CHUNK_BYTES, options::Options, segment::length_within};

/// What the folders and their lock take on disk.
const FOLDERS_BYTES: u64 = 16 * 1024;

/// The least memory with a directory: what is being written and what is being appended must fit.
const MEMORY_BYTES_MIN: u64 = 4 * CHUNK_BYTES as u64;

/// The most bytes of records in a segment, so that a gap's length fits its header.
const SEGMENT_BYTES_MAX: u64 = 1 << 30;

/// The bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) memory_max: u64,
    /// Of all segments, in whole blocks; `None` without a directory.
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
            // Full ones, unless memory is tiny.
            chunk_bytes: (memory_max / 16).min(CHUNK_BYTES as u64) as usize,
        }
    }
}

//! The file of ended spans, which survives a killed process up to its last span.
//!
//! An entry is 16 bytes, so none spans two pages, and a kill leaves no partial one. Written data belongs to the operating system,
//! not to the process: no `fsync` is needed to survive a kill.

use std::{fs::File, os::unix::fs::FileExt, path::Path, time::Duration};

use anyhow::{Context, Result};

use crate::parts::SpanId;

const ENTRY_BYTES: usize = 16;

/// A program that ends a span each millisecond and has ended none for longer had no processor for the rest of that time.
const SIGN_OF_LIFE: Duration = Duration::from_millis(3);

/// One span that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSpan {
    /// Its id.
    pub id: SpanId,
    /// When the call that ended it returned, in nanoseconds since the epoch.
    pub at: u64,
}

/// The writing side.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    written: u64,
}

impl Writer {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot create {path:?}"))?;
        Ok(Self { file, written: 0 })
    }

    /// Writes one span, so that it is recorded even if the process is killed next.
    pub(crate) fn push(&mut self, ended: EndedSpan) -> Result<()> {
        let mut entry = [0; ENTRY_BYTES];
        entry[..8].copy_from_slice(&ended.id);
        entry[8..].copy_from_slice(&ended.at.to_le_bytes());
        self.file.write_all_at(&entry, self.written * ENTRY_BYTES as u64)?;
        self.written += 1;
        Ok(())
    }

    pub(crate) fn written(&self) -> u64 {
        self.written
    }
}

/// Reads all written spans.
pub fn read(path: &Path) -> Result<Vec<EndedSpan>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {path:?}"))?;
    let entry = |entry: &[u8]| {
        let (id, at) = entry.split_at(8);
        Some(EndedSpan { id: id.try_into().ok()?, at: u64::from_le_bytes(at.try_into().ok()?) })
    };
    Ok(bytes.chunks_exact(ENTRY_BYTES).filter_map(entry).collect())
}

/// Returns how long the program ran between the end of one of its spans and its own end. Time without a processor does not count:
/// the program cannot write then, and a busy machine has much of it.
pub(crate) fn ran(ended: &[EndedSpan], from: u64, until: u64) -> Duration {
    let mut signs: Vec<_> = ended.iter().map(|span| span.at).collect();
    signs.retain(|at| (from..until).contains(at));
    signs.push(until);
    signs.sort_unstable();
    let gaps = signs.windows(2).map(|pair| Duration::from_nanos(pair[1] - pair[0]));
    gaps.map(|gap| gap.min(SIGN_OF_LIFE)).sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{EndedSpan, SIGN_OF_LIFE, Writer, ran, read};

    #[test]
    fn a_program_without_a_processor_does_not_run() {
        const MS: u64 = 1_000_000;
        let ended = [7, 1, 2, 3, 50, 51].map(|ms| EndedSpan { id: [0; 8], at: ms * MS });
        let run = |from, until| ran(&ended, from * MS, until * MS);
        assert_eq!(run(1, 4), Duration::from_millis(3));
        assert_eq!(run(51, 52), Duration::from_millis(1));
        assert_eq!(run(3, 52), SIGN_OF_LIFE * 2 + Duration::from_millis(2));
        assert_eq!(run(51, 90), SIGN_OF_LIFE);
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ended");
        let mut writer = Writer::create(&path).unwrap();
        let entries = [1, 2, 3].map(|n| EndedSpan { id: [n; 8], at: u64::from(n) << 40 });
        for entry in entries {
            writer.push(entry).unwrap();
        }
        assert_eq!(writer.written(), 3);
        assert_eq!(read(&path).unwrap(), entries);
    }
}

//! Text records, in journals that write at once and never wait for room.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use journal::{AppendResult, Durability, Full, Journal, Options};

#[expect(clippy::disallowed_methods, reason = "a test is a main: this is the clock it hands down")]
pub(super) fn now() -> Instant {
    Instant::now()
}

pub(super) fn options(directory: &Path) -> Options {
    Options {
        durability: Durability::WriteThrough,
        full: Full::Count,
        ..Options::in_directory(directory, now)
    }
}

pub(super) fn open(directory: &Path) -> Journal {
    Journal::open(options(directory), b"head").expect("the directory is fine")
}

pub(super) fn fill(journal: &Journal, texts: &[&str]) {
    for text in texts {
        assert_eq!(journal.append(1, text.as_bytes()), AppendResult::Kept);
    }
}

/// Reads and acknowledges all unread records.
pub(super) fn drain(journal: &Journal) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(batch) = journal.read(u64::MAX, usize::MAX) {
        found.extend(
            batch.records().map(|record| String::from_utf8_lossy(record.bytes).into_owned()),
        );
        journal.acknowledge(&batch);
    }
    found
}

/// The files of the segments in a folder, in order.
pub(super) fn segment_files(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    files.sort();
    files
}

//! Files that a journal finds in its directory: damaged files, files that are no segments, and files with content that
//! no journal writes.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use journal::{AppendResult, Full, Journal, Options, Why};

use super::texts::{drain, fill, now, open, options};

/// Creates a directory in which a journal left these records. Returns it with the path of their segment.
fn left(texts: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("there is room for a test");
    let journal = open(directory.path());
    fill(&journal, texts);
    journal.close();
    let segment = directory.path().join("0/0000000000000000.segment");
    assert!(segment.exists());
    (directory, segment)
}

fn change(segment: &Path, by: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(segment).expect("it is there");
    by(&mut bytes);
    fs::write(segment, bytes).expect("it can be written");
}

#[test]
fn what_is_no_segment_stops_nobody() {
    let (directory, segment) = left(&["good"]);
    let folder = directory.path().join("0");
    fs::create_dir(folder.join("00000000000000f0.segment")).unwrap();
    symlink("/nowhere/at/all", folder.join("00000000000000f1.segment")).unwrap();
    symlink("/dev/zero", folder.join("00000000000000f2.segment")).unwrap();
    // Names that no journal uses, with content that would count as foreign or torn under a valid name.
    for name in ["000000000000000F.segment", "ffffffffffffffff.segment", "+00000000000000f.segment"]
    {
        fs::write(folder.join(name), b"JOUR").unwrap();
    }
    for name in ["00", "+1", "4096"] {
        let folder = directory.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::copy(&segment, folder.join("0000000000000000.segment")).unwrap();
    }
    for (text, expected) in [("a", vec!["good", "a"]), ("b", vec!["b"])] {
        let journal = open(directory.path());
        assert_eq!(journal.append(1, text.as_bytes()), AppendResult::Kept);
        assert_eq!(drain(&journal), expected);
        assert_eq!(journal.counts().cut_bytes, 0);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1 + 6, "the lock, and what was left alone");
}

#[test]
fn a_damaged_head_is_left_alone_and_counted() {
    // A bit of the head, and bits of its length: too long for the file, and for any head.
    for (at, bit) in [(64, 0), (56, 1), (57, 7), (58, 7), (59, 6)] {
        let (directory, segment) = left(&["a", "b"]);
        change(&segment, |bytes| bytes[at] ^= 1 << bit);
        let length = fs::metadata(&segment).unwrap().len();
        let journal = open(directory.path());
        let counts = journal.counts();
        assert_eq!((counts.recovered, counts.cut_bytes), (0, length), "{at}");
        assert!(counts.disk_bytes >= length, "{counts:?}");
        assert_eq!(journal.append(1, b"c"), AppendResult::Kept);
        assert_eq!(drain(&journal), ["c"]);
        drop(journal);
        // The change is undone, as with a temporary disk error.
        change(&segment, |bytes| bytes[at] ^= 1 << bit);
        assert_eq!(drain(&open(directory.path())), ["a", "b"]);
    }
}

#[test]
fn a_head_that_was_never_finished_is_deleted() {
    let (directory, segment) = left(&["a"]);
    change(&segment, |bytes| bytes.truncate(66));
    assert_eq!(open(directory.path()).counts().cut_bytes, 66);
    assert!(!segment.exists());
}

#[test]
fn files_that_are_left_alone_take_room() {
    let record = "x".repeat(30_000);
    let (directory, segment) = left(&[&record, &record, &record]);
    change(&segment, |bytes| bytes[64] ^= 1);
    let small = options(directory.path()).disk_max(128 * 1024);
    let full = Full::HoldFor(Duration::from_millis(20));
    let journal = Journal::open(Options { full, ..small }, b"").unwrap();
    assert_eq!(journal.append(1, b"small"), AppendResult::Kept);
    assert_eq!(
        journal.append(1, record.as_bytes()),
        AppendResult::Dropped(Why::TooLarge),
        "it would wait for ever"
    );
}

#[test]
fn a_slot_without_a_successor_is_none() {
    let (directory, segment) = left(&["a", "b", "c"]);
    change(&segment, |bytes| {
        let mut slot = [0; 24];
        slot[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        let checksum = crc32fast::hash(&slot[..16]);
        slot[16..20].copy_from_slice(&checksum.to_le_bytes());
        bytes[32..56].copy_from_slice(&slot);
    });
    let journal = open(directory.path());
    assert_eq!(journal.acknowledge(&journal.read(1, 100).unwrap()), 1);
    drop(journal);
    assert_eq!(drain(&open(directory.path())), ["b", "c"]);
}

#[test]
fn a_head_beyond_any_bound_is_refused() {
    let journal = Journal::open(Options::in_memory(64 << 20, now), &vec![0; 17 << 20]).unwrap();
    assert_eq!(journal.append(1, b"a"), AppendResult::Dropped(Why::TooLarge));
    journal.set_head(b"short");
    assert_eq!(journal.append(1, b"a"), AppendResult::Kept);
}

#[test]
fn nobody_else_may_look_into_it() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("0");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let journal = open(directory.path());
    assert_eq!(journal.append(1, b"a"), AppendResult::Kept);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

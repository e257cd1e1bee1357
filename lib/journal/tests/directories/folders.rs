//! Directories: shared by several journals, left by dead ones, unusable, deleted, with disk errors, damaged.

use std::{
    fs,
    path::{Path, PathBuf},
};

use golden::Golden;
use journal::{AppendResult, CloseReport, Durability, Full, Journal, OpenError, Options};

use super::texts::{drain, fill, open, options, segment_files};

#[test]
fn each_has_a_folder_and_the_next_adopts_them() {
    let directory = tempfile::tempdir().unwrap();
    let journals: Vec<Journal> = (0..3).map(|_| open(directory.path())).collect();
    for (index, journal) in journals.iter().enumerate() {
        fill(journal, &[&format!("{index}a")]);
        journal.set_head(b"other");
        fill(journal, &[&format!("{index}b")]);
    }
    let [first, second, third] = journals.try_into().unwrap();
    assert_eq!(first.close(), CloseReport { queued: 2, dropped: 0 });
    assert_eq!(third.close(), CloseReport { queued: 2, dropped: 0 });

    let next = open(directory.path());
    fill(&next, &["new"]);
    assert_eq!(next.counts().recovered, 4);
    assert_eq!(drain(&next), ["0a", "0b", "2a", "2b", "new"], "not what a living one has");
    assert_eq!(drain(&second), ["1a", "1b"]);
    assert!(segment_files(&directory.path().join("2")).is_empty());
}

#[test]
fn what_would_be_too_much_is_left_for_later() {
    let directory = tempfile::tempdir().unwrap();
    let record = "x".repeat(20_000);
    let (first, second) = (open(directory.path()), open(directory.path()));
    for journal in [&first, &second] {
        for _ in 0..5 {
            fill(journal, &[&record]);
        }
    }
    drop((first, second));
    let small = || Journal::open(options(directory.path()).disk_max(128 * 1024), b"").unwrap();
    let journal = small();
    assert_eq!(journal.counts().recovered, 5);
    assert_eq!(drain(&journal).len(), 5);
    drop(journal);
    assert_eq!(small().counts().recovered, 5, "those of the other");
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("0");
    fs::create_dir(&folder).unwrap();
    let foreign = folder.join("0000000000000007.segment");
    fs::write(
        &foreign,
        b"JOURNAL\x02 of another version, and long enough to be one of ours otherwise",
    )
    .unwrap();
    let torn = folder.join("0000000000000008.segment");
    fs::write(&torn, b"JOURN").unwrap();
    let journal = open(directory.path());
    assert!(!torn.exists(), "it never had a record");
    assert_eq!((journal.counts().recovered, journal.counts().cut_bytes), (0, 5));
    fill(&journal, &["a"]);
    assert_eq!(drain(&journal), ["a"]);
    drop(journal);
    assert!(fs::read(&foreign).unwrap().starts_with(b"JOURNAL\x02"));
}

#[test]
fn an_unusable_directory_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, b"").unwrap();
    for path in [file.clone(), file.join("below"), PathBuf::from("/proc/journal")] {
        let error = Journal::open(options(&path), b"").unwrap_err();
        assert!(matches!(error, OpenError::Unusable { .. }));
        let message = error.to_string();
        assert!(message.contains(&*path.to_string_lossy()), "{message}");
        assert!(message.contains("name a directory"), "{message}");
    }
}

#[test]
fn a_directory_that_vanishes_is_made_again() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("journals");
    let journal = open(&directory);
    fill(&journal, &["gone with its file, but in memory"]);
    fs::remove_dir_all(&directory).unwrap();
    journal.set_head(b"another segment");
    fill(&journal, &["a", "b"]);
    assert_eq!(journal.counts().write_errors, 0);
    let second = open(&directory);
    fill(&second, &["its folder is another"]);
    assert_eq!(segment_files(&directory.join("0")).len(), 1);
    assert_eq!(segment_files(&directory.join("1")).len(), 1);
    journal.flush().unwrap();
    assert_eq!(segment_files(&directory.join("0")).len(), 2);
    assert_eq!(journal.close(), CloseReport { queued: 3, dropped: 0 });
    drop((journal, second));
    let texts = ["gone with its file, but in memory", "a", "b", "its folder is another"];
    assert_eq!(drain(&open(&directory)), texts);
}

#[test]
fn a_disk_that_refuses_is_tried_again() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("journals");
    let memory_max = 300_000;
    let journal = Journal::open(Options { memory_max, ..options(&directory) }, b"head").unwrap();
    fs::remove_dir_all(&directory).unwrap();
    fs::write(&directory, b"in the way").unwrap();
    let record = [5; 10_000];
    let mut kept = 0;
    while journal.append(1, &record) == AppendResult::Kept {
        kept += 1;
    }
    assert!((25..=30).contains(&kept), "memory takes what the disk refuses, to its bound: {kept}");
    let counts = journal.counts();
    assert!(counts.write_errors > 0 && counts.last_write_error.is_some(), "{counts:?}");
    assert_eq!((counts.queued, counts.dropped, counts.disk_bytes), (kept, 1, 0));
    assert!(journal.pressure() > 0.9);
    journal.flush().unwrap_err();

    fs::remove_file(&directory).unwrap();
    journal.set_full(Full::Hold);
    assert_eq!(
        journal.append(1, &record),
        AppendResult::Kept,
        "held until the disk is there again"
    );
    journal.flush().unwrap();
    assert_eq!(journal.close(), CloseReport { queued: kept + 1, dropped: 0 });
    assert_eq!(open(&directory).counts().recovered, kept + 1);
}

#[test]
fn what_no_disk_takes_is_dropped_by_closing() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("journals");
    let journal = open(&directory);
    fs::remove_dir_all(&directory).unwrap();
    fs::write(&directory, b"in the way").unwrap();
    fill(&journal, &["a", "b", "c"]);
    journal.acknowledge(&journal.read(1, 100).unwrap());
    assert_eq!(journal.close(), CloseReport { queued: 0, dropped: 2 });
    let counts = journal.counts();
    assert_eq!((counts.accepted, counts.acknowledged, counts.dropped), (3, 1, 2));
}

/// Appends more than memory can hold, damages the file of the first segment, and reads.
fn damaged(damage: impl FnOnce(&Path)) -> (Vec<u8>, journal::Counts) {
    let directory = tempfile::tempdir().expect("there is room for a test");
    let journal = Journal::open(Options { memory_max: 0, ..options(directory.path()) }, b"head")
        .expect("the directory is fine");
    for number in 0..60 {
        assert_eq!(journal.append(2, &[number; 10_000]), AppendResult::Kept);
    }
    let files = segment_files(&directory.path().join("0"));
    damage(&files[0]);
    let mut found = Vec::new();
    while let Some(batch) = journal.read(7, usize::MAX) {
        found.extend(batch.records().map(|record| record.bytes[0]));
        journal.acknowledge(&batch);
    }
    let counts = journal.counts();
    assert_eq!(counts.accepted, counts.acknowledged + counts.dropped);
    (found, counts)
}

#[test]
fn what_cannot_be_read_back_is_counted() {
    let flip = |at: usize| {
        move |file: &Path| {
            let mut bytes = fs::read(file).unwrap();
            bytes[at] ^= 1;
            fs::write(file, bytes).unwrap();
        }
    };
    let record_at = |index: usize| 64 + 4 + index * 10_016;
    let (found, counts) = damaged(flip(record_at(3) + 500));
    assert_eq!(found, (0..60).filter(|&number| number != 3).collect::<Vec<u8>>());
    assert_eq!((counts.damaged, counts.dropped), (2, 2));

    // From an invalid header on, only the records in memory can still be read.
    for damage in [Damage::Header, Damage::Truncated, Damage::Gone] {
        let (found, counts) = damaged(|file| match damage {
            Damage::Header => flip(record_at(3) + 1)(file),
            Damage::Truncated => fs::OpenOptions::new()
                .write(true)
                .open(file)
                .and_then(|file| file.set_len(record_at(3) as u64 + 50))
                .unwrap(),
            Damage::Gone => fs::remove_file(file).unwrap(),
        });
        let lost = 60 - found.len() as u64;
        assert!((30..=40).contains(&lost), "{lost}");
        assert!(found.ends_with(&(40..60).collect::<Vec<u8>>()));
        assert_eq!((counts.damaged, counts.dropped), (2 * lost, 2 * lost));
    }
}

#[derive(Clone, Copy)]
enum Damage {
    Header,
    Truncated,
    Gone,
}

#[test]
fn the_format_is_a_promise() {
    let mut golden = Golden::default();
    for (name, durability) in [("records", Durability::WriteThrough), ("gap", Durability::Memory)] {
        let directory = tempfile::tempdir().unwrap();
        let journal =
            Journal::open(Options { durability, ..options(directory.path()) }, b"head").unwrap();
        fill(&journal, &["first"]);
        journal.acknowledge(&journal.read(1, 100).unwrap());
        fill(&journal, &["", "third"]);
        journal.flush().unwrap();
        let bytes = fs::read(&segment_files(&directory.path().join("0"))[0]).unwrap();
        let file = format!("{}/tests/golden/{name}-v1.txt", env!("CARGO_MANIFEST_DIR"));
        golden.compare(Path::new(&file), &dump(&bytes));
    }
    golden.finish(2);
}

fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(8) {
        let numbers: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let letters =
            line.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' });
        text += &format!("{:<24}{}\n", numbers.join(" "), letters.collect::<String>());
    }
    text
}

//! How a journal ends: closed during other operations, with its folder deleted, with disk errors, or adopted by another
//! journal.

use std::{
    fs,
    os::unix::fs::symlink,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use journal::{AppendResult, CloseReport, Durability, Full, Journal, Options, Ready, Why};

use super::texts::{drain, fill, now, open, options, segment_files};

#[test]
fn a_folder_that_was_taken_away_is_not_touched() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("journals");
    let robbed = open(&directory);
    fill(&robbed, &["robbed"]);
    fs::remove_dir_all(&directory).unwrap();
    let other = open(&directory);
    fill(&other, &["other"]);
    assert_eq!(segment_files(&directory.join("0")).len(), 1, "both call it the same");

    robbed.set_head(b"next");
    assert_eq!(robbed.acknowledge(&robbed.read(1, 100).unwrap()), 1);
    assert_eq!(segment_files(&directory.join("0")).len(), 1, "the file of the other");
    fill(&robbed, &["a", "b"]);
    let error = robbed.flush().unwrap_err().to_string();
    assert!(error.contains("taken away"), "{error}");
    assert_eq!(robbed.counts().last_write_error, Some(error));
    assert_eq!(robbed.close(), CloseReport { queued: 0, dropped: 2 });
    drop(robbed);
    other.close();
    assert_eq!(drain(&open(&directory)), ["other"]);
}

#[test]
fn what_was_written_counts_as_lost_with_its_folder() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("journals");
    let robbed = open(&directory);
    fill(&robbed, &["written"]);
    fs::remove_dir_all(&directory).unwrap();
    let other = open(&directory);
    fill(&other, &["other"]);
    assert_eq!(robbed.close(), CloseReport { queued: 0, dropped: 1 }, "the file is not ours");
    assert_eq!(drain(&other), ["other"]);
}

#[test]
fn what_is_lost_takes_nothing_along() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    for head in ["1", "2", "3"] {
        journal.set_head(head.as_bytes());
        fill(&journal, &[head]);
    }
    let first = &segment_files(&directory.path().join("0"))[0];
    fs::remove_file(first).unwrap();
    symlink("/proc/nowhere/at/all", first).unwrap();
    assert_eq!(journal.close(), CloseReport { queued: 2, dropped: 1 });
    drop(journal);
    assert_eq!(drain(&open(directory.path())), ["2", "3"]);
}

#[test]
fn what_is_acknowledged_while_closing_counts() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::Memory, ..options(directory.path()) };
    let journal = Journal::open(options, b"head").unwrap();
    fill(&journal, &["a"]);
    let batch = journal.read(1, 100).unwrap();
    // Opening a pipe for writing blocks until a reader opens it.
    let pipe = directory.path().join("0/0000000000000000.segment");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let closed = thread::scope(|scope| {
        let closing = scope.spawn(|| journal.close());
        while journal.append(0, b"late") != AppendResult::Dropped(Why::Closed) {
            thread::yield_now();
        }
        let fresh = journal.acknowledge(&batch);
        let _reader = fs::File::open(&pipe).expect("it is there");
        assert_eq!(fresh, 1);
        closing.join().expect("closing does not panic")
    });
    assert_eq!(closed, CloseReport { queued: 0, dropped: 0 });
    assert_eq!(journal.acknowledge(&batch), 0, "too late");
    let counts = journal.counts();
    assert_eq!((counts.accepted, counts.acknowledged, counts.dropped), (1, 1, 0));
}

#[test]
fn what_cannot_be_deleted_is_tried_again_in_peace() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(options(directory.path()).disk_max(128 * 1024), b"").unwrap();
    while journal.append(1, &[1; 9000]) == AppendResult::Kept {}
    let mut batches = Vec::new();
    while let Some(batch) = journal.read(u64::MAX, usize::MAX) {
        batches.push(batch);
    }
    let files = segment_files(&directory.path().join("0"));
    for file in &files {
        fs::remove_file(file).unwrap();
        fs::create_dir(file).unwrap();
    }
    for batch in &batches {
        journal.acknowledge(batch);
    }
    journal.set_full(Full::Hold);
    let (counts, appended) = thread::scope(|scope| {
        let held = [0, 1].map(|_| scope.spawn(|| journal.append(1, &[1; 9000])));
        let start = now();
        let is_enough = || journal.counts().held > Duration::from_millis(500);
        while !is_enough() && start.elapsed() < Duration::from_secs(20) {
            thread::yield_now();
        }
        let counts = journal.counts();
        for file in &files {
            fs::remove_dir(file).expect("it is empty");
        }
        (counts, held.map(|held| held.join().expect("it does not panic")))
    });
    assert_eq!(appended, [AppendResult::Kept, AppendResult::Kept]);
    let words = counts.last_write_error.unwrap_or_default();
    assert!(words.contains("cannot be deleted"), "{words}");
    assert!((1..40).contains(&counts.write_errors), "{} in half a second", counts.write_errors);
}

#[test]
fn who_goes_later_is_adopted_later() {
    for durability in [Durability::Memory, Durability::Process, Durability::WriteThrough] {
        let directory = tempfile::tempdir().unwrap();
        let told = Arc::new(AtomicUsize::new(0));
        let wake = {
            let told = Arc::clone(&told);
            Arc::new(move || {
                told.fetch_add(1, Ordering::Relaxed);
            })
        };
        let ready = Ready { items: 3, bytes: u64::MAX, wake };
        let options = Options { durability, ready, ..options(directory.path()) };
        let old = Journal::open(options.clone(), b"old").unwrap();
        fill(&old, &["old 1", "old 2", "old 3"]);
        let told_before = told.load(Ordering::Relaxed);
        let new = Journal::open(options.clone(), b"new").unwrap();
        fill(&new, &["new 1"]);
        assert_eq!(new.adopt().unwrap(), 0, "the old one lives");
        old.acknowledge(&old.read(1, 100).unwrap());
        old.close();
        assert_eq!(new.adopt().unwrap(), 2);
        assert_eq!(new.adopt().unwrap(), 0);
        assert_eq!(told.load(Ordering::Relaxed), told_before + 1, "three are unread");
        fill(&new, &["new 2"]);
        let counts = new.counts();
        assert_eq!((counts.recovered, counts.accepted, counts.queued), (2, 2, 4));
        assert_eq!(new.close(), CloseReport { queued: 4, dropped: 0 });
        assert_eq!(new.adopt().unwrap(), 0);

        let next = Journal::open(options, b"next").unwrap();
        let heads = [(); 3].map(|()| next.read(9, 99).unwrap().head().to_vec());
        assert_eq!(heads, [b"new", b"old", b"new"]);
        next.rewind();
        assert_eq!(drain(&next), ["new 1", "old 2", "old 3", "new 2"]);
    }
    let in_memory = Journal::open(Options::in_memory(1000, now), b"").unwrap();
    assert_eq!(in_memory.adopt().unwrap(), 0);
}

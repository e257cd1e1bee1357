//! One journal, one thread: the reader gets each record once, in order, under its head, and the counts match.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use journal::{
    AppendResult, Batch, CloseReport, Counts, Durability, Full, Journal, Options, Ready, Why,
};

#[expect(clippy::disallowed_methods, reason = "a test is a main: this is the clock it hands down")]
fn now() -> Instant {
    Instant::now()
}

const DURABILITIES: [Durability; 4] =
    [Durability::Memory, Durability::Process, Durability::WriteThrough, Durability::Host];

/// Opens one journal of each kind, with the guard that keeps its directory.
fn each() -> Vec<(Journal, Option<tempfile::TempDir>)> {
    let in_memory = Journal::open(Options::in_memory(1 << 20, now), b"head").expect("it opens");
    let mut all = vec![(in_memory, None)];
    for durability in DURABILITIES {
        let directory = tempfile::tempdir().expect("there is room for a test");
        let options = Options { durability, ..Options::in_directory(directory.path(), now) };
        all.push((Journal::open(options, b"head").expect("it opens"), Some(directory)));
    }
    all
}

fn texts(batch: &Batch) -> Vec<String> {
    batch
        .records()
        .map(|record| String::from_utf8(record.bytes.to_vec()).expect("it was text"))
        .collect()
}

fn balanced(counts: &Counts) -> bool {
    counts.accepted + counts.recovered == counts.acknowledged + counts.queued + counts.dropped
}

#[test]
fn what_goes_in_comes_out() {
    for (journal, _directory) in each() {
        assert!(journal.read(10, 1000).is_none());
        for (items, record) in [(1, "one"), (2, "two"), (3, "three"), (0, ""), (4, "four")] {
            assert_eq!(journal.append(items, record.as_bytes()), AppendResult::Kept);
        }
        let first = journal.read(3, 1000).unwrap();
        assert_eq!(texts(&first), ["one", "two"]);
        assert_eq!((first.head(), first.items(), first.bytes()), (&b"head"[..], 3, 6));
        let second = journal.read(1, 1).unwrap();
        assert_eq!(texts(&second), ["three"], "one record at the least");
        let third = journal.read(u64::MAX, usize::MAX).unwrap();
        assert_eq!(texts(&third), ["", "four"]);
        assert!(journal.read(u64::MAX, usize::MAX).is_none());

        assert_eq!(journal.acknowledge(&third), 4);
        assert_eq!(journal.acknowledge(&third), 0, "once is enough");
        let counts = journal.counts();
        assert_eq!((counts.accepted, counts.acknowledged, counts.queued), (10, 4, 6));
        assert!(balanced(&counts), "{counts:?}");

        journal.rewind();
        let again = journal.read(u64::MAX, usize::MAX).unwrap();
        assert_eq!(texts(&again), ["one", "two", "three"], "without what was acknowledged");
        assert!(journal.read(u64::MAX, usize::MAX).is_none());
        assert_eq!(journal.acknowledge(&first), 3);
        assert_eq!(journal.acknowledge(&again), 3, "what was left of it");
        assert_eq!(journal.acknowledge(&second), 0);
        let counts = journal.counts();
        assert_eq!((counts.acknowledged, counts.queued, counts.memory_bytes), (10, 0, 0));
        assert_eq!(counts.oldest, None);
        assert_eq!(journal.close(), CloseReport::default());
    }
}

#[test]
fn a_batch_has_one_head() {
    for (journal, _directory) in each() {
        assert_eq!(journal.append(1, b"a"), AppendResult::Kept);
        journal.set_head(b"head");
        assert_eq!(journal.append(1, b"b"), AppendResult::Kept);
        journal.set_head(b"other");
        journal.set_head(b"third");
        assert_eq!(journal.append(1, b"c"), AppendResult::Kept);
        let mut found = Vec::new();
        while let Some(batch) = journal.read(u64::MAX, usize::MAX) {
            found.push((String::from_utf8(batch.head().to_vec()).unwrap(), texts(&batch).concat()));
        }
        assert_eq!(found, [("head".into(), "ab".into()), ("third".into(), "c".into())]);
    }
}

#[test]
fn what_is_left_is_found_by_the_next() {
    for durability in DURABILITIES {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { durability, ..Options::in_directory(directory.path(), now) };
        let journal = Journal::open(options.clone(), b"old").unwrap();
        for text in ["a", "b", "c", "d"] {
            assert_eq!(journal.append(2, text.as_bytes()), AppendResult::Kept);
        }
        journal.acknowledge(&journal.read(2, 100).unwrap());
        assert_eq!(journal.close(), CloseReport { queued: 6, dropped: 0 });
        assert_eq!(journal.append(5, b"late"), AppendResult::Dropped(Why::Closed));
        journal.set_head(b"late");
        journal.rewind();
        assert!(journal.flush().is_ok() && journal.read(1, 1).is_none());
        assert!(balanced(&journal.counts()));

        let journal = Journal::open(options, b"new").unwrap();
        assert_eq!(journal.append(1, b"e"), AppendResult::Kept);
        let old = journal.read(100, 100).unwrap();
        assert_eq!((old.head(), texts(&old).concat().as_str()), (&b"old"[..], "bcd"));
        let new = journal.read(100, 100).unwrap();
        assert_eq!((new.head(), texts(&new).concat().as_str()), (&b"new"[..], "e"));
        journal.acknowledge(&old);
        journal.acknowledge(&new);
        let counts = journal.counts();
        assert_eq!((counts.recovered, counts.accepted, counts.acknowledged), (6, 1, 7));
        journal.close();
        let left = directory.path().join("0").read_dir().unwrap().count();
        assert_eq!(left, 1, "{durability:?}: only the lock stays");
    }
}

#[test]
fn without_a_directory_closing_drops_and_counts() {
    let journal = Journal::open(Options::in_memory(1 << 20, now), b"").unwrap();
    assert_eq!(journal.append(3, b"a"), AppendResult::Kept);
    assert_eq!(journal.append(4, b"b"), AppendResult::Kept);
    journal.acknowledge(&journal.read(3, 10).unwrap());
    assert_eq!(journal.close(), CloseReport { queued: 0, dropped: 4 });
    assert_eq!(journal.close(), CloseReport { queued: 0, dropped: 4 }, "the same again");
    let counts = journal.counts();
    assert_eq!((counts.dropped, counts.queued, counts.acknowledged), (4, 0, 3));
    assert!(journal.read(1, 1).is_none());
}

#[test]
fn full_is_what_the_options_say() {
    let options = Options { full: Full::Count, ..Options::in_memory(784, now) };
    let journal = Journal::open(options, b"").unwrap();
    let mut kept = 0;
    while journal.append(1, &[7; 84]) == AppendResult::Kept {
        kept += 1;
    }
    assert_eq!(kept, 4, "sixteen bytes of each are not the owner's, nor 128 of each chunk");
    assert!(journal.pressure() > 0.99, "{}", journal.pressure());
    assert_eq!(journal.append(1, &[7; 769]), AppendResult::Dropped(Why::TooLarge));
    journal.set_full(Full::HoldFor(Duration::from_millis(20)));
    assert_eq!(journal.append(1, &[7; 84]), AppendResult::Dropped(Why::Full));
    let counts = journal.counts();
    assert!(counts.held >= Duration::from_millis(20), "{counts:?}");
    assert_eq!((counts.accepted, counts.dropped, counts.holding), (7, 3, 0));
    journal.acknowledge(&journal.read(10, 1000).unwrap());
    assert_eq!(journal.append(1, &[7; 84]), AppendResult::Kept);
}

/// Returns a callback that counts its calls, and the counter.
fn counting() -> (Arc<dyn Fn() + Send + Sync>, Arc<AtomicUsize>) {
    let told = Arc::new(AtomicUsize::new(0));
    let wake = Arc::clone(&told);
    let wake = move || {
        wake.fetch_add(1, Ordering::Relaxed);
    };
    (Arc::new(wake), told)
}

#[test]
fn the_reader_is_told_again_after_it_found_nothing() {
    let (wake, told) = counting();
    let ready = Ready { items: 1, bytes: u64::MAX, wake };
    let journal =
        Journal::open(Options { ready, ..Options::in_memory(1 << 20, now) }, b"").unwrap();
    assert_eq!(journal.append(1, b"a"), AppendResult::Kept);
    let batch = journal.read(9, 99).unwrap();
    journal.rewind();
    assert_eq!(told.load(Ordering::Relaxed), 2);
    journal.acknowledge(&batch);
    assert!(journal.read(9, 99).is_none());
    assert_eq!(journal.append(1, b"b"), AppendResult::Kept);
    assert_eq!(told.load(Ordering::Relaxed), 3);
}

#[test]
fn a_reader_without_a_threshold_is_told_of_no_room() {
    let (wake, told) = counting();
    let ready = Ready { wake, ..Ready::never() };
    let options = Options { ready, full: Full::Count, ..Options::in_memory(1000, now) };
    let journal = Journal::open(options, b"").unwrap();
    while journal.append(1, &[1; 100]) == AppendResult::Kept {}
    assert_eq!(told.load(Ordering::Relaxed), 1);
    assert_eq!(journal.append(1, &[1; 100]), AppendResult::Dropped(Why::Full));
    assert_eq!(told.load(Ordering::Relaxed), 1, "it knows");
}

#[test]
fn heads_and_small_chunks_take_memory() {
    let options = Options { full: Full::Count, ..Options::in_memory(100_000, now) };
    let journal = Journal::open(options.clone(), b"").unwrap();
    let mut kept = 0_u32;
    while journal.append(1, b"x") == AppendResult::Kept {
        kept += 1;
        journal.set_head(&vec![kept as u8; 10_000]);
    }
    assert_eq!(kept, 11, "the last head is not counted, and the first is empty");
    while let Some(batch) = journal.read(1, 1) {
        journal.acknowledge(&batch);
    }
    assert_eq!(journal.counts().memory_bytes, 0, "what came is gone");

    let journal = Journal::open(options, b"").unwrap();
    let mut kept = 0;
    while journal.append(1, b"x") == AppendResult::Kept {
        kept += 1;
        assert!(journal.read(1, 1).is_some());
    }
    assert!((600..700).contains(&kept), "each has a chunk: {kept}");
}

#[test]
fn the_reader_is_told_once_per_crossing() {
    let (wake, told) = counting();
    let ready = Ready { items: 3, bytes: 1000, wake };
    let journal =
        Journal::open(Options { ready, ..Options::in_memory(1 << 20, now) }, b"").unwrap();
    let append = |items: u32, bytes: usize, expected: usize| {
        assert_eq!(journal.append(items, &vec![0; bytes]), AppendResult::Kept);
        assert_eq!(told.load(Ordering::Relaxed), expected);
    };
    append(1, 1, 0);
    append(1, 1, 0);
    append(1, 1, 1);
    append(1, 1, 1);
    let _one = journal.read(1, 100);
    append(1, 1, 1);
    while journal.read(2, 100).is_some() {}
    append(1, 1, 1);
    append(1, 2000, 2);
    while journal.read(2, 100).is_some() {}
    journal.rewind();
    assert_eq!(told.load(Ordering::Relaxed), 3, "what is unread again is worth a call");
}

#[test]
fn bounds_and_durability_change_and_nothing_is_lost() {
    for (journal, directory) in each() {
        let record = [7; 1000];
        for _ in 0..500 {
            assert_eq!(journal.append(1, &record), AppendResult::Kept);
        }
        journal.set_full(Full::Count);
        for durability in DURABILITIES {
            let small = Options { durability, ..Options::in_memory(10_000, now) }.disk_max(80_000);
            journal.set_bounds(&small).expect("a thread");
            assert_eq!(
                journal.append(1, &record),
                AppendResult::Dropped(Why::Full),
                "{durability:?}"
            );
        }
        let large = Options::in_memory(1 << 20, now).disk_max(1 << 30);
        for durability in DURABILITIES {
            journal.set_bounds(&Options { durability, ..large.clone() }).expect("a thread");
            assert_eq!(journal.append(1, &record), AppendResult::Kept, "{durability:?}");
        }
        let counts = journal.counts();
        assert_eq!((counts.queued, counts.dropped), (504, 4));
        assert!(balanced(&counts));
        let mut read = 0;
        while let Some(batch) = journal.read(512, 1 << 20) {
            read += batch.items();
            journal.acknowledge(&batch);
        }
        assert_eq!((read, journal.counts().queued), (504, 0));
        drop((journal, directory));
    }
}

#[test]
fn a_durability_that_is_chosen_later_holds_from_then_on() {
    let directory = tempfile::tempdir().expect("there is room for a test");
    let files = || {
        let folder = std::fs::read_dir(directory.path().join("0")).expect("a folder");
        folder.filter(|it| it.as_ref().is_ok_and(|it| it.file_name() != "lock")).count()
    };
    let memory =
        Options { durability: Durability::Memory, ..Options::in_directory(directory.path(), now) };
    let journal = Journal::open(memory.clone(), b"head").expect("it opens");
    assert_eq!(journal.append(1, b"one"), AppendResult::Kept);
    assert_eq!(files(), 0, "nothing is written for as long as there is memory");
    let through = Options { durability: Durability::WriteThrough, ..memory };
    journal.set_bounds(&through).expect("a thread");
    assert_eq!(journal.append(1, b"two"), AppendResult::Kept);
    assert_eq!(files(), 1);
}

/// An owner that stores its records elsewhere settles them by position, and recovers the rest.
#[test]
fn what_stands_somewhere_is_settled_without_reading() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        Options { durability: Durability::Memory, ..Options::in_directory(directory.path(), now) };
    let journal = Journal::open(options.clone(), b"head").unwrap();
    let places: Vec<_> =
        ["a", "bb", "ccc"].iter().map(|it| journal.append_at(2, it.as_bytes()).unwrap()).collect();
    assert!(places.is_sorted());
    let batch = journal.read(u64::MAX, 1024).unwrap();
    let placed: Vec<_> = batch.placed().map(|(stretch, record)| (stretch, record.items)).collect();
    assert_eq!(placed, places.iter().map(|stretch| (*stretch, 2)).collect::<Vec<_>>());
    assert_eq!((journal.settle(places[0]), journal.settle(places[0])), (2, 0));
    journal.close();

    let journal = Journal::open(options, b"head").unwrap();
    let batch = journal.read(u64::MAX, 1024).unwrap();
    let left: Vec<_> = batch.records().map(|record| record.bytes.to_vec()).collect();
    assert_eq!(left, [b"bb".to_vec(), b"ccc".to_vec()]);
    assert_eq!(journal.settle(batch.stretch()), 4);
}

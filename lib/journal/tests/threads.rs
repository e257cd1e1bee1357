//! Many producers, a reader and an observer at once: no record is lost, the order of each producer is preserved, and
//! the counts add up at all times.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use journal::{AppendResult, Batch, Durability, Full, Journal, Options, Ready, Why};

#[expect(clippy::disallowed_methods, reason = "a test is a main: this is the clock it hands down")]
fn now() -> Instant {
    Instant::now()
}

const PRODUCERS: u64 = 4;
const EACH: u64 = 4000;

/// A record with its producer, its number, and a varying length.
fn record(producer: u64, number: u64) -> Vec<u8> {
    let mut record = producer.to_le_bytes().to_vec();
    record.extend(number.to_le_bytes());
    record.resize(16 + (producer * 131 + number * 17) as usize % 900, number as u8);
    record
}

fn numbers(bytes: &[u8]) -> (u64, u64) {
    let number =
        |at: usize| bytes[at..at + 8].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    (number(0), number(8))
}

/// Reads until all records were received; acknowledges the second of two batches before the first.
fn consume(journal: &Journal, woken: &mpsc::Receiver<()>) {
    let mut next = [0; PRODUCERS as usize];
    let mut waiting: Option<Batch> = None;
    while next.iter().sum::<u64>() < PRODUCERS * EACH {
        let Some(batch) = journal.read(100, 50_000) else {
            if let Some(batch) = waiting.take() {
                journal.acknowledge(&batch);
            }
            // Below the threshold there is no notification, so the reader polls.
            let _woken = woken.recv_timeout(Duration::from_millis(1));
            continue;
        };
        for found in batch.records() {
            let (producer, number) = numbers(found.bytes);
            assert_eq!(found.bytes, record(producer, number));
            let expected = &mut next[producer as usize];
            assert_eq!(number, *expected, "of producer {producer}");
            *expected += 1;
        }
        match waiting.take() {
            Some(older) => {
                journal.acknowledge(&batch);
                journal.acknowledge(&older);
            }
            None => waiting = Some(batch),
        }
    }
    if let Some(batch) = waiting {
        journal.acknowledge(&batch);
    }
}

/// Disk usage as `du` counts it.
fn disk_usage(path: &Path) -> u64 {
    let Ok(metadata) = fs::metadata(path) else { return 0 };
    let inside = fs::read_dir(path).into_iter().flatten().flatten();
    metadata.blocks() * 512 + inside.map(|entry| disk_usage(&entry.path())).sum::<u64>()
}

fn run(options: Options) {
    let (wake, woken) = mpsc::sync_channel(1);
    let wake = Mutex::new(wake);
    let ready = Ready {
        items: 100,
        bytes: 20_000,
        wake: Arc::new(move || {
            let _told_before = wake.lock().map(|wake| wake.try_send(()));
        }),
    };
    let directory = options.directory.clone();
    // Files are created and deleted while they are counted: the walk can count a file that is deleted before its
    // successor is counted.
    let disk_max = options.disk_max + options.segment_max;
    let journal = Journal::open(Options { ready, ..options }, b"head").expect("it opens");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let journal = &journal;
            scope.spawn(move || {
                for number in 0..EACH {
                    assert_eq!(journal.append(1, &record(producer, number)), AppendResult::Kept);
                }
            });
        }
        scope.spawn(|| {
            loop {
                let counts = journal.counts();
                assert_eq!(counts.accepted, counts.acknowledged + counts.queued, "{counts:?}");
                assert!((0.0..=1.0).contains(&journal.pressure()));
                let on_disk = directory.as_deref().map_or(0, disk_usage);
                assert!(on_disk <= disk_max, "{on_disk} bytes are on disk");
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                thread::yield_now();
            }
        });
        consume(&journal, &woken);
        is_over.store(true, Ordering::Relaxed);
    });
    let counts = journal.counts();
    assert_eq!((counts.accepted, counts.queued, counts.dropped), (PRODUCERS * EACH, 0, 0));
    assert_eq!((counts.damaged, counts.write_errors, counts.holding), (0, 0, 0));
}

#[test]
fn in_memory_under_a_small_bound() {
    run(Options::in_memory(30_000, now));
}

#[test]
fn on_disk_under_a_small_bound() {
    for durability in
        [Durability::Memory, Durability::Process, Durability::WriteThrough, Durability::Host]
    {
        let directory = tempfile::tempdir().expect("there is room for a test");
        let options = Options::in_directory(directory.path(), now).disk_max(600 * 1024);
        run(Options { durability, memory_max: 0, ..options });
    }
}

#[test]
fn on_disk_with_room() {
    for durability in [Durability::Memory, Durability::Process] {
        let directory = tempfile::tempdir().expect("there is room for a test");
        run(Options { durability, ..Options::in_directory(directory.path(), now) });
    }
}

/// Makes a producer wait for room, calls `act`, and returns the result of the producer's append.
fn held(act: impl FnOnce(&Journal)) -> (AppendResult, Journal) {
    let (wake, woken) = mpsc::sync_channel(1);
    let wake = Mutex::new(wake);
    let ready = Ready {
        wake: Arc::new(move || {
            let _told_before = wake.lock().map(|wake| wake.try_send(()));
        }),
        ..Ready { items: 1 << 40, ..Ready::never() }
    };
    let options = Options { ready, ..Options::in_memory(100, now) };
    let journal = Journal::open(options, b"").expect("it opens");
    assert_eq!(journal.append(1, &[1; 80]), AppendResult::Kept);
    let appended = thread::scope(|scope| {
        let producer = scope.spawn(|| journal.append(2, &[2; 80]));
        woken.recv().expect("who finds no room tells the reader");
        while journal.counts().holding == 0 {
            thread::yield_now();
        }
        act(&journal);
        producer.join().expect("it does not panic")
    });
    (appended, journal)
}

#[test]
fn a_held_producer_goes_on() {
    let (appended, journal) = held(|journal| {
        let batch = journal.read(1, 1).expect("one is there");
        assert_eq!(journal.acknowledge(&batch), 1);
    });
    assert_eq!(appended, AppendResult::Kept);
    assert!(journal.counts().held > Duration::ZERO);

    let (appended, journal) = held(|journal| journal.set_full(Full::Count));
    assert_eq!(appended, AppendResult::Dropped(Why::Full));
    assert_eq!((journal.counts().accepted, journal.counts().dropped), (3, 2));

    let (appended, journal) = held(|journal| {
        journal.close();
    });
    assert_eq!(appended, AppendResult::Dropped(Why::Closed));
    assert_eq!((journal.counts().dropped, journal.counts().queued), (3, 0));
}

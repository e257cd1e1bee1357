//! Time: ages by a manual clock, and tails that the flusher writes without further calls.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use journal::{AppendResult, Durability, Journal, Options};

static SECONDS: AtomicU64 = AtomicU64::new(0);

#[expect(clippy::disallowed_methods, reason = "where the clock that is turned by hand begins")]
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn by_hand() -> Instant {
    *START + Duration::from_secs(SECONDS.load(Ordering::Relaxed))
}

fn later(seconds: u64) {
    SECONDS.fetch_add(seconds, Ordering::Relaxed);
}

#[expect(clippy::disallowed_methods, reason = "a test is a main: this is the clock it hands down")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn the_oldest_has_an_age() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::in_directory(directory.path(), by_hand);
    let journal = Journal::open(options.clone(), b"").unwrap();
    let oldest = |journal: &Journal| journal.counts().oldest.map(|age| age.as_secs());
    let append = || assert_eq!(journal.append(1, b"record"), AppendResult::Kept);
    later(1000);
    assert_eq!(oldest(&journal), None);
    append();
    assert_eq!(oldest(&journal), Some(0), "the journal is older than what is in it");
    later(10);
    append();
    assert_eq!(oldest(&journal), Some(10));
    let first = journal.read(1, 1).unwrap();
    later(5);
    append();
    let rest = journal.read(9, 900).unwrap();
    journal.acknowledge(&rest);
    assert_eq!(oldest(&journal), Some(15), "the first is in flight");
    journal.acknowledge(&first);
    assert_eq!(oldest(&journal), None);
    later(100);
    append();
    later(7);
    assert_eq!(oldest(&journal), Some(7));
    journal.close();
    later(3600);
    let journal = Journal::open(options, b"").unwrap();
    later(3);
    assert_eq!(oldest(&journal), Some(3), "nobody was there to count");
}

#[test]
fn a_tail_is_written_by_itself() {
    for durability in [Durability::Process, Durability::Host] {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { durability, ..Options::in_directory(directory.path(), now) };
        let journal = Journal::open(options, b"").unwrap();
        for round in 1..=3 {
            assert_eq!(journal.append(1, &[1; 84]), AppendResult::Kept);
            let start = now();
            while journal.counts().disk_bytes < 64 + round * 100 {
                assert!(start.elapsed() < Duration::from_secs(20), "{:?}", journal.counts());
                thread::yield_now();
            }
            // Long enough for the flusher to park in between.
            while start.elapsed() < Duration::from_millis(120) {
                thread::yield_now();
            }
        }
        assert_eq!(journal.counts().write_errors, 0);
    }
}

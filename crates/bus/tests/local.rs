//! Tests of the local bus: the conformance suite, and its journal under faults.

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bus::{
    Batch, Bus, Channel, Doubt, Limits, Local, Next, Options, PublishError, SealKeys, Subscription,
    conformance,
};
use bytes::Bytes;
use model::{BusSlot, Project, Timestamp, TraceId};

const NOW: u64 = 1_800_000_000;

const LIMITS: Limits = Limits {
    bytes_max: 1 << 20,
    project_bytes_max: 1 << 19,
    trace_bytes_max: 1 << 18,
    trace_spans_max: 1000,
    age_max: Duration::from_secs(60),
};

fn open(directory: &Path) -> Local {
    open_with(directory, LIMITS)
}

fn open_with(directory: &Path, limits: Limits) -> Local {
    Local::open(options(directory, limits, 1), at(0)).expect("the directory is there")
}

fn options(directory: &Path, limits: Limits, key: u8) -> Options {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    // No salt is used twice.
    let salt = u128::from(OPENED.fetch_add(1, Ordering::Relaxed)).to_be_bytes();
    Options {
        directory: directory.to_owned(),
        limits,
        batch_bytes_max: limits.bytes_max,
        keys: SealKeys::new([key; 32], Vec::new(), salt),
    }
}

fn at(secs: u64) -> Timestamp {
    Timestamp::from_nanos((NOW + secs) * 1_000_000_000)
}

fn channel(number: u32) -> Channel {
    let mut id = [7; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    Channel { slot: BusSlot::default(), trace: TraceId::from_bytes(id).expect("not all zero") }
}

fn batch(number: u32, bytes: Vec<u8>) -> Batch {
    Batch {
        channel: channel(number),
        spans: 1,
        bytes: Bytes::from(bytes),
        projects: None,
        owner: None,
    }
}

async fn publish(bus: &Local, number: u32, bytes: Vec<u8>) -> Result<(), PublishError> {
    bus.publish(at(0), vec![batch(number, bytes)]).await
}

fn subscribe(bus: &Local, channel: Channel) -> Subscription {
    bus.subscribe(channel, &Project::default())
}

/// Subscribes to each of these traces, each for its own project.
fn wait_for(bus: &Local, numbers: Range<u32>) -> Vec<Subscription> {
    let project = |number: u32| format!("project-{number}").parse().expect("a name");
    numbers.map(|number| bus.subscribe(channel(number), &project(number))).collect()
}

async fn read(bus: &Local, number: u32) -> Vec<u8> {
    let mut subscription = subscribe(bus, channel(number));
    let next = tokio::time::timeout(Duration::from_secs(10), subscription.next()).await;
    next.expect("it comes soon").expect("not forgotten").to_vec()
}

fn disk_bytes(directory: &Path) -> u64 {
    // A segment may be removed concurrently.
    segments(directory).iter().map(|path| fs::metadata(path).map_or(0, |it| it.len())).sum()
}

fn segments(directory: &Path) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(directory.join("0")).expect("the journal has a folder");
    let mut paths: Vec<_> = files.map(|file| file.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "segment"));
    paths.sort();
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn the_local_bus_is_a_bus() {
    let directory = tempfile::tempdir().expect("a directory");
    let facts = conformance::Facts {
        too_many_bytes: LIMITS.trace_bytes_max,
        too_many_spans: 1001,
        too_many_batches: 20,
        refused_batches: 20,
        batch_bytes: 100_000,
        age_max: LIMITS.age_max,
        is_shared: false,
    };
    conformance::conforms(facts, async |now| {
        let options = options(directory.path(), LIMITS, 1);
        (Local::open(options, now).expect("the directory is there"), BusSlot::default())
    })
    .await;
}

#[tokio::test]
async fn a_bus_that_was_deaf_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let bus = open(directory.path());
    let _subscription = subscribe(&bus, channel(1));
    bus.expect(channel(1));
    publish(&bus, 1, b"a".to_vec()).await.expect("room");
    assert_eq!(bus.proved(channel(1)).await, Ok(1));
    drop(bus);
    let bus = open(directory.path());
    assert_eq!((bus.replayed().traces, bus.replayed().spans), (1, 1));
    assert_eq!(read(&bus, 1).await, b"a");
    bus.resume(channel(1), at(0), bus.state(channel(1)).as_deref());
    let doubt = Doubt::NotListened;
    assert_eq!(bus.doubt(channel(1)), Some(doubt), "a sender may have given up meanwhile");
    let _subscription = subscribe(&bus, channel(2));
    bus.expect(channel(2));
    assert_eq!(bus.doubt(channel(2)), None, "what begins now is heard");
}

/// A live trace does not block the space of thousands of settled ones.
#[tokio::test(flavor = "multi_thread")]
async fn the_journal_stays_bounded_beside_a_trace_that_lives_long() {
    let directory = tempfile::tempdir().expect("a directory");
    let bus = open(directory.path());
    let subscription = subscribe(&bus, channel(0));
    publish(&bus, 0, b"first".to_vec()).await.expect("room");
    let bound = 4 * LIMITS.bytes_max as u64;
    let mut most = 0;
    for number in 1..=400 {
        publish(&bus, number, vec![b'x'; 50_000]).await.expect("what is over makes room");
        if number % 100 == 0 {
            publish(&bus, 0, number.to_string().into_bytes()).await.expect("room");
        }
        bus.forget(channel(number));
        most = most.max(disk_bytes(directory.path()));
    }
    assert!(most <= bound, "20 MB went through, {most} were on disk at once");
    drop((subscription, bus));
    let bus = open(directory.path());
    assert_eq!(bus.replayed().traces, 1, "{:?}", bus.replayed());
    let mut again = subscribe(&bus, channel(0));
    for expected in ["first", "100", "200", "300", "400"] {
        assert_eq!(again.next().await.expect("there"), expected, "each once, and in order");
    }
}

#[tokio::test]
async fn a_damaged_journal_loses_what_is_damaged_and_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let bus = open(directory.path());
    for number in 1..=3 {
        publish(&bus, number, vec![b'0' + number as u8; 1000]).await.expect("room");
    }
    drop(bus);
    let segment = segments(directory.path()).pop().expect("one was written");
    let mut bytes = fs::read(&segment).expect("readable");
    // The middle one of three batches of the same size.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, bytes).expect("writable");

    let bus = open(directory.path());
    let replayed = bus.replayed();
    assert_eq!((replayed.traces, replayed.spans), (2, 2));
    assert!((1000..1200).contains(&replayed.damaged_bytes), "{replayed:?}");
    assert_eq!(read(&bus, 1).await, [b'1'; 1000]);
    assert_eq!(read(&bus, 3).await, [b'3'; 1000]);
    for number in 1..=3 {
        assert!(bus.doubt(channel(number)).is_some(), "absence proves nothing");
    }
    publish(&bus, 2, b"again".to_vec()).await.expect("it goes on");
    assert_eq!(read(&bus, 2).await, b"again");
}

#[tokio::test]
async fn what_is_in_the_journal_is_sealed() {
    let directory = tempfile::tempdir().expect("a directory");
    let bus = open(directory.path());
    publish(&bus, 1, b"a canary".to_vec()).await.expect("room");
    drop(bus);
    let is_there = || {
        let segments = segments(directory.path()).into_iter();
        let mut bytes = segments.map(|path| fs::read(path).expect("readable"));
        bytes.any(|bytes| bytes.windows(6).any(|it| it == b"canary"))
    };
    assert!(!is_there());
    let bus = open(directory.path());
    assert_eq!(read(&bus, 1).await, b"a canary");
    drop(bus);
    let bus = Local::open(options(directory.path(), LIMITS, 2), at(0)).expect("it is there");
    let replayed = bus.replayed();
    assert_eq!((replayed.spans, replayed.left_out_spans), (0, 1), "the key is another one");
}

#[tokio::test]
async fn a_journal_that_cannot_be_written_refuses() {
    let directory = tempfile::tempdir().expect("a directory");
    let bus = open(directory.path());
    publish(&bus, 1, b"a".to_vec()).await.expect("room");
    let _subscription = subscribe(&bus, channel(2));
    bus.expect(channel(2));
    // The folder is deleted, and another journal creates it again.
    let folder = directory.path().join("0");
    fs::remove_dir_all(&folder).expect("it is there");
    fs::create_dir(&folder).expect("writable");
    fs::write(folder.join("lock"), "").expect("writable");
    let refused = publish(&bus, 2, b"b".to_vec()).await.expect_err("it cannot be kept");
    assert!(matches!(refused, PublishError::Journal { .. }), "{refused}");
    assert!(refused.to_string().ends_with("send them again later"), "{refused}");
    assert_eq!(bus.doubt(channel(2)), Some(Doubt::Refused(1)));
    assert_eq!(read(&bus, 1).await, b"a", "what was there is");
    assert!(bus.counts().journal_error.is_some(), "it is told");
    fs::remove_dir_all(&folder).expect("it is there");
    bus.try_journal();
    publish(&bus, 3, Vec::new()).await.expect("whoever comes behind it waits for it");
    assert_eq!(bus.counts().journal_error, None, "the folder is ours again");
    publish(&bus, 2, b"b".to_vec()).await.expect("and takes spans");
    assert_eq!(read(&bus, 2).await, b"b");
    assert_eq!(bus.doubt(channel(2)), None, "what was refused came again");
}

#[tokio::test]
async fn what_does_not_fit_any_more_is_left_out_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let bus = open(directory.path());
    for number in 1..=5 {
        publish(&bus, number, vec![b'x'; 100_000]).await.expect("room");
    }
    drop(bus);
    let bus = open_with(directory.path(), Limits { bytes_max: 250_000, ..LIMITS });
    let replayed = bus.replayed();
    assert_eq!((replayed.spans, replayed.left_out_spans), (2, 3));
}

/// Runs a random history of publishing, forgetting and reopening, and compares it with a map.
async fn history(seed: u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut bus = open(directory.path());
    let mut expected: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
    let mut random = seed;
    let mut throw = |sides: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % sides
    };
    for step in 0..600_u64 {
        let number = throw(8) as u32;
        let _waiting = wait_for(&bus, 0..8);
        match throw(20) {
            0 => {
                drop(bus);
                bus = open(directory.path());
                assert_eq!(bus.replayed().traces, expected.len(), "{:?}", bus.replayed());
            }
            1..7 => {
                bus.forget(channel(number));
                expected.remove(&number);
            }
            _ => {
                let bytes = [&step.to_le_bytes()[..], &vec![7; throw(30_000) as usize]].concat();
                let refused = bus.doubt(channel(number));
                match publish(&bus, number, bytes.clone()).await {
                    Ok(()) if bus.doubt(channel(number)) == refused => {
                        expected.entry(number).or_default().push(bytes);
                    }
                    // There was no room.
                    _ => {}
                }
            }
        }
        assert!(disk_bytes(directory.path()) <= 4 * LIMITS.bytes_max as u64);
    }
    drop(bus);
    let bus = open(directory.path());
    for (number, batches) in &expected {
        let mut subscription = subscribe(&bus, channel(*number));
        for batch in batches {
            assert_eq!(subscription.next().await.expect("there"), *batch, "seed {seed}");
        }
    }
    assert_eq!(bus.replayed().traces, expected.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn any_history_is_found_again() {
    for seed in 1..=6 {
        history(seed).await;
    }
}

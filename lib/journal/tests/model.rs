//! Random operations on a journal, compared with a list: appends, reads, acknowledgements in any order, rewinds, new
//! heads, restarts, crashes, and damage to the files that a crash left.

mod on_disk;

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Instant};

use journal::{AppendResult, Batch, Durability, Full, Journal, Options, Why};
use on_disk::{Damage, Found, segments};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use tempfile::TempDir;

const DISK_MAX: u64 = 768 * 1024;

#[expect(clippy::disallowed_methods, reason = "a test is a main: this is the clock it hands down")]
fn now() -> Instant {
    Instant::now()
}

#[derive(Clone, Debug)]
enum Step {
    Append {
        items: u32,
        bytes: usize,
        times: usize,
    },
    Read {
        items_max: u64,
        bytes_max: usize,
    },
    /// Acknowledges one of the batches that were read: this index, modulo their number.
    Acknowledge(usize),
    AcknowledgeAll,
    Rewind,
    Head(u8),
    Flush,
    Restart,
    /// Another journal on the same directory gets this many records, and ends.
    Adopt(usize),
    /// Continues with a copy of the directory, as a killed process leaves it.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![4 => 8usize..300, 2 => 300usize..5000, 1 => 5000usize..90_000];
    prop_oneof![
        12 => (0u32..4, bytes, 1usize..12).prop_map(|(items, bytes, times)| Step::Append { items, bytes, times }),
        6 => (0u64..40, 0usize..100_000).prop_map(|(items_max, bytes_max)| Step::Read { items_max, bytes_max }),
        5 => any::<usize>().prop_map(Step::Acknowledge),
        1 => Just(Step::AcknowledgeAll),
        1 => Just(Step::Rewind),
        2 => (0u8..3).prop_map(Step::Head),
        1 => Just(Step::Flush),
        1 => (1usize..20).prop_map(Step::Adopt),
        1 => Just(Step::Restart),
        1 => Just(Step::Crash),
    ]
}

#[derive(Clone, Debug, PartialEq)]
struct Record {
    number: u64,
    items: u32,
    bytes: usize,
    head: u8,
    acknowledged: bool,
}

/// The bytes of a record encode its number, and show that the record is complete.
fn payload(number: u64, bytes: usize) -> Vec<u8> {
    let mut payload = number.to_le_bytes().to_vec();
    payload.resize(bytes, number as u8);
    payload
}

fn number_of(payload: &[u8]) -> u64 {
    payload.first_chunk().map_or(u64::MAX, |number| u64::from_le_bytes(*number))
}

/// The numbers are ascending.
fn find(records: &[Record], number: u64) -> Option<usize> {
    records.binary_search_by_key(&number, |record| record.number).ok()
}

struct Life {
    durability: Durability,
    directory: TempDir,
    journal: Journal,
    head: u8,
    next: u64,
    /// The records in order, at least from the first that is not acknowledged on.
    records: Vec<Record>,
    /// Acknowledged records of before the last restart. If the slot of the cursor is damaged, they may come back.
    earlier: Vec<Record>,
    /// The index of the next record to read.
    unread: usize,
    batches: Vec<Batch>,
    /// Records below this number are in files, unless acknowledged.
    durable: u64,
}

type Checked = Result<(), TestCaseError>;

fn open(durability: Durability, directory: &Path, head: u8) -> Journal {
    let options = Options {
        durability,
        full: Full::Count,
        memory_max: 0,
        ..Options::in_directory(directory, now).disk_max(DISK_MAX)
    };
    Journal::open(options, &[head; 5]).expect("the directory is fine")
}

impl Life {
    fn new(durability: Durability) -> Self {
        let directory = tempfile::tempdir().expect("there is room for a test");
        let journal = open(durability, directory.path(), 0);
        let (records, earlier, batches) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            durability,
            directory,
            journal,
            head: 0,
            next: 0,
            records,
            earlier,
            unread: 0,
            batches,
            durable: 0,
        }
    }

    fn take(&mut self, step: &Step) -> Checked {
        match *step {
            Step::Append { items, bytes, times } => {
                for _ in 0..times {
                    self.append(items, bytes)?;
                }
            }
            Step::Read { items_max, bytes_max } => self.read(items_max, bytes_max)?,
            Step::Acknowledge(index) => {
                if !self.batches.is_empty() {
                    let batch = self.batches.swap_remove(index % self.batches.len());
                    self.acknowledge(&batch);
                }
            }
            Step::AcknowledgeAll => {
                for batch in std::mem::take(&mut self.batches) {
                    self.acknowledge(&batch);
                }
            }
            Step::Rewind => {
                self.journal.rewind();
                self.unread = 0;
            }
            Step::Head(head) => {
                self.journal.set_head(&[head; 5]);
                self.head = head;
            }
            Step::Flush => self.flush(),
            Step::Adopt(times) => self.adopt(times)?,
            Step::Restart => self.restart()?,
            Step::Crash => self.crash(None)?,
        }
        self.check()
    }

    fn append(&mut self, items: u32, bytes: usize) -> Checked {
        match self.journal.append(items, &payload(self.next, bytes)) {
            AppendResult::Kept => {
                let (number, head) = (self.next, self.head);
                self.records.push(Record { number, items, bytes, head, acknowledged: false });
                self.next += 1;
            }
            AppendResult::Dropped(why) => prop_assert_eq!(why, Why::Full),
        }
        if self.durability == Durability::WriteThrough {
            self.durable = self.next;
        }
        Ok(())
    }

    fn read(&mut self, items_max: u64, bytes_max: usize) -> Checked {
        let skipped = self.records[self.unread..].iter().take_while(|record| record.acknowledged);
        self.unread += skipped.count();
        let Some(batch) = self.journal.read(items_max, bytes_max) else {
            prop_assert_eq!(self.unread, self.records.len(), "there was something to read");
            return Ok(());
        };
        let (mut items, mut bytes, mut count) = (0, 0, 0);
        for found in batch.records() {
            let expected = &self.records[self.unread];
            prop_assert!(!expected.acknowledged);
            prop_assert_eq!(found.items, expected.items);
            prop_assert_eq!(batch.head(), [expected.head; 5]);
            prop_assert!(found.bytes == payload(expected.number, expected.bytes));
            items += u64::from(found.items);
            bytes += found.bytes.len();
            count += 1;
            self.unread += 1;
        }
        prop_assert!(count > 0);
        prop_assert!(count == 1 || (items <= items_max && bytes <= bytes_max));
        prop_assert_eq!((batch.items(), batch.bytes()), (items, bytes));
        self.batches.push(batch);
        Ok(())
    }

    fn acknowledge(&mut self, batch: &Batch) {
        self.journal.acknowledge(batch);
        for found in batch.records() {
            if let Some(index) = find(&self.records, number_of(found.bytes)) {
                self.records[index].acknowledged = true;
            }
        }
    }

    fn flush(&mut self) {
        self.journal.flush().expect("the disk is fine");
        self.durable = self.next;
    }

    fn adopt(&mut self, times: usize) -> Checked {
        if disk_usage(self.directory.path()) > DISK_MAX / 2 {
            return Ok(());
        }
        self.flush();
        let other = open(self.durability, self.directory.path(), self.head);
        for _ in 0..times {
            let (number, head, bytes) = (self.next, self.head, 100 + 37 * times);
            prop_assert_eq!(other.append(2, &payload(number, bytes)), AppendResult::Kept);
            self.records.push(Record { number, items: 2, bytes, head, acknowledged: false });
            self.next += 1;
        }
        other.close();
        prop_assert_eq!(self.journal.adopt().expect("the directory is fine"), 2 * times as u64);
        self.durable = self.next;
        Ok(())
    }

    fn restart(&mut self) -> Checked {
        let closed = self.journal.close();
        prop_assert_eq!((closed.queued, closed.dropped), (self.queued(), 0));
        self.durable = self.next;
        let path = self.directory.path().to_owned();
        self.recover(open(self.durability, &path, self.head), None)
    }

    /// Continues with a copy of the directory, optionally a damaged one.
    fn crash(&mut self, damage: Option<Damage>) -> Checked {
        let copy = tempfile::tempdir().expect("there is room for a test");
        let folder = copy.path().join("0");
        fs::create_dir(&folder).expect("it is new");
        on_disk::copy(&self.directory.path().join("0"), &folder);
        let excused = damage.map(|damage| damage.apply(&folder));
        let journal = open(self.durability, copy.path(), self.head);
        self.recover(journal, excused)?;
        self.directory = copy;
        Ok(())
    }

    /// Checks that the recovered records are those that were durable, in order, with no invented record. Then continues
    /// with them.
    fn recover(&mut self, journal: Journal, excused: Option<Vec<u64>>) -> Checked {
        let is_damaged = excused.is_some();
        let excused = excused.unwrap_or_default();
        self.journal = journal;
        self.batches.clear();
        let mut found = Vec::new();
        while let Some(batch) = self.journal.read(u64::MAX, usize::MAX) {
            for record in batch.records() {
                let number = number_of(record.bytes);
                let known = find(&self.records, number).map(|index| &self.records[index]);
                let earlier = || find(&self.earlier, number).map(|index| &self.earlier[index]);
                let Some(known) = known.or_else(|| earlier().filter(|_| is_damaged)) else {
                    return Err(TestCaseError::fail(format!("{number} came out of nowhere")));
                };
                prop_assert_eq!(batch.head(), [known.head; 5]);
                prop_assert_eq!(record.items, known.items);
                prop_assert!(record.bytes == payload(number, known.bytes));
                found.push(Record { acknowledged: false, ..known.clone() });
            }
        }
        prop_assert!(found.is_sorted_by(|one, next| one.number < next.number), "in order, once");
        for known in
            self.records.iter().filter(|known| !known.acknowledged && known.number < self.durable)
        {
            let is_there = find(&found, known.number).is_some();
            prop_assert!(is_there || excused.contains(&known.number), "{} is lost", known.number);
        }
        if excused.is_empty() {
            let tail = self
                .records
                .iter()
                .filter(|known| known.number >= self.durable && !known.acknowledged);
            let is_there = tail.map(|known| find(&found, known.number).is_some());
            prop_assert!(is_there.is_sorted_by(|one, next| one >= next), "only a tail is missing");
        }
        if !is_damaged && self.durable == self.next {
            let cursor = self.records.iter().find(|known| !known.acknowledged);
            let first = found.first().map(|record| record.number);
            prop_assert_eq!(
                first,
                cursor.map(|known| known.number),
                "nothing acknowledged comes back"
            );
        }
        let items: u64 = found.iter().map(|record| u64::from(record.items)).sum();
        prop_assert_eq!(self.journal.counts().recovered, items);
        self.earlier.extend(self.records.drain(..).filter(|record| record.acknowledged));
        self.earlier.sort_unstable_by_key(|record| record.number);
        self.records = found;
        self.durable = self.next;
        self.journal.rewind();
        self.unread = 0;
        Ok(())
    }

    fn queued(&self) -> u64 {
        let left = self.records.iter().filter(|record| !record.acknowledged);
        left.map(|record| u64::from(record.items)).sum()
    }

    fn check(&self) -> Checked {
        let counts = self.journal.counts();
        let gone = counts.acknowledged + counts.dropped;
        prop_assert_eq!(counts.accepted + counts.recovered, gone + counts.queued);
        prop_assert_eq!(counts.queued, self.queued());
        prop_assert_eq!((counts.damaged, counts.write_errors), (0, 0));
        let used = disk_usage(self.directory.path());
        prop_assert!(used <= DISK_MAX, "{} bytes are on disk", used);
        Ok(())
    }
}

/// Disk usage as `du` counts it.
fn disk_usage(path: &Path) -> u64 {
    let Ok(metadata) = fs::metadata(path) else { return 0 };
    let inside = fs::read_dir(path).into_iter().flatten().flatten();
    metadata.blocks() * 512 + inside.map(|entry| disk_usage(&entry.path())).sum::<u64>()
}

fn live(durability: Durability, steps: &[Step], damage: Option<Damage>) -> Checked {
    let mut life = Life::new(durability);
    for step in steps {
        life.take(step)?;
    }
    let is_damaged = damage.is_some();
    if is_damaged {
        life.flush();
        life.crash(damage)?;
    }
    // Reads to the end, in small batches.
    while life.unread < life.records.len() {
        life.read(7, 2000)?;
    }
    life.take(&Step::AcknowledgeAll)?;
    prop_assert_eq!(life.queued(), 0);
    life.restart()?;
    prop_assert_eq!(life.records.len(), 0, "what was acknowledged does not come back");
    let left: Vec<Found> = segments(&life.directory.path().join("0"));
    prop_assert!(is_damaged || left.is_empty(), "{:?}", left);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_memory(steps in vec(step(), 0..60)) {
        live(Durability::Memory, &steps, None)?;
    }

    #[test]
    fn process(steps in vec(step(), 0..60)) {
        live(Durability::Process, &steps, None)?;
    }

    #[test]
    fn write_through(steps in vec(step(), 0..60)) {
        live(Durability::WriteThrough, &steps, None)?;
    }

    #[test]
    fn host(steps in vec(step(), 0..20)) {
        live(Durability::Host, &steps, None)?;
    }

    #[test]
    fn damaged(steps in vec(step(), 1..30), damage in on_disk::damage(), through in any::<bool>()) {
        let durability = if through { Durability::WriteThrough } else { Durability::Memory };
        live(durability, &steps, Some(damage))?;
    }
}

//! A killed process loses no record for which `append` has returned if it writes through, and otherwise only a tail.

use std::{
    env,
    fs::File,
    io::{BufRead, BufReader, Write, stdout},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use journal::{AppendResult, Durability, Journal, Options};

const DIRECTORY: &str = "JOURNAL_TEST_DIRECTORY";
const PRODUCERS: u64 = 2;
const KILLS: usize = 8;

#[expect(clippy::disallowed_methods, reason = "a test is a main: this is the clock it hands down")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "this is how a test tells its child that it is one")]
fn given_directory() -> Option<PathBuf> {
    env::var_os(DIRECTORY).map(PathBuf::from)
}

fn count_file(directory: &Path, producer: u64) -> PathBuf {
    directory.join(format!("count-{producer}"))
}

/// Appends until killed. A file counts the records for which `append` has returned; the child prints progress now and
/// then.
fn produce(directory: &Path, durability: Durability) {
    let options = Options { durability, ..Options::in_directory(directory, now) };
    let journal = Journal::open(options, b"head").expect("the child can open");
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let journal = &journal;
            let count = File::create(count_file(directory, producer)).expect("the child can count");
            scope.spawn(move || {
                for number in 0u64.. {
                    let mut record = producer.to_le_bytes().to_vec();
                    record.extend(number.to_le_bytes());
                    record.resize(64, 7);
                    assert_eq!(journal.append(1, &record), AppendResult::Kept);
                    let counted = (number + 1).to_le_bytes();
                    count.write_all_at(&counted, 0).expect("the child can count");
                    if number % 64 == 63 {
                        writeln!(stdout(), "appended").expect("the parent listens");
                    }
                }
            });
        }
    });
}

/// Returns how many records of each producer were found; they must be the first ones, in order.
fn found(journal: &Journal) -> [u64; PRODUCERS as usize] {
    let mut next = [0; PRODUCERS as usize];
    while let Some(batch) = journal.read(1000, 1 << 20) {
        for record in batch.records() {
            let number = |at: usize| {
                record.bytes[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
            };
            let producer = number(0).expect("a record has a producer") as usize;
            assert_eq!(number(8), Some(next[producer]), "in order, each once");
            next[producer] += 1;
        }
        journal.acknowledge(&batch);
    }
    next
}

fn kill(test: &str, durability: Durability) {
    if let Some(directory) = given_directory() {
        return produce(&directory, durability);
    }
    let directory = tempfile::tempdir().expect("there is room for a test");
    let mut total = 0;
    for round in 0..KILLS {
        let mut child = Command::new(env::current_exe().expect("a test is a program"))
            .args(["--exact", test, "--nocapture"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a test can be started");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let told = lines.map_while(Result::ok).filter(|line| line.ends_with("appended"));
        assert_eq!(told.take(round * 7 + 3).count(), round * 7 + 3, "the child ended by itself");
        child.kill().expect("a child can be killed");
        child.wait().expect("a child can be waited for");

        let options = Options { durability, ..Options::in_directory(directory.path(), now) };
        let journal = Journal::open(options, b"next").expect("the lock went with the child");
        let found = found(&journal);
        for (producer, found) in (0..).zip(found) {
            let count = std::fs::read(count_file(directory.path(), producer)).unwrap_or_default();
            let returned = count.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if durability == Durability::WriteThrough {
                assert!(found >= returned, "{found} of {returned} are there");
                assert!(found <= returned + 1, "{found} of {returned}: one was on its way");
            }
        }
        total += found.iter().sum::<u64>();
        assert_eq!(journal.counts().queued, 0);
    }
    assert!(total > 0);
}

#[test]
fn write_through() {
    kill("write_through", Durability::WriteThrough);
}

#[test]
fn process() {
    kill("process", Durability::Process);
}

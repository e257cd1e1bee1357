//! Measures the cost of an append: nanoseconds per record of 200 bytes, for each durability, with one producer and with
//! two.
//!
//! Run with `cargo run --release --example cost -p qualitytrace-journal`. An optional directory argument sets where the
//! files go.

use std::{
    env,
    error::Error,
    fs,
    io::{self, Write},
    path::PathBuf,
    process, thread,
    time::{Duration, Instant},
};

use journal::{AppendResult, Durability, Journal, Options};

const RECORD: [u8; 200] = [0x5a; 200];

/// Appends per measurement.
const WINDOW: u32 = 5000;

#[expect(clippy::disallowed_methods, reason = "this is main: the clock is handed down from here")]
fn now() -> Instant {
    Instant::now()
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = env::args_os().nth(1).map(PathBuf::from);
    let directory =
        given.unwrap_or_else(|| env::temp_dir().join(format!("journal-cost-{}", process::id())));
    let mut out = io::stdout();
    writeln!(
        out,
        "{:<28} {:>12} {:>12}",
        "ns per append of 200 bytes", "1 producer", "2 producers"
    )?;
    let in_memory = Options::in_memory(64 << 20, now);
    row(&mut out, "memory, no directory", &in_memory, 4_000_000)?;
    let cases = [
        ("memory", Durability::Memory, 4_000_000),
        ("process", Durability::Process, 4_000_000),
        ("write-through", Durability::WriteThrough, 200_000),
        ("host", Durability::Host, 2_000_000),
    ];
    for (name, durability, records) in cases {
        let options = Options { durability, ..Options::in_directory(&directory, now) };
        row(&mut out, name, &options, records)?;
    }
    fs::remove_dir_all(&directory)?;
    Ok(())
}

fn row(
    out: &mut impl Write,
    name: &str,
    options: &Options,
    records: u32,
) -> Result<(), Box<dyn Error>> {
    let one = cost(options, 1, records)?;
    let two = cost(options, 2, records)?;
    writeln!(out, "{name:<28} {one:>12.1} {two:>12.1}")?;
    Ok(())
}

/// Measures with a reader that keeps up, like a healthy sender. Returns the median over windows of many appends, so
/// that other load on the machine has little influence.
fn cost(options: &Options, producers: u32, records: u32) -> Result<f64, Box<dyn Error>> {
    let journal = Journal::open(options.clone(), b"head")?;
    let windows = records / producers / WINDOW;
    let mut spent: Vec<Duration> = thread::scope(|scope| {
        let produce = || (0..windows).map(|_| window(&journal)).collect::<Vec<_>>();
        let threads: Vec<_> = (0..producers).map(|_| scope.spawn(produce)).collect();
        let mut left = u64::from(windows) * u64::from(WINDOW) * u64::from(producers);
        while left > 0 {
            while let Some(batch) = journal.read(4096, 1 << 20) {
                left -= batch.items();
                journal.acknowledge(&batch);
            }
            thread::park_timeout(Duration::from_millis(5));
        }
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    journal.close();
    spent.sort_unstable();
    let median = spent.get(spent.len() / 2).copied().unwrap_or_default();
    Ok(median.as_nanos() as f64 / f64::from(WINDOW))
}

fn window(journal: &Journal) -> Duration {
    let start = now();
    for _ in 0..WINDOW {
        assert_eq!(journal.append(1, &RECORD), AppendResult::Kept);
    }
    start.elapsed()
}

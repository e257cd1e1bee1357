//! Repeats the suite on a machine with all cores busy.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use tokio::time::Instant;

use super::{DogfoodStand, say, suite};
use crate::table::{Goal, Row};

/// The number of verdicts to collect.
const VERDICTS: usize = 1_000;
/// The time limit.
const TIME_MAX: Duration = Duration::from_secs(20 * 60);

/// The upper bound of inconclusive verdicts, in percent.
const INCONCLUSIVE_MAX: f64 = 1.0;

/// Threads that keep all cores busy until they are dropped.
struct Busy {
    is_over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Busy {
    fn start() -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = (0..thread::available_parallelism()?.get()).map(|_| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        });
        let threads = threads.collect();
        Ok(Self { is_over, threads })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended as well.
            let _ended = thread.join();
        }
    }
}

/// Repeats the suite until there are enough verdicts or the time limit is reached.
pub(super) async fn measure(binary: &Path) -> Result<Vec<Row>> {
    let stand = DogfoodStand::start(binary, None).await?;
    let tests = suite::apply(&stand).await?;
    let busy = Busy::start()?;
    let began = Instant::now();
    let (mut verdicts, mut failed, mut inconclusive) = (0, 0, 0);
    while verdicts < VERDICTS && began.elapsed() < TIME_MAX {
        for ran in suite::run(&stand, &tests, "the same").await? {
            verdicts += 1;
            match ran.verdict.as_str() {
                "passed" => continue,
                "failed" => failed += 1,
                _ => inconclusive += 1,
            }
            say(&suite::complaint(&ran));
        }
        say(&format!("{verdicts} verdicts, {failed} wrong, {inconclusive} inconclusive"));
    }
    drop(busy);
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    stand.end().await?;
    let row = |name: &str, value: f64, unit, goal| Row { name: name.to_owned(), value, unit, goal };
    ensure!(failed == 0, "{failed} of {verdicts} verdicts are wrong");
    let share = f64::from(inconclusive) / verdicts.max(1) as f64 * 100.0;
    ensure!(share <= INCONCLUSIVE_MAX, "{share} % of {verdicts} verdicts are inconclusive");
    Ok(vec![
        row("verdicts", verdicts as f64, "", Some(Goal::AtLeast(VERDICTS as f64))),
        row("time", minutes, "min", Some(Goal::AtMost(TIME_MAX.as_secs_f64() / 60.0))),
        row("wrong verdicts", f64::from(failed), "", Some(Goal::AtMost(0.0))),
        row("inconclusive", share, "%", Some(Goal::AtMost(INCONCLUSIVE_MAX))),
    ])
}

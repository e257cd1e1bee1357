//! A million malformed requests: no panic, a response to each, and no memory leak.
//!
//! A request is generated from its number, so that a failing one can be reproduced. Most are valid exports with some bytes
//! changed, over gRPC, HTTP/1.1 and HTTP/2; some are not HTTP at all. Those count as answered when the receiver sends something
//! or closes the connection.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, bail};
use tokio::{task::JoinSet, time::timeout};

use super::{Receiver, row};
use crate::table::{Goal, Row};

mod broken;
mod sender;

use broken::{Broken, Pool};
use sender::Senders;

const REQUESTS: u64 = 1_000_000;
/// After this number of requests memory must have reached its size, within a tolerance.
const SETTLED: u64 = 100_000;
const GROWTH_MB_MAX: f64 = 8.0;
/// The timeout of a response.
const ANSWER_MAX: Duration = Duration::from_secs(20);
const WORKERS: u64 = 8;
/// The upper bound of failed requests that are listed.
const NAMED_MAX: u64 = 10;

/// The results of the requests.
#[derive(Default)]
struct IngestTally {
    taken: AtomicU64,
    refused: AtomicU64,
    unanswered: AtomicU64,
}

/// Checks a receiver that `binary` starts; with `--short` a two-hundredth of the requests.
pub async fn measure(binary: &Path, arguments: &[String]) -> Result<Vec<Row>> {
    let part = match arguments {
        [] => 1,
        [short] if short == "--short" => 200,
        _ => bail!("expected nothing or --short"),
    };
    let receiver = Receiver::start_from(binary, "open").await?;
    let pool = Arc::new(Pool::new()?);
    let tally = Arc::new(IngestTally::default());
    send(&receiver, 0..SETTLED / part, &pool, &tally).await?;
    let settled = receiver.resident_mb()?;
    send(&receiver, SETTLED / part..REQUESTS / part, &pool, &tally).await?;
    let growth = receiver.resident_mb()? - settled;
    let panics = receiver.finish().await;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    Ok(vec![
        row("requests, most of them broken", (REQUESTS / part) as f64, "requests", None),
        row("  taken", count(&tally.taken), "requests", None),
        row("  refused", count(&tally.refused), "requests", None),
        row("  not answered", count(&tally.unanswered), "requests", Some(Goal::AtMost(0.0))),
        row("panics", f64::from(panics.is_err()), "", Some(Goal::AtMost(0.0))),
        row("resident after the first tenth", settled, "MB", None),
        row("growth since", growth, "MB", Some(Goal::AtMost(GROWTH_MB_MAX))),
    ])
}

async fn send(
    receiver: &Receiver,
    numbers: std::ops::Range<u64>,
    pool: &Arc<Pool>,
    tally: &Arc<IngestTally>,
) -> Result<()> {
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let share = (numbers.start + worker..numbers.end).step_by(WORKERS as usize);
        workers.spawn(work(receiver.grpc, share, Arc::clone(pool), Arc::clone(tally)));
    }
    while let Some(ended) = workers.join_next().await {
        ended?;
    }
    Ok(())
}

async fn work(
    port: u16,
    numbers: impl Iterator<Item = u64>,
    pool: Arc<Pool>,
    tally: Arc<IngestTally>,
) {
    let mut senders = Senders::new(port);
    for number in numbers {
        let broken = Broken::throw(number, &pool);
        let counter = match timeout(ANSWER_MAX, senders.send(broken)).await {
            Ok(Ok(true)) => &tally.taken,
            Ok(Ok(false)) => &tally.refused,
            Ok(Err(error)) => unanswered(number, &format!("{error:#}"), &tally),
            Err(_) => unanswered(number, "nothing came", &tally),
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[expect(clippy::print_stdout, reason = "a proof says what it found")]
fn unanswered<'a>(number: u64, why: &str, tally: &'a IngestTally) -> &'a AtomicU64 {
    if tally.unanswered.load(Ordering::Relaxed) < NAMED_MAX {
        println!("request {number} was not answered: {why}");
    }
    &tally.unanswered
}

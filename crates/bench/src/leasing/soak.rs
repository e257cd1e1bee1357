//! A thousand workers, each with one run at a time: 10,000 runs a minute are accepted, leased, renewed and ended, for minutes. A
//! transaction that sees an old state of the tables is open for a part of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    LoadExtent,
    stand::{LeasingWorker, Stand, execute, wait_until},
    windows::{WINDOW, Window, Windows},
};
use crate::table::Row;

const WORKERS: u32 = 1000;
/// Each worker begins a run at this interval: together 10,000 a minute.
const PERIOD: Duration = Duration::from_secs(6);
/// The tasks that accept runs, at the same rate.
const ACCEPTERS: u32 = 20;

/// Counts of all workers since the begin.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) leases: AtomicU64,
    pub(super) busy: AtomicU64,
    pub(super) leased: AtomicU64,
    pub(super) ended: AtomicU64,
    /// Microseconds from when a worker wanted a run until it had one.
    pub(super) waited_us: AtomicU64,
}

pub(super) async fn measure(stand: &Arc<Stand>, extent: LoadExtent) -> Result<Vec<Row>> {
    let counters = Arc::new(Counters::default());
    let begin = Instant::now() + Duration::from_secs(1);
    let until = begin + WINDOW * u32::try_from(extent.windows)?;
    let mut load = JoinSet::new();
    for number in 0..WORKERS {
        let (stand, counters) = (Arc::clone(stand), Arc::clone(&counters));
        let first = begin + PERIOD * number / WORKERS;
        load.spawn(async move { work(&stand, &counters, first, until).await });
    }
    for number in 0..ACCEPTERS {
        let stand = Arc::clone(stand);
        let interval = PERIOD * ACCEPTERS / WORKERS;
        let first = begin + interval * number / ACCEPTERS;
        load.spawn(async move { accept(&stand, first, interval, until).await });
    }
    let mut windows = Windows::begin(stand, &counters).await?;
    let mut long = None;
    for number in 0..extent.windows {
        if number == extent.long.0 {
            let mut connection = stand.cluster.connect().await?;
            let opened = "begin isolation level repeatable read; select count(*) from tests";
            execute(&mut connection, opened).await?;
            long = Some(connection);
        }
        if number == extent.long.1 {
            execute(&mut long.take().context("it is open")?, "commit").await?;
        }
        wait_until(begin + WINDOW * u32::try_from(number + 1)?).await;
        let window: &Window = windows.note(stand, &counters).await?;
        say(&format!("{} lanes: {window}", stand.lanes()));
        // A task that failed ends the bench at once.
        while let Some(ended) = load.try_join_next() {
            ended??;
        }
    }
    while let Some(ended) = load.join_next().await {
        ended??;
    }
    windows.rows(stand, extent).await
}

/// A worker: leases a run at each interval, works on it for five seconds, and ends it.
async fn work(stand: &Stand, counters: &Counters, first: Instant, until: Instant) -> Result<()> {
    let mut worker = LeasingWorker::default();
    let mut next = first;
    // A worker that is behind has no more time than the others.
    while next < until && Instant::now() < until {
        wait_until(next).await;
        let began = Instant::now();
        let (leases, busy) = (worker.leases, worker.busy);
        let leased = worker.lease(stand, 1).await?;
        counters.leases.fetch_add(worker.leases - leases, Ordering::Relaxed);
        counters.busy.fetch_add(worker.busy - busy, Ordering::Relaxed);
        counters.leased.fetch_add(leased.len() as u64, Ordering::Relaxed);
        counters.waited_us.fetch_add(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        for run in &leased {
            stand.fire(run).await?;
            sleep(Duration::from_secs(1)).await;
            stand.judge_provisionally(run).await?;
            wait_until(began + Duration::from_millis(3300)).await;
            stand.renew(run).await?;
            wait_until(began + Duration::from_secs(5)).await;
            stand.finish(run).await?;
            counters.ended.fetch_add(1, Ordering::Relaxed);
        }
        next += PERIOD;
    }
    Ok(())
}

async fn accept(stand: &Stand, first: Instant, interval: Duration, until: Instant) -> Result<()> {
    let mut next = first;
    while next < until {
        wait_until(next).await;
        stand.accept().await?;
        next += interval;
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "long work shows progress")]
fn say(text: &str) {
    eprintln!("{text}");
}

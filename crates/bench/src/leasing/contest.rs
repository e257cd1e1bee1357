//! What a lease brings while many workers want as many runs as they can get.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use tokio::{task::JoinSet, time::Instant};

use super::{
    row,
    stand::{LeasingWorker, Stand},
};
use crate::table::{Goal, Row};

const WORKERS: usize = 64;
const RUNS: usize = 16;
const LASTS: Duration = Duration::from_secs(20);

/// Lets workers lease 16 runs each and end them, over and over.
pub(super) async fn measure(stand: &Arc<Stand>) -> Result<Vec<Row>> {
    let until = Instant::now() + LASTS;
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let stand = Arc::clone(stand);
        workers.spawn(async move {
            let (mut worker, mut runs) = (LeasingWorker::default(), 0);
            while Instant::now() < until {
                let leased = worker.lease(&stand, RUNS).await?;
                runs += leased.len();
                for run in &leased {
                    stand.finish(run).await?;
                }
            }
            anyhow::Ok((worker, runs))
        });
    }
    let (mut leases, mut busy, mut runs) = (0, 0, 0);
    while let Some(ended) = workers.join_next().await {
        let (worker, leased) = ended??;
        leases += worker.leases;
        busy += worker.busy;
        runs += leased;
    }
    let (lanes, leases) = (stand.lanes(), leases as f64);
    let yielded = runs as f64 / (leases * RUNS as f64);
    Ok(vec![
        row(lanes, "64 workers: leases a second", leases / LASTS.as_secs_f64(), "leases", None),
        row(
            lanes,
            "64 workers: tries that met another one, a lease",
            busy as f64 / leases,
            "",
            None,
        ),
        row(
            lanes,
            "64 workers: runs of a lease, over those that it wanted",
            yielded,
            "ratio",
            Some(Goal::AtLeast(0.95)),
        ),
    ])
}

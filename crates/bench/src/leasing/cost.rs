//! What a lease costs, while no other worker leases.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::stand::{LeasingWorker, Stand, execute};

/// Leases that are measured together, and how often.
const LEASES: usize = 40;
const ROUNDS: usize = 10;
const RUNS: usize = 16;

/// Returns the CPU time of Postgres for a lease of 16 runs, in milliseconds, with what is read of the runs.
pub(super) async fn measure(stand: &Stand) -> Result<f64> {
    let mut worker = LeasingWorker::default();
    let mut connection = stand.cluster.connect().await?;
    let mut sum = Duration::ZERO;
    for round in 0..=ROUNDS {
        let before = stand.cluster.cpu()?;
        for _ in 0..LEASES {
            let leased = worker.lease(stand, RUNS).await?;
            ensure!(leased.len() == RUNS, "{} of {RUNS} runs", leased.len());
        }
        // In the first round, connections plan their statements.
        if round > 0 {
            sum += stand.cluster.cpu()?.saturating_sub(before);
        }
        for statement in ["delete from open_runs where epoch > 0", "vacuum open_runs"] {
            execute(&mut connection, statement).await?;
        }
    }
    Ok(sum.as_secs_f64() * 1e3 / (ROUNDS * LEASES) as f64)
}

//! `cargo xtask prove settle --queried`: runs whose spans are in a trace store, with a known truth, on a virtual clock.
//!
//! The store is scripted (`store`): it shows each span some time after it accepted it, in pieces and out of order, and its answers fail,
//! hang, are cut, are partial, go backwards and repeat. Everything else is simple: every process sends a span a fixed time after its
//! end, and nothing is withheld. So a wrong verdict is the fault of what is concluded from the answers of the store.
//!
//! A verdict must be right where no span was hidden for longer than the lag that the run used. Beyond that, the share of wrong
//! verdicts is counted by how far beyond. The number of a run determines all of it.

mod count;
mod store;
mod world;

use std::{
    num::NonZero,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, bail};
use model::LearnedProfile;

use super::{chance::Dice, stage, virtual_clock};
pub use count::QueriedTally;
use world::{Scenario, perform};

/// Runs of one system, the first of them without a learned profile.
const RUNS_OF_SYSTEM: u64 = 20;

/// Runs a few thousand, on all cores.
pub fn short() -> Result<QueriedTally> {
    runs_of(super::RUNS_SHORT)
}

/// Runs this many, on all cores.
pub(super) fn runs_of(runs: u64) -> Result<QueriedTally> {
    let (next, all) = (AtomicU64::new(0), Mutex::new(QueriedTally::default()));
    let systems = runs.div_ceil(RUNS_OF_SYSTEM);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let work = || -> Result<()> {
            let runtime = virtual_clock()?;
            let mut tally = QueriedTally::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= systems {
                    break;
                }
                runtime
                    .block_on(system(number, &mut tally))
                    .with_context(|| format!("system {number}"))?;
            }
            all.lock().unwrap_or_else(PoisonError::into_inner).join(tally);
            Ok(())
        };
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => bail!("a run panicked"),
        })
    })?;
    Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Plays the runs of one system, one after the other.
async fn system(number: u64, tally: &mut QueriedTally) -> Result<()> {
    let mut dice = Dice::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x51);
    let scenario = Scenario::draw(&mut dice)?;
    let (keys, mut learned) = (stage::keys(), LearnedProfile::default());
    for run in 0..RUNS_OF_SYSTEM {
        let mut dice = Dice::new(dice.next());
        let ended = perform(&scenario, &learned, &keys, &mut dice).await?;
        tally.add(number * RUNS_OF_SYSTEM + run, &ended);
        ended.seen.iter().for_each(|seen| learned.observe(seen));
    }
    Ok(())
}

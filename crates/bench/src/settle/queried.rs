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

use anyhow::{Context, Result};
use model::LearnedProfile;
use tokio::runtime::Runtime;

use super::{chance::Dice, on_all_cores, stage};
pub use count::QueriedTally;
use world::{Scenario, perform};

/// Runs of one system, the first of them without a learned profile.
const RUNS_OF_SYSTEM: u64 = 20;

/// Runs of the test, which shares the cores with others.
const RUNS_OF_TEST: u64 = 2_000;

/// Runs a few thousand, on all cores.
pub fn short() -> Result<QueriedTally> {
    runs_of(RUNS_OF_TEST)
}

/// Runs this many, on all cores.
pub(super) fn runs_of(runs: u64) -> Result<QueriedTally> {
    let play = |runtime: &Runtime, number, tally: &mut QueriedTally| {
        let played = runtime.block_on(system(number, tally));
        played.with_context(|| format!("system {number}"))?;
        Ok(true)
    };
    on_all_cores(runs.div_ceil(RUNS_OF_SYSTEM), play, QueriedTally::join)
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

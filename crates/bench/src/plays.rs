//! `cargo xtask prove plays`: the decisions of the bus over NATS on a virtual clock, a million times.

use std::thread;

use anyhow::{Context, Result, bail, ensure};
use bus::{PlantedFault, PlayCounts, play};

use crate::table::{Goal, Row};

/// The plays in which each planted fault has to be found.
const FAULT_PLAYS: u64 = 100_000;

/// Plays as often as the argument states, and returns the rows of the table.
pub fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let plays: u64 = match rest {
        [] => 1_000_000,
        [plays] => plays.parse().with_context(|| format!("`{plays}` is not a number of plays"))?,
        _ => bail!("expected at most the number of plays"),
    };
    ensure!(plays > 0, "expected at least one play");
    let counted = thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || count((half..plays).step_by(2))));
        halves.map(|half| half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let [(one, mut missing), (other, more)] = counted;
    missing.extend(more);
    if let Some(why) = missing.first() {
        bail!("{} of {plays} plays went wrong; the first one: {why}", missing.len());
    }
    let is_found =
        |fault: &PlantedFault| (0..FAULT_PLAYS).any(|seed| play(seed, Some(*fault)).is_err());
    let found = PlantedFault::ALL.iter().filter(|fault| is_found(fault)).count();
    let row = |name: &str, value: u64, goal| Row {
        name: name.to_owned(),
        value: value as f64,
        unit: "",
        goal,
    };
    Ok(vec![
        row("plays", plays, None),
        row("proofs", one.proved + other.proved, None),
        row("doubts", one.doubts + other.doubts, None),
        row("traces that a second process resumed", one.resumed + other.resumed, None),
        row("proofs with a missing batch", missing.len() as u64, Some(Goal::AtMost(0.0))),
        row(
            "planted faults that were found",
            found as u64,
            Some(Goal::AtLeast(PlantedFault::ALL.len() as f64)),
        ),
    ])
}

/// Plays these seeds; returns the counts, and what was missing.
fn count(seeds: impl Iterator<Item = u64>) -> (PlayCounts, Vec<String>) {
    let (mut all, mut missing) = (PlayCounts::default(), Vec::new());
    for seed in seeds {
        match play(seed, None) {
            Ok(counts) => {
                all.proved += counts.proved;
                all.doubts += counts.doubts;
                all.resumed += counts.resumed;
            }
            Err(why) => missing.push(why),
        }
    }
    (all, missing)
}

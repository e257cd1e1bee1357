//! `cargo xtask prove plays`: decisions on virtual clocks, a million times: those of the bus over NATS, and those about leases.

use std::thread;

use anyhow::{Context, Result, bail, ensure};
use bus::{PlantedFault, PlayCounts, play};
use server::{LeaseCounts, LeaseFault, play_lease};

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
    let mut rows = vec![row("plays, of the bus and of leases each", plays, None)];
    let mut wrong = Vec::new();
    rows.extend(bus_rows(plays, &mut wrong));
    rows.extend(lease_rows(plays, &mut wrong));
    match wrong.first() {
        Some(why) => bail!("{} plays went wrong; the first one: {why}", wrong.len()),
        None => Ok(rows),
    }
}

fn bus_rows(plays: u64, wrong: &mut Vec<String>) -> Vec<Row> {
    let (mut all, before) = (PlayCounts::default(), wrong.len());
    for counts in played(plays, wrong, |seed| play(seed, None)) {
        all.proved += counts.proved;
        all.doubts += counts.doubts;
        all.resumed += counts.resumed;
        all.repeated += counts.repeated;
    }
    let missing = wrong.len() - before;
    let is_found = |fault| (0..FAULT_PLAYS).any(|seed| play(seed, Some(fault)).is_err());
    vec![
        row("bus: proofs", all.proved, Some(Goal::AtLeast(1.0))),
        row("bus: doubts", all.doubts, Some(Goal::AtLeast(1.0))),
        row("bus: traces that a second process resumed", all.resumed, None),
        row("bus: proofs though batches had been refused", all.repeated, None),
        row("bus: proofs with a missing batch", missing as u64, Some(Goal::AtMost(0.0))),
        faults("bus", PlantedFault::ALL.map(is_found)),
    ]
}

fn lease_rows(plays: u64, wrong: &mut Vec<String>) -> Vec<Row> {
    let (mut all, before) = (LeaseCounts::default(), wrong.len());
    for counts in played(plays, wrong, |seed| play_lease(seed, None)) {
        all.add(&counts);
    }
    let broken = wrong.len() - before;
    let is_found = |fault| (0..FAULT_PLAYS).any(|seed| play_lease(seed, Some(fault)).is_err());
    let some = Some(Goal::AtLeast(1.0));
    vec![
        row("leases: runs that ended", all.ended, Some(Goal::AtLeast(2.0 * plays as f64))),
        row("leases: triggers", all.fired, some),
        row("leases: leases of runs that had an owner before", all.taken_over, some),
        row("leases: tasks that lost their lease", all.lost, some),
        row("leases: triggers withheld", all.withheld, some),
        row("leases: runs given up after two owners", all.given_up, some),
        row(
            "leases: plays with a second trigger or verdict, an effect after a loss, or no end",
            broken as u64,
            Some(Goal::AtMost(0.0)),
        ),
        faults("leases", LeaseFault::ALL.map(is_found)),
    ]
}

/// Plays all seeds on two threads. Returns the counts of each play; adds to `wrong` why a play went wrong.
fn played<C: Send>(
    plays: u64,
    wrong: &mut Vec<String>,
    play: impl Fn(u64) -> Result<C, String> + Copy + Send,
) -> Vec<C> {
    let half = |first: u64| move || (first..plays).step_by(2).map(play).collect::<Vec<_>>();
    let halves = thread::scope(|scope| {
        let halves = [0, 1].map(|first| scope.spawn(half(first)));
        halves.map(|half| half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let mut counts = Vec::new();
    for play in halves.into_iter().flatten() {
        match play {
            Ok(play) => counts.push(play),
            Err(why) => wrong.push(why),
        }
    }
    counts
}

fn faults<const COUNT: usize>(what: &str, found: [bool; COUNT]) -> Row {
    let count = found.iter().filter(|is_found| **is_found).count();
    row(
        &format!("{what}: planted faults that were found"),
        count as u64,
        Some(Goal::AtLeast(COUNT as f64)),
    )
}

fn row(name: &str, value: u64, goal: Option<Goal>) -> Row {
    Row { name: name.to_owned(), value: value as f64, unit: "", goal }
}

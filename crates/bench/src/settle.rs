//! `cargo xtask prove settle`: a million runs with a known truth, on a virtual clock.
//!
//! Systems are generated at random (`system`), and each is run several times with the learned profile of its earlier runs. A run
//! is a request through the system (`play`); its spans travel through batches and chaos (`travel`) to the real `runner::run`
//! (`stage`). Its decision is checked against the truth (`referee`). The number of a run determines all of it: `--seed N`
//! reproduces the run N and prints its story.
//!
//! `real` runs some of it with real processes in real time, as a test. Deliberately absent: HTTP between the services; the
//! requests between them do not affect when a trace is complete.

mod chance;
mod crowd;
mod excuse;
mod exit;
mod fault;
mod lateness;
mod memory;
mod noise;
mod plan;
mod play;
pub mod queried;
pub mod real;
mod referee;
mod stage;
mod statement;
mod story;
mod system;
mod tally;
mod travel;
mod trouble;
mod wire;

use std::{
    num::NonZero,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use model::LearnedProfile;
use tokio::runtime::{Builder, Runtime};

use crate::{parts::unix_nanos, table};
use chance::{Dice, between, percent};
use memory::Memory;
use noise::Noise;
use plan::Test;
use play::{Crash, SimulatedRun, play};
use referee::{RefereeResult, SettleCase, rule};
use stage::{Ring, Script, perform};
use system::{LARGE, MS, SECOND, System};
use tally::SettleTally;
use travel::{Weather, travel};

const RUNS: u64 = 1_000_000;
const RUNS_SHORT: u64 = 5_000;
const RUNS_OF_SYSTEM: u64 = 50;
const RUNS_OF_SYSTEM_SHORT: u64 = 10;
/// Tests of one system.
const TESTS: usize = 5;
/// Requests that are played to see the usual behavior.
const USUAL: usize = 12;
/// Runs during which other clients call the same system, in percent.
const NOISY: usize = 2;

/// The message of a failed proof.
const WRONG: &str = "runs were wrong, see their seeds";

/// Proves with a million runs, with `--short` with a few thousand, with `--runs N` with N, with `--real` with two hundred in real
/// time; `--queried` does it with spans in a trace store; `--seed N` prints the story of one. `--faults` plants each fault of the engine and has to find it, `--fault NAME` plants
/// one for the following arguments.
pub fn prove(arguments: &[String]) -> Result<String> {
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (is_planted, words) = match words.as_slice() {
        ["--faults"] => return fault::find_all(),
        ["--fault", name, words @ ..] => {
            fault::plant(name)?;
            (true, words)
        }
        words => (false, words),
    };
    if let ["--queried", words @ ..] = words {
        return prove_queried(words, is_planted);
    }
    let tally = match words {
        [] if !is_planted => runs_of(RUNS, LONG)?,
        [] | ["--short"] => {
            runs_of(RUNS_SHORT, Extent { is_over_when_wrong: is_planted, ..SHORT })?
        }
        ["--runs", runs] => runs_of(runs.parse().context("--runs needs a number")?, LONG)?,
        ["--real"] => {
            let runtime = Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(real::runs(&std::env::current_exe()?))?
        }
        ["--seed", seed] => return story::tell(seed.parse().context("--seed needs a number")?),
        _ => {
            bail!(
                "expected nothing, --short, --runs N, --queried, --real, --seed N, --faults or --fault NAME"
            )
        }
    };
    let text = table::render("prove settle", &tally.rows());
    // The figures are most useful when they are bad, and stay the last line.
    ensure!(tally.is_right(), "{WRONG}\n{text}");
    let is_long = words.is_empty() && !is_planted;
    ensure!(!is_long || tally.is_conclusive(), "too many were inconclusive\n{text}");
    Ok(text)
}

/// Proves the same for spans in a trace store.
fn prove_queried(words: &[&str], is_planted: bool) -> Result<String> {
    let runs = match words {
        [] if !is_planted => RUNS,
        [] | ["--short"] => RUNS_SHORT,
        ["--runs", runs] => runs.parse().context("--runs needs a number")?,
        _ => bail!("expected nothing, --short or --runs N after --queried"),
    };
    let tally = queried::runs_of(runs)?;
    let text = table::render("prove settle queried", &tally.rows());
    ensure!(tally.is_right(), "{WRONG}\n{text}");
    ensure!(tally.is_conclusive() || is_planted, "too many were inconclusive\n{text}");
    Ok(text)
}

/// How many runs of a system are played.
#[derive(Clone, Copy)]
struct Extent {
    /// Runs of one system, the first of them without a learned profile.
    of_system: u64,
    /// Whether to stop at the first wrong run.
    is_over_when_wrong: bool,
}

const LONG: Extent = Extent { of_system: RUNS_OF_SYSTEM, is_over_when_wrong: false };
const SHORT: Extent = Extent { of_system: RUNS_OF_SYSTEM_SHORT, is_over_when_wrong: false };

/// Runs a few thousand, of many systems with few runs each, on all cores.
pub fn short() -> Result<SettleTally> {
    runs_of(RUNS_SHORT, SHORT)
}

/// Runs this many, on all cores.
fn runs_of(runs: u64, extent: Extent) -> Result<SettleTally> {
    let systems = runs.div_ceil(extent.of_system);
    let began = unix_nanos();
    let play = |runtime: &Runtime, number, tally: &mut SettleTally| {
        runtime.block_on(system(number, extent.of_system, |run| tally.add(run)))?;
        runtime.block_on(tally.crowds.play(number))?;
        Ok(!extent.is_over_when_wrong || tally.is_right())
    };
    let mut tally = on_all_cores(systems, play, SettleTally::join)?;
    tally.nanos = unix_nanos() - began;
    Ok(tally)
}

/// Plays systems on all cores, each core with a clock and a tally of its own, until one of them is to be the last.
fn on_all_cores<T: Default + Send>(
    systems: u64,
    play: impl Fn(&Runtime, u64, &mut T) -> Result<bool> + Sync,
    join: fn(&mut T, T),
) -> Result<T> {
    let (next, all) = (AtomicU64::new(0), Mutex::new(T::default()));
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let work = || -> Result<()> {
            let runtime = virtual_clock()?;
            let mut tally = T::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= systems {
                    break;
                }
                if !play(&runtime, number, &mut tally)? {
                    next.store(systems, Ordering::Relaxed);
                }
            }
            join(&mut all.lock().unwrap_or_else(PoisonError::into_inner), tally);
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

/// Returns a runtime with a clock that advances only while all tasks wait.
fn virtual_clock() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_time().start_paused(true).build()?)
}

/// A run and its ruling.
pub(crate) struct Run<'a, 's> {
    /// The seed that reproduces it.
    seed: u64,
    weather: Weather,
    case: SettleCase<'a, 's>,
    ruling: RefereeResult,
}

/// Plays the first runs of one system, one after the other.
async fn system(number: u64, runs: u64, mut heard: impl FnMut(&Run<'_, '_>)) -> Result<()> {
    let mut dice = Dice::new(number.wrapping_mul(0xd1b5_4a32_d192_ed03));
    let system = System::draw(&mut dice, LARGE);
    let usual: Vec<_> = (0..USUAL).map(|_| play(&system, &mut dice, None)).collect();
    let tests: Vec<_> = (0..TESTS)
        .map(|number| Test::draw(number, &system, &usual, &mut dice))
        .collect::<Result<_>>()
        .with_context(|| format!("system {number}"))?;
    let (keys, mut learned, mut memory) =
        (stage::keys(), LearnedProfile::default(), Memory::default());
    for run in 0..runs {
        let seed = number * RUNS_OF_SYSTEM + run;
        let mut dice = Dice::new(dice.next());
        let (weather, script) = script(&system, &tests, &mut dice);
        let ended = perform(&script, &learned, (&keys, &Ring::default()), &mut dice).await;
        let ended = ended.with_context(|| format!("seed {seed}"))?;
        let case = SettleCase {
            script: &script,
            ended: &ended,
            memory: &memory,
            learned: &learned,
            slack: 0,
        };
        let ruling = rule(&case);
        heard(&Run { seed, weather, case, ruling });
        memory.keep(&script, &ended);
        ended.teach(&mut learned);
    }
    Ok(())
}

fn script<'s>(system: &'s System, tests: &'s [Test], dice: &mut Dice) -> (Weather, Script<'s>) {
    let weather = match dice.below(100) {
        0..50 => Weather::Calm,
        50..80 => Weather::Rough,
        80..97 => Weather::Withholding,
        _ => Weather::Refusing,
    };
    let crash = percent(dice, 8).then(|| Crash {
        process: dice.below(system.processes.len()),
        at: match percent(dice, 50) {
            true => between(dice, MS, 50 * MS),
            false => between(dice, MS, 6 * SECOND),
        },
    });
    let played: SimulatedRun<'s> = play(system, dice, crash);
    let travel = travel(system, &played, weather, dice);
    let watched = match percent(dice, 70) {
        true => Duration::from_secs(10),
        false => Duration::from_millis(between(dice, 1, 30_000)),
    };
    let test = &tests[dice.below(tests.len())];
    let noise = match percent(dice, NOISY) {
        true => Noise::draw(system, dice),
        false => Noise::default(),
    };
    (weather, Script { system, test, played, travel, watched, noise })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with a false learned profile (no service is late, and no peer sends spans) does not wait; the referee finds it.
    #[test]
    fn a_hasty_run_is_found_wrong() {
        let (mut dice, keys) = (Dice::new(7), stage::keys());
        let (mut wrong, mut hasty) = (0, 0);
        for _ in 0..100 {
            let system = System::draw(&mut dice, LARGE);
            let usual: Vec<_> = (0..USUAL).map(|_| play(&system, &mut dice, None)).collect();
            let tests = [Test::draw(0, &system, &usual, &mut dice).unwrap()];
            let lies = lies(&system, &usual);
            let (mut memory, learned) = (Memory::default(), LearnedProfile::default());
            for _ in 0..10 {
                let ring = Ring::default();
                let (_, script) = script(&system, &tests, &mut dice);
                let run = perform(&script, &lies, (&keys, &ring), &mut dice);
                let ended = &virtual_clock().unwrap().block_on(run).unwrap();
                let case = SettleCase {
                    script: &script,
                    ended,
                    memory: &memory,
                    learned: &learned,
                    slack: 0,
                };
                let ruling = rule(&case);
                wrong += u32::from(ruling.is_wrong());
                hasty += u32::from(ruling.is_hasty.is_some());
                memory.keep(&script, ended);
            }
        }
        assert!(hasty >= 20 && wrong >= 5, "{hasty} hasty, {wrong} wrong");
    }

    fn lies(system: &System, usual: &[SimulatedRun<'_>]) -> LearnedProfile {
        let mut lies = LearnedProfile::default();
        for span in usual.iter().flat_map(|played| &played.spans) {
            let name = system.service_of(span.process).name.clone();
            let service = lies.services.entry(name).or_default();
            (service.runs, service.delays_ns, service.absent_parents) = (3, vec![0], 3);
            service.leaves.extend(span.peer().map(|peer| (peer, 3)));
        }
        lies
    }
}

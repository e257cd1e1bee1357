//! The long form of the proofs that the tests of `lang` run in a short form.
//!
//! Selectors: the language compared with a naive evaluator. Noise: a million inputs through every parser; a panic is caught,
//! counted and reported with the number that reproduces it, and so is a slow input.

#[path = "../../../lang/tests/naive/mod.rs"]
mod evaluator;
#[path = "../../../lang/tests/noise/mod.rs"]
mod input;

use std::panic::{self, AssertUnwindSafe};

use anyhow::{Result, bail};

use super::chance::{self, Dice};
use crate::{
    parts::unix_nanos,
    table::{Goal, Row},
};
use input::{Fate, KINDS, Kind};

/// Pairs of a trace and a selector.
const SELECTORS: u64 = 20_000;
const INPUTS: u64 = 1_000_000;
/// The upper bound of the time for one input of these sizes.
const INPUT_MS_MAX: f64 = 1_000.0;

/// Runs this many of each; with `--short` a hundredth.
pub fn measure(arguments: &[String]) -> Result<Vec<Row>> {
    let part = match arguments {
        [] => 1,
        [short] if short == "--short" => 100,
        _ => bail!("expected nothing or --short"),
    };
    let mut rows = selectors(SELECTORS / part);
    rows.extend(noise((INPUTS / part).div_ceil(KINDS.len() as u64)));
    Ok(rows)
}

fn selectors(cases: u64) -> Vec<Row> {
    let (mut different, mut selected, mut telling) = (0.0, 0.0, 0.0);
    for number in 0..cases {
        let case = evaluator::check(number, lang::select);
        if let Some(difference) = case.difference {
            different += 1.0;
            say(&difference);
        }
        selected += f64::from(u8::from(case.selected > 0));
        telling += f64::from(u8::from((1..case.spans).contains(&case.selected)));
    }
    let percent = |count: f64| 100.0 * count / cases as f64;
    vec![
        row("selectors beside the naive evaluator", cases as f64, "cases", None),
        row("  of which select something", percent(selected), "%", None),
        row("  of which select a part", percent(telling), "%", None),
        row("  of which differ", different, "cases", Some(0.0)),
    ]
}

/// The results of the inputs of one kind.
#[derive(Default)]
struct ProofTally {
    accepted: f64,
    panics: f64,
    slowest_ns: u64,
}

fn noise(inputs: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut all, mut panics, mut slowest) = (0.0, 0.0, 0.0_f64);
    // Panics are reported below, once each.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    for kind in KINDS {
        let tally = tally(kind, inputs);
        let name = format!("noise, {kind:?}: accepted").to_lowercase();
        rows.push(row(&name, 100.0 * tally.accepted / inputs as f64, "%", None));
        all += inputs as f64;
        panics += tally.panics;
        slowest = slowest.max(tally.slowest_ns as f64 / 1e6);
    }
    panic::set_hook(hook);
    rows.push(row("noise, inputs", all, "inputs", None));
    rows.push(row("noise, panics", panics, "inputs", Some(0.0)));
    rows.push(row("noise, the slowest input", slowest, "ms", Some(INPUT_MS_MAX)));
    rows
}

fn tally(kind: Kind, inputs: u64) -> ProofTally {
    let mut tally = ProofTally::default();
    for number in 0..inputs {
        // Each input has its own random generator, so that its number reproduces it.
        let seed = number.wrapping_mul(0x9e37_79b9).wrapping_add(kind as u64);
        let began = unix_nanos();
        let fate = panic::catch_unwind(AssertUnwindSafe(|| input::run(kind, &mut Dice::new(seed))));
        let took = unix_nanos().saturating_sub(began);
        tally.slowest_ns = tally.slowest_ns.max(took);
        match fate {
            Ok(Fate::Accepted) => tally.accepted += 1.0,
            Ok(Fate::Refused) => {}
            Err(_) => {
                tally.panics += 1.0;
                say(&format!("{kind:?} {seed} panics"));
            }
        }
        if took as f64 > INPUT_MS_MAX * 1e6 {
            say(&format!("{kind:?} {seed} takes {} ms", took / 1_000_000));
        }
    }
    tally
}

fn row(name: &str, value: f64, unit: &'static str, most: Option<f64>) -> Row {
    Row { name: name.to_owned(), value, unit, goal: most.map(Goal::AtMost) }
}

/// Prints a finding at once: the table comes last.
#[expect(clippy::print_stderr, reason = "what is found is told before the table")]
fn say(line: &str) {
    eprintln!("{line}");
}

//! The cost of a final exit code: the complete command, fresh and with a learned profile, and the end of many tests.

use std::{env::current_exe, fs, path::Path};

use anyhow::{Context, Result, ensure};
use model::{Outcome, Step, Verdict};
use tempfile::TempDir;
use tokio::process::Command;

use super::{
    command::{CommandRun, last_span_to_verdict, listening, run},
    latency::{ABSENCE, JOBS, MEDIAN_MS_MAX, SUITE, ShopFixture, ms, row},
};
use crate::{
    parts::free_port,
    table::{Goal, Row, median},
};

/// The upper bounds of the complete command, in milliseconds: without a learned profile, and after ten runs.
const FRESH_MS_MAX: f64 = 2_000.0;
const LEARNED_MS_MAX: f64 = 250.0;
/// Tests against services that export every five seconds, four at a time, and their time limit, in milliseconds.
const BATCH_TESTS: usize = 20;
const BATCH_DELAY_MS: usize = 5_000;
const BATCH_MS_MAX: f64 = 15_000.0;
/// As in the test that `qualitytrace init` writes.
const FLUSH: &str = "  settle:\n    flush: 30ms\n";

/// Measures a command for each kind of state, against the demo; a hundred tests; and services with a batch processor.
pub(super) async fn measure(binary: &Path, is_short: bool) -> Result<Vec<Row>> {
    let rounds = if is_short { 3 } else { 7 };
    let mut rows = alone(binary, rounds, &format!("{ABSENCE}{FLUSH}"), "flush 30 ms").await?;
    rows.extend(alone(binary, rounds, ABSENCE, "undeclared").await?);
    rows.extend(suite(binary, rounds).await?);
    rows.extend(batches(binary, if is_short { 1 } else { 3 }).await?);
    Ok(rows)
}

/// Measures one test, without a learned profile, and after ten runs.
async fn alone(binary: &Path, rounds: usize, specs: &str, words: &str) -> Result<Vec<Row>> {
    let is_declared = specs.contains("flush");
    let goal = |most| is_declared.then_some(Goal::AtMost(most));
    let (mut fresh, mut learned, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let shop = ShopFixture::open(binary).await?;
        let file = shop.test("alone", specs)?;
        let first = shop.run(&[&file]).await?;
        let (took, quiet) = last_span_to_verdict(first.outcomes.first().context("an outcome")?)?;
        beyond.push(took - quiet);
        fresh.push(ms(first.took));
        shop.run(&[&file, "--repeat", "10"]).await?;
        learned.push(ms(shop.run(&[&file]).await?.took));
    }
    let named = |name: &str| format!("{words}: {name}");
    Ok(vec![
        Row {
            goal: goal(MEDIAN_MS_MAX),
            ..row(&named("fresh, last span to verdict beyond H"), median(beyond))
        },
        Row { goal: goal(FRESH_MS_MAX), ..row(&named("fresh, the whole command"), median(fresh)) },
        Row {
            goal: goal(LEARNED_MS_MAX),
            ..row(&named("after ten runs, the whole command"), median(learned))
        },
    ])
}

/// Measures a hundred tests, eight at a time: the time between the last verdict and the end of the command.
async fn suite(binary: &Path, rounds: usize) -> Result<Vec<Row>> {
    let shop = ShopFixture::open(binary).await?;
    let tests = shop.folder.path().join("tests");
    fs::create_dir(&tests)?;
    for number in 0..SUITE {
        let file = shop.test(&format!("test-{number}"), &format!("{ABSENCE}{FLUSH}"))?;
        fs::rename(shop.folder.path().join(&file), tests.join(&file))?;
    }
    let jobs = JOBS.to_string();
    let mut rows = Vec::new();
    let (mut ends, mut lingers) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let ran = shop.run(&["tests", "--jobs", &jobs]).await?;
        let (end, linger) = end_and_linger(&ran)?;
        if round == 0 {
            rows.push(row("100 tests, 8 at a time, fresh: last verdict to exit", end));
            rows.push(row("100 tests, fresh: the linger", linger));
        } else {
            ends.push(end / linger);
            lingers.push(linger);
        }
    }
    rows.push(row("100 tests, learned: the linger", median(lingers)));
    rows.push(Row {
        name: "100 tests, learned: last verdict to exit, of one linger".to_owned(),
        value: median(ends),
        unit: "ratio",
        goal: Some(Goal::AtMost(1.0)),
    });
    Ok(rows)
}

/// Returns the time from the last verdict to the end of the command, and the longest linger, in milliseconds.
fn end_and_linger(ran: &CommandRun) -> Result<(f64, f64)> {
    ensure!(ran.outcomes.len() == SUITE, "{} of {SUITE} tests", ran.outcomes.len());
    let judged = |outcome: &Outcome| {
        outcome.steps.iter().rfind(|step| step.step == Step::Judge).map(|step| step.ended)
    };
    let last = ran.outcomes.iter().filter_map(judged).max().context("a test was judged")?;
    let linger = |outcome: &Outcome| outcome.settlement.as_ref().map(|it| it.linger_ns);
    let linger = ran.outcomes.iter().filter_map(linger).max().context("a test settled")?;
    let last = last.as_nanos() as f64 / 1e6;
    Ok((ran.ended_at_ms - last, linger as f64 / 1e6))
}

/// Measures tests against two services with the default export delay of SDKs.
async fn batches(binary: &Path, rounds: usize) -> Result<Vec<Row>> {
    let (http, otlp) = (free_port()?, free_port()?);
    let mut system = Command::new(current_exe()?);
    system.args(["run:system", "batch", &BATCH_DELAY_MS.to_string()]);
    system.args([http.to_string(), otlp.to_string()]);
    let _system = listening(system, http).await?;
    let otlp = format!("127.0.0.1:{otlp}");
    let (mut fresh, mut learned) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let folder = TempDir::new()?;
        fs::create_dir(folder.path().join("tests"))?;
        for number in 0..BATCH_TESTS {
            let file = folder.path().join(format!("tests/test-{number}.yaml"));
            fs::write(file, batch_test(number, http))?;
        }
        let arguments = ["tests", "--otlp", &otlp, "--jobs", "4"];
        for round in 0..4 {
            let ran = run(binary, folder.path(), &arguments).await?;
            let passed = ran.outcomes.iter().filter(|it| it.verdict == Verdict::Passed).count();
            ensure!(passed == BATCH_TESTS, "{passed} of {BATCH_TESTS} passed: {}", ran.err);
            match round {
                0 => fresh.push(ms(ran.took)),
                3 => learned.push(ms(ran.took)),
                _ => {}
            }
        }
    }
    let goal = Some(Goal::AtMost(BATCH_MS_MAX));
    Ok(vec![
        Row { goal, ..row("20 tests, batches of 5 s, 4 at a time: fresh", median(fresh)) },
        Row { goal, ..row("20 tests, batches of 5 s, 4 at a time: learned", median(learned)) },
    ])
}

fn batch_test(number: usize, http: u16) -> String {
    format!(
        "type: Test\nspec:\n  id: test-{number}\n  name: test-{number}\n  trigger:\n    type: http\n    httpRequest:\n      \
         url: http://127.0.0.1:{http}/\n  specs:\n    - selector: span[name=\"serve\"]\n      assertions:\n        - \
         attr:tracetest.selected_spans.count = 2\n"
    )
}

//! The complete path of a run: the time until a server is ready, and the time from the last span to the verdict.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use model::{Outcome, Step};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    parts::{Collector, Database, Server, Target, free_port, qualitytrace},
    table::{Row, median},
};

/// Repetitions, of which the median counts.
const ROUNDS: usize = 9;
/// The quiet period of the measured test.
const QUIET: Duration = Duration::from_millis(50);

/// Measures, and returns one row for each figure.
pub async fn measure() -> Result<Vec<Row>> {
    let binary = Server::binary_beside_this()?;
    let (first, ready) = starts(&binary).await?;
    let mut rows = vec![
        row("start to ready, empty database (once)", first),
        row("start to ready", median(ready)),
        row("quiet asked for by the test", QUIET.as_secs_f64() * 1e3),
    ];
    for (place, figures) in
        [("local", locally(&binary).await?), ("server", remotely(&binary).await?)]
    {
        rows.push(row(&format!("{place}: last span to verdict"), median(figures.verdict)));
        rows.push(row(&format!("{place}: the whole command"), median(figures.command)));
    }
    Ok(rows)
}

#[derive(Default)]
struct ThreadFigures {
    /// Milliseconds from the last arrival to the verdict, each round.
    verdict: Vec<f64>,
    /// Milliseconds of the complete `qualitytrace run`, each round.
    command: Vec<f64>,
}

async fn starts(binary: &Path) -> Result<(f64, Vec<f64>)> {
    let database = Database::create("bench_start").await?;
    let mut ready = Vec::new();
    for _ in 0..=ROUNDS {
        let server = Server::start(binary, &database, free_port()?).await?;
        ready.push(server.ready_after.as_secs_f64() * 1e3);
        server.kill().await?;
    }
    database.remove().await?;
    let first = ready.remove(0);
    Ok((first, ready))
}

async fn locally(binary: &Path) -> Result<ThreadFigures> {
    let port = free_port()?;
    let target = Target::start(Some(port)).await?;
    let address = format!("127.0.0.1:{port}");
    rounds(binary, &target, &["--otlp", &address]).await
}

async fn remotely(binary: &Path) -> Result<ThreadFigures> {
    let database = Database::create("bench_run").await?;
    let collector_port = free_port()?;
    let collector = Collector::start(collector_port, None).await?;
    let server = Server::start(binary, &database, collector_port).await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let figures = rounds(binary, &target, &["--server", &server.api]).await?;
    server.terminate().await?;
    collector.kill().await?;
    database.remove().await?;
    Ok(figures)
}

async fn rounds(binary: &Path, target: &Target, arguments: &[&str]) -> Result<ThreadFigures> {
    let folder = TempDir::new()?;
    let file = folder.path().join("cart.yaml");
    fs::write(&file, target.test(QUIET))?;
    let file = file.to_str().context("a path that is text")?;
    let mut figures = ThreadFigures::default();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let run = [&["run", file, "--report", "json"], arguments].concat();
        let finished = qualitytrace(binary, &run).await?;
        figures.command.push(began.elapsed().as_secs_f64() * 1e3);
        ensure!(finished.code == Some(0), "the run did not pass: {finished:?}");
        let mut report: Value = serde_json::from_str(&finished.out)?;
        let outcome: Outcome = serde_json::from_value(report["outcome"].take())?;
        figures.verdict.push(last_span_to_verdict(&outcome)?);
    }
    Ok(figures)
}

/// Returns the silence until the decision, plus the judging; the time in which a server then stores the verdict is not included.
fn last_span_to_verdict(outcome: &Outcome) -> Result<f64> {
    let settlement = outcome.settlement.as_ref().context("a trace was asked for")?;
    let silent = settlement.silent_ns.context("spans came")?;
    let judge =
        outcome.steps.iter().find(|step| step.step == Step::Judge).context("it was judged")?;
    Ok(silent as f64 / 1e6 + judge.ended.since(judge.began).as_secs_f64() * 1e3)
}

fn row(name: &str, value: f64) -> Row {
    Row { name: name.to_owned(), value, unit: "ms", goal: None }
}

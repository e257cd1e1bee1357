//! The program is killed, with the Collector healthy and with the Collector down, and restarted.

use std::{
    hash::{BuildHasher, RandomState},
    path::Path,
    time::Duration,
};

use anyhow::{Result, ensure};
use tokio::time::sleep;

use super::{
    ended::{EndedSpan, ran},
    outage::RATE,
    progress,
    stand::{TelemetryStand, together},
    subject::{Durability, EmitterLoad, ExporterKind, Subject, Transport},
};
use crate::table::{Goal, Row};

/// The upper bound of the run time between the end of a lost span and the kill.
pub const LOST_MAX: Duration = Duration::from_millis(10);
/// The delay of a kill after the first span.
const KILL_AFTER_MS: std::ops::Range<u64> = 1000..3500;
/// Longer than any emitter here runs.
const LIFE_MS: u64 = 600_000;

/// The losses of one kill, counted after the restart of the program.
#[derive(Clone, Copy, Debug)]
pub struct SpanLoss {
    /// Ended spans.
    pub emitted: u64,
    /// Ended spans that never reached the sink.
    pub lost: u64,
    /// How long the program continued to run after the end of the oldest lost span.
    pub oldest: Duration,
}

/// Returns the rows with a healthy Collector.
pub(crate) async fn rows(program: &Path, short: bool) -> Result<Vec<Row>> {
    let kills = if short { 5 } else { 20 };
    let mut rows = Vec::new();
    for subjects in [Transport::ALL.map(Subject::stock).to_vec(), ours()] {
        let runs = subjects.iter().map(|subject| {
            let (program, subject) = (program.to_owned(), *subject);
            async move { healthy(&program, subject, kills).await }
        });
        let killed = together(runs.collect(), Duration::ZERO).await?;
        for (subject, killed) in subjects.iter().zip(killed) {
            rows.extend(killed_rows(&format!("{kills} kills"), *subject, &killed));
        }
    }
    Ok(rows)
}

/// Returns the rows with the Collector down.
pub(crate) async fn rows_away(program: &Path, short: bool) -> Result<Vec<Row>> {
    let (before, down) = if short { (3, 5) } else { (10, 30) };
    let mut subjects = vec![Subject::tuned(Transport::Grpc)];
    subjects.extend(ours());
    let runs = subjects.iter().map(|subject| {
        let (program, subject) = (program.to_owned(), *subject);
        async move {
            away(&program, subject, Duration::from_secs(before), Duration::from_secs(down)).await
        }
    });
    let killed = together(runs.collect(), Duration::from_millis(500)).await?;
    let name = format!("Collector down {down} s, then a kill");
    let rows = subjects.iter().zip(killed);
    Ok(rows.flat_map(|(subject, killed)| killed_rows(&name, *subject, &[killed])).collect())
}

/// Kills the program at random times and restarts it on the same directory, with one healthy Collector.
pub async fn healthy(program: &Path, subject: Subject, kills: usize) -> Result<Vec<SpanLoss>> {
    let mut stand = TelemetryStand::new(program, subject).await?;
    stand.relay.start().await?;
    let mut killed = Vec::new();
    for number in 1..=kills {
        let mut emitter = stand.emit(&stand.order(EmitterLoad::Steady(RATE, LIFE_MS)))?;
        emitter.began().await?;
        sleep(some_time()).await;
        let (at, ended) = emitter.kill().await?;
        let this = counted(&stand, at, &ended).await?;
        progress(&format!("kill {number} of {kills}: {subject}: {this:?}"));
        killed.push(this);
    }
    Ok(killed)
}

/// Kills the Collector, then the program, and restarts both.
pub async fn away(
    program: &Path,
    subject: Subject,
    before: Duration,
    down: Duration,
) -> Result<SpanLoss> {
    let mut stand = TelemetryStand::new(program, subject).await?;
    stand.relay.start().await?;
    let mut emitter = stand.emit(&stand.order(EmitterLoad::Steady(RATE, LIFE_MS)))?;
    emitter.began().await?;
    sleep(before).await;
    stand.relay.kill().await?;
    sleep(down).await;
    let (at, ended) = emitter.kill().await?;
    stand.relay.start().await?;
    let killed = counted(&stand, at, &ended).await?;
    progress(&format!("kill with the Collector away: {subject}: {killed:?}"));
    Ok(killed)
}

async fn counted(stand: &TelemetryStand, at: u64, ended: &[EndedSpan]) -> Result<SpanLoss> {
    ensure!(!ended.is_empty(), "the emitter was killed before its first span");
    if let Some(outcome) = stand.restart().await? {
        progress(&format!("started again: {}: {}", stand.subject, outcome.shutdown));
    }
    stand.quiet().await;
    let lost = stand.lost(ended);
    let oldest = lost.iter().map(|span| span.at).min();
    Ok(SpanLoss {
        emitted: ended.len() as u64,
        lost: lost.len() as u64,
        oldest: oldest.map(|from| ran(ended, from, at)).unwrap_or_default(),
    })
}

fn ours() -> Vec<Subject> {
    let durabilities = [Durability::Process, Durability::WriteThrough].into_iter();
    durabilities.flat_map(|one| Transport::ALL.map(|to| Subject::ours(one, to))).collect()
}

fn some_time() -> Duration {
    let random = RandomState::new().hash_one(0_u8);
    let span = KILL_AFTER_MS.end - KILL_AFTER_MS.start;
    Duration::from_millis(KILL_AFTER_MS.start + random % span)
}

fn killed_rows(name: &str, subject: Subject, killed: &[SpanLoss]) -> Vec<Row> {
    let row = |what: &str, value: f64, unit, goal| Row {
        name: format!("{name}, {subject}: {what}"),
        value,
        unit,
        goal,
    };
    let most = killed.iter().map(|one| one.lost).max().unwrap_or_default();
    let oldest = killed.iter().map(|one| one.oldest).max().unwrap_or_default();
    let (none, young) = match subject.kind {
        ExporterKind::Stock | ExporterKind::StockTuned => (None, None),
        ExporterKind::Ours(Durability::WriteThrough) => (Some(Goal::AtMost(0.0)), None),
        ExporterKind::Ours(_) => (None, Some(Goal::AtMost(milliseconds(LOST_MAX)))),
    };
    vec![
        row("emitted", killed.iter().map(|one| one.emitted).sum::<u64>() as f64, "spans", None),
        row("lost, at most in one", most as f64, "spans", none),
        row("oldest lost, before the kill", milliseconds(oldest), "ms", young),
    ]
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

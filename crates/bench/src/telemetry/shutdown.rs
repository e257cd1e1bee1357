//! Programs that shut down cleanly: without any Collector, and within a `current_thread` runtime.

use std::{path::Path, time::Duration};

use anyhow::Result;

use super::{
    ended,
    outage::RATE,
    progress,
    stand::{TelemetryStand, together},
    subject::{Durability, EmitterLoad, EmitterOutcome, Subject, Transport, Within},
};
use crate::table::{Goal, Row};

/// The timeout of a shutdown without a Collector.
const SHUTDOWN_MS: u64 = 2000;
/// Spans of the program within a `current_thread` runtime.
pub const FEW: u64 = 10;

/// The fate of a program's spans without any Collector.
#[derive(Clone, Debug)]
pub struct NeverUp {
    /// Ended spans.
    pub emitted: u64,
    /// Ended spans that its shutdown did not report.
    pub untold: u64,
    /// Ended spans that did not reach the sink after the next start, with a Collector.
    pub lost: u64,
    /// The outcome that the emitter reported.
    pub outcome: EmitterOutcome,
}

/// Returns the rows without any Collector.
pub(crate) async fn rows_never_up(program: &Path, short: bool) -> Result<Vec<Row>> {
    let load = Duration::from_secs(if short { 3 } else { 10 });
    let subjects = subjects();
    let runs = subjects.iter().map(|subject| {
        let (program, subject) = (program.to_owned(), *subject);
        async move { never_up(&program, subject, load).await }
    });
    let never = together(runs.collect(), Duration::from_millis(200)).await?;
    let mut rows = Vec::new();
    for (subject, never) in subjects.iter().zip(never) {
        let row = |what: &str, value: u64, goal: Option<Goal>| Row {
            name: format!("Collector never up, {subject}: {what}"),
            value: value as f64,
            unit: "spans",
            goal,
        };
        let none = subject.is_ours().then_some(Goal::AtMost(0.0));
        rows.push(row("emitted", never.emitted, None));
        rows.push(row("undelivered and not told of by the shutdown", never.untold, none));
        rows.push(row("lost after the next start", never.lost, none));
    }
    Ok(rows)
}

/// Returns the rows of a `current_thread` runtime.
pub(crate) async fn rows_current_thread(program: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for subject in subjects() {
        let delivered = current_thread(program, subject).await?;
        rows.push(Row {
            name: format!("current_thread, {subject}: delivered of {FEW}"),
            value: delivered as f64,
            unit: "spans",
            goal: subject.is_ours().then_some(Goal::AtLeast(FEW as f64)),
        });
    }
    Ok(rows)
}

/// Emits without a Collector, shuts down, starts the Collector, and restarts the program.
pub async fn never_up(program: &Path, subject: Subject, load: Duration) -> Result<NeverUp> {
    let mut stand = TelemetryStand::new(program, subject).await?;
    let mut order = stand.order(EmitterLoad::Steady(RATE, load.as_millis() as u64));
    order.shutdown_ms = SHUTDOWN_MS;
    let outcome = stand.emit(&order)?.finish().await?;
    stand.relay.start().await?;
    let restarted = stand.restart().await?.map(|outcome| outcome.shutdown);
    stand.quiet().await;
    let ended = ended::read(&order.ended)?;
    let never = NeverUp {
        emitted: ended.len() as u64,
        untold: outcome.emitted.abs_diff(outcome.told),
        lost: stand.lost(&ended).len() as u64,
        outcome,
    };
    progress(&format!("never up: {subject}: {never:?}; started again: {restarted:?}"));
    Ok(never)
}

/// Emits a few spans and shuts down, all in one task of a `current_thread` runtime; returns how many arrived.
pub async fn current_thread(program: &Path, subject: Subject) -> Result<u64> {
    let mut stand = TelemetryStand::new(program, subject).await?;
    stand.relay.start().await?;
    let mut order = stand.order(EmitterLoad::Spans(FEW));
    order.within = Within::CurrentThread;
    let outcome = stand.emit(&order)?.finish().await?;
    stand.quiet().await;
    let ended = ended::read(&order.ended)?;
    let delivered = (ended.len() - stand.lost(&ended).len()) as u64;
    progress(&format!("current_thread: {subject}: {delivered} came; {outcome:?}"));
    Ok(delivered)
}

fn subjects() -> Vec<Subject> {
    let ours = Transport::ALL.map(|to| Subject::ours(Durability::Process, to));
    [Transport::ALL.map(Subject::stock), ours].concat()
}

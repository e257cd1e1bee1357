//! The Collector is killed and restarted while spans are emitted.

use std::{path::Path, time::Duration};

use anyhow::Result;
use tokio::time::sleep;

use super::{
    ended, progress,
    stand::{TelemetryStand, together},
    subject::{Durability, EmitterLoad, EmitterOutcome, Subject, Transport},
};
use crate::{
    parts::unix_nanos,
    table::{Goal, Row},
};

/// Spans per second.
pub(crate) const RATE: u64 = 1000;
/// The upper bound of our addition to a program's memory: its buffer of 32 MiB, and 20 MB for everything else.
pub const MEMORY_BYTES_MAX: u64 = 32 * 1024 * 1024 + 20_000_000;
/// The upper bound of the time to drain the backlog.
pub const DRAIN_MAX: Duration = Duration::from_secs(5);
/// The offset between the outages of the Collectors, so that one backlog does not disturb the measurement of another.
const APART: Duration = Duration::from_secs(4);

/// The durations of the phases.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Until the Collector is killed.
    pub before: Duration,
    /// Until it is started again.
    pub down: Duration,
    /// Until the emitter shuts down.
    pub after: Duration,
}

/// The result of a subject.
#[derive(Clone, Debug)]
pub struct Outage {
    /// Ended spans.
    pub emitted: u64,
    /// Ended spans that did not reach the sink.
    pub lost: u64,
    /// Ended spans that reached it more than once.
    pub repeated: u64,
    /// Spans that ended while the Collector was down.
    pub backlog: u64,
    /// The time from the Collector's readiness to the last span of the backlog in the sink.
    pub drain: Duration,
    /// The outcome that the emitter reported.
    pub outcome: EmitterOutcome,
}

impl Outage {
    /// Returns the exporter's addition to the emitter's memory at its peak.
    pub fn memory_bytes(&self) -> u64 {
        self.outcome.memory.saturating_sub(self.outcome.memory_before)
    }
}

/// Returns the rows of this group.
pub(crate) async fn rows(program: &Path, short: bool) -> Result<Vec<Row>> {
    let times = if short { Times::SHORT } else { Times::LONG };
    let subjects = [
        Subject::stock(Transport::Grpc),
        Subject::stock(Transport::Http),
        Subject::tuned(Transport::Grpc),
        Subject::ours(Durability::Memory, Transport::Grpc),
        Subject::ours(Durability::Memory, Transport::Http),
        Subject::ours(Durability::Process, Transport::Grpc),
        Subject::ours(Durability::Process, Transport::Http),
    ];
    let runs = subjects.map(|subject| {
        let program = program.to_owned();
        async move { run(&program, subject, times).await }
    });
    let outages = together(runs.into(), APART).await?;
    let name = format!("{} s outage", times.down.as_secs());
    let rows = subjects.iter().zip(&outages);
    Ok(rows.flat_map(|(subject, outage)| outage_rows(&name, *subject, outage)).collect())
}

impl Times {
    /// The durations of the published figures.
    pub const LONG: Self = Self {
        before: Duration::from_secs(10),
        down: Duration::from_secs(60),
        after: Duration::from_secs(20),
    };
    /// For a quick check, and for tests.
    pub const SHORT: Self = Self {
        before: Duration::from_secs(3),
        down: Duration::from_secs(10),
        after: Duration::from_secs(7),
    };
}

/// Runs one subject through an outage.
pub async fn run(program: &Path, subject: Subject, times: Times) -> Result<Outage> {
    let mut stand = TelemetryStand::new(program, subject).await?;
    stand.relay.start().await?;
    let whole = times.before + times.down + times.after;
    let order = stand.order(EmitterLoad::Steady(RATE, whole.as_millis() as u64));
    let mut emitter = stand.emit(&order)?;
    emitter.began().await?;
    progress(&format!("outage: {subject}: emitting"));
    sleep(times.before).await;
    stand.relay.kill().await?;
    let killed = unix_nanos();
    progress(&format!("outage: {subject}: the Collector is killed"));
    sleep(times.down).await;
    stand.relay.start().await?;
    let ready = unix_nanos();
    progress(&format!("outage: {subject}: the Collector is back"));
    let outcome = emitter.finish().await?;
    stand.quiet().await;

    let ended = ended::read(&order.ended)?;
    let lost = stand.lost(&ended).len() as u64;
    let received = stand.sink.received();
    let backlog: Vec<_> = ended.iter().filter(|span| (killed..ready).contains(&span.at)).collect();
    let last = backlog.iter().filter_map(|span| received.spans.get(&span.id)).max();
    let drain = last.map_or(0, |last| last.saturating_sub(ready));
    let outage = Outage {
        emitted: ended.len() as u64,
        lost,
        repeated: received.repeated(),
        backlog: backlog.len() as u64,
        drain: Duration::from_nanos(drain),
        outcome,
    };
    progress(&format!("outage: {subject}: {outage:?}"));
    Ok(outage)
}

fn outage_rows(name: &str, subject: Subject, outage: &Outage) -> Vec<Row> {
    let goal = |goal| subject.is_ours().then_some(Goal::AtMost(goal));
    let row = |what: &str, value: f64, unit, goal| Row {
        name: format!("{name}, {subject}: {what}"),
        value,
        unit,
        goal,
    };
    let memory = outage.memory_bytes() as f64 / 1e6;
    let mut rows = vec![
        row("emitted", outage.emitted as f64, "spans", None),
        row("lost", outage.lost as f64, "spans", goal(0.0)),
        row("repeated", outage.repeated as f64, "spans", None),
        row("memory over the start", memory, "MB", goal(MEMORY_BYTES_MAX as f64 / 1e6)),
    ];
    // Lost spans cannot drain: a time for the rest would be too favorable.
    if outage.lost == 0 {
        let drain = outage.drain.as_secs_f64();
        rows.push(row("backlog", outage.backlog as f64, "spans", None));
        rows.push(row("backlog drained", drain, "s", goal(DRAIN_MAX.as_secs_f64())));
    }
    rows
}

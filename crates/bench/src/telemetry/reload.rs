//! The endpoint changes under load.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};

use super::{
    ended,
    outage::RATE,
    progress,
    stand::{TelemetryStand, port, together},
    subject::{Durability, EmitterLoad, Subject, Transport},
};
use crate::{
    parts::{Relay, Sink},
    table::{Goal, Row},
};

/// The default throttle plus a second.
pub const EFFECTIVE_MAX: Duration = Duration::from_secs(2);

/// The effect of a change of the endpoint.
#[derive(Clone, Copy, Debug)]
pub struct ReloadCost {
    /// Ended spans.
    pub emitted: u64,
    /// Ended spans that reached neither sink.
    pub lost: u64,
    /// Ended spans that reached the second sink.
    pub moved: u64,
    /// The time from the call to the last span at the old endpoint or the first at the new one, whichever is later.
    pub effective: Duration,
}

/// Returns the rows of this group.
pub(crate) async fn rows(program: &Path, short: bool) -> Result<Vec<Row>> {
    let load = Duration::from_secs(if short { 6 } else { 20 });
    let subjects = Transport::ALL.map(|to| Subject::ours(Durability::Process, to));
    let runs = subjects.map(|subject| {
        let program = program.to_owned();
        async move { run(&program, subject, load).await }
    });
    let changed = together(runs.into(), Duration::from_millis(500)).await?;
    let mut rows = Vec::new();
    for (subject, changed) in subjects.iter().zip(changed) {
        let row = |what: &str, value: f64, unit, goal| Row {
            name: format!("endpoint changed, {subject}: {what}"),
            value,
            unit,
            goal,
        };
        let effective = changed.effective.as_secs_f64();
        rows.push(row("emitted", changed.emitted as f64, "spans", None));
        rows.push(row("at the new endpoint", changed.moved as f64, "spans", None));
        rows.push(row("lost", changed.lost as f64, "spans", Some(Goal::AtMost(0.0))));
        rows.push(row(
            "effective",
            effective,
            "s",
            Some(Goal::AtMost(EFFECTIVE_MAX.as_secs_f64())),
        ));
    }
    Ok(rows)
}

/// Changes the endpoint in the middle of a steady load.
pub async fn run(program: &Path, subject: Subject, load: Duration) -> Result<ReloadCost> {
    let mut stand = TelemetryStand::new(program, subject).await?;
    let second = Sink::start().await?;
    let mut relay = Relay::new(second.port)?;
    stand.relay.start().await?;
    relay.start().await?;
    let millis = load.as_millis() as u64;
    let mut order = stand.order(EmitterLoad::Steady(RATE, millis));
    order.change = Some((port(&relay, subject.transport), millis / 2));
    let outcome = stand.emit(&order)?.finish().await?;
    stand.quiet().await;

    let at = outcome.changed_at.context("the endpoint was changed")?;
    let ended = ended::read(&order.ended)?;
    let second = second.received();
    let lost =
        stand.lost(&ended).iter().filter(|span| !second.spans.contains_key(&span.id)).count();
    let first = second.spans.values().min().context("nothing came to the new endpoint")?;
    let last = stand.sink.received().spans.values().max().copied().unwrap_or_default();
    let changed = ReloadCost {
        emitted: ended.len() as u64,
        lost: lost as u64,
        moved: second.spans.len() as u64,
        effective: Duration::from_nanos(last.max(*first).saturating_sub(at)),
    };
    progress(&format!("endpoint changed: {subject}: {changed:?}"));
    Ok(changed)
}

//! The bounds of a buffer change while the destination is down: as when an operator reacts to a full buffer.

use std::time::Duration;

use anyhow::Result;
use telemetry::plan::{Buffer, Durability, Exporter, Transport};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    Fault, Ground,
    peer::Peer,
    program::{BOTH, Program, SOON, SteadyLoad, exporter, kept_in, local, received},
};
use crate::parts::free_port;

/// Longer than a removed exporter continues to send.
const AWAY: Duration = Duration::from_secs(11);

/// A larger buffer releases held producers; a smaller one loses nothing; the backlog arrives when the destination is back.
pub(super) async fn resized(_: &Ground) -> Result<Fault> {
    Fault::of(BOTH.into_iter().flat_map(|to| [true, false].map(|kept| one(to, kept))).collect())
        .await
}

async fn one(transport: Transport, is_on_disk: bool) -> Result<Fault> {
    let mut fault = Fault::default();
    let (folder, port) = (TempDir::new()?, free_port()?);
    let plan = |memory: u64, disk: u64| -> Result<Exporter> {
        let mut plan = exporter("tracer.peer", transport, &local(port))?;
        plan.buffer = Buffer { memory, disk, ..plan.buffer };
        Ok(if is_on_disk { kept_in(plan, folder.path(), Durability::Process) } else { plan })
    };
    let program = Program::start(vec![plan(300_000, 1_000_000)?])?;
    let load = SteadyLoad::start(&program, 2, 20_000);
    let full = program.until("held producers", SOON, |counts| counts.holding == 2).await?;
    program.reload(vec![plan(3_000_000, 10_000_000)?])?;
    let more = |counts: &telemetry::Counts| counts.queued > 2 * full.queued;
    let counts = program.until("a larger backlog", SOON, more).await;
    fault.promise(counts.is_ok(), || format!("{transport:?}: more room is used: {counts:?}"));
    program.reload(vec![plan(300_000, 1_000_000)?])?;
    sleep(AWAY).await;
    let peer = Peer::start_at(([127, 0, 0, 1], port).into());
    load.stop().await?;
    let ended = program.ended();
    let report = program.end(SOON).await?;
    fault.promise(report.is_delivered(), || format!("{transport:?}: delivered: {report:?}"));
    fault.balance(&report.exporters);
    fault.arrived(&ended, &received(&peer));
    Ok(fault)
}

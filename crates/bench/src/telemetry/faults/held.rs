//! Producers that a full buffer holds: they are released when there is room, or when waiting is pointless.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use telemetry::plan::{Buffer, Durability, Exporter, Transport};
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

use super::{
    Fault, Ground,
    peer::Peer,
    program::{BOTH, Program, SOON, SteadyLoad, exporter, kept_in, local, received},
};
use crate::parts::free_port;

const EXPORTER: &str = "tracer.peer";
/// The time limit until a producer is released then.
const LET_GO_MAX: Duration = Duration::from_secs(3);
/// The time limit of a shutdown that does not wait.
const DROP_MAX: Duration = Duration::from_secs(2);

/// The event that releases a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// A new plan that drops spans.
    Lossy,
    /// A new plan with a short hold timeout.
    Timeout,
    /// A new plan with a reachable destination.
    Endpoint,
    /// A new plan without the exporter.
    Removal,
    /// The shutdown of telemetry.
    Shutdown,
}

/// Tests each of them, with and without a disk.
pub(super) async fn held(_: &Ground) -> Result<Fault> {
    let mut runs = Vec::new();
    for transport in BOTH {
        for by in [By::Lossy, By::Timeout, By::Endpoint, By::Removal, By::Shutdown] {
            runs.extend([false, true].map(|is_on_disk| let_go(transport, is_on_disk, by)));
        }
    }
    let mut fault = Fault::of(runs).await?;
    for transport in BOTH {
        removed_and_dropped(&mut fault, transport).await?;
    }
    Ok(fault)
}

async fn let_go(transport: Transport, is_on_disk: bool, by: By) -> Result<Fault> {
    let mut fault = Fault::default();
    let (folder, peer) = (TempDir::new()?, Peer::start());
    let buffer = |mut plan: Exporter| {
        plan.buffer = Buffer { memory: 300_000, disk: 1_000_000, ..plan.buffer };
        if is_on_disk { kept_in(plan, folder.path(), Durability::Process) } else { plan }
    };
    let dead = buffer(exporter(EXPORTER, transport, &local(free_port()?))?);
    let program = Program::start(vec![dead.clone()])?;
    let load = SteadyLoad::start(&program, 2, 20_000);
    program.until("held producers", SOON, |counts| counts.holding == 2).await?;
    match by {
        By::Lossy => program.reload(vec![Exporter { lossy: true, ..dead }])?,
        By::Timeout => {
            let hold = Some(Duration::from_millis(50));
            let buffer = Buffer { hold, ..dead.buffer.clone() };
            program.reload(vec![Exporter { buffer, ..dead }])?;
        }
        By::Endpoint => {
            program.reload(vec![buffer(exporter(EXPORTER, transport, &peer.endpoint())?)])?;
        }
        By::Removal => program.reload(Vec::new())?,
        By::Shutdown => {}
    }
    let said = format!("{transport:?}, on disk: {is_on_disk}, {by:?}");
    // A removed exporter may still send for ten seconds.
    let longer = if by == By::Removal { Duration::from_secs(10) } else { Duration::ZERO };
    let max = LET_GO_MAX + longer;
    let began = Instant::now();
    let (stopped, report) = if by == By::Shutdown {
        let report = Arc::clone(&program).end(Duration::from_millis(200)).await?;
        (timeout(max, load.stop()).await, report)
    } else {
        let stopped = timeout(max, load.stop()).await;
        fault.note(format!("{said}: let go after {:?}", began.elapsed()));
        (stopped, Arc::clone(&program).end(LET_GO_MAX).await?)
    };
    stopped.with_context(|| format!("{said}: still held after {max:?}"))??;
    let counts = report.exporters.first().with_context(|| format!("{said}: it is reported"))?;
    fault.promise(counts.held > Duration::ZERO, || format!("{said}: held: {counts:?}"));
    fault.balance(&report.exporters);
    let ended = program.ended();
    if by == By::Endpoint {
        fault.promise(report.is_delivered(), || format!("{said}: {counts:?}"));
        fault.arrived(&ended, &received(&peer));
    } else if is_on_disk {
        // Spans that were not dropped are available for the next start.
        let plan = buffer(exporter(EXPORTER, transport, &peer.endpoint())?);
        let next = Program::start(vec![plan])?.end(SOON).await?;
        fault.balance(&next.exporters);
        let arrived = received(&peer).len() as u64;
        fault.promise(arrived == counts.queued, || format!("{said}: {arrived} came: {counts:?}"));
    }
    Ok(fault)
}

/// A dead exporter is removed, and the program ends at once: it does not wait for the removed exporter.
async fn removed_and_dropped(fault: &mut Fault, transport: Transport) -> Result<()> {
    let (folder, peer) = (TempDir::new()?, Peer::start());
    let plan = |name: &str, endpoint: &str| -> Result<Exporter> {
        Ok(kept_in(exporter(name, transport, endpoint)?, folder.path(), Durability::Process))
    };
    let living = plan("tracer.living", &peer.endpoint())?;
    let dead = plan("tracer.dead", &local(free_port()?))?;
    let program = Program::start(vec![living.clone(), dead])?;
    program.emit(100);
    program.reload(vec![living])?;
    let ended = program.ended();
    let began = Instant::now();
    let report = program.end(Duration::ZERO).await?;
    let took = began.elapsed();
    fault.promise(took < DROP_MAX, || format!("{transport:?}: an end without waiting: {took:?}"));
    let dead = report.exporters.iter().find(|counts| counts.exporter == "tracer.dead");
    let queued = dead.map(|counts| counts.queued);
    fault.promise(queued == Some(100), || format!("{transport:?}: it is told of: {report:?}"));
    fault.balance(&report.exporters);
    let dead = plan("tracer.dead", &peer.endpoint())?;
    fault.balance(&Program::start(vec![dead])?.end(SOON).await?.exporters);
    fault.arrived(&ended, &received(&peer));
    Ok(())
}

//! A full disk, a read-only disk, and a folder that vanishes under a running program.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use telemetry::plan::{Buffer, Durability, Exporter, Transport};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    Fault, Ground,
    peer::Peer,
    program::{BOTH, Program, SOON, SteadyLoad, exporter, kept_in, local, received},
};
use crate::parts::{Mount, free_port, set_fixed};

const MIB: u64 = 1024 * 1024;
const EXPORTER: &str = "tracer.peer";

/// The disk is full long before its bound, then there is space again; lossy or not.
pub(super) async fn full(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let time = Duration::from_secs(if ground.short { 2 } else { 20 });
    for (transport, is_lossy) in BOTH.into_iter().zip([false, true]) {
        let disk = Mount::new(MIB)?;
        let port = free_port()?;
        let mut plan = exporter(EXPORTER, transport, &local(port))?;
        plan.lossy = is_lossy;
        plan.buffer = Buffer { memory: MIB, disk: 64 * MIB, ..plan.buffer };
        let program = Program::start(vec![kept_in(plan, disk.path(), Durability::Process)])?;
        let load = SteadyLoad::start(&program, 2, 10_000);
        if is_lossy {
            program.until("the first drop", SOON, |counts| counts.dropped > 0).await?;
        } else {
            program.until("held producers", SOON, |counts| counts.holding == 2).await?;
        }
        let counts = program.counts();
        let trouble = counts.trouble.clone().unwrap_or_default();
        fault
            .promise(trouble.contains("No space left"), || format!("the disk is named: {trouble}"));
        fault.promise(program.telemetry.pressure() >= 0.8 || is_lossy, || {
            format!("pressure is told: {}", program.telemetry.pressure())
        });
        fault.promise(counts.is_balanced(), || format!("balanced: {counts:?}"));
        program.wait_for_line("No space left on device").await?;
        sleep(time).await;
        // There is space again, and the destination is still down: held producers continue.
        disk.resize(8 * MIB)?;
        let before = program.counts();
        let more = |counts: &telemetry::Counts| counts.accepted > before.accepted + 1000;
        program.until("room on the disk", SOON, more).await?;
        let peer = Peer::start_at(([127, 0, 0, 1], port).into());
        program.until("a delivery", SOON, |counts| counts.delivered > 1000).await?;
        load.stop().await?;
        program.wait_for_line("can write its buffer in").await?;
        let ended = program.ended();
        let counts = program.until("the end", SOON, |counts| counts.queued == 0).await?;
        fault.promise(counts.trouble.is_none(), || format!("the trouble is over: {counts:?}"));
        let report = program.end(SOON).await?;
        let counts = report.exporters.first().context("one exporter")?;
        fault.balance(&report.exporters);
        let at_peer = received(&peer);
        fault.promise(at_peer.len() as u64 == counts.accepted - counts.dropped, || {
            format!("{transport:?}: the peer has {}: {counts:?}", at_peer.len())
        });
        if is_lossy {
            fault.promise(counts.dropped > 0, || format!("something is dropped: {counts:?}"));
        } else {
            fault.promise(counts.dropped == 0 && counts.held > time, || {
                format!("{transport:?}: held, not dropped: {counts:?}")
            });
            fault.arrived(&ended, &at_peer);
        }
        restarted(&mut fault, transport).await?;
    }
    Ok(fault)
}

/// A program ends while the disk is full, and starts while it still is: written spans arrive, the rest is counted.
async fn restarted(fault: &mut Fault, transport: Transport) -> Result<()> {
    let (disk, port) = (Mount::new(MIB)?, free_port()?);
    let mut plan = exporter(EXPORTER, transport, &local(port))?;
    plan.lossy = true;
    plan.buffer = Buffer { memory: MIB, disk: 64 * MIB, ..plan.buffer };
    let plan = kept_in(plan, disk.path(), Durability::Process);
    let program = Program::start(vec![plan.clone()])?;
    let load = SteadyLoad::start(&program, 2, 10_000);
    program.until("the first drop", SOON, |counts| counts.dropped > 0).await?;
    load.stop().await?;
    let report = program.end(Duration::ZERO).await?;
    let queued = report.sum(|counts| counts.queued);
    fault.promise(queued > 1000, || format!("{transport:?}: most is written: {report:?}"));
    fault.balance(&report.exporters);
    let program = Program::start(vec![plan])?;
    let counts = program.counts();
    fault.promise(counts.recovered == queued && counts.cut_bytes == 0, || {
        format!("{transport:?}: {queued} were left: {counts:?}")
    });
    program.emit(100);
    let peer = Peer::start_at(([127, 0, 0, 1], port).into());
    let report = program.end(SOON).await?;
    fault.promise(report.is_delivered(), || format!("{transport:?}: delivered: {report:?}"));
    fault.balance(&report.exporters);
    let arrived = received(&peer).len() as u64;
    fault
        .promise(arrived == queued + 100, || format!("{transport:?}: {arrived} of {queued} + 100"));
    Ok(())
}

/// A read-only directory: at the start an error that reports it; at run time the buffer falls back to memory.
pub(super) async fn read_only(_: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    for transport in BOTH {
        let disk = Mount::new(MIB)?;
        disk.make_read_only()?;
        let port = free_port()?;
        let plan = exporter(EXPORTER, transport, &local(port))?;
        let refused = Program::start(vec![kept_in(plan.clone(), disk.path(), Durability::Process)]);
        let said = refused.err().context("a read-only directory is refused")?.to_string();
        for part in [EXPORTER, &disk.path().display().to_string(), "Read-only", "name a directory"]
        {
            fault.promise(said.contains(part), || format!("the error names {part}: {said}"));
        }
        fixed(&mut fault, transport).await?;
    }
    Ok(fault)
}

/// Files in the folder can be neither created nor removed for a while, while spans are emitted.
async fn fixed(fault: &mut Fault, transport: Transport) -> Result<()> {
    let (disk, port) = (Mount::new(64 * MIB)?, free_port()?);
    let mut plan = exporter(EXPORTER, transport, &local(port))?;
    // Small segments, so that new ones are needed at once.
    plan.buffer = Buffer { memory: 4 * MIB, disk: 16 * MIB, ..plan.buffer };
    let plan = kept_in(plan, disk.path(), Durability::WriteThrough);
    let program = Program::start(vec![plan.clone()])?;
    program.emit(100);
    let folder = disk.path().join(EXPORTER).join("0");
    set_fixed(&folder, true)?;
    let emits = Arc::clone(&program);
    let emitted = tokio::task::spawn_blocking(move || emits.emit(20_000));
    emitted.await?;
    let counts = program.counts();
    fault.note(format!("fixed folder: {:?}", counts.trouble));
    let peer = Peer::start_at(([127, 0, 0, 1], port).into());
    program.until("the delivery", SOON, |counts| counts.delivered == 20_100).await?;
    set_fixed(&folder, false)?;
    program.emit(1000);
    let ended = program.ended();
    let report = program.end(SOON).await?;
    fault.promise(report.is_delivered(), || format!("{transport:?}: delivered: {report:?}"));
    fault.balance(&report.exporters);
    fault.arrived(&ended, &received(&peer));
    // Segments that could not be removed in time are not delivered again.
    let program = Program::start(vec![plan])?;
    let report = program.end(SOON).await?;
    let again = report.sum(|counts| counts.recovered);
    fault.promise(again == 0, || format!("{transport:?}: {again} delivered spans come again"));
    Ok(())
}

/// The folder is removed under a running program: spans in memory are delivered, or written again at the end.
pub(super) async fn removed(_: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    for transport in BOTH {
        for is_delivered in [true, false] {
            let (folder, port) = (TempDir::new()?, free_port()?);
            let directory = folder.path().join("telemetry");
            let program = Program::start(vec![plan(transport, port, &directory)?])?;
            program.emit(1000);
            written(&directory).await?;
            fs::remove_dir_all(&directory)?;
            program.emit(1000);
            let ended = program.ended();
            if is_delivered {
                let peer = Peer::start_at(([127, 0, 0, 1], port).into());
                let report = program.end(SOON).await?;
                fault.promise(report.is_delivered(), || format!("delivered: {report:?}"));
                fault.balance(&report.exporters);
                fault.arrived(&ended, &received(&peer));
                continue;
            }
            let report = program.end(Duration::ZERO).await?;
            let queued = report.sum(|counts| counts.queued);
            fault.promise(queued == 2000, || format!("written again: {report:?}"));
            fault.balance(&report.exporters);
            let peer = Peer::start_at(([127, 0, 0, 1], port).into());
            let program = Program::start(vec![plan(transport, port, &directory)?])?;
            fault.balance(&program.end(SOON).await?.exporters);
            fault.arrived(&ended, &received(&peer));
        }
    }
    Ok(fault)
}

/// Waits until a segment contains data.
async fn written(directory: &Path) -> Result<()> {
    let folder = directory.join(EXPORTER).join("0");
    for _ in 0..500 {
        let files = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
        let is_written = |path: PathBuf| {
            path.extension().is_some_and(|it| it == "segment")
                && fs::metadata(&path).is_ok_and(|file| file.len() > 10_000)
        };
        if files.into_iter().any(is_written) {
            return Ok(());
        }
        sleep(Duration::from_millis(10)).await;
    }
    ensure!(false, "nothing was written to `{}`", folder.display());
    Ok(())
}

fn plan(transport: Transport, port: u16, directory: &Path) -> Result<Exporter> {
    Ok(kept_in(exporter(EXPORTER, transport, &local(port))?, directory, Durability::Process))
}

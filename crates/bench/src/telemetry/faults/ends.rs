//! How a program may end, and the runtimes that it may use: no runtime, a runtime of one thread, one that is shutting down, and a
//! shutdown in the middle of responses.

use std::{path::Path, sync::Arc, thread, time::Duration};

use anyhow::{Context, Result, anyhow};
use telemetry::plan::{Durability, Exporter, Transport};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::{
    Fault, Ground,
    peer::Peer,
    program::{BOTH, Program, SOON, exporter, kept_in, received},
};
use crate::parts::SpanId;

const EXPORTER: &str = "tracer.peer";
const SPANS: u64 = 500;
/// The time limit of a program that ends without waiting.
const DROP_MAX: Duration = Duration::from_secs(2);

/// The runtime of a program, and where it drops its telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndWithin {
    /// A thread without a runtime.
    Nothing,
    /// A task of a runtime of one thread, which also shuts down there.
    CurrentThread,
    /// The same in a runtime with two threads.
    MultiThread,
    /// Telemetry is dropped in a task of a runtime of one thread.
    DroppedInTask,
    /// Telemetry is dropped with a task, because its runtime is shut down.
    DroppedWithRuntime,
}

/// Tests all of these runtimes. The next start delivers the remaining spans.
pub(super) async fn runtimes(_: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let all = [
        EndWithin::Nothing,
        EndWithin::CurrentThread,
        EndWithin::MultiThread,
        EndWithin::DroppedInTask,
        EndWithin::DroppedWithRuntime,
    ];
    for transport in BOTH {
        for within in all {
            let (peer, folder) = (Peer::start(), TempDir::new()?);
            let plan = plan(transport, &peer, folder.path())?;
            let took = std::sync::mpsc::sync_channel(1);
            let run = move || {
                let ended = inside(within, plan);
                took.0.send(ended).is_ok()
            };
            let thread = thread::spawn(run);
            let ended = tokio::task::spawn_blocking(move || took.1.recv_timeout(SOON)).await?;
            let (ended, is_delivered) = ended.with_context(|| format!("{within:?} hangs"))??;
            thread.join().map_err(|_| anyhow!("{within:?} panicked"))?;
            if let Some(is_delivered) = is_delivered {
                fault.promise(is_delivered, || format!("{within:?}: delivered at the shutdown"));
            }
            next_start(&mut fault, transport, (&peer, folder.path()), &ended).await?;
        }
    }
    Ok(fault)
}

/// Shuts down at every moment of a delivery, with a deadline that is too short.
pub(super) async fn ends(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let rounds = if ground.short { 40 } else { 1000 };
    for round in 0..rounds {
        let transport = BOTH[round % 2];
        let peer = Peer::start();
        let folder = TempDir::new()?;
        let mut exporter = plan(transport, &peer, folder.path())?;
        exporter.throttle = Duration::from_millis(1);
        if round % 4 < 2 {
            exporter.buffer.directory = None;
        }
        let is_kept = exporter.buffer.directory.is_some();
        let program = Program::start(vec![exporter])?;
        program.emit(4 * SPANS);
        let ended = program.ended();
        let max = Duration::from_micros(round as u64 * 997 % 40_000);
        let report = program.end(max).await?;
        fault.balance(&report.exporters);
        let at_peer = received(&peer).len() as u64;
        let delivered = report.sum(|counts| counts.delivered);
        fault.promise(delivered <= at_peer, || {
            format!("round {round}: {delivered} delivered, but the peer has {at_peer}")
        });
        if is_kept {
            next_start(&mut fault, transport, (&peer, folder.path()), &ended).await?;
        }
    }
    Ok(fault)
}

/// Delivers the remaining spans, and checks that all have arrived then.
async fn next_start(
    fault: &mut Fault,
    transport: Transport,
    (peer, folder): (&Peer, &Path),
    ended: &[SpanId],
) -> Result<()> {
    let program = Program::start(vec![plan(transport, peer, folder)?])?;
    let report = program.end(SOON).await?;
    fault.promise(report.is_delivered(), || format!("the next start delivers: {report:?}"));
    fault.balance(&report.exporters);
    fault.accepted += ended.len() as u64;
    fault.arrived(ended, &received(peer));
    Ok(())
}

/// Returns the ids of the emitted spans, and whether the shutdown delivered them, if there was one.
fn inside(within: EndWithin, plan: Exporter) -> Result<(Vec<SpanId>, Option<bool>)> {
    match within {
        EndWithin::Nothing => emit_and_end(plan),
        EndWithin::CurrentThread => one_thread()?.block_on(async { emit_and_end(plan) }),
        EndWithin::MultiThread => {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            let handle = runtime.handle().clone();
            runtime.block_on(async { handle.spawn(async { emit_and_end(plan) }).await })?
        }
        EndWithin::DroppedInTask => one_thread()?.block_on(async {
            let program = emitted(plan)?;
            let ended = program.ended();
            let began = tokio::time::Instant::now();
            drop(program);
            anyhow::ensure!(began.elapsed() < DROP_MAX, "the drop took {:?}", began.elapsed());
            Ok((ended, None))
        }),
        EndWithin::DroppedWithRuntime => {
            let runtime = one_thread()?;
            let program = emitted(plan)?;
            let ended = program.ended();
            // The task has begun, so that the runtime holds it when it is dropped.
            runtime.spawn(async move {
                std::future::pending::<()>().await;
                drop(program);
            });
            runtime.block_on(tokio::task::yield_now());
            drop(runtime);
            Ok((ended, None))
        }
    }
}

fn emit_and_end(plan: Exporter) -> Result<(Vec<SpanId>, Option<bool>)> {
    let program = emitted(plan)?;
    let report = program.telemetry.shutdown(SOON);
    Ok((program.ended(), Some(report.is_delivered())))
}

fn emitted(plan: Exporter) -> Result<Arc<Program>> {
    let program = Program::start(vec![plan])?;
    program.emit(SPANS);
    Ok(program)
}

fn one_thread() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn plan(transport: Transport, peer: &Peer, folder: &Path) -> Result<Exporter> {
    Ok(kept_in(exporter(EXPORTER, transport, &peer.endpoint())?, folder, Durability::Process))
}

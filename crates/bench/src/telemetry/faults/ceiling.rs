//! More spans than the buffer can hold, during an outage: memory and disk stay within their bounds, producers are held, or spans
//! are dropped and counted exactly. The program is its own process, so that its memory is measured alone.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use telemetry::plan::{Buffer, Durability, Exporter, Transport};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

use super::{
    Fault, Ground,
    collector::ids,
    program::{Program, SteadyLoad, exporter, kept_in, local, pause},
};
use crate::{
    parts::{Relay, Sink, SpanId},
    telemetry::emit::peak_memory_beside_files,
};

const MIB: u64 = 1024 * 1024;
/// Spans per second, if producers are not held.
const RATE: u64 = 5000;
/// The upper bound of the program's memory beside its buffer.
const BESIDE_BYTES_MAX: u64 = 20_000_000;
/// The timeout for the backlog to arrive.
const END_MAX: Duration = Duration::from_secs(120);

/// The order of the child program; it is passed as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct CeilingOrder {
    grpc: bool,
    port: u16,
    directory: PathBuf,
    memory: u64,
    disk: u64,
    lossy: bool,
    millis: u64,
    /// The file for the ids of its spans.
    ended: PathBuf,
}

/// The result that it prints at its end.
#[derive(Debug, Serialize, Deserialize)]
struct CeilingOutcome {
    accepted: u64,
    delivered: u64,
    queued: u64,
    rejected: u64,
    dropped: u64,
    is_balanced: bool,
    held_ms: u64,
    memory_before: u64,
    memory: u64,
}

/// Producers are held, and all spans arrive.
pub(super) async fn held(ground: &Ground) -> Result<Fault> {
    outage(ground, false).await
}

/// Spans are dropped, and every one of them is counted.
pub(super) async fn lossy(ground: &Ground) -> Result<Fault> {
    outage(ground, true).await
}

async fn outage(ground: &Ground, is_lossy: bool) -> Result<Fault> {
    let mut fault = Fault::default();
    let (away, disk, memory) = if ground.short {
        (Duration::from_secs(5), 2 * MIB, MIB)
    } else {
        (Duration::from_secs(120), 64 * MIB, 32 * MIB)
    };
    for transport in [Transport::Grpc, Transport::Http] {
        let (folder, sink) = (TempDir::new()?, Sink::start().await?);
        let mut relay = Relay::new(sink.port)?;
        let grpc = transport == Transport::Grpc;
        let order = CeilingOrder {
            grpc,
            port: if grpc { relay.grpc } else { relay.http },
            directory: folder.path().join("telemetry"),
            memory,
            disk,
            lossy: is_lossy,
            millis: away.as_millis() as u64 + 2000,
            ended: folder.path().join("ended"),
        };
        let program = start(&ground.program, &order)?;
        let used = watch(&order.directory, away).await;
        relay.start().await?;
        let outcome = finish(program).await?;
        judge(&mut fault, (&order, &outcome), used, &sink)?;
    }
    Ok(fault)
}

fn judge(
    fault: &mut Fault,
    (order, outcome): (&CeilingOrder, &CeilingOutcome),
    used: u64,
    sink: &Sink,
) -> Result<()> {
    let grew = outcome.memory.saturating_sub(outcome.memory_before);
    fault.note(format!("disk {used}, memory +{grew}: {outcome:?}"));
    fault.accepted += outcome.accepted;
    fault.unbalanced += u64::from(!outcome.is_balanced);
    fault.promise(grew <= order.memory + BESIDE_BYTES_MAX, || format!("memory grew by {grew}"));
    fault.promise(used <= order.disk, || format!("the disk takes {used} of {}", order.disk));
    fault.promise(used > order.disk / 2, || format!("the disk is used: {used}"));
    let owed: Vec<SpanId> =
        fs::read(&order.ended)?.chunks_exact(8).filter_map(|id| id.try_into().ok()).collect();
    fault.promise(owed.len() as u64 == outcome.accepted, || {
        format!("{} ended, {} accepted", owed.len(), outcome.accepted)
    });
    let received = ids(sink);
    let arrived = received.len() as u64;
    fault.promise(arrived == outcome.accepted - outcome.dropped, || {
        format!("{arrived} arrived: {outcome:?}")
    });
    if order.lossy {
        fault.promise(outcome.dropped > 0 && outcome.held_ms == 0, || format!("{outcome:?}"));
    } else {
        fault.promise(outcome.dropped == 0 && outcome.held_ms > 0, || format!("{outcome:?}"));
        fault.arrived(&owed, &received);
    }
    Ok(())
}

/// Returns the peak disk usage of a folder within this time.
async fn watch(folder: &Path, time: Duration) -> u64 {
    let (began, mut most) = (Instant::now(), 0);
    while began.elapsed() < time {
        most = most.max(disk_usage(folder));
        sleep(Duration::from_millis(50)).await;
    }
    most
}

/// Returns the disk usage like `du`; files that vanish meanwhile count as empty.
fn disk_usage(path: &Path) -> u64 {
    let own = fs::symlink_metadata(path).map_or(0, |metadata| metadata.blocks() * 512);
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    own + entries.map(|entry| disk_usage(&entry.path())).sum::<u64>()
}

fn start(program: &Path, order: &CeilingOrder) -> Result<Child> {
    Command::new(program)
        .arg("telemetry:fault")
        .arg(serde_json::to_string(order)?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start `{}`", program.display()))
}

async fn finish(program: Child) -> Result<CeilingOutcome> {
    let output = program.wait_with_output().await?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "the program failed: {said}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Runs the child program; order and outcome are JSON.
pub fn child(order: &str) -> Result<String> {
    let order: CeilingOrder = serde_json::from_str(order).context("the order is not one")?;
    let memory_before = peak_memory_beside_files()?;
    let program = Program::start(vec![plan(&order)?])?;
    let load = SteadyLoad::start(&program, 2, RATE / 2);
    // Data for the check must not count as memory of telemetry.
    let mut ended = File::create(&order.ended)?;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(order.millis) {
        pause(Duration::from_millis(20));
        ended.write_all(&program.take_ended().concat())?;
    }
    load.join()?;
    ended.write_all(&program.take_ended().concat())?;
    let report = program.telemetry.shutdown(END_MAX);
    let memory = peak_memory_beside_files()?;
    let counts = report.exporters.first().context("one exporter")?;
    Ok(serde_json::to_string(&CeilingOutcome {
        accepted: counts.accepted,
        delivered: counts.delivered,
        queued: counts.queued,
        rejected: counts.rejected,
        dropped: counts.dropped,
        is_balanced: counts.is_balanced(),
        held_ms: counts.held.as_millis() as u64,
        memory_before,
        memory,
    })?)
}

fn plan(order: &CeilingOrder) -> Result<Exporter> {
    let transport = if order.grpc { Transport::Grpc } else { Transport::Http };
    let mut plan = exporter("tracer.collector", transport, &local(order.port))?;
    plan.lossy = order.lossy;
    plan.buffer = Buffer { memory: order.memory, disk: order.disk, ..plan.buffer };
    Ok(kept_in(plan, &order.directory, Durability::Process))
}

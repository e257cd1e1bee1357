//! The limits of a real Collector: 4 MiB for a message over gRPC, 20 MiB for a body over HTTP.

use std::time::Duration;

use anyhow::{Context, Result};
use telemetry::plan::{Buffer, Compression, Durability, Transport};
use tempfile::TempDir;

use super::{
    Fault, Ground,
    collector::{ids, to_relay},
    peer::Peer,
    program::{BOTH, Program, exporter, kept_in, received, with_otlp},
};
use crate::parts::{Relay, Sink};

const MIB: usize = 1024 * 1024;
/// The timeout for the backlog.
const END_MAX: Duration = Duration::from_secs(60);

/// A backlog far above the limit is delivered; a single span above it becomes a dead letter, and does not block others.
pub(super) async fn limits(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    // Of 8 kB each: above both limits in total.
    let spans = if ground.short { 4000 } else { 40_000 };
    for (at, transport) in BOTH.into_iter().enumerate() {
        let both = [Compression::Gzip, Compression::None];
        for &compression in if ground.short { &both[at..=at] } else { &both[..] } {
            let (folder, sink) = (TempDir::new()?, Sink::start().await?);
            let mut relay = Relay::new(sink.port)?;
            let plan = with_otlp(to_relay(transport, &relay)?, |otlp| {
                otlp.compression = compression;
            });
            let plan = kept_in(plan, folder.path(), Durability::Process);
            let program = Program::start(vec![plan])?;
            for _ in 0..spans / 2 {
                program.one("large", 8000);
            }
            let too_large = program.one("too large", large(transport));
            for _ in 0..spans / 2 {
                program.one("large", 8000);
            }
            relay.start().await?;
            let ended: Vec<_> = program.ended().into_iter().filter(|id| *id != too_large).collect();
            let said = std::sync::Arc::clone(&program);
            let report = program.end(END_MAX).await?;
            let counts = report.exporters.first().context("one exporter")?;
            let ends = (counts.delivered, counts.rejected, counts.dead_letters);
            fault.promise(ends == (spans, 1, 1), || {
                let said = said.lines();
                format!("{transport:?}, {compression:?}: one letter: {counts:?}; said: {said:?}")
            });
            fault.balance(&report.exporters);
            fault.arrived(&ended, &ids(&sink));
        }
        oversize(&mut fault, transport).await?;
    }
    Ok(fault)
}

/// A span that no buffer can hold is dropped and counted; it blocks no producer, and the others arrive.
async fn oversize(fault: &mut Fault, transport: Transport) -> Result<()> {
    for is_on_disk in [false, true] {
        let (folder, peer) = (TempDir::new()?, Peer::start());
        let mut plan = exporter("tracer.peer", transport, &peer.endpoint())?;
        plan.buffer = Buffer { memory: 300_000, disk: 1_000_000, ..plan.buffer };
        if is_on_disk {
            plan = kept_in(plan, folder.path(), Durability::Process);
        }
        let program = Program::start(vec![plan])?;
        program.emit(10);
        let oversize = program.one("oversize", 2_000_000);
        program.emit(10);
        let ended: Vec<_> = program.ended().into_iter().filter(|id| *id != oversize).collect();
        let report = program.end(END_MAX).await?;
        let counts = report.exporters.first().context("one exporter")?;
        fault.promise((counts.delivered, counts.dropped) == (20, 1), || {
            format!("{transport:?}: one is too large to keep: {counts:?}")
        });
        fault.balance(&report.exporters);
        fault.arrived(&ended, &received(&peer));
    }
    Ok(())
}

/// Returns a size above the limit of the transport, compressed or not.
fn large(transport: Transport) -> usize {
    match transport {
        Transport::Grpc => 6 * MIB,
        Transport::Http => 29 * MIB,
    }
}

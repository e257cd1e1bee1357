//! A wall clock that is set back an hour, and ahead, while spans are exported and dead letters are written.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use telemetry::{FinishedSpan, Host, To, plan::Durability};
use tempfile::TempDir;

use super::{
    Fault, Ground,
    answers::letters,
    peer::{Peer, Reply},
    program::{BOTH, Program, SOON, exporter, kept_in, received},
};
use crate::parts::unix_nanos;

const HOUR: i64 = 3600;
/// The offset of the clock in seconds.
static OFF: AtomicI64 = AtomicI64::new(0);

/// Changes the clock between spans, some of them rejected, some of them ended before they began.
pub(super) async fn steps(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let rounds = if ground.short { 1 } else { 20 };
    for transport in BOTH {
        let (peer, folder) = (Peer::start(), TempDir::new()?);
        peer.reply_to_named("poison", Reply::refused(400));
        if transport == BOTH[0] {
            peer.reply_to_named("poison", Reply::grpc(3, "no"));
        }
        let plan = exporter("tracer.peer", transport, &peer.endpoint())?;
        let plan = kept_in(plan, folder.path(), Durability::Process);
        let host = Host { wall, ..Host::new("faults/1.0") };
        let program = Program::start_on(vec![plan], host)?;
        let (mut poisoned, mut odd) = (Vec::new(), Vec::new());
        for off in [0, -HOUR, HOUR, -24 * HOUR, 0].repeat(rounds) {
            OFF.store(off, Ordering::Relaxed);
            program.emit(500);
            odd.push(backwards(&program, off));
            poisoned.push(program.one("poison", 0));
            let refused = poisoned.len() as u64;
            let is_refused = |counts: &telemetry::Counts| counts.rejected == refused;
            let counts = program.until("the refusal", SOON, is_refused).await?;
            let oldest = counts.oldest.unwrap_or_default();
            fault.promise(oldest < Duration::from_secs(60), || {
                format!("nothing is older than the program: {oldest:?}")
            });
        }
        let mut ended = program.ended();
        ended.retain(|id| !poisoned.contains(id));
        ended.extend(odd);
        let refused = poisoned.len() as u64;
        let report = program.end(SOON).await?;
        let counts = report.exporters.first().context("one exporter")?;
        fault.promise(counts.dead_letters == refused, || format!("all are kept: {counts:?}"));
        let letters = letters(folder.path())?;
        fault.promise(letters.len() as u64 == refused, || {
            format!("each letter has a name of its own: {letters:?}")
        });
        fault.balance(&report.exporters);
        fault.arrived(&ended, &received(&peer));
    }
    OFF.store(0, Ordering::Relaxed);
    Ok(fault)
}

/// Emits a span during which the producer's clock was set back.
fn backwards(program: &Program, off: i64) -> [u8; 8] {
    let id = unix_nanos() ^ off.unsigned_abs();
    let context = SpanContext::new(
        TraceId::from(u128::from(id)),
        SpanId::from(id),
        TraceFlags::SAMPLED,
        false,
        TraceState::NONE,
    );
    let start = UNIX_EPOCH + Duration::from_nanos(unix_nanos());
    let end = start - Duration::from_secs(HOUR.unsigned_abs());
    let span = FinishedSpan { start, end, ..FinishedSpan::new(context, "backwards") };
    program.telemetry.emit(To::Own, span);
    id.to_be_bytes()
}

fn wall() -> SystemTime {
    let now = UNIX_EPOCH + Duration::from_nanos(unix_nanos());
    let off = OFF.load(Ordering::Relaxed);
    let by = Duration::from_secs(off.unsigned_abs());
    if off < 0 { now - by } else { now + by }
}

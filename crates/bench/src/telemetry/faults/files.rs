//! The files on disk when a program starts: torn and changed tails of a killed program, folders of running and of dead programs.

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use super::{Fault, Ground, collector::ids};
use crate::{
    parts::SpanId,
    telemetry::{
        stand::TelemetryStand,
        subject::{Durability, EmitterLoad, Subject, Transport},
    },
};

/// Spans per second.
const RATE: u64 = 2000;
const LIFE_MS: u64 = 600_000;
/// The size of a tail: a record is shorter.
const TAIL_BYTES: u64 = 150;

/// Tails that are cut off or changed after a kill: only the records in them are lost.
pub(super) async fn torn(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let rounds = if ground.short { 3 } else { 40 };
    // A span may be written and not yet recorded by its producer at the kill, so a single round may miss none.
    let mut gone = 0;
    for round in 0..rounds {
        let subject = Subject::ours(Durability::WriteThrough, Transport::ALL[round as usize % 2]);
        let mut stand = TelemetryStand::new(&ground.program, subject).await?;
        let mut order = stand.order(EmitterLoad::Steady(RATE, LIFE_MS));
        let mut emitter = stand.emit(&order)?;
        emitter.began().await?;
        sleep(Duration::from_millis(300)).await;
        let (_, ended) = emitter.kill().await?;
        let segment = last_segment(&order.directory)?;
        let is_cut = round % 2 == 0;
        let from = damage(&segment, is_cut)?;
        stand.relay.start().await?;
        order = stand.order(EmitterLoad::Spans(100));
        order.ended.set_extension("after");
        let outcome = stand.emit(&order)?.finish().await?;
        let counts = outcome.counts.context("ours counts")?;
        fault.promise(counts.delivered == counts.accepted, || format!("delivered: {counts:?}"));
        stand.quiet().await;
        let received = ids(&stand.sink);
        let after = crate::telemetry::read_ended(&order.ended)?;
        let after: Vec<SpanId> = after.iter().map(|span| span.id).collect();
        fault.accepted += (ended.len() + after.len()) as u64;
        fault.arrived(&after, &received);
        let missing = ended.iter().filter(|span| !received.contains(&span.id)).count();
        // A changed byte may be in a header, behind which the start of the next record is unknown.
        let most = if is_cut { 2 } else { 3 };
        gone += missing;
        fault.promise(missing <= most, || {
            format!("round {round}: {missing} of {} are gone with {from}", ended.len())
        });
    }
    fault.promise(gone > 0, || "the damage was noticed".to_owned());
    Ok(fault)
}

/// Two programs on one directory; both are killed, and a third delivers the spans of both.
pub(super) async fn shared(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let time = Duration::from_secs(if ground.short { 1 } else { 10 });
    for transport in Transport::ALL {
        let subject = Subject::ours(Durability::WriteThrough, transport);
        let mut stand = TelemetryStand::new(&ground.program, subject).await?;
        stand.relay.start().await?;
        let mut owed = Vec::new();
        for is_there in [true, false] {
            if !is_there {
                stand.relay.kill().await?;
            }
            let mut emitters = Vec::new();
            for name in ["one", "two", "three"] {
                let mut order = stand.order(EmitterLoad::Steady(RATE, LIFE_MS));
                order.ended.set_extension(name);
                order.throttle_ms = 100;
                let mut emitter = stand.emit(&order)?;
                emitter.began().await?;
                emitters.push(emitter);
            }
            sleep(time).await;
            let folder = stand.order(EmitterLoad::Nothing).directory.join("tracer.collector");
            for number in ["0", "1", "2"] {
                let is_taken = folder.join(number).join("lock").exists();
                fault.promise(is_taken, || format!("each has a folder: {number}"));
            }
            for emitter in emitters {
                let (_, ended) = emitter.kill().await?;
                if is_there {
                    // Each of them delivers by itself while it runs.
                    let received = ids(&stand.sink);
                    let first = ended.first().context("a span")?;
                    fault.promise(received.contains(&first.id), || "all deliver".to_owned());
                }
                owed.extend(ended.iter().map(|span| span.id));
            }
        }
        stand.relay.start().await?;
        let last = stand.restart().await?.context("ours starts again")?;
        let counts = last.counts.context("ours counts")?;
        fault.promise(counts.delivered == counts.accepted, || format!("delivered: {counts:?}"));
        stand.quiet().await;
        fault.accepted += owed.len() as u64;
        fault.arrived(&owed, &ids(&stand.sink));
    }
    Ok(fault)
}

/// Returns the last segment of the only exporter.
fn last_segment(directory: &Path) -> Result<PathBuf> {
    let folder = directory.join("tracer.collector").join("0");
    let paths = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path()));
    let paths: Vec<PathBuf> = paths.collect::<Result<_>>()?;
    let segments =
        paths.into_iter().filter(|path| path.extension().is_some_and(|it| it == "segment"));
    segments.max().with_context(|| format!("no segment in `{}`", folder.display()))
}

/// Cuts the tail off at a random position, or changes a bit in it; returns a description.
fn damage(segment: &Path, is_cut: bool) -> Result<String> {
    let mut bytes = fs::read(segment)?;
    let length = bytes.len() as u64;
    ensure!(length > 10 * TAIL_BYTES, "the segment is too short: {length} bytes");
    let random = RandomState::new().hash_one(0_u8);
    let at = length - 1 - random % TAIL_BYTES;
    if is_cut {
        bytes.truncate(at as usize);
    } else {
        bytes[at as usize] ^= 1 << (random >> 32 & 7);
    }
    fs::write(segment, &bytes)?;
    let what = if is_cut { "cut off" } else { "changed" };
    Ok(format!("byte {at} of {length} {what}"))
}

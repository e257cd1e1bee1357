//! A storm of reloads under load: every reloadable setting changes, and exporters are added and removed.

use std::{collections::HashSet, path::Path, time::Duration};

use anyhow::{Context, Result};
use telemetry::{
    Counts,
    plan::{Durability, Exporter, Header, Secret},
};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    Fault, Ground,
    peer::Peer,
    program::{BOTH, Program, SOON, SteadyLoad, exporter, kept_in, received, with_otlp},
};
use crate::parts::SpanId;

/// Reloads per second.
const PACE: u32 = 10;
/// Present in all plans, and receives every span.
const STEADY: &str = "tracer.steady";
/// The same, in memory.
const MEMORY: &str = "tracer.memory";
/// Present in every other plan.
const COMING: &str = "tracer.coming";

/// Runs fifty reloads in five seconds, or many more; then the remaining spans of the removed exporter are delivered.
pub(super) async fn storm(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let reloads = if ground.short { 50 } else { 600 };
    let folder = TempDir::new()?;
    let peers = [Peer::start(), Peer::start()];
    let others = Peer::start();
    let program = Program::start(plans(0, (&peers, &others), folder.path())?)?;
    let load = SteadyLoad::start(&program, 2, 1000);
    for number in 1..=reloads {
        sleep(Duration::from_secs(1) / PACE).await;
        let plans = plans(number, (&peers, &others), folder.path())?;
        let again = std::sync::Arc::clone(&program);
        tokio::task::spawn_blocking(move || again.reload(plans)).await??;
        let unbalanced =
            program.telemetry.counts().into_iter().find(|counts| !counts.is_balanced());
        if let Some(counts) = unbalanced.filter(|_| fault.broken.is_empty()) {
            fault.broken.push(format!("after reload {number}: {counts:?}"));
        }
    }
    load.stop().await?;
    let ended = program.ended();
    let report = program.end(SOON).await?;
    fault.balance(&report.exporters);
    let named = |name: &str| -> Vec<&Counts> {
        report.exporters.iter().filter(|counts| counts.exporter == name).collect()
    };
    let both: HashSet<SpanId> = peers.iter().flat_map(received).collect();
    for name in [STEADY, MEMORY] {
        let counts = *named(name).first().context("it is there to the end")?;
        let is_whole = counts.accepted == ended.len() as u64 && counts.delivered == counts.accepted;
        fault.promise(is_whole, || format!("all of {}: {counts:?}", ended.len()));
    }
    fault.arrived(&ended, &both);
    left(&mut fault, &named(COMING), (&others, folder.path())).await?;
    fault.promise(others.accepted().len() > 1000, || "the coming one has its share".to_owned());
    Ok(fault)
}

/// Checks that the spans that the removed exporter accepted have arrived, or arrive with its next start.
async fn left(fault: &mut Fault, lives: &[&Counts], (peer, folder): (&Peer, &Path)) -> Result<()> {
    let sum = |part: fn(&Counts) -> u64| lives.iter().map(|counts| part(counts)).sum::<u64>();
    let fresh = sum(|counts| counts.accepted - counts.recovered);
    let dropped = sum(|counts| counts.dropped);
    fault.note(format!(
        "{COMING}: {} lives, {fresh} accepted, {dropped} dropped, {} left",
        lives.len(),
        sum(|counts| counts.queued)
    ));
    let program = Program::start(vec![coming(peer, folder)?])?;
    let report = program.end(SOON).await?;
    fault.promise(report.is_delivered(), || format!("the next start delivers: {report:?}"));
    fault.balance(&report.exporters);
    let arrived = received(peer).len() as u64;
    fault.promise(arrived == fresh - dropped, || {
        format!("{COMING}: {fresh} accepted, {dropped} dropped, {arrived} arrived: {lives:?}")
    });
    Ok(())
}

/// Returns the plan of this number: endpoint, headers, throttle and lossy change, and one exporter is present or not.
fn plans(
    number: u32,
    (peers, others): (&[Peer; 2], &Peer),
    folder: &Path,
) -> Result<Vec<Exporter>> {
    let peer = &peers[number as usize % 2];
    let transport = BOTH[number as usize / 2 % 2];
    let changed = |name: &str| -> Result<Exporter> {
        let mut plan = exporter(name, transport, &peer.endpoint())?;
        plan.throttle = Duration::from_millis([1, 50, 200][number as usize % 3]);
        plan.lossy = number.is_multiple_of(5);
        Ok(with_otlp(plan, |otlp| {
            let name = http::HeaderName::from_static("x-number");
            otlp.headers = vec![Header { name, value: Secret::new(number.to_string()) }];
        }))
    };
    let mut plans = vec![kept_in(changed(STEADY)?, folder, Durability::Process), changed(MEMORY)?];
    if number % 2 == 1 {
        plans.push(coming(others, folder)?);
    }
    Ok(plans)
}

fn coming(peer: &Peer, folder: &Path) -> Result<Exporter> {
    Ok(kept_in(exporter(COMING, BOTH[0], &peer.endpoint())?, folder, Durability::Process))
}

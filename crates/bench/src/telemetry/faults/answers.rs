//! Responses of a destination, and broken connections.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use telemetry::plan::{Durability, Transport};
use tempfile::TempDir;

use super::{
    Fault, Ground,
    peer::{Peer, Reply},
    program::{BOTH, Program, SOON, exporter, kept_in, received},
};

/// Longer than an export is held for an operator's error.
const HELD_MAX: Duration = Duration::from_secs(15);
/// The delay that a peer requests.
const AFTER: Duration = Duration::from_secs(1);
const EXPORTER: &str = "tracer.peer";

/// 429 and 503 with `Retry-After`, `RetryInfo`: every span arrives later, none before.
pub(super) async fn later(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let after = |status: u16| Reply::Http {
        status,
        headers: vec![("retry-after", AFTER.as_secs().to_string())],
        body: "",
    };
    let millis = AFTER.as_millis() as i64;
    let replies = [
        (Transport::Http, after(429)),
        (Transport::Http, after(503)),
        (Transport::Grpc, Reply::grpc_after(14, millis)),
        (Transport::Grpc, Reply::grpc_after(8, millis)),
    ];
    let spans = if ground.short { 100 } else { 20_000 };
    for (transport, reply) in replies {
        let peer = Peer::start();
        let program = Program::start(vec![exporter(EXPORTER, transport, &peer.endpoint())?])?;
        let said = format!("{transport:?}, {reply:?}");
        peer.reply_next([reply]);
        program.emit(1);
        program.until("the first span", SOON, |counts| counts.delivered == 1).await?;
        program.emit(spans - 1);
        program.until("all spans", SOON, |counts| counts.delivered == spans).await?;
        let seen = peer.seen();
        let waited = seen[1].at - seen[0].at;
        fault.promise((AFTER..3 * AFTER).contains(&waited), || {
            format!("{said}: it came again after {waited:?}")
        });
        fault.promise(program.counts().retries > 0, || format!("{said}: no retry was counted"));
        let ended = program.ended();
        fault.balance(&program.end(SOON).await?.exporters);
        fault.arrived(&ended, &received(&peer));
    }
    Ok(fault)
}

/// 400 for batches with one certain span: that one becomes a dead letter, all others arrive.
pub(super) async fn refused(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let spans = if ground.short { 1000 } else { 20_000 };
    for (transport, reply) in
        BOTH.into_iter().zip([Reply::grpc(3, "no such thing"), Reply::refused(400)])
    {
        let (peer, folder) = (Peer::start(), TempDir::new()?);
        let plan = exporter(EXPORTER, transport, &peer.endpoint())?;
        let program = Program::start(vec![kept_in(plan, folder.path(), Durability::Process)])?;
        peer.reply_to_named("poison", reply);
        program.emit(spans / 2);
        let poison = program.one("poison", 0);
        program.emit(spans / 2);
        let ended: Vec<_> = program.ended().into_iter().filter(|id| *id != poison).collect();
        let report = program.end(SOON).await?;
        let counts = report.exporters.first().context("one exporter")?;
        fault.promise((counts.delivered, counts.rejected) == (spans, 1), || {
            format!("{transport:?}: one is refused, the others arrive: {counts:?}")
        });
        let letters = letters(folder.path())?;
        fault.promise(letters.iter().map(|(_, names)| names).eq([&["poison".to_owned()]]), || {
            format!("{transport:?}: the letter holds the poisoned span alone: {letters:?}")
        });
        fault.balance(&report.exporters);
        fault.arrived(&ended, &received(&peer));
    }
    Ok(fault)
}

/// 401 until the operator fixes it: held, reported once, then delivered.
pub(super) async fn unauthorized(_: &Ground) -> Result<Fault> {
    Fault::of(vec![
        held(Transport::Grpc, Reply::grpc(16, "who are you"), "UNAUTHENTICATED"),
        held(Transport::Http, Reply::status(401), "401"),
    ])
    .await
}

async fn held(transport: Transport, reply: Reply, word: &'static str) -> Result<Fault> {
    let mut fault = Fault::default();
    let peer = Peer::start();
    peer.reply_always(reply);
    let program = Program::start(vec![exporter(EXPORTER, transport, &peer.endpoint())?])?;
    program.emit(2000);
    let counts = program.until("the trouble", SOON, |counts| counts.trouble.is_some()).await?;
    let trouble = counts.trouble.unwrap_or_default();
    fault.promise(trouble.contains(word), || format!("the trouble names {word}: {trouble}"));
    // The second attempt, which is not reported again.
    program.until("the second attempt", HELD_MAX, |counts| counts.retries > 0).await?;
    let said = program.lines();
    fault.promise(said.len() == 1 && said[0].contains(word), || format!("said once: {said:?}"));
    let counts = program.counts();
    fault.promise((counts.queued, counts.rejected) == (2000, 0), || format!("held: {counts:?}"));
    peer.reply_always(Reply::Accept);
    let counts = program.until("the delivery", HELD_MAX, |counts| counts.delivered == 2000).await?;
    fault.promise(counts.trouble.is_none(), || format!("the trouble is over: {counts:?}"));
    let ended = program.ended();
    fault.balance(&program.end(SOON).await?.exporters);
    fault.arrived(&ended, &received(&peer));
    Ok(fault)
}

/// Partial success: the complete batch is stored and marked, the rejected spans are counted.
pub(super) async fn partial(_: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    for transport in BOTH {
        let (peer, folder) = (Peer::start(), TempDir::new()?);
        let mut plan = exporter(EXPORTER, transport, &peer.endpoint())?;
        plan.throttle = AFTER;
        let program = Program::start(vec![kept_in(plan, folder.path(), Durability::Process)])?;
        program.emit(100);
        program.until("the first answer", SOON, |counts| counts.queued == 0).await?;
        peer.reply_next([Reply::Partial { rejected: 3, message: "three are odd" }]);
        program.emit(100);
        let ended = program.ended();
        let report = program.end(SOON).await?;
        let counts = report.exporters.first().context("one exporter")?;
        let ends = (counts.delivered, counts.rejected, counts.dead_letters);
        fault.promise(ends == (197, 3, 1), || format!("{transport:?}: three of 200: {counts:?}"));
        let letters = letters(folder.path())?;
        let is_marked = |(name, names): &(String, Vec<String>)| {
            name.ends_with(&format!("-3-of-{}.otlp", names.len()))
        };
        fault.promise(letters.len() == 1 && letters.iter().all(is_marked), || {
            format!("{transport:?}: one letter, marked: {letters:?}")
        });
        fault.balance(&report.exporters);
        fault.arrived(&ended, &received(&peer));
    }
    Ok(fault)
}

/// Connections that end in the middle of a request, before the response and in the middle of it.
pub(super) async fn reset(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let rounds = if ground.short { 3 } else { 50 };
    for transport in BOTH {
        let peer = Peer::start();
        let program = Program::start(vec![exporter(EXPORTER, transport, &peer.endpoint())?])?;
        for round in 1..=rounds {
            peer.reply_next([
                Reply::ResetInRequest,
                Reply::ResetBeforeAnswer,
                Reply::ResetInAnswer,
            ]);
            program.emit(3000);
            let all = round * 3000;
            program.until("all spans", SOON, |counts| counts.delivered == all).await?;
        }
        let ended = program.ended();
        fault.balance(&program.end(SOON).await?.exporters);
        fault.arrived(&ended, &received(&peer));
    }
    Ok(fault)
}

/// Reads the dead letters in the folder of the only exporter: their names, and the names of their spans.
pub(super) fn letters(directory: &Path) -> Result<Vec<(String, Vec<String>)>> {
    let mut letters = Vec::new();
    for entry in fs::read_dir(directory.join(EXPORTER).join("dead-letters"))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if name.ends_with(".otlp") {
            let request = ExportTraceServiceRequest::decode(&fs::read(&path)?[..])?;
            let scopes = request.resource_spans.into_iter().flat_map(|it| it.scope_spans);
            let names = scopes.flat_map(|it| it.spans).map(|span| span.name);
            letters.push((name, names.collect()));
        }
    }
    letters.sort();
    Ok(letters)
}

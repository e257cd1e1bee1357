//! Several exporters of which some are dead: the healthy ones are not affected.

use std::{collections::HashMap, net::TcpListener, time::Duration};

use anyhow::{Context, Result};
use telemetry::plan::{Durability, Exporter};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{
    Fault, Ground,
    peer::{Peer, Reply},
    program::{BOTH, Program, SOON, exporter, kept_in, received},
};
use crate::parts::{SpanId, free_port};

/// The upper bound of a span's delay beyond the throttle.
const LATE_MAX: Duration = Duration::from_secs(1);

/// One exporter is healthy; one is refused, one hangs, one has no address and one hangs before the first byte.
pub(super) async fn one_dead(ground: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let load = Duration::from_secs(if ground.short { 4 } else { 60 });
    for transport in BOTH {
        let folder = TempDir::new()?;
        let (living, hanging) = (Peer::start(), Peer::start());
        hanging.reply_always(Reply::Hang);
        // The system accepts connections, and no process ever responds.
        let mute = TcpListener::bind("127.0.0.1:0")?;
        let endpoints = [
            ("tracer.living", living.endpoint()),
            ("tracer.refused", format!("http://127.0.0.1:{}", free_port()?)),
            ("tracer.hanging", hanging.endpoint()),
            ("tracer.nameless", "http://no-such-name.invalid:4317".to_owned()),
            ("tracer.mute", format!("http://{}", mute.local_addr()?)),
        ];
        let plans = endpoints.iter().map(|(name, endpoint)| {
            let plan = exporter(name, transport, endpoint)?;
            Ok(kept_in(plan, folder.path(), Durability::Process))
        });
        let plans: Vec<Exporter> = plans.collect::<Result<_>>()?;
        let throttle = plans[0].throttle;
        let program = Program::start(plans)?;
        let mut began: HashMap<SpanId, Instant> = HashMap::new();
        let start = Instant::now();
        while start.elapsed() < load {
            began.insert(program.one("step", 0), Instant::now());
            sleep(Duration::from_millis(10)).await;
        }
        let counts = program.counts();
        fault.promise(counts.exporter == "tracer.living", || format!("{counts:?}"));
        program.until("the last span", SOON, |counts| counts.queued == 0).await?;
        let mut latest = Duration::ZERO;
        for seen in living.seen() {
            for span in seen.spans {
                let id = SpanId::try_from(span.span_id).ok().context("an id")?;
                let ended = began.get(&id).context("a span of ours")?;
                latest = latest.max(Instant::from_std(seen.at).saturating_duration_since(*ended));
            }
        }
        fault.promise(latest <= throttle + LATE_MAX, || {
            format!("{transport:?}: a span took {latest:?} beside dead exporters")
        });
        fault.note(format!("{transport:?}: the latest took {latest:?}"));
        let ended = program.ended();
        let report = program.end(Duration::from_secs(1)).await?;
        for counts in &report.exporters {
            let is_dead = counts.exporter != "tracer.living";
            let all = if is_dead { counts.queued } else { counts.delivered };
            fault.promise(all == ended.len() as u64, || format!("{transport:?}: {counts:?}"));
        }
        fault.balance(&report.exporters);
        fault.arrived(&ended, &received(&living));
    }
    Ok(fault)
}

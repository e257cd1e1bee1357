//! Foreign spans at the port of a replica: they cause no message to NATS and no statement, and cost what they cost a server without
//! NATS.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use tokio::time::{Instant, sleep};

use super::{
    ReplicaExtent, at_most, row,
    stand::{ReplicaStand, end},
};
use crate::{
    ingest::load::{self, ExportLoad, Way},
    parts::proc,
    table::{Row, median},
};

/// The upper bound relative to a server without NATS.
const SINGLE_MAX: f64 = 1.1;
/// What the timers of a server do may fall into one interval or into the next one: the messages and statements by which two equal
/// intervals of a round may differ.
const TIMERS: f64 = 40.0;
/// Spans of an export.
const SPANS: usize = 100;

/// What a replica caused in an interval.
#[derive(Clone, Copy, Debug, Default)]
struct ReplicaTraffic {
    messages: f64,
    statements: f64,
}

pub(super) async fn measure(binary: &Path, extent: ReplicaExtent) -> Result<Vec<Row>> {
    let (spans, rounds) = extent.pick((10_000_000, 7), (1_400_000, 3), (200_000, 2));
    let stand = ReplicaStand::start(binary, extent).await?;
    for database in ["replica", "single"] {
        stand.create_database(database).await?;
    }
    let replica = stand.serve("replica", "").await?;
    let single = stand.serve_alone("single", "").await?;
    let ids = [replica.id().context("it runs")?, single.id().context("it runs")?];
    let ports = [replica.otlp_grpc, single.otlp_grpc];
    let load = ExportLoad::foreign(Way::Grpc, SPANS)?;
    // Rounded up: no fewer spans than stated.
    let requests = spans / SPANS / rounds + 1;
    let (mut costs, mut loaded, mut idle) = ([vec![], vec![]], vec![], vec![]);
    for (id, port) in ids.into_iter().zip(ports) {
        cost(id, port, &load, requests.min(200)).await?;
    }
    for _ in 0..rounds {
        let (before, began) = (traffic(&stand).await?, Instant::now());
        costs[0].push(cost(ids[0], ports[0], &load, requests).await?);
        let (after, took) = (traffic(&stand).await?, began.elapsed());
        loaded.push(after.since(before));
        sleep(took).await;
        idle.push(traffic(&stand).await?.since(after));
        costs[1].push(cost(ids[1], ports[1], &load, requests).await?);
    }
    end(vec![replica, single]).await?;
    let [replica, single] = costs;
    let ratios = replica.iter().zip(&single).map(|(replica, single)| replica / single);
    let sent = (requests * rounds * SPANS) as f64;
    let sum = |all: &[ReplicaTraffic]| {
        all.iter().fold(ReplicaTraffic::default(), |sum, one| ReplicaTraffic {
            messages: sum.messages + one.messages,
            statements: sum.statements + one.statements,
        })
    };
    let (loaded, idle) = (sum(&loaded), sum(&idle));
    let timers = TIMERS * rounds as f64 / 7.0;
    let more = |name, loaded, idle| at_most(timers, row(name, loaded - idle, ""));
    Ok(vec![
        row("door: foreign spans to a replica", sent, "spans"),
        row("door: requests of them", (requests * rounds) as f64, ""),
        row("door: messages of NATS meanwhile", loaded.messages, ""),
        row("door: messages of NATS, idle for as long", idle.messages, ""),
        more("door: messages more than idle", loaded.messages, idle.messages),
        row("door: statements meanwhile", loaded.statements, ""),
        row("door: statements, idle for as long", idle.statements, ""),
        more("door: statements more than idle", loaded.statements, idle.statements),
        row("door: a replica on NATS", median(replica.clone()), "CPU ns/span"),
        row("door: one server without NATS", median(single.clone()), "CPU ns/span"),
        at_most(
            SINGLE_MAX,
            row("door: replica over one server", median(ratios.collect()), "ratio"),
        ),
    ])
}

async fn traffic(stand: &ReplicaStand) -> Result<ReplicaTraffic> {
    Ok(ReplicaTraffic {
        messages: stand.nats.messages().await? as f64,
        statements: stand.statements("replica").await? as f64,
    })
}

/// Returns the CPU time of a process for one span, in nanoseconds.
async fn cost(process: u32, port: u16, load: &ExportLoad, requests: usize) -> Result<f64> {
    let before = proc::cpu(process)?;
    load::send(port, load, requests).await?;
    // What was received is handled by then.
    sleep(Duration::from_millis(20)).await;
    let spent = proc::cpu(process)?.saturating_sub(before);
    Ok(spent.as_nanos() as f64 / (requests * SPANS) as f64)
}

impl ReplicaTraffic {
    fn since(self, before: Self) -> Self {
        Self {
            messages: self.messages - before.messages,
            statements: self.statements - before.statements,
        }
    }
}

//! The same load on 1, 2 and 4 worker processes, beside one process that accepts runs and receives spans.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    ReplicaExtent, at_most, progress, row,
    shop::{ReplicaShop, SHOP_TESTS, WRONG},
    stand::{ReplicaStand, end},
};
use crate::{
    parts::{Api, proc},
    table::Row,
};

/// The share of the processors from which on they are what limits.
const BUSY: f64 = 0.9;
/// Starts at a time.
const AT_ONCE: usize = 32;
const DELAY: Duration = Duration::from_millis(20);
const SETTLE: &str = "timeout: 60s, flush: 100ms";
/// The servers store learned profiles every second.
const LEARNED: Duration = Duration::from_millis(2500);

/// What a load of runs took.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunCosts {
    pub(super) runs: usize,
    /// Until all had a verdict, provisional or final.
    judged: Duration,
    /// Until all had their final verdict.
    ended: Duration,
    wrong: i64,
    /// Milliseconds of CPU for each run: of the process that accepts and receives, of the workers, of Postgres and of NATS.
    pub(super) front: f64,
    pub(super) workers: f64,
    pub(super) postgres: f64,
    pub(super) nats: f64,
    /// The share of the processors that was in use, by all programs.
    busy: f64,
}

pub(super) async fn measure(binary: &Path, extent: ReplicaExtent) -> Result<Vec<Row>> {
    let runs = extent.pick(4000, 400, 60);
    let stand = ReplicaStand::start(binary, extent).await?;
    let mut rows = vec![row("workers: runs of each load", runs as f64, "runs")];
    let mut one = None;
    for workers in [1, 2, 4] {
        progress(&format!("workers: {workers}"));
        let costs = load(&stand, workers, runs).await?;
        rows.extend(costs.rows(workers));
        let rate = costs.rate();
        let one = *one.get_or_insert(rate);
        if workers > 1 {
            rows.push(row(&format!("workers: runs/s, {workers} over 1"), rate / one, "ratio"));
        }
    }
    Ok(rows)
}

/// Starts this many runs as fast as they are accepted, on this many workers, and waits until they ended.
pub(super) async fn load(stand: &ReplicaStand, workers: usize, runs: usize) -> Result<RunCosts> {
    let database = format!("workers_{workers}");
    stand.create_database(&database).await?;
    let front = stand.serve(&database, "server: {roles: [api, ingest]}").await?;
    let mut servers = Vec::new();
    for _ in 0..workers {
        let more = "server: {roles: [worker]}\nworkers: {perHost: 1000}";
        servers.push(stand.serve(&database, more).await?);
    }
    let shop = ReplicaShop::start(front.otlp_grpc, DELAY).await?;
    let api = Arc::new(Api::new(&front.api)?);
    shop.apply(&api, SETTLE).await?;
    let warm_up = SHOP_TESTS.len() * 4;
    start(&api, warm_up).await?;
    stand.all_ended(&database).await?;
    sleep(LEARNED).await;
    let all: Vec<_> = servers.iter().collect();
    let (front_before, before) = (stand.cpu(&[&front])?, stand.cpu(&all)?);
    let (machine, began) = (proc::machine()?, Instant::now());
    start(&api, runs).await?;
    let judged = stand.all_ended(&database).await?;
    let busy = {
        let [used, had] = proc::machine()?;
        (used - machine[0]).as_secs_f64() / (had - machine[1]).as_secs_f64()
    };
    let (ended, after) = (began.elapsed(), stand.cpu(&all)?);
    let [workers, postgres, nats] = after.spent(before, runs);
    let [front_spent, ..] = stand.cpu(&[&front])?.spent(front_before, runs);
    let stored = stand.count(&database, "select count(*) from runs").await?;
    ensure!(stored == (warm_up + runs) as i64, "{stored} runs are stored");
    let wrong = stand.count(&database, WRONG).await?;
    servers.push(front);
    end(servers).await?;
    let judged = judged.duration_since(began);
    Ok(RunCosts { runs, judged, ended, wrong, front: front_spent, workers, postgres, nats, busy })
}

/// Starts runs of all tests in turn.
async fn start(api: &Arc<Api>, runs: usize) -> Result<()> {
    let mut starts = JoinSet::new();
    for number in 0..runs {
        if starts.len() >= AT_ONCE
            && let Some(started) = starts.join_next().await
        {
            started??;
        }
        let api = Arc::clone(api);
        let (test, ..) = SHOP_TESTS[number % SHOP_TESTS.len()];
        let key = format!("{runs}-{number}");
        starts.spawn(async move { api.start_once(test, &json!({}), &key).await.map(drop) });
    }
    while let Some(started) = starts.join_next().await {
        started??;
    }
    Ok(())
}

impl RunCosts {
    /// Returns how many runs a second got a verdict.
    fn rate(self) -> f64 {
        self.runs as f64 / self.judged.as_secs_f64()
    }

    fn rows(self, workers: usize) -> Vec<Row> {
        let plural = if workers == 1 { "" } else { "s" };
        let named = |what: &str| format!("workers: {workers} worker{plural}: {what}");
        let limit = if self.busy >= BUSY { "what limits" } else { "not what limits" };
        vec![
            row(&named("runs with a verdict"), self.rate(), "runs/s"),
            row(&named("all ended after"), self.ended.as_secs_f64(), "s"),
            at_most(0.0, row(&named("verdicts that are not right"), self.wrong as f64, "runs")),
            row(&named("CPU of API and ingest, a run"), self.front, "ms"),
            row(&named("CPU of the workers, a run"), self.workers, "ms"),
            row(&named("CPU of Postgres, a run"), self.postgres, "ms"),
            row(&named("CPU of NATS, a run"), self.nats, "ms"),
            row(&named(&format!("share of the processors in use, {limit}")), self.busy, ""),
        ]
    }
}

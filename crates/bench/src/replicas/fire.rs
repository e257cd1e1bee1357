//! From accepted to fired: the API accepts a run in one process, a worker in another one fires its trigger.
//!
//! Beside it, in turns: what two commits to the same Postgres and one request over the same NATS take without a server.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sqlx::Row as _;
use tokio::time::{Instant, sleep};

use super::{
    ReplicaExtent, at_most,
    bare_nats::NatsRound,
    percentile, row,
    shop::ReplicaShop,
    stand::{ReplicaStand, end},
};
use crate::{
    parts::Api,
    table::{Row, median},
};

/// The upper bound relative to the bare engines.
const BARE_MAX: f64 = 3.0;
/// The pause before each measured action, so that each begins on a quiet system.
const PAUSE: Duration = Duration::from_millis(40);
const ENDED_MAX: Duration = Duration::from_secs(30);
/// What a bare commit writes: as much as an accepted run.
const BODY_BYTES: usize = 1024;

/// The test fires, and waits for no trace.
const TEST: &str = "
  skipTraceCollection: true
  specs:
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.status = 200']
";

/// When the events of a run were committed: accepted, leased, attempted. Postgres takes the time before it writes the commit to disk.
const COMMITS: &str = "
    select runs.trace_id, (extract(epoch from pg_xact_commit_timestamp(events.xmin)) * 1e9)::bigint
    from runs join events on events.run_id = runs.id where n <= 3 order by runs.id, n";

pub(super) async fn measure(binary: &Path, extent: ReplicaExtent) -> Result<Vec<Row>> {
    let rounds = extent.pick(400, 60, 10);
    let stand = ReplicaStand::start(binary, extent).await?;
    stand.create_database("fire").await?;
    let front = stand.serve("fire", "server: {roles: [api]}").await?;
    let worker = stand.serve("fire", "server: {roles: [worker]}").await?;
    let shop = ReplicaShop::start(0, PAUSE).await?;
    let api = Api::new(&front.api)?;
    let url = format!("url: '{}/silent'", shop.url);
    let trigger = format!("{{type: http, httpRequest: {{method: GET, {url}}}}}");
    let test = format!("type: Test\nspec:\n  id: fire\n  name: fire\n  trigger: {trigger}{TEST}");
    api.apply(&test).await?;
    stand.execute("postgres", "create table bare (id bigserial primary key, body text)").await?;
    let mut connection = stand.connect("postgres").await?;
    let mut nats = NatsRound::connect(&stand.nats.urls()).await?;
    let body = "x".repeat(BODY_BYTES);
    let (mut commits, mut requests) = (Vec::new(), Vec::new());
    for number in 0..rounds + rounds / 10 {
        sleep(PAUSE).await;
        let id = api.start("fire", &json!({})).await?;
        let run = api.ended(&id, ENDED_MAX).await?;
        ensure!(run["verdict"] == "passed", "the trigger is fired: {run:#}");
        sleep(PAUSE).await;
        let began = Instant::now();
        for _ in 0..2 {
            let insert = sqlx::query("insert into bare (body) values ($1)").bind(&body);
            insert.execute(&mut connection).await?;
        }
        let committed = began.elapsed().as_secs_f64() * 1e3;
        sleep(PAUSE).await;
        let request = nats.take().await?;
        // The first rounds prepare statements and fill caches, for all of them.
        if number >= rounds / 10 {
            commits.push(committed);
            requests.push(request);
        }
    }
    let steps = steps(&stand, &shop).await?;
    let steps: Vec<_> = steps.into_iter().skip(rounds / 10).collect();
    end(vec![front, worker]).await?;
    let step = |at: usize| median(steps.iter().map(|steps| steps[at]).collect());
    let fired: Vec<f64> = steps.iter().map(|steps| steps.iter().sum()).collect();
    let bare = median(commits.clone()) + median(requests.clone());
    let ratio = row(
        "fire: accepted to fired, over the bare engines",
        median(fired.clone()) / bare,
        "ratio",
    );
    Ok(vec![
        row("fire: runs", fired.len() as f64, "runs"),
        row("fire: accepted to fired, median", median(fired.clone()), "ms"),
        row("fire: accepted to fired, 99th of 100", percentile(&fired, 0.99), "ms"),
        row("fire: of it, accepted to leased", step(0), "ms"),
        row("fire: of it, leased to attempt recorded", step(1), "ms"),
        row("fire: of it, attempt recorded to request received", step(2), "ms"),
        row("fire: two bare commits", median(commits), "ms"),
        row("fire: one bare request over NATS", median(requests), "ms"),
        at_most(BARE_MAX, ratio),
    ])
}

/// Returns the milliseconds between acceptance, lease, attempt and request for each run, in the order of runs.
async fn steps(stand: &ReplicaStand, shop: &ReplicaShop) -> Result<Vec<[f64; 3]>> {
    let mut connection = stand.connect("fire").await?;
    let rows = sqlx::query(COMMITS).fetch_all(&mut connection).await?;
    let mut all = Vec::new();
    for row in rows.chunks(3) {
        let [accepted, leased, attempted] = row else { continue };
        let trace: Vec<u8> = accepted.get(0);
        let fired = shop.times(&trace).context("the shop was called")?.requested as i64;
        let [accepted, leased, attempted] =
            [accepted, leased, attempted].map(|it| it.get::<i64, _>(1));
        let times = [accepted, leased, attempted, fired];
        let step = |at: usize| (times[at + 1] - times[at]) as f64 / 1e6;
        all.push([step(0), step(1), step(2)]);
    }
    Ok(all)
}

//! From the last span to the verdict: two servers over NATS, of which the one receives the spans and the other executes the run,
//! beside one server without NATS.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use model::Outcome;
use serde_json::json;
use sqlx::Row as _;
use tokio::time::sleep;

use super::{
    ReplicaExtent, at_most, percentile, row,
    shop::ReplicaShop,
    stand::{ReplicaStand, end},
};
use crate::{
    parts::{Api, Server},
    table::{Row, median},
};

/// The upper bound of the difference of the medians, in milliseconds.
const MORE_MS_MAX: f64 = 5.0;
/// When the shop exports: the response is stored by then.
const EXPORTED_AFTER: Duration = Duration::from_millis(60);
const SETTLE: &str = "timeout: 30s, flush: 150ms";
const ENDED_MAX: Duration = Duration::from_secs(40);
const WARM_UP: usize = 5;
/// The tests that presence and absence decide.
const DECIDED_BY: [(&str, &str); 2] = [("presence", "present"), ("absence", "absent")];

/// When the first verdict was committed, provisional or final.
const VERDICTS: &str = "
    select runs.trace_id, test_id, outcome::text,
        (select (extract(epoch from min(pg_xact_commit_timestamp(events.xmin))) * 1e9)::bigint from events
         where run_id = runs.id and (event->'what'->'provisional' is not null or event->'what'->'judged' is not null))
    from runs where verdict is not null order by id";

/// Servers on one database, with their system.
struct VerdictSide {
    database: &'static str,
    api: Api,
    shop: ReplicaShop,
    servers: Vec<Server>,
}

pub(super) async fn measure(binary: &Path, extent: ReplicaExtent) -> Result<Vec<Row>> {
    let rounds = extent.pick(200, 25, 4);
    let stand = ReplicaStand::start(binary, extent).await?;
    for database in ["single", "replicas"] {
        stand.create_database(database).await?;
    }
    let single = stand.serve_alone("single", "").await?;
    let owner = stand.serve("replicas", "server: {roles: [api, worker]}").await?;
    let receiver = stand.serve("replicas", "server: {roles: [ingest]}").await?;
    let sides = [
        side("single", single.otlp_grpc, vec![single]).await?,
        side("replicas", receiver.otlp_grpc, vec![owner, receiver]).await?,
    ];
    let mut wrong = 0;
    for _ in 0..rounds + WARM_UP {
        for side in &sides {
            for (_, test) in DECIDED_BY {
                // A run that begins while the last one is being stored would wait for it.
                sleep(EXPORTED_AFTER).await;
                let id = side.api.start(test, &json!({})).await?;
                let run = side.api.ended(&id, ENDED_MAX).await?;
                wrong += usize::from(run["verdict"] != "passed");
            }
        }
    }
    let mut rows = vec![
        row("verdict: runs of each", rounds as f64, "runs"),
        at_most(0.0, row("verdict: verdicts that are not right", wrong as f64, "runs")),
    ];
    let [single, replicas] = [times(&stand, &sides[0]).await?, times(&stand, &sides[1]).await?];
    for ((by, _), (single, replicas)) in DECIDED_BY.iter().zip(single.iter().zip(&replicas)) {
        let named = |what: &str| format!("verdict: last span to verdict by {by}, {what}");
        let more = median(replicas.clone()) - median(single.clone());
        rows.extend([
            row(&named("one server"), median(single.clone()), "ms"),
            row(&named("two over NATS"), median(replicas.clone()), "ms"),
            row(&named("two over NATS, 99th of 100"), percentile(replicas, 0.99), "ms"),
            at_most(MORE_MS_MAX, row(&named("more than one server"), more, "ms")),
        ]);
    }
    for side in sides {
        end(side.servers).await?;
    }
    Ok(rows)
}

async fn side(database: &'static str, otlp: u16, servers: Vec<Server>) -> Result<VerdictSide> {
    let shop = ReplicaShop::start(otlp, EXPORTED_AFTER).await?;
    let api = Api::new(&servers.first().context("a server")?.api)?;
    shop.apply(&api, SETTLE).await?;
    Ok(VerdictSide { database, api, shop, servers })
}

/// Returns the milliseconds from the export of the last span to the committed verdict, by presence and by absence; for the latter
/// beyond the quiet period.
async fn times(stand: &ReplicaStand, side: &VerdictSide) -> Result<[Vec<f64>; 2]> {
    let mut connection = stand.connect(side.database).await?;
    let mut all = [Vec::new(), Vec::new()];
    for row in sqlx::query(VERDICTS).fetch_all(&mut connection).await? {
        let (trace, test): (Vec<u8>, String) = (row.get(0), row.get(1));
        let outcome: Outcome = serde_json::from_str(row.get(2))?;
        let committed: Option<i64> = row.get(3);
        let exported = side.shop.times(&trace).context("the shop was called")?.exported as i64;
        let took = (committed.context("it has a verdict")? - exported) as f64 / 1e6;
        let settlement = outcome.settlement.context("spans came")?;
        let at = DECIDED_BY.iter().position(|(_, id)| *id == test).context("a test")?;
        let quiet = [0.0, settlement.quiet_ns as f64 / 1e6][at];
        all[at].push(took - quiet);
    }
    for times in &mut all {
        ensure!(times.len() > WARM_UP, "runs have ended");
        times.drain(..WARM_UP);
    }
    Ok(all)
}

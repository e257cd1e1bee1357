//! Proof that servers are upgraded one after the other under load: every process of two of each role is replaced by one of the next
//! version, and no run is lost, doubled or judged wrongly.
//!
//! The next version is this one with the feature `next-version`: it has a further migration, and messages on the bus that this
//! version cannot read. Requests and exports go through a balancer that tries a failed one once on the other process.

mod fleet;
mod migration;
pub mod release;
mod shop;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    parts::{Database, NatsCluster, Server},
    table::{Goal, Row, median},
};
use fleet::{BalancerCounts, Fleet, REPLICAS, ReplicaRole, RetryBalancer};
use shop::BalancedShop;

/// The long form.
const LONG: UpgradeLoad = UpgradeLoad { runs_per_second: 50, seconds: 120, nodes: 3 };
/// Finished runs in the long form of the migration.
const FINISHED_RUNS: u64 = 1_000_000;
/// How long a run may take.
const ENDED_MAX: Duration = Duration::from_secs(90);
/// How often the state of a run is requested.
const POLL: Duration = Duration::from_millis(500);
/// How long it may take until all servers know that they are of one version: a row of a server that has ended counts for 10 s.
const AGREED_MAX: Duration = Duration::from_secs(60);
/// How long runs are started before the first process is replaced, and after the servers have agreed on the next version.
const MARGIN: Duration = Duration::from_secs(5);

/// The load during an upgrade.
#[derive(Clone, Copy, Debug)]
pub struct UpgradeLoad {
    /// Runs that are started in a second.
    pub runs_per_second: u32,
    /// For how long, at the least: until the upgrade is over.
    pub seconds: u64,
    /// Nodes of NATS.
    pub nodes: u16,
}

/// The programs of two versions.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'a> {
    /// The one that runs before the upgrade.
    pub old: &'a Path,
    /// The one that runs after it.
    pub new: &'a Path,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub struct UpgradeResult {
    /// Runs that were accepted.
    pub accepted: u64,
    /// Accepted runs that did not end in time, or are not in the database.
    pub lost: u64,
    /// Claims with another verdict than the truth.
    pub wrong: u64,
    /// Claims without a verdict.
    pub inconclusive: u64,
    /// Reasons of the first of these claims, and how the first requests failed.
    pub reasons: Vec<String>,
    /// Runs with more than one trigger request.
    pub fired_twice: u64,
    /// Runs without exactly one event with the final verdict.
    pub judged_wrong: i64,
    /// Runs that a second worker went on with.
    pub resumed: i64,
    /// Requests to the API, and exports of spans.
    pub requests: [BalancerCounts; 2],
    /// Processes that were replaced, with the seconds that each took.
    pub replaced: Vec<f64>,
    /// Servers of the old version that started on the tables of the new one.
    pub started_old: u64,
    /// Servers of the old version that were refused after the upgrade, with the reason.
    pub refused_old: u64,
    /// The version of the messages on the bus at the end.
    pub bus_version: i64,
    /// From the start of a run to its end as its client saw it, in seconds.
    pub seconds: Vec<f64>,
}

/// `cargo xtask prove upgrade`.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let (mut load, mut words) = (LONG, rest.iter().map(String::as_str));
    while let Some(word) = words.next() {
        let mut number = || words.next().with_context(|| format!("`{word}` needs a number"));
        match word {
            "--runs-per-second" => load.runs_per_second = number()?.parse()?,
            "--seconds" => load.seconds = number()?.parse()?,
            "--nodes" => load.nodes = number()?.parse()?,
            "--migration" => {
                let finished = words.next().map_or(Ok(FINISHED_RUNS), str::parse)?;
                return Ok(migration::measure(finished).await?.rows());
            }
            _ => bail!(
                "`{word}` is none of `--runs-per-second`, `--seconds`, `--nodes`, `--migration`"
            ),
        }
    }
    let old = Server::binary_beside_this()?;
    let new = next_version_beside(&old)?;
    let result = play(Versions { old: &old, new: &new }, load).await?;
    let rows = result.rows();
    ensure!(
        result.is_right(),
        "{}\n{:#?}",
        crate::table::render("prove upgrade", &rows),
        result.reasons
    );
    Ok(rows)
}

/// The migration of many finished runs: see [`migration::measure`].
pub use migration::{MigrationResult, measure as migrate};

/// Returns the path of the next version, which is built beside this one.
pub fn next_version_beside(binary: &Path) -> Result<std::path::PathBuf> {
    let next = binary.with_file_name("qualitytrace-next");
    ensure!(
        next.exists(),
        "`{}` is not built: `cargo xtask next-version` builds it beside the debug build, `cargo xtask prove upgrade` beside the release build",
        next.display()
    );
    Ok(next)
}

/// Everything that runs need.
struct UpgradeStand {
    api: RetryBalancer,
    shop: BalancedShop,
}

/// Replaces all processes by those of the new version, under this load.
pub async fn play(versions: Versions<'_>, load: UpgradeLoad) -> Result<UpgradeResult> {
    let database = Database::create("upgraded").await?;
    let nats = NatsCluster::start(load.nodes, true).await?;
    let mut fleet = Fleet::start(versions.old, configuration(&database, &nats)?).await?;
    let [api, ingest] = [ReplicaRole::Api, ReplicaRole::Ingest].map(|role| fleet.balancer(role));
    let shop = BalancedShop::new(ingest);
    let (url, _serving) = shop.clone().serve().await?;
    let stand = Arc::new(UpgradeStand { api, shop });
    for is_deleted in [false, true] {
        let document = document(&url, is_deleted);
        let path = "/api/v1/documents";
        let applied =
            stand.api.send(|client, to| client.put(format!("{to}{path}")).body(document.clone()));
        let (status, body) = applied.await.context("the document is not applied")?;
        ensure!(status == 200, "the document is refused: {body:#}");
    }
    let replacement = async {
        sleep(MARGIN).await;
        let upgraded = upgrade(&mut fleet, versions, &database).await;
        sleep(MARGIN).await;
        upgraded
    };
    let mut result = put_under_load(&stand, load, replacement).await?;
    result.bus_version = database.count(AGREED).await?;
    result.refused_old = u64::from(fleet.refuses(versions.old).await?);
    stand.shop.exported().await?;
    result.requests = [stand.api.counts(), stand.shop.exports()];
    result.reasons.extend(stand.api.failures());
    look(&mut result, &stand, &database).await?;
    fleet.end().await?;
    database.remove().await?;
    Ok(result)
}

/// Starts runs until the upgrade is over, and waits for their ends.
async fn put_under_load(
    stand: &Arc<UpgradeStand>,
    load: UpgradeLoad,
    upgrade: impl Future<Output = Result<(Vec<f64>, u64)>>,
) -> Result<UpgradeResult> {
    let (mut result, mut runs) = (UpgradeResult::default(), JoinSet::new());
    let (mut upgrade, began) = (std::pin::pin!(upgrade), Instant::now());
    let (mut upgraded, mut number) = (None, 0_u32);
    while upgraded.is_none() || began.elapsed() < Duration::from_secs(load.seconds) {
        let next = began + Duration::from_secs(1) * number / load.runs_per_second.max(1);
        tokio::select! {
            done = &mut upgrade, if upgraded.is_none() => upgraded = Some(done?),
            () = sleep_until(next) => {
                runs.spawn(run(Arc::clone(stand), number));
                number += 1;
            }
        }
        while let Some(run) = runs.try_join_next() {
            result.add(run?);
        }
    }
    while let Some(run) = runs.join_next().await {
        result.add(run?);
    }
    (result.replaced, result.started_old) = upgraded.context("the upgrade is over")?;
    Ok(result)
}

const AGREED: &str = "select bus_version::bigint from agreement";

/// Replaces one process after the other. One of the old version is started again in between, as after a crash.
async fn upgrade(
    fleet: &mut Fleet,
    versions: Versions<'_>,
    database: &Database,
) -> Result<(Vec<f64>, u64)> {
    let (mut seconds, mut started_old) = (Vec::new(), 0);
    let before = database.count(AGREED).await?;
    for role in [ReplicaRole::Api, ReplicaRole::Ingest, ReplicaRole::Worker] {
        for replica in 0..REPLICAS {
            let began = Instant::now();
            fleet.replace(role, replica, versions.new).await?;
            seconds.push(began.elapsed().as_secs_f64());
            if role == ReplicaRole::Ingest && replica == 0 {
                fleet.replace(ReplicaRole::Worker, 0, versions.old).await?;
                started_old += 1;
            }
            let is_mixed = !(role == ReplicaRole::Worker && replica + 1 == REPLICAS);
            let agreed = database.count(AGREED).await?;
            ensure!(!is_mixed || agreed == before, "an old server could not read version {agreed}");
        }
    }
    let began = Instant::now();
    while database.count(AGREED).await? == before {
        ensure!(
            began.elapsed() < AGREED_MAX,
            "the servers still write version {before} of messages"
        );
        sleep(POLL).await;
    }
    Ok((seconds, started_old))
}

fn configuration(database: &Database, nats: &NatsCluster) -> Result<String> {
    // Postgres accepts 100 connections, for all processes.
    let postgres = database.section()?.replace('}', ", pool: 8}");
    let nats = nats.section(", synced: true");
    Ok(format!("{postgres}\n{nats}workers: {{runs: 256, perHost: 512}}\n"))
}

/// The end of a run, as its client saw it.
#[derive(Debug)]
enum RunFate {
    /// Whether it was accepted is unknown: both tries failed.
    Unknown,
    /// It was accepted, and did not end in time.
    Open(String),
    Ended {
        is_deleted: bool,
        run: Box<Value>,
        seconds: f64,
    },
}

/// Starts a run, and requests its state until it has ended.
async fn run(stand: Arc<UpgradeStand>, number: u32) -> RunFate {
    let is_deleted = number % 2 == 1;
    let (path, key) = (format!("/api/v1/tests/{}/runs", name(is_deleted)), number.to_string());
    let body = json!({"variables": {"run": key}}).to_string();
    let began = Instant::now();
    let started = stand.api.send(|client, to| {
        client.post(format!("{to}{path}")).header("idempotency-key", &key).body(body.clone())
    });
    let Some((200 | 202, started)) = started.await else { return RunFate::Unknown };
    let id = started["id"].as_str().unwrap_or_default().to_owned();
    let path = format!("/api/v1/runs/{id}");
    while began.elapsed() < ENDED_MAX {
        sleep(POLL).await;
        let read = stand.api.send(|client, to| client.get(format!("{to}{path}"))).await;
        if let Some((200, run)) = read
            && run["state"] == "ended"
        {
            let (run, seconds) = (Box::new(run), began.elapsed().as_secs_f64());
            return RunFate::Ended { is_deleted, run, seconds };
        }
    }
    RunFate::Open(id)
}

async fn look(result: &mut UpgradeResult, stand: &UpgradeStand, database: &Database) -> Result<()> {
    let runs = database.count("select count(*) from runs where verdict is not null").await?;
    result.lost += result.accepted.saturating_sub(u64::try_from(runs)?);
    result.judged_wrong = database
        .count(
            "select count(*) from runs where 1 <> (
                 select count(*) from events where run_id = id and event->'what'->'judged' is not null)",
        )
        .await?;
    result.resumed = database.count("select count(*) from runs where epoch > 1").await?;
    let fired = stand.shop.requests();
    result.fired_twice = fired.values().filter(|count| **count > 1).count() as u64;
    Ok(())
}

impl UpgradeResult {
    fn add(&mut self, fate: RunFate) {
        match fate {
            RunFate::Unknown => {}
            RunFate::Open(id) => {
                self.accepted += 1;
                self.lost += 1;
                self.reasons.push(format!("{id} did not end"));
            }
            RunFate::Ended { is_deleted, run, seconds } => {
                self.accepted += 1;
                self.seconds.push(seconds);
                self.judge(is_deleted, &run);
            }
        }
    }

    fn judge(&mut self, is_deleted: bool, run: &Value) {
        let expected = if is_deleted { ["failed", "passed"] } else { ["passed", "failed"] };
        for (at, expected) in expected.into_iter().enumerate() {
            match run["outcome"]["judgement"]["claims"][at]["verdict"].as_str() {
                Some(verdict) if verdict == expected => continue,
                Some("inconclusive") | None => self.inconclusive += 1,
                Some(_) => self.wrong += 1,
            }
            let outcome = &run["outcome"];
            let reason = [&run["id"], &outcome["reasons"], &outcome["settlement"]];
            self.reasons.push(json!(reason).to_string());
            self.reasons.truncate(10);
        }
    }

    /// Whether nothing was lost, doubled, wrong or refused.
    pub fn is_right(&self) -> bool {
        let is_served = self.requests.iter().all(|counts| counts.failed == 0);
        let is_agreed = self.bus_version > 1 && self.started_old > 0 && self.refused_old > 0;
        let is_judged = self.lost == 0 && self.wrong == 0 && self.inconclusive == 0;
        is_judged && self.fired_twice == 0 && self.judged_wrong == 0 && is_served && is_agreed
    }

    /// One row for each figure.
    pub fn rows(&self) -> Vec<Row> {
        let row =
            |name: &str, value: f64, unit, goal| Row { name: name.to_owned(), value, unit, goal };
        let (none, some) = (Some(Goal::AtMost(0.0)), Some(Goal::AtLeast(1.0)));
        let mut rows = vec![
            row("runs accepted", self.accepted as f64, "runs", None),
            row("lost", self.lost as f64, "runs", none),
            row("claims with a wrong verdict", self.wrong as f64, "claims", none),
            row("claims without a verdict", self.inconclusive as f64, "claims", none),
            row("fired twice", self.fired_twice as f64, "runs", none),
            row(
                "with another number of final verdicts than one",
                self.judged_wrong as f64,
                "runs",
                none,
            ),
            row("gone on with by another worker", self.resumed as f64, "runs", None),
        ];
        for (what, counts) in ["requests to the API", "exports of spans"].iter().zip(self.requests)
        {
            rows.push(row(what, counts.requests as f64, "", None));
            rows.push(row(
                &format!("{what}: tried again on the other process"),
                counts.retried as f64,
                "",
                None,
            ));
            rows.push(row(&format!("{what}: failed on both"), counts.failed as f64, "", none));
        }
        let longest = self.replaced.iter().copied().fold(0.0, f64::max);
        rows.extend([
            row("processes replaced", self.replaced.len() as f64, "", None),
            row("to replace one, at the longest", longest, "s", None),
            row("old servers that started on the new tables", self.started_old as f64, "", some),
            row(
                "old servers refused after the upgrade, with the reason",
                self.refused_old as f64,
                "",
                some,
            ),
            row(
                "version of messages at the end",
                self.bus_version as f64,
                "",
                Some(Goal::AtLeast(2.0)),
            ),
            row("accepted to verdict, median", median(self.seconds.clone()), "s", None),
        ]);
        rows
    }
}

fn name(is_deleted: bool) -> &'static str {
    if is_deleted { "deleted" } else { "kept" }
}

fn document(url: &str, is_deleted: bool) -> String {
    let (name, flush) = (name(is_deleted), 2 * shop::LATE_MS);
    format!(
        "type: Test
spec:
  id: {name}
  name: {name}
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart?deleted={is_deleted}&run=${{var:run}}'}}}}
  settle: {{timeout: 30s, flush: {flush}ms}}
  trace:
    - {{name: nothing is deleted, claim: 'count(span[name=\"delete customer\"]) = 0'}}
    - {{name: one is deleted, claim: 'count(span[name=\"delete customer\"]) = 1'}}
"
    )
}

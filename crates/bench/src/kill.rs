//! Proof that nothing is lost: a server is killed again and again with active runs, and every run still ends, once.
//!
//! Kills follow each other closely, so that runs that wait for another owner experience the next kill as well. The target counts
//! its requests, by run.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    path::Path,
    time::Duration,
};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    parts::{Api, Database, Server, Target},
    table::{Goal, Row},
};

/// Kills in the long form.
pub const KILLS: usize = 50;
/// Runs that are accepted before each kill.
const RUNS: usize = 20;
/// Further runs that are requested then, and may or may not be accepted when the kill happens.
const MORE_RUNS: usize = 5;
/// The delay of a kill, counted from when the runs are accepted. Each run lasts longer.
const MOMENTS_MS: std::ops::Range<u64> = 0..800;
/// The shortest configurable lease: the runs of a killed server wait for that long.
const LEASE: &str = "3s";
/// How long no run may end before the remaining ones count as stuck: a lease and a settling, several times.
const REST_MAX: Duration = Duration::from_secs(60);

const OPEN: &str = "select count(*) from runs where verdict is null";
/// Open runs that wait in the queue.
const QUEUED: &str = "select count(*) from open_runs where epoch = 0";
/// Leases of killed servers that have not expired: they hold the slots of a host.
const DEAD: &str = "select count(*) from open_runs where epoch > 0 and provisional is null";

/// The results.
#[derive(Clone, Debug, Default)]
pub struct KillResult {
    /// Active runs at each kill.
    pub in_flight: Vec<i64>,
    /// Runs that the server accepted.
    pub accepted: usize,
    /// Accepted runs that are not in the database.
    pub lost: i64,
    /// Leases of the killed server that hold slots, at each kill.
    pub held: Vec<i64>,
    /// Runs in the database.
    pub runs: i64,
    /// Runs without a verdict when no run has ended for a minute.
    pub open: i64,
    /// Those of them that wait in the queue: nothing is lost, but nothing moves.
    pub queued: i64,
    /// Runs that do not have exactly one event with the final verdict, or have more than one with a provisional verdict.
    pub told_wrong: i64,
    /// Runs with more than one trigger request.
    pub fired_twice: usize,
    /// Runs with a trigger request but without an attempt in the database.
    pub fired_unrecorded: i64,
    /// Runs that another owner continued.
    pub resumed: i64,
    /// Runs that were killed between the record of the attempt and that of the response.
    pub unknown: i64,
    /// The number of runs by verdict.
    pub verdicts: BTreeMap<&'static str, i64>,
}

impl KillResult {
    /// Whether nothing was lost.
    pub fn is_right(&self) -> bool {
        self.lost == 0
            && self.open == 0
            && self.told_wrong == 0
            && self.fired_twice == 0
            && self.fired_unrecorded == 0
    }

    fn held_median(&self) -> f64 {
        crate::table::median(self.held.iter().map(|held| *held as f64).collect())
    }

    /// One row for each figure.
    pub fn rows(&self) -> Vec<Row> {
        let none = Some(Goal::AtMost(0.0));
        let row =
            |name: &str, value: f64, goal| Row { name: name.to_owned(), value, unit: "", goal };
        let fewest = self.in_flight.iter().min().copied().unwrap_or_default();
        let mut rows = vec![
            row("kills", self.in_flight.len() as f64, None),
            row(
                "runs in flight at a kill, at the least",
                fewest as f64,
                Some(Goal::AtLeast(RUNS as f64)),
            ),
            row("runs accepted", self.accepted as f64, None),
            row("runs in the record", self.runs as f64, None),
            row("accepted and not in the record", self.lost as f64, none),
            row("in the queue, and none has ended for a minute", self.queued as f64, none),
            row("leased, and none has ended for a minute", (self.open - self.queued) as f64, none),
            row(
                "slots that leases of a killed server hold, in the median",
                self.held_median(),
                None,
            ),
            row(
                "with another number of final verdicts than one, or several provisional ones",
                self.told_wrong as f64,
                none,
            ),
            row("fired twice", self.fired_twice as f64, none),
            row("fired without a record", self.fired_unrecorded as f64, none),
            row("gone on with by another owner", self.resumed as f64, None),
            row("caught between record and answer", self.unknown as f64, None),
        ];
        let verdicts = self.verdicts.iter();
        rows.extend(verdicts.map(|(verdict, count)| row(verdict, *count as f64, None)));
        rows
    }
}

/// `cargo xtask prove kill`.
pub async fn measure(arguments: &[String]) -> Result<Vec<Row>> {
    let kills = arguments.first().map_or(Ok(KILLS), |kills| kills.parse())?;
    let killed = run(&Server::binary_beside_this()?, kills).await?;
    ensure!(killed.is_right(), "{}", crate::table::render("prove kill", &killed.rows()));
    Ok(killed.rows())
}

/// Kills a server this many times, and checks its runs afterwards.
pub async fn run(binary: &Path, kills: usize) -> Result<KillResult> {
    let database = Database::create("killed").await?;
    let configuration =
        format!("{}\nworkers: {{lease: {LEASE}, poll: 200ms}}\n", database.section()?);
    let mut server = Server::start_with(binary, &configuration, "127.0.0.1:0").await?;
    let otlp = format!("127.0.0.1:{}", server.otlp_grpc);
    let target = Target::start(Some(server.otlp_grpc)).await?;
    Api::new(&server.api)?.apply(&document(&target.url)).await?;
    let mut killed = KillResult::default();
    let mut accepted = Vec::new();
    for kill in 0..kills {
        let mut starts = JoinSet::new();
        let start = |number: usize| {
            let key = format!("{kill}-{number}");
            let start = json!({"variables": {"run": key}});
            Api::new(&server.api).map(|api| (api, start, key))
        };
        // One after the other: a server that has just started has few connections.
        for number in 0..RUNS {
            let (api, start, key) = start(number)?;
            accepted.push(api.start_once("cart", &start, &key).await?);
        }
        for number in RUNS..RUNS + MORE_RUNS {
            let (api, start, _) = start(number)?;
            starts.spawn(async move { api.start("cart", &start).await });
        }
        sleep(some_time()).await;
        killed.in_flight.push(database.count(OPEN).await?);
        server.kill().await?;
        killed.held.push(database.count(DEAD).await?);
        // A request without a response may be accepted or not.
        while let Some(started) = starts.join_next().await {
            accepted.extend(started?.ok());
        }
        server = Server::start_with(binary, &configuration, &otlp).await?;
    }
    // A slower machine takes longer: what counts is that runs end.
    let (mut left, mut since) = (i64::MAX, Instant::now());
    while left > 0 && since.elapsed() < REST_MAX {
        let open = database.count(OPEN).await?;
        if open < left {
            (left, since) = (open, Instant::now());
        }
        sleep(Duration::from_millis(100)).await;
    }
    killed.accepted = accepted.len();
    for id in accepted {
        // A run that waits is still a run.
        if Api::new(&server.api)?.run(&id).await.is_err() {
            killed.lost += 1;
        }
    }
    look(&mut killed, &database, &target).await?;
    server.terminate().await?;
    database.remove().await?;
    Ok(killed)
}

async fn look(killed: &mut KillResult, database: &Database, target: &Target) -> Result<()> {
    killed.runs = database.count("select count(*) from runs").await?;
    killed.open = database.count(OPEN).await?;
    killed.queued = database.count(QUEUED).await?;
    killed.told_wrong = database
        .count(
            "select count(*) from runs where 1 <> (
                 select count(*) from events where run_id = id and event->'what'->'judged' is not null)
             or 1 < (
                 select count(*) from events where run_id = id and event->'what'->'provisional' is not null)",
        )
        .await?;
    killed.resumed = database.count("select count(*) from runs where epoch > 1").await?;
    killed.unknown = database
        .count("select count(*) from runs where outcome->'answer'->'noAnswer'->>'kind' = 'unknown'")
        .await?;
    let fired = target.requests_of_runs();
    killed.fired_twice = fired.values().filter(|count| **count > 1).count();
    let attempted = database.count("select count(*) from runs where attempted_at_ns is not null");
    killed.fired_unrecorded = (fired.len() as i64 - attempted.await?).max(0);
    for (verdict, count) in [
        ("passed", "select count(*) from runs where verdict = 'passed'"),
        ("failed", "select count(*) from runs where verdict = 'failed'"),
        ("inconclusive", "select count(*) from runs where verdict = 'inconclusive'"),
    ] {
        killed.verdicts.insert(verdict, database.count(count).await?);
    }
    Ok(())
}

/// Returns a test with requests that name their run.
fn document(url: &str) -> String {
    format!(
        "type: Test
spec:
  id: cart
  name: the cart
  trigger:
    type: http
    httpRequest:
      method: GET
      url: {url}/cart?wait=1500&run=${{var:run}}
  settle: {{timeout: 3s, flush: 300ms}}
  specs:
    - selector: span[name=\"GET /cart\"]
      assertions:
        - attr:tracetest.selected_spans.count = 1
        - attr:cart.items = 3
"
    )
}

fn some_time() -> Duration {
    let random = RandomState::new().hash_one(0_u8);
    Duration::from_millis(MOMENTS_MS.start + random % (MOMENTS_MS.end - MOMENTS_MS.start))
}

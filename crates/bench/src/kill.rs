//! Proof that nothing is lost: a server is killed again and again with active runs, and every run still ends, once.
//!
//! Kills follow each other closely, so that runs that wait for another owner experience the next kill as well. The target counts
//! its requests, by run. With NATS, spans go to another process, which is not killed, and a kill waits until the runs of the last one
//! have ended: a resumed run finds all of its spans, and is decided.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    parts::{Api, Database, NatsCluster, Server, Target},
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
const DEAD: &str = "select count(*) from open_runs where epoch > 0 and provisional is null and lease_until > now()";
/// The slots of the host that one project may have: all but the reserve.
const SLOTS: f64 = 28.0;
/// Those that are in use, while enough runs wait for all of them.
const IN_USE: &str = "select case when (select count(*) from open_runs where epoch = 0) >= 32
    then (select count(*) from open_runs where epoch > 0 and provisional is null and lease_until > now()) else -1 end";
/// Runs of which a killed server had stored the response, and that another one has ended. A run that two killed servers had is given
/// up by the third.
const RESUMED: &str = "select count(*) from runs
    where epoch > 1 and answered_epoch < epoch and stalls < 2 and verdict is not null";
const RESUMED_OPEN: &str = "select count(*) from runs
    where epoch > 1 and answered_epoch < epoch and stalls < 2 and verdict = 'inconclusive'";
/// How long a run with one owner has its slot, in the median: from its lease to its provisional verdict.
const SLOT_MS: &str = "select coalesce(1000 * percentile_cont(0.5) within group (
        order by extract(epoch from (judged.event->>'at')::timestamptz - (leased.event->>'at')::timestamptz)), 0)::bigint
    from runs join events as leased on leased.run_id = id and leased.event->'what'->'taken' is not null
        join events as judged on judged.run_id = id and judged.event->'what'->'provisional' is not null
    where epoch = 1";
/// Active runs with a stored response.
const ANSWERED: &str = "select count(*) from open_runs where answered_epoch is not null";
const GIVEN_UP: &str = "select count(*) from runs where stalls >= 2";

/// What the servers of a proof share spans over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillMode {
    /// Nothing: one server has all roles, and receives the spans.
    Local,
    /// NATS: the process that receives spans is not killed.
    Nats,
}

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
    /// Slots of the host that were in use while enough runs waited for all of them, and no server was killed.
    pub in_use: Vec<i64>,
    /// How long a run has its slot, in the median, in milliseconds.
    pub slot_ms: i64,
    /// Continued runs with a stored response, and those of them that were not decided.
    pub resumed_answered: [i64; 2],
    /// Runs that the third owner gave up.
    pub given_up: i64,
    /// Whether resumed runs are decided.
    pub is_shared: bool,
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
            && (!self.is_shared || self.resumed_answered[1] == 0)
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
                (!self.is_shared).then_some(Goal::AtLeast(RUNS as f64)),
            ),
            row("runs accepted", self.accepted as f64, None),
            row("runs in the record", self.runs as f64, None),
            row("accepted and not in the record", self.lost as f64, none),
            row("in the queue, and none has ended for a minute", self.queued as f64, none),
            row("leased, and none has ended for a minute", (self.open - self.queued) as f64, none),
            row(
                "slots that leases of a killed server hold, in the median",
                middle(&self.held),
                None,
            ),
            row("slots of the host for one project", SLOTS, None),
            row("seconds that a run has its slot, in the median", self.slot_ms as f64 / 1e3, None),
            row("slots in use while enough runs wait, in the median", middle(&self.in_use), None),
            row(
                "with another number of final verdicts than one, or several provisional ones",
                self.told_wrong as f64,
                none,
            ),
            row("fired twice", self.fired_twice as f64, none),
            row("fired without a record", self.fired_unrecorded as f64, none),
            row("gone on with by another owner", self.resumed as f64, None),
            row(
                "gone on with, their response stored",
                self.resumed_answered[0] as f64,
                self.is_shared.then_some(Goal::AtLeast(1.0)),
            ),
            row(
                "gone on with, their response stored, and inconclusive",
                self.resumed_answered[1] as f64,
                none.filter(|_| self.is_shared),
            ),
            row(
                "given up, since two servers were killed that had them",
                self.given_up as f64,
                None,
            ),
            row("caught between record and answer", self.unknown as f64, None),
        ];
        let verdicts = self.verdicts.iter();
        rows.extend(verdicts.map(|(verdict, count)| row(verdict, *count as f64, None)));
        rows
    }
}

fn middle(counts: &[i64]) -> f64 {
    crate::table::median(counts.iter().map(|count| *count as f64).collect())
}

/// `cargo xtask prove kill`.
pub async fn measure(arguments: &[String]) -> Result<Vec<Row>> {
    let (mut kills, mut mode) = (KILLS, KillMode::Local);
    for argument in arguments {
        match argument.as_str() {
            "--nats" => mode = KillMode::Nats,
            number => kills = number.parse()?,
        }
    }
    let killed = run(&Server::binary_beside_this()?, kills, mode).await?;
    ensure!(killed.is_right(), "{}", crate::table::render("prove kill", &killed.rows()));
    Ok(killed.rows())
}

/// The servers of a proof.
struct KillStand {
    binary: PathBuf,
    /// The configuration of the server that is killed.
    configuration: String,
    server: Server,
    /// The process that receives spans, if it is another one, and its NATS.
    ingest: Option<(Server, NatsCluster)>,
    otlp: String,
}

impl KillStand {
    async fn start(binary: &Path, database: &Database, mode: KillMode) -> Result<Self> {
        let common = format!("{}\nworkers: {{lease: {LEASE}, poll: 200ms}}\n", database.section()?);
        let (binary, any) = (binary.to_owned(), "127.0.0.1:0");
        if mode == KillMode::Local {
            let server = Server::start_with(&binary, &common, any).await?;
            let otlp = format!("127.0.0.1:{}", server.otlp_grpc);
            return Ok(Self { binary, configuration: common, server, ingest: None, otlp });
        }
        let nats = NatsCluster::start(1, true).await?;
        let of = |roles| {
            format!("{common}{}server: {{roles: [{roles}]}}\n", nats.section(", synced: true"))
        };
        let ingest = Server::start_with(&binary, &of("ingest"), any).await?;
        let configuration = of("api, worker");
        let server = Server::start_with(&binary, &configuration, any).await?;
        let (ingest, otlp) = (Some((ingest, nats)), any.to_owned());
        Ok(Self { binary, configuration, server, ingest, otlp })
    }

    fn otlp_port(&self) -> u16 {
        self.ingest.as_ref().map_or(self.server.otlp_grpc, |(ingest, _)| ingest.otlp_grpc)
    }

    /// Kills the server, and starts it again with its data.
    async fn kill(self, at_death: impl AsyncFnOnce() -> Result<()>) -> Result<Self> {
        let Self { binary, configuration, server, ingest, otlp } = self;
        let data = server.kill_keeping_data().await?;
        at_death().await?;
        let server = Server::start_in(data, &binary, &configuration, &otlp).await?;
        Ok(Self { binary, configuration, server, ingest, otlp })
    }

    async fn end(self) -> Result<()> {
        self.server.terminate().await?;
        if let Some((ingest, _)) = self.ingest {
            ingest.terminate().await?;
        }
        Ok(())
    }
}

/// Kills a server this many times, and checks its runs afterwards.
pub async fn run(binary: &Path, kills: usize, mode: KillMode) -> Result<KillResult> {
    let database = Database::create("killed").await?;
    let mut stand = KillStand::start(binary, &database, mode).await?;
    let target = Target::start(Some(stand.otlp_port())).await?;
    Api::new(&stand.server.api)?.apply(&document(&target.url, mode)).await?;
    let mut killed = KillResult { is_shared: mode == KillMode::Nats, ..KillResult::default() };
    let mut accepted = Vec::new();
    for kill in 0..kills {
        let mut starts = JoinSet::new();
        let start = |number: usize| {
            let key = format!("{kill}-{number}");
            let start = json!({"variables": {"run": key}});
            Api::new(&stand.server.api).map(|api| (api, start, key))
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
        if mode == KillMode::Nats {
            answered(&database).await?;
        }
        sleep(some_time()).await;
        killed.in_flight.push(database.count(OPEN).await?);
        let held = &mut killed.held;
        stand = stand
            .kill(async || {
                held.push(database.count(DEAD).await?);
                // A request without a response may be accepted or not.
                while let Some(started) = starts.join_next().await {
                    accepted.extend(started?.ok());
                }
                Ok(())
            })
            .await?;
        if mode == KillMode::Nats {
            // A run that a second killed server had would be given up.
            rest(&mut killed, &database).await?;
        }
    }
    rest(&mut killed, &database).await?;
    killed.accepted = accepted.len();
    for id in accepted {
        // A run that waits is still a run.
        if Api::new(&stand.server.api)?.run(&id).await?["id"] != id.as_str() {
            killed.lost += 1;
        }
    }
    look(&mut killed, &database, &target).await?;
    stand.end().await?;
    database.remove().await?;
    Ok(killed)
}

/// Waits until half of the runs have their response.
async fn answered(database: &Database) -> Result<()> {
    let began = Instant::now();
    while database.count(ANSWERED).await? < RUNS as i64 / 2 {
        ensure!(began.elapsed() < REST_MAX, "the runs get no response");
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Waits until all runs have ended, or none ends any more. A slower machine takes longer: what counts is that runs end.
async fn rest(killed: &mut KillResult, database: &Database) -> Result<()> {
    let (mut left, mut since) = (i64::MAX, Instant::now());
    while left > 0 && since.elapsed() < REST_MAX {
        let open = database.count(OPEN).await?;
        if open < left {
            (left, since) = (open, Instant::now());
        }
        killed.in_use.extend(Some(database.count(IN_USE).await?).filter(|count| *count >= 0));
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
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
    killed.resumed_answered = [database.count(RESUMED).await?, database.count(RESUMED_OPEN).await?];
    killed.slot_ms = database.count(SLOT_MS).await?;
    killed.given_up = database.count(GIVEN_UP).await?;
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

/// Returns a test with requests that name their run. With NATS most runs have their response when the server is killed.
fn document(url: &str, mode: KillMode) -> String {
    let (wait, timeout, flush) = match mode {
        KillMode::Local => (1500, "3s", "300ms"),
        KillMode::Nats => (500, "8s", "1300ms"),
    };
    format!(
        "type: Test
spec:
  id: cart
  name: the cart
  trigger:
    type: http
    httpRequest:
      method: GET
      url: {url}/cart?wait={wait}&run=${{var:run}}
  settle: {{timeout: {timeout}, flush: {flush}}}
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

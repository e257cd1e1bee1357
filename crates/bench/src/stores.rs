//! Runs through real trace stores: their verdicts, the time to them, and the queries that they cost.
//!
//! The demo's shop exports to the store only, and `qualitytrace run` queries it. A store that is not installed is left out; one of
//! them has to be there.

mod counter;

use std::{fs, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use model::{Outcome, Settlement, UnsettledReason, Verdict};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    parts::{Server, free_port, setting},
    run::command::{CommandRun, run},
    table::{Goal, Row},
};
use counter::QueryCounter;

/// What is wrong with the shop, and the verdict of its test.
const FAULTS: [(Option<&str>, Verdict); 4] = [
    (None, Verdict::Passed),
    (Some("n-plus-one"), Verdict::Failed),
    (Some("lost-context"), Verdict::Inconclusive),
    (Some("late-spans"), Verdict::Passed),
];

/// The limit of a store's queries in a second.
const QUERIES_MAX: f64 = 50.0;

/// A store that accepts OTLP.
struct TestedStore {
    name: &'static str,
    /// Where its HTTP API is.
    query: String,
    /// Where it accepts OTLP by gRPC.
    otlp: String,
    /// Writes its document, for an API at this address.
    document: fn(&str) -> String,
}

/// Measures every installed store. `--short` repeats less.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let is_short = rest.iter().any(|word| word == "--short");
    let binary = Server::binary_beside_this()?;
    let stores: Vec<_> = stores().collect();
    ensure!(!stores.is_empty(), "no store is installed: cargo xtask services up jaeger tempo");
    let mut rows = Vec::new();
    for store in stores {
        rows.extend(verdicts(&store, &binary, if is_short { 5 } else { 50 }).await?);
        rows.extend(times(&store, &binary).await?);
        rows.extend(crowd(&store, &binary, if is_short { 20 } else { 100 }).await?);
    }
    Ok(rows)
}

fn stores() -> impl Iterator<Item = TestedStore> {
    let jaeger = |url: &str| format!("type: jaeger, jaeger: {{endpoint: '{url}'}}");
    let tempo = |url: &str| format!("type: tempo, tempo: {{http: {{url: '{url}'}}}}");
    let jaeger = tested("Jaeger", "QUALITYTRACE_TEST_JAEGER", jaeger);
    jaeger.into_iter().chain(tested("Tempo", "QUALITYTRACE_TEST_TEMPO", tempo))
}

/// Returns a store, if its variables state where it is.
fn tested(name: &'static str, variable: &str, document: fn(&str) -> String) -> Option<TestedStore> {
    let query = setting(variable).ok()?;
    let otlp = setting(&format!("{variable}_OTLP")).ok()?;
    Some(TestedStore { name, query, otlp, document })
}

/// The shop, with its first test and the document of the store in a folder.
struct Shop {
    _process: Child,
    folder: TempDir,
}

impl Shop {
    async fn open(
        store: &TestedStore,
        query: &str,
        fault: Option<&str>,
        binary: &Path,
    ) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut demo = Command::new(binary);
        demo.args(["demo", "--http", &address, "--otlp", &format!("http://{}", store.otlp)]);
        demo.args(fault.into_iter().flat_map(|fault| ["--fault", fault]));
        let mut process = demo.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let output = process.stdout.take().context("it has an output")?;
        BufReader::new(output).lines().next_line().await?.context("the shop is open")?;
        let folder = TempDir::new()?;
        let mut init = Command::new(binary);
        init.current_dir(&folder).args(["init", "--http", &address]).stdout(Stdio::null());
        ensure!(init.status().await?.success(), "the first test is written");
        let test = folder.path().join("qualitytrace/checkout.yaml");
        // The store needs more time than the shop.
        fs::write(&test, fs::read_to_string(&test)?.replace("    timeout: 5s\n", ""))?;
        let document = (store.document)(query);
        let document =
            format!("type: TraceStore\nspec: {{name: prod, default: true, {document}}}\n");
        fs::write(folder.path().join("qualitytrace/store.yaml"), document)?;
        Ok(Self { _process: process, folder })
    }

    async fn run(&self, binary: &Path, repeat: usize, jobs: usize) -> Result<CommandRun> {
        let (repeat, jobs) = (repeat.to_string(), jobs.to_string());
        let arguments = ["--otlp", "127.0.0.1:0", "--repeat", &repeat, "--jobs", &jobs];
        run(binary, self.folder.path(), &arguments).await
    }
}

/// The verdicts of every fault are those of spans that come by OTLP.
async fn verdicts(store: &TestedStore, binary: &Path, repeat: usize) -> Result<Vec<Row>> {
    let (mut runs, mut wrong, mut unread) = (0, 0, 0);
    for (fault, expected) in FAULTS {
        let shop = Shop::open(store, &store.query, fault, binary).await?;
        let outcomes = shop.run(binary, repeat, 10).await?.outcomes;
        ensure!(outcomes.len() == repeat, "{} of {repeat} runs", outcomes.len());
        runs += outcomes.len();
        unread += outcomes.iter().filter(|outcome| has_gap(outcome)).count();
        wrong += outcomes.iter().filter(|it| it.verdict != expected && !has_gap(it)).count();
    }
    let name = store.name;
    Ok(vec![
        row(format!("{name}: runs with every fault"), runs as f64, "runs", None),
        row(format!("{name}: other verdicts than by OTLP"), wrong as f64, "runs", most(0.0)),
        row(
            format!("{name}: inconclusive with a store's reason"),
            unread as f64 / runs as f64 * 100.0,
            "%",
            most(2.0),
        ),
    ])
}

/// The time to the verdict, and how well the lag fits after twenty runs.
async fn times(store: &TestedStore, binary: &Path) -> Result<Vec<Row>> {
    let shop = Shop::open(store, &store.query, None, binary).await?;
    let outcomes = shop.run(binary, 20, 1).await?.outcomes;
    let settled: Vec<_> = outcomes.iter().filter_map(|it| it.settlement.as_ref()).collect();
    let last = settled.last().context("a run has a settlement")?;
    let slowest = settled.iter().map(|it| excess(it)).fold(f64::MIN, f64::max);
    let lag = last.stores.first().map_or(0.0, |store| store.lag_ns as f64);
    let learned = fs::read_to_string(shop.folder.path().join(".qualitytrace/learned.json"))?;
    let learned: serde_json::Value = serde_json::from_str(&learned)?;
    let seen = longest_delay(&learned["learned"]["stores"]);
    let name = store.name;
    Ok(vec![
        row(
            format!("{name}: verdict beyond 1.1 × (lag + quiet period)"),
            slowest,
            "ms",
            most(150.0),
        ),
        row(format!("{name}: lag in use after 20 runs"), lag / 1e6, "ms", None),
        row(format!("{name}: longest delay seen"), seen / 1e6, "ms", None),
        row(format!("{name}: lag in use over delay seen"), lag / seen.max(1.0), "times", most(2.0)),
    ])
}

/// Returns the longest delay in the learned profiles of stores, in nanoseconds.
fn longest_delay(learned: &serde_json::Value) -> f64 {
    let stores = learned.as_object().into_iter().flat_map(|stores| stores.values());
    let services = stores.filter_map(|store| store["services"].as_object());
    let services = services.flat_map(|services| services.values());
    let delays = services.filter_map(|service| service["delaysNs"].as_array()).flatten();
    delays.filter_map(serde_json::Value::as_f64).fold(0.0, f64::max)
}

/// Returns how much later than allowed a verdict came, in milliseconds. The quiet period includes the lag.
fn excess(settlement: &Settlement) -> f64 {
    let silent = settlement.silent_ns.unwrap_or(settlement.waited_ns) as f64;
    (silent - 1.1 * settlement.quiet_ns as f64) / 1e6
}

/// Many runs at once share the limit of the store, and none starves.
async fn crowd(store: &TestedStore, binary: &Path, runs: usize) -> Result<Vec<Row>> {
    let counter = QueryCounter::start(&store.query).await?;
    let shop = Shop::open(store, &counter.url(), None, binary).await?;
    let finished = shop.run(binary, runs, runs).await?;
    let passed = finished.outcomes.iter().filter(|it| it.verdict == Verdict::Passed).count();
    let queries = counter.queries();
    let in_a_second = QueryCounter::most_within(&queries, Duration::from_secs(1));
    let name = store.name;
    Ok(vec![
        row(
            format!("{name}: {runs} runs at once, passed"),
            passed as f64,
            "runs",
            least(runs as f64),
        ),
        row(
            format!("{name}: queries of a run"),
            queries.len() as f64 / runs as f64,
            "queries",
            None,
        ),
        row(
            format!("{name}: most queries in a second"),
            in_a_second as f64,
            "queries",
            most(QUERIES_MAX),
        ),
    ])
}

fn has_gap(outcome: &Outcome) -> bool {
    use UnsettledReason::{StorePartial, StoreUnread};
    let unsettled = outcome.settlement.iter().flat_map(|it| &it.unsettled);
    unsettled.into_iter().any(|it| matches!(it, StoreUnread(_) | StorePartial(_)))
}

fn most(value: f64) -> Option<Goal> {
    Some(Goal::AtMost(value))
}

fn least(value: f64) -> Option<Goal> {
    Some(Goal::AtLeast(value))
}

fn row(name: String, value: f64, unit: &'static str, goal: Option<Goal>) -> Row {
    Row { name, value, unit, goal }
}

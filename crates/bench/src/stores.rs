//! Runs through real trace stores: their verdicts, the time to them, and the queries that they cost.
//!
//! The demo's shop exports to the store only, and `qualitytrace run` queries it. A store that is not installed is left out; one of
//! them has to be there.

mod counter;
mod rows;
mod statements;
mod writer;

use std::{fs, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use model::{Outcome, Settlement, Verdict};
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
use rows::DATABASE;
use statements::{Statements, VerdictDifference, statements};
use writer::StoreWriter;

/// What is wrong with the shop, and the verdict of its test.
const FAULTS: [(Option<&str>, Verdict); 4] = [
    (None, Verdict::Passed),
    (Some("n-plus-one"), Verdict::Failed),
    (Some("lost-context"), Verdict::Inconclusive),
    (Some("late-spans"), Verdict::Passed),
];

/// The stores that can be measured.
const NAMES: [&str; 6] = ["jaeger", "tempo", "opensearch", "elasticsearch", "clickhouse", "zipkin"];

/// How many runs of [`verdicts`] are under way at once.
const JOBS: usize = 25;

/// The limit of a store's queries in a second.
const QUERIES_MAX: f64 = 50.0;

/// A store, and where to send spans for it.
struct TestedStore {
    name: &'static str,
    /// Where its HTTP API is.
    query: String,
    /// Where OTLP by gRPC is accepted.
    otlp: String,
    /// Writes its document, for an API at this address.
    document: fn(&str) -> String,
    /// A part of the first line of a query.
    request: &'static str,
    /// Writes to a store that accepts no OTLP.
    _writer: Option<StoreWriter>,
}

/// Measures every installed store, or those whose names are given. `--short` repeats less.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let is_short = rest.iter().any(|word| word == "--short");
    let wanted: Vec<_> = rest.iter().filter(|word| *word != "--short").collect();
    if let Some(unknown) = wanted.iter().find(|word| !NAMES.contains(&word.as_str())) {
        bail!("`{unknown}` is no part of this bench; there are: {}", NAMES.join(", "));
    }
    let binary = Server::binary_beside_this()?;
    let is_wanted = |name: &&str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let mut stores = Vec::new();
    for name in NAMES.iter().filter(|name| is_wanted(name)) {
        stores.extend(open(name).await?);
    }
    ensure!(!stores.is_empty(), "no such store is installed: cargo xtask services up jaeger tempo");
    let mut expected = Vec::new();
    for (fault, verdict) in FAULTS {
        expected.push(by_otlp(fault, verdict, &binary).await?);
    }
    let mut rows = Vec::new();
    for store in stores {
        let repeat = if is_short { 5 } else { 50 };
        rows.extend(verdicts(&store, &expected, &binary, repeat).await?);
        rows.extend(times(&store, &binary).await?);
        let at_once = if is_short { 20 } else { 100 };
        rows.extend(crowd(&store, &expected[0], &binary, at_once).await?);
    }
    Ok(rows)
}

/// Returns the statements of runs whose spans come by OTLP, which have this verdict.
async fn by_otlp(fault: Option<&str>, verdict: Verdict, binary: &Path) -> Result<Statements> {
    let shop = Shop::open(None, fault, binary).await?;
    let outcomes = shop.run(binary, 3, 3).await?.outcomes;
    let is_expected = outcomes.iter().all(|outcome| outcome.verdict == verdict);
    ensure!(is_expected, "with {fault:?} a run by OTLP is not {verdict:?}");
    let mut runs = outcomes.iter().map(statements);
    let first = runs.next().context("a run has an outcome")?;
    ensure!(runs.all(|other| other.verdicts() == first.verdicts()), "{fault:?} differs");
    Ok(first)
}

/// Opens a store; none if it is not installed.
async fn open(store: &str) -> Result<Option<TestedStore>> {
    let variable = format!("QUALITYTRACE_TEST_{}", store.to_uppercase());
    let Ok(query) = setting(&variable) else { return Ok(None) };
    let traces = "GET /api/";
    Ok(Some(match store {
        "jaeger" => TestedStore {
            name: "Jaeger",
            query,
            otlp: setting(&format!("{variable}_OTLP"))?,
            document: |url| format!("type: jaeger, jaeger: {{endpoint: '{url}'}}"),
            request: traces,
            _writer: None,
        },
        "tempo" => TestedStore {
            name: "Tempo",
            query,
            otlp: setting(&format!("{variable}_OTLP"))?,
            document: |url| format!("type: tempo, tempo: {{http: {{url: '{url}'}}}}"),
            request: traces,
            _writer: None,
        },
        "opensearch" => {
            let jaeger = setting(&format!("{variable}_JAEGER"))?;
            let writer = StoreWriter::jaeger(&jaeger, store, &query).await?;
            let document = |url: &str| format!("type: opensearch, opensearch: {{{}}}", search(url));
            writer.of("OpenSearch", query, document, "POST /_search?")
        }
        "elasticsearch" => {
            let jaeger = setting(&format!("{variable}_JAEGER"))?;
            let writer = StoreWriter::jaeger(&jaeger, store, &query).await?;
            let document =
                |url: &str| format!("type: elasticsearch, elasticsearch: {{{}}}", search(url));
            writer.of("Elasticsearch", query, document, "POST /_search?")
        }
        "clickhouse" => {
            let writer = StoreWriter::rows(&query).await?;
            let document = |url: &str| {
                format!("type: clickhouse, clickhouse: {{url: '{url}', database: {DATABASE}}}")
            };
            writer.of("ClickHouse", query, document, "POST /")
        }
        _ => {
            let exporter = format!("zipkin: {{endpoint: '{query}/api/v2/spans'}}");
            let writer = StoreWriter::collector(&exporter).await?;
            let document = |url: &str| format!("type: zipkin, zipkin: {{url: '{url}'}}");
            writer.of("Zipkin", query, document, traces)
        }
    }))
}

/// Returns the keys of a search node with the indices of a Jaeger.
fn search(url: &str) -> String {
    format!("addresses: ['{url}'], index: 'jaeger-span-*'")
}

impl StoreWriter {
    fn of(
        self,
        name: &'static str,
        query: String,
        document: fn(&str) -> String,
        request: &'static str,
    ) -> TestedStore {
        let otlp = self.otlp.clone();
        TestedStore { name, query, otlp, document, request, _writer: Some(self) }
    }
}

/// The shop, with its first test in a folder.
struct Shop {
    _process: Child,
    folder: TempDir,
    /// Where the command accepts OTLP.
    receiver: String,
}

impl Shop {
    /// Opens a shop that exports to a store, which the test queries at this URL; else to the command itself.
    async fn open(
        store: Option<(&TestedStore, &str)>,
        fault: Option<&str>,
        binary: &Path,
    ) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let receiver = format!("127.0.0.1:{}", free_port()?);
        let otlp = store.map_or(&receiver, |(store, _)| &store.otlp);
        let mut demo = Command::new(binary);
        demo.args(["demo", "--http", &address, "--otlp", &format!("http://{otlp}")]);
        demo.args(fault.into_iter().flat_map(|fault| ["--fault", fault]));
        let mut process = demo.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let output = process.stdout.take().context("it has an output")?;
        BufReader::new(output).lines().next_line().await?.context("the shop is open")?;
        let folder = TempDir::new()?;
        let mut init = Command::new(binary);
        init.current_dir(&folder).args(["init", "--http", &address]).stdout(Stdio::null());
        ensure!(init.status().await?.success(), "the first test is written");
        let test = folder.path().join("qualitytrace/checkout.yaml");
        // A store needs more time than the shop.
        fs::write(&test, fs::read_to_string(&test)?.replace("    timeout: 5s\n", ""))?;
        if let Some((store, query)) = store {
            let document = (store.document)(query);
            let document =
                format!("type: TraceStore\nspec: {{name: prod, default: true, {document}}}\n");
            fs::write(folder.path().join("qualitytrace/store.yaml"), document)?;
        }
        Ok(Self { _process: process, folder, receiver })
    }

    async fn run(&self, binary: &Path, repeat: usize, jobs: usize) -> Result<CommandRun> {
        let (repeat, jobs) = (repeat.to_string(), jobs.to_string());
        let arguments = ["--otlp", &self.receiver, "--repeat", &repeat, "--jobs", &jobs];
        run(binary, self.folder.path(), &arguments).await
    }
}

/// The verdicts of every statement, with every fault, are those of spans that come by OTLP.
async fn verdicts(
    store: &TestedStore,
    expected: &[Statements],
    binary: &Path,
    repeat: usize,
) -> Result<Vec<Row>> {
    let mut sum = VerdictDifference::default();
    for ((fault, _), expected) in FAULTS.into_iter().zip(expected) {
        let shop = Shop::open(Some((store, &store.query)), fault, binary).await?;
        let outcomes = shop.run(binary, repeat, JOBS).await?.outcomes;
        ensure!(outcomes.len() == repeat, "{} of {repeat} runs", outcomes.len());
        for outcome in &outcomes {
            sum.add(expected, &statements(outcome));
        }
    }
    let (name, runs) = (store.name, FAULTS.len() * repeat);
    let share = |part: usize, of: usize| part as f64 / of as f64 * 100.0;
    Ok(vec![
        row(format!("{name}: runs with every fault"), runs as f64, "runs", None),
        row(
            format!("{name}: statements with another verdict than by OTLP"),
            sum.wrong as f64,
            "statements",
            most(0.0),
        ),
        row(
            format!("{name}: statements that need what it does not keep"),
            share(sum.lacking, sum.statements),
            "%",
            None,
        ),
        row(
            format!("{name}: runs inconclusive because it did not answer"),
            share(sum.unread, runs),
            "%",
            most(2.0),
        ),
    ])
}

/// The time to the verdict, and how well the lag fits after twenty runs.
async fn times(store: &TestedStore, binary: &Path) -> Result<Vec<Row>> {
    let shop = Shop::open(Some((store, &store.query)), None, binary).await?;
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
            most(50.0),
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

/// Returns how much later than allowed a verdict came, in milliseconds, one query included. The quiet period includes the lag.
fn excess(settlement: &Settlement) -> f64 {
    let silent = settlement.silent_ns.unwrap_or(settlement.waited_ns) as f64;
    (silent - 1.1 * settlement.quiet_ns as f64) / 1e6
}

/// Many runs at once share the limit of the store, and none starves.
async fn crowd(
    store: &TestedStore,
    expected: &Statements,
    binary: &Path,
    runs: usize,
) -> Result<Vec<Row>> {
    let counter = QueryCounter::start(&store.query, store.request).await?;
    let shop = Shop::open(Some((store, &counter.url())), None, binary).await?;
    let finished = shop.run(binary, runs, runs).await?;
    let is_right = |outcome: &&Outcome| {
        let mut difference = VerdictDifference::default();
        difference.add(expected, &statements(outcome));
        let is_complete = outcome.settlement.as_ref().is_some_and(|it| it.unsettled.is_empty());
        is_complete && difference.wrong == 0
    };
    let right = finished.outcomes.iter().filter(is_right).count();
    let queries = counter.queries();
    let in_a_second = QueryCounter::most_within(&queries, Duration::from_secs(1));
    let name = store.name;
    Ok(vec![
        row(
            format!("{name}: {runs} runs at once, complete and judged as by OTLP"),
            right as f64,
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

fn most(value: f64) -> Option<Goal> {
    Some(Goal::AtMost(value))
}

fn least(value: f64) -> Option<Goal> {
    Some(Goal::AtLeast(value))
}

fn row(name: String, value: f64, unit: &'static str, goal: Option<Goal>) -> Row {
    Row { name, value, unit, goal }
}

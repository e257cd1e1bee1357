//! A thousand runs that are started concurrently, against the demo.

use std::{collections::HashMap, path::Path, time::Duration};

use anyhow::{Context, Result};
use model::Outcome;
use reqwest::Method;
use serde_json::json;
use sqlx::Row as _;
use tokio::{
    process::{Child, Command},
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{ms, replay, row};
use crate::{
    parts::{Api, Cluster, Collector, Server, free_port, open_runs, proc},
    run::listening,
    table::{Goal, Row, median},
};

const RUNS: usize = 1000;
/// Runs before the measured ones: the server's learned profile of the shop is complete then.
const WARM_UP: usize = 60;
/// The timeout for all of them.
const ALL_MAX: Duration = Duration::from_secs(180);

/// The upper bound of the CPU time of server and Postgres for one run, in milliseconds.
const CPU_MS_MAX: f64 = 20.0;
/// The upper bound relative to bare sqlx with the same statements.
const DATABASE_MAX: f64 = 2.0;
/// The upper bound of milliseconds from the last span to the stored verdict, beyond the quiet period or the linger.
const VERDICT_MS_MAX: f64 = 50.0;

/// Settings of Postgres for statistics; all others are defaults.
const SHOWS: [&str; 2] =
    ["shared_preload_libraries=pg_stat_statements", "track_commit_timestamp=on"];

const ORDER: &str = r#"{"customer":"ada","lines":[{"sku":"tea","quantity":2}]}"#;

/// The tests: a name, the spec, the correct verdict, and whether the run must wait for the complete trace.
const TESTS: [(&str, &str, &str, bool); 4] = [
    (
        "no-error",
        "selector: span[status=\"error\"]\n      assertions: ['attr:tracetest.selected_spans.count = 0']",
        "passed",
        true,
    ),
    (
        "charged-twice",
        "selector: span[service=\"payments\" name=\"POST /charges\"]\n      assertions: ['attr:tracetest.selected_spans.count = 2']",
        "failed",
        true,
    ),
    (
        "shipped",
        "selector: span[service=\"shipping\"]\n      assertions: ['attr:tracetest.selected_spans.count >= 1']",
        "passed",
        false,
    ),
    (
        "refused",
        "selector: span[service=\"gateway\" name=\"POST /orders\"]\n      assertions: ['attr:http.response.status_code = 400']",
        "failed",
        false,
    ),
];

/// The parts, until they are dropped.
struct ServerStand {
    cluster: Cluster,
    collector: Collector,
    server: Server,
    _demo: Child,
    api: Api,
}

/// The figures before the runs, or after them.
struct Snapshot {
    server: Duration,
    postgres: Duration,
    /// Seconds that the server waited for its database, for runs.
    waited: f64,
}

/// Starts the runs, waits for them, and collects their costs.
pub(super) async fn measure(binary: &Path, is_short: bool) -> Result<Vec<Row>> {
    let runs = if is_short { RUNS / 10 } else { RUNS };
    let stand = ServerStand::start(binary).await?;
    stand.start_runs(WARM_UP, "warm").await?;
    stand.wait().await?;
    // The server stores learned profiles every second.
    sleep(Duration::from_millis(2500)).await;
    stand.execute("select pg_stat_statements_reset()").await?;
    let before = stand.snapshot().await?;
    let began = Instant::now();
    let started = stand.start_runs(runs, "run").await?;
    let accepted = began.elapsed();
    let provisional = stand.wait().await?.duration_since(began);
    let wall = began.elapsed();
    let after = stand.snapshot().await?;
    let each = runs as f64;
    let spent = |before: Duration, after: Duration| ms(after.saturating_sub(before)) / each;
    let server = spent(before.server, after.server);
    let postgres = spent(before.postgres, after.postgres);
    let waited = (after.waited - before.waited) * 1e3 / each;
    let mut rows = vec![
        row("load: runs started at once", each, "runs", None),
        row("load: all accepted after", ms(accepted), "ms", None),
        row("load: all had a verdict after, provisional or final", ms(provisional), "ms", None),
        row("load: all ended after", ms(wall), "ms", None),
        row("load: CPU of the server, a run", server, "ms", None),
        row("load: CPU of Postgres, a run", postgres, "ms", None),
        row("load: CPU of both, a run", server + postgres, "ms", Some(Goal::AtMost(CPU_MS_MAX))),
    ];
    let (executed, statements) = statements_of(&stand.cluster, each).await?;
    rows.extend(stand.judged(&started).await?);
    rows.extend(statements);
    // A server that still polls for runs would lease those of the replay.
    let cluster = stand.end().await?;
    let replayed = replay::measure(&cluster, runs).await?;
    let (bare, bare_postgres) = (ms(replayed.waited) / each, ms(replayed.postgres) / each);
    let (bare_executed, _) = statements_of(&cluster, each).await?;
    let ratio = Some(Goal::AtMost(DATABASE_MAX));
    rows.extend([
        row("load: waited for the record, a run", waited, "ms", None),
        row("load: the same by bare sqlx, a run", bare, "ms", None),
        row("load: waited, server over bare", waited / bare, "ratio", ratio),
        row("load: Postgres at work by its own clock, a run", executed, "ms", None),
        row("load: the same for bare sqlx, a run", bare_executed, "ms", None),
        row("load: CPU of Postgres for bare sqlx, a run", bare_postgres, "ms", None),
        row("load: CPU of Postgres, server over bare", postgres / bare_postgres, "ratio", ratio),
    ]);
    Ok(rows)
}

impl ServerStand {
    async fn start(binary: &Path) -> Result<Self> {
        let mut cluster = Cluster::create().await?;
        cluster.start_with(&SHOWS).await?;
        let collector_port = free_port()?;
        let collector = Collector::start(collector_port, None).await?;
        let configuration = format!(
            "{}\ntelemetry: {{exporters: {{all: {{serviceName: quality-trace, sampling: 100, exporter: {{type: collector, \
             collector: {{endpoint: '127.0.0.1:{collector_port}'}}}}}}}}}}\n\
             server: {{telemetry: {{exporter: all, applicationExporter: all}}}}\n",
            cluster.section()
        );
        let server = Server::start_with(binary, &configuration, "127.0.0.1:0").await?;
        let http = free_port()?;
        let mut demo = Command::new(binary);
        demo.args(["demo", "--http", &format!("127.0.0.1:{http}")]);
        demo.args(["--otlp", &format!("http://127.0.0.1:{}", server.otlp_grpc)]);
        let demo = listening(demo, http).await?;
        let api = Api::new(&server.api)?;
        for (id, spec, _, _) in TESTS {
            let document = format!(
                "type: Test\nspec:\n  id: {id}\n  name: {id}\n  trigger:\n    type: http\n    httpRequest:\n      \
                 method: POST\n      url: http://127.0.0.1:{http}/orders\n      headers:\n        - key: content-type\n          \
                 value: application/json\n      body: '{ORDER}'\n  specs:\n    - {spec}\n"
            );
            api.apply(&document).await?;
        }
        let stand = Self { cluster, collector, server, _demo: demo, api };
        stand.execute("create extension pg_stat_statements").await?;
        Ok(stand)
    }

    /// Starts this many runs concurrently, the same number of each test, and returns their ids with the correct verdict.
    async fn start_runs(&self, runs: usize, key: &str) -> Result<HashMap<String, &'static str>> {
        let mut starts = JoinSet::new();
        for number in 0..runs {
            let (test, _, verdict, _) = TESTS[number % TESTS.len()];
            let (api, key) = (self.api.clone(), format!("{key}-{number}"));
            starts.spawn(async move {
                let id = api.start_once(test, &json!({}), &key).await?;
                anyhow::Ok((id, verdict))
            });
        }
        let mut started = HashMap::new();
        while let Some(start) = starts.join_next().await {
            let (id, verdict) = start??;
            started.insert(id, verdict);
        }
        Ok(started)
    }

    /// Waits until no run is open, and returns when all of them had a verdict, provisional or final.
    async fn wait(&self) -> Result<Instant> {
        open_runs::all_ended(&mut self.cluster.connect().await?, ALL_MAX).await
    }

    async fn snapshot(&self) -> Result<Snapshot> {
        let metrics = self.api.request(Method::GET, "/metrics").send().await?.text().await?;
        let sums = metrics.lines().filter(|line| {
            line.starts_with("db_client_operation_duration_seconds_sum")
                && line.contains("\"runs\"")
        });
        let figures = sums.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(Snapshot {
            server: proc::cpu(self.server.id().context("the server runs")?)?,
            postgres: self.cluster.cpu()?,
            waited: figures.sum(),
        })
    }

    /// Checks that every verdict is right, and measures how soon it was stored.
    async fn judged(&self, started: &HashMap<String, &'static str>) -> Result<Vec<Row>> {
        let mut connection = self.cluster.connect().await?;
        let ended = sqlx::query(
            "select id::text, test_id, verdict, outcome::text,
                 (extract(epoch from pg_xact_commit_timestamp(xmin)) * 1e9)::bigint, overtaken is null,
                 (select (extract(epoch from pg_xact_commit_timestamp(events.xmin)) * 1e9)::bigint from events
                  where run_id = runs.id and event->'what'->'provisional' is not null)
             from runs /* bench */",
        );
        let (mut right, mut quiets, mut lingers) = (0, vec![], vec![]);
        let (mut provisional, mut beyond, mut at_once) = (vec![], vec![], vec![]);
        for run in ended.fetch_all(&mut connection).await? {
            let (id, test, verdict): (String, String, String) =
                (run.get(0), run.get(1), run.get(2));
            let Some(expected) = started.get(&id) else { continue };
            right += usize::from(verdict == *expected);
            let outcome: Outcome = serde_json::from_str(run.get(3))?;
            // A verdict that late spans superseded was written again.
            let (committed, is_last): (i64, bool) = (run.get(4), run.get(5));
            let Some(settlement) = outcome.settlement.filter(|_| is_last) else { continue };
            let last = settlement.last_at.context("spans came")?;
            let last = i64::try_from(last.as_nanos())?;
            let since_last = |committed: i64| (committed - last) as f64 / 1e6;
            let took = since_last(committed);
            let quiet = settlement.quiet_ns as f64 / 1e6;
            let linger = settlement.linger_ns as f64 / 1e6;
            if TESTS.iter().any(|(id, _, _, is_whole)| *id == test && *is_whole) {
                quiets.push(quiet);
                lingers.push(linger);
                // A span that arrived in the linger has moved the last arrival behind the provisional verdict.
                let early = run.get::<Option<i64>, _>(6).map(since_last).filter(|it| *it > 0.0);
                provisional.extend(early.map(|early| early - quiet));
                beyond.push(took - quiet.max(linger));
            } else {
                at_once.push(took);
            }
        }
        let wrong = (started.len() - right) as f64;
        let goal = |most| Some(Goal::AtMost(most));
        Ok(vec![
            row("load: verdicts that are not right", wrong, "runs", goal(0.0)),
            row("load: H, median", median(quiets), "ms", None),
            row("load: linger, median", median(lingers), "ms", None),
            row(
                "load: last span to provisional verdict beyond H, median",
                median(provisional.clone()),
                "ms",
                goal(VERDICT_MS_MAX),
            ),
            row("load: the same, 99th of 100", hundredth(provisional, 99), "ms", None),
            row(
                "load: last span to final verdict beyond H and linger, median",
                median(beyond.clone()),
                "ms",
                goal(VERDICT_MS_MAX),
            ),
            row("load: the same, 99th of 100", hundredth(beyond, 99), "ms", None),
            row(
                "load: last span to recorded verdict, presence decides",
                median(at_once),
                "ms",
                None,
            ),
        ])
    }

    async fn execute(&self, statement: &'static str) -> Result<()> {
        sqlx::raw_sql(statement).execute(&mut self.cluster.connect().await?).await?;
        Ok(())
    }

    /// Shuts down all but Postgres.
    async fn end(self) -> Result<Cluster> {
        self.server.terminate().await?;
        self.collector.kill().await?;
        Ok(self.cluster)
    }
}

/// Returns the statistics of Postgres since the last reset: its milliseconds for a run, and a row for each of the slowest
/// statements.
async fn statements_of(cluster: &Cluster, runs: f64) -> Result<(f64, Vec<Row>)> {
    const SHOWN: usize = 7;
    let mut connection = cluster.connect().await?;
    let all = sqlx::query(
        "select regexp_replace(query, '\\s+', ' ', 'g'), calls, total_exec_time from pg_stat_statements
         where query not like '%bench%' and query not like '%pg_stat_statements%' order by total_exec_time desc",
    )
    .fetch_all(&mut connection)
    .await?;
    let (mut total, mut rows) = (0.0, Vec::new());
    for statement in all {
        let (text, calls, took): (String, i64, f64) =
            (statement.get(0), statement.get(1), statement.get(2));
        total += took;
        if rows.len() < SHOWN {
            let words = named(&text);
            let calls = calls as f64 / runs;
            let name = format!("load: Postgres, {calls:.2} × {words}, a run");
            rows.push(row(&name, took / runs, "ms", None));
        }
    }
    Ok((total / runs, rows))
}

/// Returns a name for a statement by its characteristic words.
fn named(text: &str) -> String {
    let known = [
        ("Leases up to", "lease"),
        ("What a worker needs", "read the leased"),
        ("insert into idempotency_keys", "accept"),
        ("set trace_id", "attempted"),
        ("set answer_sealed", "answered"),
        ("set provisional", "provisional"),
        ("set verdict", "finish"),
        ("set lease_until", "renew"),
    ];
    let found = known.iter().find(|(words, _)| text.contains(words));
    found.map_or_else(|| text.chars().take(40).collect(), |(_, name)| (*name).to_owned())
}

fn hundredth(mut values: Vec<f64>, nth: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * nth / 100).copied().unwrap_or(f64::NAN)
}

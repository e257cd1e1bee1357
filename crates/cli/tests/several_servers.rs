//! Several servers on one database, as `docs/server.md` specifies: the value of absence beside other servers, which servers
//! count and for how long, and which keys are compatible.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bench::parts::{Api, Database, Server, Target};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// How long a run may take to end.
const ENDED_MAX: Duration = Duration::from_secs(40);
/// How long a row counts after its last heartbeat.
const COUNTS: Duration = Duration::from_secs(10);
/// An upper bound for the clock difference of two machines during a short run, with a margin.
const SLACK: Duration = Duration::from_millis(1500);
/// Keys of trace ids, and their fingerprints, which the server reports.
const OLD: (&str, &str) = ("000102030405060708090a0b0c0d0e0f", "be45cb2605bf36be");
const NEW: (&str, &str) = ("0f0e0d0c0b0a09080706050403020100", "1f919296baf10802");

/// A server from which no other server leases runs, and its data directory.
struct Served {
    server: Server,
    api: Api,
    data: TempDir,
}

/// Starts a server. A run is executed by the server that accepted it: no other server polls for runs.
async fn serve(database: &Database, data: TempDir, keys: &[&str]) -> Result<Served> {
    let configuration = configuration(database, &data, keys)?;
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    // It polls for runs once at startup, which cannot be observed, and must not find runs that are started on another server.
    sleep(Duration::from_secs(1)).await;
    Ok(Served { api: Api::new(&server.api)?, server, data })
}

fn configuration(database: &Database, data: &TempDir, keys: &[&str]) -> Result<String> {
    Ok(format!(
        "{}\nserver: {{dataDirectory: '{}'}}\nworkers: {{poll: 60s}}\nids: {{keys: [{}]}}\n",
        database.section()?,
        data.path().display(),
        keys.iter().map(|key| format!("'{key}'")).collect::<Vec<_>>().join(", "),
    ))
}

impl Served {
    /// Returns the name by which other servers report it.
    fn name(&self) -> Result<String> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
        let port = self.server.api.rsplit(':').next().context("the API has a port")?;
        Ok(format!("{}:{port}", host.trim()))
    }

    async fn kill(self) -> Result<TempDir> {
        self.server.kill().await?;
        Ok(self.data)
    }

    async fn end(self) -> Result<TempDir> {
        ensure!(self.server.terminate().await? == Some(0), "it ended in order");
        Ok(self.data)
    }
}

/// Applies a test with a quiet period of `flush_ms` milliseconds for its trace.
async fn apply(on: &Served, target: &Target, flush_ms: u64) -> Result<()> {
    let document = format!(
        "type: Test
spec:
  id: cart
  name: the cart
  trigger: {{type: http, httpRequest: {{method: GET, url: '{}/cart'}}}}
  settle: {{timeout: 20s, flush: {flush_ms}ms}}
  trace:
    - {{name: nothing is deleted, claim: 'count(span[name=\"delete customer\"]) = 0'}}
    - {{name: one is deleted, claim: 'count(span[name=\"delete customer\"]) = 1'}}
    - {{name: the cart is looked at, claim: 'some span[name=\"GET /cart\"]'}}
",
        target.url
    );
    on.api.apply(&document).await.map(drop)
}

/// Starts a run, and returns its id and its trace id.
async fn start(on: &Served) -> Result<(String, String)> {
    let id = on.api.start("cart", &json!({})).await?;
    let began = Instant::now();
    loop {
        if let Some(trace) = on.api.run(&id).await?["traceId"].as_str() {
            return Ok((id, trace.to_owned()));
        }
        ensure!(began.elapsed() < ENDED_MAX, "the run has no trace");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the verdicts of the three claims, and the names of the other servers.
async fn judged(on: &Served, id: &str) -> Result<([String; 3], Vec<String>)> {
    let run = on.api.ended(id, ENDED_MAX).await?;
    let claims = &run["outcome"]["judgement"]["claims"];
    let verdict = |at: usize| claims[at]["verdict"].as_str().unwrap_or("none").to_owned();
    let unsettled = run["outcome"]["settlement"]["unsettled"].as_array().context("it settled")?;
    let others = unsettled.iter().find_map(|it| it["otherServers"].as_array());
    let names = others.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned));
    let names: Vec<_> = names.collect();
    if !names.is_empty() {
        let reasons = run["outcome"]["reasons"].to_string();
        ensure!(reasons.contains("send all spans to one server"), "what to do is said: {reasons}");
    }
    Ok(([verdict(0), verdict(1), verdict(2)], names))
}

/// Executes a run, and checks that it reports no other server.
async fn run_alone(on: &Served) -> Result<()> {
    let (id, _) = start(on).await?;
    let (verdicts, others) = judged(on, &id).await?;
    assert_eq!(
        (verdicts, others),
        (ALONE.map(str::to_owned), vec![]),
        "{}",
        on.api.run(&id).await?
    );
    Ok(())
}

const ALONE: [&str; 3] = ["passed", "failed", "passed"];
const BESIDE_OTHERS: [&str; 3] = ["inconclusive", "inconclusive", "passed"];

/// Sends a span of the trace, and returns the status of the response.
async fn send(to: &Server, trace: &str) -> Result<u16> {
    let span = json!({
        "traceId": trace, "spanId": "00000000000000aa", "name": "delete customer", "kind": 1,
        "startTimeUnixNano": "1800000000000000000", "endTimeUnixNano": "1800000000000000001",
    });
    let body = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
    let url = format!("http://127.0.0.1:{}/v1/traces", to.otlp_grpc);
    Ok(reqwest::Client::new().post(url).json(&body).send().await?.status().as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn absence_proves_nothing_while_another_server_receives_spans() -> Result<()> {
    let database = Database::create("several").await?;
    let one = serve(&database, TempDir::new()?, &[]).await?;
    let target = Target::start(Some(one.server.otlp_grpc)).await?;
    apply(&one, &target, 800).await?;
    run_alone(&one).await?;

    // Spans of one trace go to both servers. On the server that executes the run, only present spans decide, absence does not.
    let other = serve(&database, TempDir::new()?, &[]).await?;
    let (id, trace) = start(&one).await?;
    assert_eq!(send(&other.server, &trace).await?, 200);
    let names = vec![other.name()?];
    assert_eq!(judged(&one, &id).await?, (BESIDE_OTHERS.map(str::to_owned), names.clone()));

    // A server that shuts down in order affects the run that it overlaps, but not the next one.
    let (id, _) = start(&one).await?;
    other.end().await?;
    assert_eq!(judged(&one, &id).await?, (BESIDE_OTHERS.map(str::to_owned), names));
    // The server that has ended counts for this long.
    sleep(SLACK).await;
    run_alone(&one).await?;
    one.end().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_and_ends_during_a_run_is_not_missed() -> Result<()> {
    let database = Database::create("joined").await?;
    let one = serve(&database, TempDir::new()?, &[]).await?;
    let target = Target::start(Some(one.server.otlp_grpc)).await?;
    apply(&one, &target, 8_000).await?;
    let (id, trace) = start(&one).await?;
    // Between two heartbeats of the first server.
    let other = serve(&database, TempDir::new()?, &[]).await?;
    let name = other.name()?;
    assert_eq!(send(&other.server, &trace).await?, 200);
    other.end().await?;
    assert!(one.api.run(&id).await?["verdict"].is_null(), "all of that happened during the run");
    assert_eq!(judged(&one, &id).await?, (BESIDE_OTHERS.map(str::to_owned), vec![name]));
    one.end().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_counts_for_two_heartbeats() -> Result<()> {
    let database = Database::create("killed_other").await?;
    let one = serve(&database, TempDir::new()?, &[]).await?;
    let target = Target::start(Some(one.server.otlp_grpc)).await?;
    apply(&one, &target, 800).await?;
    let other = serve(&database, TempDir::new()?, &[]).await?;
    let beside = (BESIDE_OTHERS.map(str::to_owned), vec![other.name()?]);
    let (id, trace) = start(&one).await?;
    assert_eq!(send(&other.server, &trace).await?, 200);
    other.kill().await?;
    let killed = Instant::now();
    assert_eq!(judged(&one, &id).await?, beside, "killed in the middle of the run");
    let (id, _) = start(&one).await?;
    assert_eq!(judged(&one, &id).await?, beside, "it may have been alive a moment ago");
    // The time is tested: from now on the killed server does not count.
    sleep((COUNTS + SLACK).saturating_sub(killed.elapsed())).await;
    run_alone(&one).await?;
    one.end().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_slept_past_its_row_is_counted_again_before_it_accepts() -> Result<()> {
    let database = Database::create("slept").await?;
    let one = serve(&database, TempDir::new()?, &[]).await?;
    let target = Target::start(Some(one.server.otlp_grpc)).await?;
    apply(&one, &target, 800).await?;
    let other = serve(&database, TempDir::new()?, &[]).await?;
    other.server.signal("-STOP").await?;
    // The server does not renew its row for longer than the row counts.
    sleep(COUNTS + SLACK).await;
    run_alone(&one).await?;
    other.server.signal("-CONT").await?;
    let began = Instant::now();
    while send(&other.server, &"ab".repeat(16)).await? != 200
        || ready(&other.server).await?.0 != 200
    {
        ensure!(began.elapsed() < ENDED_MAX, "it never became ready");
        sleep(Duration::from_millis(20)).await;
    }
    let (id, trace) = start(&one).await?;
    assert_eq!(send(&other.server, &trace).await?, 200);
    let beside = (BESIDE_OTHERS.map(str::to_owned), vec![other.name()?]);
    assert_eq!(judged(&one, &id).await?, beside);
    let rows = "select count(*) from servers where counts_until > clock_timestamp()";
    assert_eq!(database.count(rows).await?, 2, "under a row that is its own");
    other.end().await?;
    one.end().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_is_no_other_server() -> Result<()> {
    let database = Database::create("back").await?;
    let one = serve(&database, TempDir::new()?, &[]).await?;
    let target = Target::start(None).await?;
    apply(&one, &target, 300).await?;
    let (id, _) = start(&one).await?;
    assert_eq!(judged(&one, &id).await?.1, Vec::<String>::new());
    let names = async |of: &Served| {
        let (id, _) = start(of).await?;
        anyhow::Ok(judged(of, &id).await?.1)
    };
    // Killed, and restarted with its data directory: it gets its row back at once.
    let data = one.kill().await?;
    let one = serve(&database, data, &[]).await?;
    assert_eq!(names(&one).await?, Vec::<String>::new());
    assert_eq!(database.count("select count(*) from servers").await?, 1);
    // With another data directory it is another server, and the killed one still counts.
    let killed = one.name()?;
    drop(one.kill().await?);
    let one = serve(&database, TempDir::new()?, &[]).await?;
    assert_eq!(names(&one).await?, [killed]);
    // After an orderly shutdown it does not count.
    one.end().await?;
    // The killed server still counts for this long.
    sleep(COUNTS + SLACK).await;
    let one = serve(&database, TempDir::new()?, &[]).await?;
    assert_eq!(names(&one).await?, Vec::<String>::new());
    one.end().await?;
    database.remove().await
}

/// Returns status and body of `/readyz`.
async fn ready(server: &Server) -> Result<(u16, String)> {
    let answer = reqwest::get(format!("{}/readyz", server.api)).await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}

async fn listening(database: &Database, data: &TempDir, keys: &[&str]) -> Result<Server> {
    let configuration = configuration(database, data, keys)?;
    Server::start_listening(Path::new(BINARY), &configuration, "127.0.0.1:0").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_keys_do_not_fit_is_not_ready() -> Result<()> {
    let database = Database::create("keys").await?;
    let cases = [
        (vec![OLD.0], vec![NEW.0, OLD.0], NEW.1, "is unknown to the server"),
        (vec![OLD.0, NEW.0], vec![NEW.0], OLD.1, "is not among `ids.keys` here"),
    ];
    for (there, entering, fingerprint, words) in cases {
        let one = serve(&database, TempDir::new()?, &there).await?;
        let data = TempDir::new()?;
        let other = listening(&database, &data, &entering).await?;
        let (status, told) = ready(&other).await?;
        assert_eq!(status, 503, "{told}");
        for part in [words, fingerprint, one.name()?.as_str()] {
            assert!(told.contains(part), "`{part}` in {told}");
        }
        assert_eq!(send(&other, &"ab".repeat(16)).await?, 503, "it takes no spans");
        assert_eq!(database.count("select count(*) from servers").await?, 1, "and has no row");
        assert_eq!(ready(&one.server).await?.0, 200, "who is there goes on");
        // It becomes ready by itself when the conflict is gone.
        one.end().await?;
        let began = Instant::now();
        while ready(&other).await?.0 != 200 {
            ensure!(began.elapsed() < ENDED_MAX, "it never became ready");
            sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(other.terminate().await?, Some(0));
        database.execute("delete from servers").await?;
    }
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_rotate_in_two_steps_without_a_gap() -> Result<()> {
    let database = Database::create("rotation").await?;
    let steps: [&[&str]; 4] = [&[OLD.0], &[OLD.0, NEW.0], &[NEW.0, OLD.0], &[NEW.0]];
    let mut servers = Vec::new();
    for _ in 0..2 {
        servers.push(serve(&database, TempDir::new()?, steps[0]).await?);
    }
    let target = Target::start(None).await?;
    apply(&servers[0], &target, 300).await?;
    for keys in &steps[1..] {
        for _ in 0..2 {
            let data = servers.remove(0).end().await?;
            // `serve` returns when the server is ready.
            servers.push(serve(&database, data, keys).await?);
            let statuses = (ready(&servers[0].server).await?.0, ready(&servers[1].server).await?.0);
            assert_eq!(statuses, (200, 200), "{keys:?}");
            // Each server accepts the trace ids of the other: no span is discarded as foreign.
            let (id, trace) = start(&servers[1]).await?;
            assert_eq!(send(&servers[0].server, &trace).await?, 200);
            judged(&servers[1], &id).await?;
            let (kept, foreign) = received(&servers[0].server).await?;
            assert!(kept > 0.0 && foreign == 0.0, "{keys:?}: {kept} kept, {foreign} foreign");
        }
    }
    let minting = "select string_agg(distinct minting_key, ' ') from servers";
    assert_eq!(database.text(minting).await?, NEW.1);
    for one in servers {
        one.end().await?;
    }
    database.remove().await
}

/// Returns the numbers of stored spans and of spans discarded as foreign.
async fn received(server: &Server) -> Result<(f64, f64)> {
    let metrics = reqwest::get(format!("{}/metrics", server.api)).await?.text().await?;
    let value = |outcome: &str| {
        let is_it =
            |line: &&str| line.starts_with("qualitytrace_ingest_spans") && line.contains(outcome);
        let line = metrics.lines().find(is_it).with_context(|| format!("{outcome}: {metrics}"))?;
        line.rsplit(' ').next().context("a value")?.parse::<f64>().context("a number")
    };
    Ok((value("=\"kept\"")?, value("=\"foreign\"")?))
}

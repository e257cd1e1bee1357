//! Verdicts that linger on a server: shown at once, and final after late spans of unannounced work had time to arrive.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bench::parts::{Api, Database, Server, Target, answer, qualitytrace};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const RUN_MAX: Duration = Duration::from_secs(40);

/// A test that is decided by absence. With `?late=N` its target fails N milliseconds after the response.
fn document(url: &str, id: &str, query: &str) -> String {
    format!(
        "type: Test
spec:
  id: {id}
  name: {id}
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart{query}'}}}}
  settle: {{timeout: 10s, flush: 30ms}}
  trace:
    - count(span[name=\"GET /cart\"]) = 1
    - no span[status=\"error\"]
"
    )
}

/// Returns the events of a run: each by its name, with its verdict if it has one.
async fn events(api: &Api, run: &str) -> Result<Vec<(String, Value)>> {
    let list = api.request(Method::GET, &format!("/api/v1/runs/{run}/events"));
    let (_, list) = answer(list).await?;
    let told = |item: &Value| {
        let what = &item["event"]["what"];
        let word = what.as_str().map(str::to_owned);
        let kind = word.or_else(|| Some(what.as_object()?.keys().next()?.clone()))?;
        let verdict = what[&kind]["verdict"].clone();
        Some((kind, verdict))
    };
    list.as_array().context("a list")?.iter().map(|item| told(item).context("an event")).collect()
}

/// Returns the verdicts of the events with this name.
async fn verdicts(api: &Api, run: &str, kind: &str) -> Result<Vec<Value>> {
    let all = events(api, run).await?;
    Ok(all.into_iter().filter(|(it, _)| it == kind).map(|(_, verdict)| verdict).collect())
}

/// Returns the number of spans that the server has received for its runs.
async fn spans_kept(server: &Server) -> Result<f64> {
    let metrics = reqwest::get(format!("{}/metrics", server.api)).await?.text().await?;
    let is_it =
        |line: &&str| line.starts_with("qualitytrace_ingest_spans") && line.contains("=\"kept\"");
    let line = metrics.lines().find(is_it).with_context(|| metrics.clone())?;
    line.rsplit(' ').next().context("a value")?.parse().context("a number")
}

/// Waits until a run lingers.
async fn lingers(api: &Api, run: &str) -> Result<Value> {
    let began = Instant::now();
    loop {
        let read = api.run(run).await?;
        ensure!(read["verdict"].is_null(), "it has ended: {read:#}");
        if !read["provisionalVerdict"].is_null() {
            return Ok(read);
        }
        ensure!(began.elapsed() < RUN_MAX, "it does not linger: {read:#}");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_fails_after_the_response_fails_its_run_and_its_suite() -> Result<()> {
    let database = Database::create("linger").await?;
    let server = Server::start_with(Path::new(BINARY), &database.section()?, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    let late = document(&target.url, "late", "?late=600&run=late");
    api.apply(&late).await?;

    let run = api.start("late", &json!({})).await?;
    let read = lingers(&api, &run).await?;
    assert_eq!(read["provisionalVerdict"], "passed", "{read:#}");
    assert_eq!((&read["state"], &read["outcome"]), (&json!("running"), &Value::Null), "{read:#}");
    let (_, list) = answer(api.request(Method::GET, "/api/v1/runs?test=late")).await?;
    assert_eq!(list["items"][0]["provisionalVerdict"], "passed", "{list:#}");
    let ended = api.ended(&run, RUN_MAX).await?;
    assert_eq!((&ended["verdict"], &ended["provisionalVerdict"]), (&json!("failed"), &Value::Null));
    let superseded = &ended["outcome"]["superseded"];
    assert_eq!((&superseded["verdict"], &superseded["spans"]), (&json!("passed"), &json!(1)));
    let kinds: Vec<_> = events(&api, &run).await?.into_iter().map(|(kind, _)| kind).collect();
    let life = ["accepted", "taken", "attempted", "answered", "settled", "provisional", "judged"];
    assert_eq!(kinds, life);
    let trace = api.request(Method::GET, &format!("/api/v1/runs/{run}/trace")).send().await?;
    let trace = trace.bytes().await?;
    let has_late = trace.windows(9).any(|bytes| bytes == b"late work");
    assert!(has_late, "the trace is the one that was judged last");
    let columns = api.request(Method::GET, &format!("/api/v1/runs/{run}/trace/columns"));
    let columns = columns.send().await?.bytes().await?;
    let has_late = columns.windows(9).any(|bytes| bytes == b"late work");
    assert!(columns.starts_with(b"QTCO") && has_late, "the columns are those of this trace");

    // A suite continues by final verdicts.
    let then = document(&target.url, "then", "?run=then");
    let suite = "type: TestSuite\nspec: {id: both, name: both, steps: [late, then]}\n";
    api.apply(&format!("{late}---\n{then}---\n{suite}")).await?;
    let started = answer(api.request(Method::POST, "/api/v1/test-suites/both/runs")).await?.1;
    let suite = started["id"].as_str().context("a suite's run")?;
    let began = Instant::now();
    let ended = loop {
        let read = api.request(Method::GET, &format!("/api/v1/suite-runs/{suite}"));
        let read = answer(read).await?.1;
        if read["state"] == "ended" || began.elapsed() > RUN_MAX {
            break read;
        }
        sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(ended["verdict"], "failed", "{ended:#}");
    assert_eq!(target.requests_of_runs().get("then"), None, "nothing is built on what may change");
    server.terminate().await?;
    database.remove().await
}

/// It has a server of its own: a later run on the same server would wait for the late spans that the first one has shown.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_shows_the_first_verdict_and_waits_for_the_final_one() -> Result<()> {
    let database = Database::create("linger_command").await?;
    let server = Server::start_with(Path::new(BINARY), &database.section()?, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let late = document(&target.url, "late", "?late=600");
    let folder = TempDir::new()?;
    let file = folder.path().join("late.yaml");
    fs::write(&file, &late)?;
    let file = file.to_str().context("a path")?;
    let arguments = ["run", "--server", &server.api, file, "--verbose"];
    let ran = qualitytrace(Path::new(BINARY), &arguments).await?;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("late: passed so far, until it is final"), "{ran:?}");
    let all = format!("{}{}", ran.out, ran.err);
    assert!(all.contains("superseded: passed at first, failed now"), "{ran:?}");
    server.terminate().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_server_dies_in_its_linger_has_one_final_verdict() -> Result<()> {
    let database = Database::create("linger_killed").await?;
    let section = format!("{}\nworkers: {{lease: 3s, poll: 200ms}}\n", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    api.apply(&document(&target.url, "cart", "")).await?;
    let run = api.start("cart", &json!({})).await?;
    lingers(&api, &run).await?;
    server.kill().await?;
    let open = "select count(*) from open_runs where provisional = 'passed'";
    assert_eq!(database.count(open).await?, 1, "the kill came in the linger");

    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let api = Api::new(&server.api)?;
    let ended = api.ended(&run, RUN_MAX).await?;
    // The spans received before are lost with their receiver, and missing spans never count as a pass.
    assert_eq!(ended["verdict"], "inconclusive", "{ended:#}");
    assert_eq!(ended["outcome"]["superseded"]["verdict"], "passed", "{ended:#}");
    assert_eq!(verdicts(&api, &run, "provisional").await?, ["passed"]);
    assert_eq!(verdicts(&api, &run, "judged").await?, ["inconclusive"]);
    assert_eq!(target.requests(), 1, "it was fired once");
    assert_eq!(database.count("select epoch from runs").await?, 2);
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_gives_the_linger_its_time() -> Result<()> {
    let database = Database::create("linger_stop").await?;
    let server = Server::start_with(Path::new(BINARY), &database.section()?, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    api.apply(&document(&target.url, "cart", "")).await?;
    let run = api.start("cart", &json!({})).await?;
    lingers(&api, &run).await?;
    assert_eq!(server.terminate().await?, Some(0));
    let passed = "select count(*) from runs where verdict = 'passed' and epoch = 1";
    assert_eq!(database.count(passed).await?, 1, "it ended where it began");
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_stopped_in_its_linger_is_inconclusive() -> Result<()> {
    let database = Database::create("linger_stopped").await?;
    let server = Server::start_with(Path::new(BINARY), &database.section()?, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    api.apply(&document(&target.url, "cart", "")).await?;
    database
        .execute(
            "insert into learned_tests values ('default', 'cart', '{\"runs\": 3, \"gapsMs\": [5000]}')",
        )
        .await?;
    let run = api.start("cart", &json!({})).await?;
    lingers(&api, &run).await?;
    let stop = api.request(Method::POST, &format!("/api/v1/runs/{run}/stop"));
    assert_eq!(answer(stop).await?.0, 200);
    let ended = api.ended(&run, RUN_MAX).await?;
    assert_eq!(ended["verdict"], "inconclusive", "{ended:#}");
    assert_eq!(ended["outcome"]["superseded"]["verdict"], "passed", "{ended:#}");
    assert_eq!(verdicts(&api, &run, "provisional").await?, ["passed"]);
    assert_eq!(verdicts(&api, &run, "judged").await?, ["inconclusive"]);
    server.terminate().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_lingers_holds_no_slot() -> Result<()> {
    const RUNS: usize = 8;
    let database = Database::create("linger_slots").await?;
    let section = format!("{}\nworkers: {{runs: 1}}\n", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    api.apply(&document(&target.url, "cart", "")).await?;
    // Each lingers for longer than all of them take otherwise.
    database
        .execute(
            "insert into learned_tests values ('default', 'cart', '{\"runs\": 3, \"gapsMs\": [2000]}')",
        )
        .await?;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(api.start("cart", &json!({})).await?);
    }
    for run in &runs {
        let ended = api.ended(run, RUN_MAX).await?;
        assert_eq!(ended["verdict"], "passed", "{ended:#}");
    }
    let side_by_side = "select count(*) from runs one join runs other on other.id > one.id
                        where other.attempted_at_ns < one.ended_at_ns";
    let pairs = database.count(side_by_side).await?;
    assert!(pairs > 0, "no run began while another one lingered");
    let learned = "select json_array_length(learned->'gapsMs')::bigint from learned_tests";
    let began = Instant::now();
    while database.count(learned).await? <= 1 {
        ensure!(began.elapsed() < RUN_MAX, "what they have shown is not kept");
        sleep(Duration::from_millis(50)).await;
    }
    server.terminate().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_too_late_is_waited_for_by_the_next_run() -> Result<()> {
    let database = Database::create("linger_learned").await?;
    let section = database.section()?;
    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let otlp = format!("127.0.0.1:{}", server.otlp_grpc);
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    api.apply(&document(&target.url, "late", "?late=2500")).await?;
    let run = api.start("late", &json!({})).await?;
    let ended = api.ended(&run, RUN_MAX).await?;
    assert_eq!(ended["verdict"], "passed", "nothing could know better: {ended:#}");
    // Two spans of the request, and the late one.
    let began = Instant::now();
    while spans_kept(&server).await? < 3.0 {
        ensure!(began.elapsed() < RUN_MAX, "the late span does not come");
        sleep(Duration::from_millis(50)).await;
    }
    // A server that stops stores the late spans received until then.
    server.terminate().await?;
    let overtaken = "select count(*) from runs where overtaken->>'verdict' = 'failed'";
    assert_eq!(database.count(overtaken).await?, 1);

    let server = Server::start_with(Path::new(BINARY), &section, &otlp).await?;
    // A server that has shut down in order still counts for a second: it may have received spans of a run that begins then.
    sleep(Duration::from_secs(2)).await;
    let api = Api::new(&server.api)?;
    let run = api.start("late", &json!({})).await?;
    let ended = api.ended(&run, RUN_MAX).await?;
    assert_eq!(ended["verdict"], "failed", "{ended:#}");
    server.terminate().await?;
    database.remove().await
}

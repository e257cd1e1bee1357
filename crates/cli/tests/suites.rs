//! Suites on a server: durable like runs, with outputs that are passed to later steps.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bench::parts::{Api, CollectedData, Collector, Database, Server, Target, answer, free_port};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const ENDED_MAX: Duration = Duration::from_secs(40);

fn documents(url: &str) -> String {
    let test = |id: &str, path: &str, items: u32, more: &str| {
        format!(
            "type: Test
spec:
  id: {id}
  name: {id}
  skipTraceCollection: true
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}{path}'}}}}
  specs:
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.body contains \"{items}\"']
{more}---
"
        )
    };
    let output = "  outputs:
    - name: items
      selector: span[name=\"Qualitytrace trigger\"]
      value: attr:tracetest.response.status
";
    let first = test("first", "/cart?wait=${var:wait}&run=first", 3, output);
    let then = test("then", "/cart?wait=${var:wait}&run=status-${var:items}", 3, "");
    let wrong = test("wrong", "/cart?run=wrong", 4, "");
    format!(
        "{first}{then}{wrong}type: TestSuite
spec: {{id: good, name: Good, steps: [first, then]}}
---
type: TestSuite
spec:
  id: bad
  name: Bad
  steps:
    - {{test: wrong, needs: []}}
    - {{test: then, needs: [wrong]}}
    - {{test: absent, needs: []}}
"
    )
}

async fn start(api: &Api, suite: &str, wait: u32) -> Result<String> {
    let body = json!({"variables": {"wait": wait.to_string()}}).to_string();
    let started =
        api.request(Method::POST, &format!("/api/v1/test-suites/{suite}/runs")).body(body);
    let (status, run) = answer(started).await?;
    ensure!(status == 202, "{run:#}");
    Ok(run["id"].as_str().context("an id")?.to_owned())
}

async fn read(api: &Api, id: &str) -> Result<Value> {
    Ok(answer(api.request(Method::GET, &format!("/api/v1/suite-runs/{id}"))).await?.1)
}

async fn ended(api: &Api, id: &str) -> Result<Value> {
    let began = Instant::now();
    loop {
        let run = read(api, id).await?;
        if run["state"] == "ended" || began.elapsed() > ENDED_MAX {
            return Ok(run);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

async fn apply(api: &Api, documents: String) -> Result<()> {
    let (status, applied) =
        answer(api.request(Method::PUT, "/api/v1/documents").body(documents)).await?;
    ensure!(status == 200, "{applied:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suite_goes_through_its_steps() -> Result<()> {
    let database = Database::create("suites").await?;
    let port = free_port()?;
    let collector = Collector::start(port, None).await?;
    let server = Server::start(Path::new(BINARY), &database, port).await?;
    let target = Target::start(None).await?;
    let api = Api::new(&server.api)?;
    apply(&api, documents(&target.url)).await?;

    let good = ended(&api, &start(&api, "good", 0).await?).await?;
    assert_eq!(good["verdict"], "passed", "{good:#}");
    let fired = target.requests_of_runs();
    assert_eq!(fired, ["first", "status-200"].map(|run| (run.to_owned(), 1)).into(), "{good:#}");

    told(&api, &collector, &good).await?;

    let bad = ended(&api, &start(&api, "bad", 0).await?).await?;
    assert_eq!(bad["verdict"], "failed", "{bad:#}");
    let steps: Vec<_> =
        bad["steps"].as_array().context("steps")?.iter().map(|step| &step["verdict"]).collect();
    assert_eq!(steps, ["failed", "inconclusive", "inconclusive"], "{bad:#}");
    assert!(bad["steps"][1]["reason"].to_string().contains("needs the step `wrong`"), "{bad:#}");
    assert!(bad["steps"][2]["reason"].to_string().contains("has no test `absent`"), "{bad:#}");

    let id = start(&api, "good", 3000).await?;
    let began = Instant::now();
    while target.requests() < 4 {
        ensure!(began.elapsed() < ENDED_MAX, "the second step does not begin");
        sleep(Duration::from_millis(10)).await;
    }
    let stop = api.request(Method::POST, &format!("/api/v1/suite-runs/{id}/stop"));
    assert_eq!(answer(stop).await?.0, 200);
    let stopped = ended(&api, &id).await?;
    assert_eq!(stopped["verdict"], "inconclusive", "{stopped:#}");
    assert!(stopped["steps"][1]["reason"].to_string().contains("stopped"), "{stopped:#}");
    let none = api.request(Method::POST, "/api/v1/test-suites/absent/runs");
    assert_eq!(answer(none).await?.0, 404);
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

/// Checks that the runs of the steps are reported as parts of their suite: by a common report, and by their spans.
async fn told(api: &Api, collector: &Collector, suite: &Value) -> Result<()> {
    let id = suite["id"].as_str().context("an id")?;
    let report = format!("/api/v1/suite-runs/{id}/report?format=tap");
    let report = api.request(Method::GET, &report).send().await?.text().await?;
    assert!(report.contains("\nok 1 - first\n") && report.contains("\nok 2 - then\n"), "{report}");
    let runs = |it: &CollectedData| it.named("qualitytrace.run").count();
    let collected = collector.wait_for(ENDED_MAX, |it| runs(it) >= 2).await?;
    for run in collected.named("qualitytrace.run") {
        let name = json!({"key": "test.suite.name", "value": {"stringValue": "Good"}});
        let attributes = run.json["attributes"].as_array().context("attributes")?;
        assert!(attributes.contains(&name), "{:#}", run.json);
    }
    assert!(runs(&collected) >= 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suite_goes_on_after_its_server_was_killed() -> Result<()> {
    let database = Database::create("suite_killed").await?;
    let server = Server::start(Path::new(BINARY), &database, free_port()?).await?;
    let target = Target::start(None).await?;
    let api = Api::new(&server.api)?;
    apply(&api, documents(&target.url)).await?;
    let id = start(&api, "good", 400).await?;
    // After the first step, during the second one or before it.
    let begun = "select count(*) from suite_steps where step = 1";
    let began = Instant::now();
    while database.count(begun).await? == 0 {
        ensure!(began.elapsed() < ENDED_MAX, "the second step does not begin");
        sleep(Duration::from_millis(5)).await;
    }
    server.kill().await?;
    let server = Server::start(Path::new(BINARY), &database, free_port()?).await?;
    let run = ended(&Api::new(&server.api)?, &id).await?;
    assert_eq!(run["state"], "ended", "{run:#}");
    assert_eq!(run["steps"][0]["verdict"], "passed", "{run:#}");
    assert!(run["steps"][1]["run"].is_string(), "{run:#}");
    assert!(target.requests_of_runs().values().all(|count| *count == 1), "each was fired once");
    assert_eq!(database.count("select count(*) from runs").await?, 2, "one run a step");
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

/// A secret output reaches later steps, and is nowhere in the database in plain text.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_output_reaches_later_steps_sealed() -> Result<()> {
    let database = Database::create("suite_secret").await?;
    let keys = format!("secrets: {{keys: ['first:{}']}}", "07".repeat(32));
    let configuration = format!("{}\n{keys}\n", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let target = Target::start(None).await?;
    let api = Api::new(&server.api)?;
    let test = |id: &str, path: &str, more: &str| {
        format!(
            "type: Test
spec:
  id: {id}
  name: {id}
  skipTraceCollection: true
  trigger: {{type: http, httpRequest: {{method: GET, url: '{}{path}'}}}}
  trace: ['response.status = 200']
{more}---
",
            target.url
        )
    };
    let output =
        "  outputs: [{name: code, value: 'var:password'}, {name: stars, value: '\"a***b\"'}]\n";
    let documents = test("gives", "/cart?run=gives", output)
        + &test("takes", "/cart?run=${var:code}-${var:stars}", "")
        + "type: VariableSet
spec: {id: words, name: words, values: [{key: password, value: hidden-31337, type: secret}]}
---
type: TestSuite
spec: {id: handed, name: Handed, steps: [gives, takes]}
";
    apply(&api, documents).await?;
    let body = json!({"variableSets": ["words"]}).to_string();
    let started = api.request(Method::POST, "/api/v1/test-suites/handed/runs").body(body);
    let (status, run) = answer(started).await?;
    ensure!(status == 202, "{run:#}");
    let ended = ended(&api, run["id"].as_str().context("an id")?).await?;
    assert_eq!(ended["verdict"], "passed", "{ended:#}");
    let fired = target.requests_of_runs();
    assert_eq!(fired.get("hidden-31337-a***b"), Some(&1), "{fired:?} {ended:#}");
    let shown =
        "select (select count(*) from runs where runs::text ~ 'hidden-31337|68696464656e2d3331333337')
             + (select count(*) from open_runs where open_runs::text ~ 'hidden-31337|68696464656e2d3331333337')";
    assert_eq!(database.count(shown).await?, 0, "the record does not show it");
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

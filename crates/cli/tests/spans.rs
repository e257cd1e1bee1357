//! Spans received by a real server: an acknowledged span survives a kill, and the server reports rejected telemetry.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bench::parts::{Database, Server, Target};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// Longer than a lease, and the time until a run is judged.
const ENDED_MAX: Duration = Duration::from_secs(50);
/// An external trace id, created by no server.
const FOREIGN: &str = "5b8efff798038103d269b633813fc60c";

/// Starts a server that stores its spans in a directory that the next one uses too.
async fn serve(database: &Database, data: &TempDir) -> Result<Server> {
    let configuration = format!(
        "{}\nserver: {{dataDirectory: '{}'}}\n",
        database.section()?,
        data.path().display()
    );
    Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await
}

fn test(trigger: &str, settle: &str) -> String {
    format!(
        "type: Test
spec:
  id: two
  name: both parts came
  trigger: {trigger}
  settle: {settle}
  trace:
    - count(span[name=\"before\"]) >= 1
    - count(span[name=\"after\"]) >= 1
"
    )
}

/// Applies the test, and starts a run of it.
async fn start(server: &Server, test: &str) -> Result<String> {
    let client = reqwest::Client::new();
    let applied =
        client.put(format!("{}/api/v1/tests", server.api)).body(test.to_owned()).send().await?;
    ensure!(applied.status().is_success(), "{}", applied.text().await?);
    let started = client.post(format!("{}/api/v1/tests/two/runs", server.api)).send().await?;
    let run: Value = started.json().await?;
    Ok(run["id"].as_str().context("a run has an id")?.to_owned())
}

async fn read(server: &Server, run: &str) -> Result<Value> {
    Ok(reqwest::get(format!("{}/api/v1/runs/{run}", server.api)).await?.json().await?)
}

async fn events(server: &Server, run: &str) -> Result<String> {
    Ok(reqwest::get(format!("{}/api/v1/runs/{run}/events", server.api)).await?.text().await?)
}

/// Polls the run until this field is present.
async fn until(server: &Server, run: &str, pointer: &str) -> Result<Value> {
    let began = Instant::now();
    loop {
        let read = read(server, run).await?;
        match read.pointer(pointer).filter(|it| !it.is_null()) {
            Some(_) => return Ok(read),
            None => ensure!(began.elapsed() < ENDED_MAX, "no `{pointer}` in {read}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Sends a span, and returns when the server has acknowledged it.
async fn send(server: &Server, trace_id: &str, number: u8, name: &str) -> Result<()> {
    let span = json!({
        "traceId": trace_id, "spanId": format!("{number:016x}"), "name": name, "kind": 1,
        "startTimeUnixNano": "1800000000000000000", "endTimeUnixNano": "1800000000000000001",
    });
    let body = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
    // Every address accepts every protocol.
    let url = format!("http://127.0.0.1:{}/v1/traces", server.otlp_grpc);
    let answer = reqwest::Client::new().post(url).json(&body).send().await?;
    ensure!(answer.status().is_success(), "{}", answer.text().await?);
    Ok(())
}

/// Kills the server right after it has acknowledged a span of a run with the trigger state `ended`, and sends the other span
/// to its successor, before any worker can have leased the run again.
async fn acknowledged_and_killed(trigger: &str, ended: &str) -> Result<()> {
    let (database, data) = (Database::create("spans").await?, TempDir::new()?);
    let server = serve(&database, &data).await?;
    let run = start(&server, &test(trigger, "{timeout: 30s, flush: 20s}")).await?;
    let trace_id = until(&server, &run, "/traceId").await?["traceId"].clone();
    let trace_id = trace_id.as_str().context("an id")?;
    // A trigger result that is not in the database is judged as unknown.
    let began = Instant::now();
    while !events(&server, &run).await?.contains(ended) {
        ensure!(began.elapsed() < ENDED_MAX, "no `{ended}` among the events");
        sleep(Duration::from_millis(20)).await;
    }
    send(&server, trace_id, 1, "before").await?;
    server.kill().await?;

    let server = serve(&database, &data).await?;
    send(&server, trace_id, 2, "after").await?;
    let ended = until(&server, &run, "/verdict").await?;
    assert_eq!(ended["verdict"], "passed", "both were there: {ended}");
    assert_eq!(ended["traceId"], trace_id);
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_after_a_kill() -> Result<()> {
    let target = Target::start(None).await?;
    let trigger =
        format!("{{type: http, httpRequest: {{method: GET, url: '{}/cart'}}}}", target.url);
    acknowledged_and_killed(&trigger, "answered").await?;
    assert_eq!(target.requests(), 1, "the trigger was fired once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_of_others_is_wanted_again_at_once() -> Result<()> {
    let trigger = format!("{{type: traceid, traceid: {{id: {FOREIGN}}}}}");
    acknowledged_and_killed(&trigger, "notFired").await
}

/// Checks the diagnosis of a run without telemetry, by the observations of the server's receiver.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_tells_why_no_span_came() -> Result<()> {
    let (database, data) = (Database::create("silence").await?, TempDir::new()?);
    let server = serve(&database, &data).await?;
    let target = Target::start(None).await?;
    let trigger =
        format!("{{type: http, httpRequest: {{method: GET, url: '{}/cart'}}}}", target.url);
    let test = test(&trigger, "{timeout: 1s, flush: 200ms}");
    let cause = async || -> Result<(Value, String)> {
        let run = start(&server, &test).await?;
        let ended = until(&server, &run, "/verdict").await?;
        assert_eq!(ended["verdict"], "inconclusive", "{ended}");
        let first = &ended["outcome"]["diagnoses"][0];
        Ok((first["cause"].clone(), first.to_string()))
    };
    assert_eq!(cause().await?.0, "nothingConnected");
    send(&server, FOREIGN, 1, "of others").await?;
    let (others, words) = cause().await?;
    assert_eq!(others, "otherTraces", "{words}");
    let refused = reqwest::Client::new()
        .post(format!("http://127.0.0.1:{}/v1/spans", server.otlp_grpc))
        .send()
        .await?;
    assert_eq!(refused.status(), 404);
    let (rejected, words) = cause().await?;
    assert_eq!(rejected, "rejected", "{words}");
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

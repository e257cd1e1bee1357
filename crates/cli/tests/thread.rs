//! The complete path, with real parts: Postgres, a Collector, the built binary, an instrumented target.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bench::parts::{Collector, CommandResult, Database, Server, Target, free_port, qualitytrace};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// How long a Collector may take to write received data.
const WRITTEN_MAX: Duration = Duration::from_secs(20);
/// How long a run may take to get so far that its server is killed.
const KILLED_MAX: Duration = Duration::from_secs(20);

/// A test of the target's cart, as a file.
struct TestFile {
    folder: TempDir,
}

impl TestFile {
    /// Expects a response to `GET path`, and `expected` items in its SERVER span.
    fn new(url: &str, path: &str, expected: u32) -> Result<Self> {
        let folder = TempDir::new()?;
        let text = format!(
            "type: Test
spec:
  id: cart
  name: the cart holds three items
  trigger:
    type: http
    httpRequest:
      method: GET
      url: {url}{path}
  settle:
    timeout: 4s
    flush: 400ms
  specs:
    - name: the cart is read once
      selector: span[name=\"GET {path}\"]
      assertions:
        - attr:tracetest.selected_spans.count = 1
        - attr:cart.items = {expected}
    - selector: span[name=\"GET {path}\"] span[db.system.name=\"postgresql\"]
      assertions:
        - attr:tracetest.selected_spans.count >= 1
"
        );
        std::fs::write(folder.path().join("cart.yaml"), text)?;
        Ok(Self { folder })
    }

    async fn run(&self, arguments: &[&str]) -> Result<CommandResult> {
        let file = self.folder.path().join("cart.yaml");
        let file = file.to_str().context("a path that is text")?;
        qualitytrace(Path::new(BINARY), &[&["run", file], arguments].concat()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_judged_and_the_server_tells_of_it() -> Result<()> {
    let database = Database::create("thread").await?;
    let port = free_port()?;
    // The Collector starts after the server: an unreachable Collector does not prevent the start of the server.
    let server = Server::start(Path::new(BINARY), &database, port).await?;
    let collector = Collector::start(port, Some(server.otlp_grpc)).await?;
    let target = Target::start(Some(port)).await?;

    let passed = TestFile::new(&target.url, "/cart", 3)?.run(&["--server", &server.api]).await?;
    assert_eq!(passed.code, Some(0), "{passed:?}");
    let wrong = TestFile::new(&target.url, "/cart", 4)?
        .run(&["--server", &server.api, "--report", "json"])
        .await?;
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    let silent = Target::start(None).await?;
    let unseen = TestFile::new(&silent.url, "/cart", 3)?.run(&["--server", &server.api]).await?;
    assert_eq!(unseen.code, Some(3), "{unseen:?}");
    assert!(unseen.out.contains("and none of this one"), "{}", unseen.out);

    let report: Value = serde_json::from_str(&wrong.out)?;
    let trace_id = report["outcome"]["traceId"].as_str().context("a run has a trace id")?;
    let collected = collector
        .wait_for(WRITTEN_MAX, |collected| {
            collected.named("qualitytrace.run").count() == 3
                && collected.named("Qualitytrace trigger").any(|span| span.trace_id == trace_id)
        })
        .await?;
    let steps = ["queue", "compile", "resolve", "trigger", "settle", "judge", "record"];
    assert_eq!(collected.named("qualitytrace.run").count(), 3);
    assert_eq!(
        collected.named("qualitytrace.run.linger").count(),
        1,
        "only a pass rests on absence"
    );
    for run in collected.named("qualitytrace.run") {
        assert_eq!(run.service, "quality-trace", "the configured service name");
        let mut children: Vec<_> =
            collected.children(run).iter().map(|child| child.name.clone()).collect();
        children.retain(|name| name != "qualitytrace.run.linger");
        assert_eq!(children, steps.map(|step| format!("qualitytrace.run.{step}")));
        let http =
            collected.named("POST /api/v1/tests/{test}/runs").find(|s| s.span_id == run.parent_id);
        assert_eq!(
            http.map(|span| &span.trace_id),
            Some(&run.trace_id),
            "it continues the request"
        );
    }
    let linked = collected
        .named("qualitytrace.run")
        .any(|run| run.json["links"][0]["traceId"].as_str() == Some(trace_id));
    assert!(linked, "the run links to the trace under test");
    let triggers: Vec<_> =
        collected.named("Qualitytrace trigger").filter(|span| span.trace_id == trace_id).collect();
    assert_eq!(triggers.len(), 1, "one trigger span a run");
    let below: Vec<_> =
        collected.children(triggers[0]).iter().map(|span| span.name.clone()).collect();
    assert_eq!(below, ["GET /cart"], "the trigger is the parent of the application's first span");
    let text = triggers[0].json.to_string();
    assert!(!text.contains(r#"items\": 3"#) && !text.contains("response.body"), "{text}");

    assert_eq!(server.terminate().await?, Some(0));
    collector.kill().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_the_server_starts_and_runs() -> Result<()> {
    let database = Database::create("alone").await?;
    let server = Server::start(Path::new(BINARY), &database, free_port()?).await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let passed = TestFile::new(&target.url, "/cart", 3)?.run(&["--server", &server.api]).await?;
    assert_eq!(passed.code, Some(0), "{passed:?}");
    server.kill().await?;
    database.remove().await
}

/// Kills the server when the target has received the request and the query counts the run, and starts it again.
async fn killed_and_started_again(path: &str, is_so_far: &'static str) -> Result<()> {
    let database = Database::create("killed").await?;
    let port = free_port()?;
    let server = Server::start(Path::new(BINARY), &database, port).await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let test = TestFile::new(&target.url, path, 3)?;
    let (api, otlp) = (server.api.clone(), server.otlp_grpc);
    let arguments = ["--server", &api];
    let run = test.run(&arguments);
    let kill = async {
        let began = Instant::now();
        while target.requests() == 0 || database.count(is_so_far).await? == 0 {
            ensure!(began.elapsed() < KILLED_MAX, "not in time: {is_so_far}");
            sleep(Duration::from_millis(5)).await;
        }
        server.kill().await
    };
    let (client, killed) = tokio::join!(run, kill);
    killed?;
    assert_eq!(client?.code, Some(3), "the client lost its server: nothing is known to it");
    let ended = "select count(*) from runs where verdict is not null";
    assert_eq!(database.count(ended).await?, 0, "the kill came before the verdict");

    let server =
        Server::start_on(Path::new(BINARY), &database, port, &format!("127.0.0.1:{otlp}")).await?;
    let began = Instant::now();
    while database.count(ended).await? == 0 && began.elapsed() < Duration::from_secs(40) {
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(database.count(ended).await?, 1, "the run ended");
    let judged = "select count(*) from events where event::text like '%judged%'";
    assert_eq!(database.count(judged).await?, 1, "with one verdict");
    assert_eq!(database.count("select count(*) from runs").await?, 1);
    assert_eq!(target.requests(), 1, "the trigger was fired once");
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_target_answers() -> Result<()> {
    let attempted = "select count(*) from open_runs where attempted_at_ns is not null";
    killed_and_started_again("/slow", attempted).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_trace_settles() -> Result<()> {
    let answered = "select count(*) from open_runs where answered_epoch is not null";
    killed_and_started_again("/cart", answered).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_run_gives_the_same_verdicts() -> Result<()> {
    let port = free_port()?;
    let address = format!("127.0.0.1:{port}");
    let local = ["--otlp", &address];
    let target = Target::start(Some(port)).await?;
    let passed = TestFile::new(&target.url, "/cart", 3)?.run(&local).await?;
    assert_eq!(passed.code, Some(0), "{passed:?}");
    let wrong = TestFile::new(&target.url, "/cart", 4)?.run(&local).await?;
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    let silent = Target::start(None).await?;
    let unseen = TestFile::new(&silent.url, "/cart", 3)?.run(&local).await?;
    assert_eq!(unseen.code, Some(3), "{unseen:?}");
    Ok(())
}

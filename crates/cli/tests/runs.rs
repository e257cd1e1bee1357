//! The runs of a server from the command line: each command, by what a person or a pipeline sees of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use bench::parts::{Database, Server, Target, free_port};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const COMMAND_MAX: Duration = Duration::from_secs(60);

/// A folder with tests, and a server.
struct Stage {
    folder: TempDir,
    database: Database,
    server: Server,
    target: Target,
}

impl Stage {
    /// Starts a server, and runs a test that passes and one that fails.
    async fn set() -> Result<Self> {
        let database = Database::create("cli_runs").await?;
        let server =
            Server::start_with(Path::new(BINARY), &database.section()?, "127.0.0.1:0").await?;
        let target = Target::start(Some(server.otlp_grpc)).await?;
        let stage = Self { folder: TempDir::new()?, database, server, target };
        for (test, status) in [("good", 200), ("bad", 418)] {
            let document = document(test, &stage.target.url, status);
            fs::write(stage.file(&format!("{test}.yaml")), document)?;
        }
        let suite = "type: TestSuite\nspec: {id: both, name: both, steps: [good, bad]}\n";
        fs::write(stage.file("suite.yaml"), suite)?;
        let files = ["good.yaml", "bad.yaml", "suite.yaml"];
        stage.says(&[&["apply"][..], &files].concat(), 0).await?;
        stage.says(&["run", "good.yaml", "--revision", "r1"], 0).await?;
        stage.says(&["run", "bad.yaml"], 1).await?;
        Ok(stage)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn output(&self, arguments: &[&str], server: &str) -> Result<Output> {
        let mut command = Command::new(BINARY);
        command.args(arguments).args(["--server", server]).current_dir(self.folder.path());
        command.env("XDG_CONFIG_HOME", self.folder.path()).kill_on_drop(true);
        Ok(timeout(COMMAND_MAX, command.output()).await??)
    }

    /// Executes a command that ends with this code, and returns its stdout.
    async fn says(&self, arguments: &[&str], code: i32) -> Result<String> {
        let output = self.output(arguments, &self.server.api).await?;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Returns the only run of a test.
    async fn run_of(&self, test: &str) -> Result<String> {
        let list = ["runs", "list", "--test", test, "--limit", "1", "--format", "name"];
        Ok(self.says(&list, 0).await?.trim_end().to_owned())
    }
}

fn document(id: &str, url: &str, status: u16) -> String {
    format!(
        "type: Test
spec:
  id: {id}
  name: {id}
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart'}}}}
  specs:
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.status = {status}']
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_viewed_followed_reported_and_judged_again() -> Result<()> {
    let stage = Stage::set().await?;
    let (good, bad) = (stage.run_of("good").await?, stage.run_of("bad").await?);

    let listed = stage.says(&["runs", "list"], 0).await?;
    let lines: Vec<Vec<_>> = listed.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["RUN", "TEST", "VERDICT", "ACCEPTED", "REVISION"], "{listed}");
    assert_eq!(lines[1][..3], [bad.as_str(), "bad", "failed"], "the newest first: {listed}");
    assert_eq!(lines[2][..3], [good.as_str(), "good", "passed"], "{listed}");
    assert_eq!(lines[2].last(), Some(&"r1"), "{listed}");
    let failed = stage.says(&["runs", "list", "--verdict", "failed", "--since", "1h"], 0).await?;
    assert!(failed.contains(&bad) && !failed.contains(&good), "{failed}");
    let earlier = stage.output(&["runs", "list", "--until", "1h"], &stage.server.api).await?;
    assert_eq!((earlier.stdout.len(), earlier.stderr.as_slice()), (0, &b"no runs\n"[..]));
    let runs: Vec<Value> =
        serde_json::from_str(&stage.says(&["runs", "list", "--format", "json"], 0).await?)?;
    assert_eq!(runs.len(), 2);
    let yaml = stage.says(&["runs", "list", "--format", "yaml", "--limit", "1"], 0).await?;
    assert!(yaml.contains("test: bad\n"), "{yaml}");

    let view = stage.says(&["runs", "view", &bad, "--events"], 0).await?;
    for part in
        ["state       failed", "accepted", "judged", "✘ failed: bad", "answered status=200", "418"]
    {
        assert!(view.contains(part), "no `{part}` in {view}");
    }
    let json: Value = serde_json::from_str(
        &stage.says(&["runs", "view", &bad, "--events", "--format", "json"], 0).await?,
    )?;
    assert_eq!(json["outcome"]["verdict"], "failed");
    assert_eq!(json["events"][0]["event"]["what"], "accepted");

    assert!(stage.says(&["runs", "watch", &good], 0).await?.contains("✔ passed: good"));
    stage.says(&["runs", "watch", &bad], 1).await?;
    stage.says(&["runs", "report", &bad, "--report", "junit=out.xml"], 0).await?;
    assert!(fs::read_to_string(stage.file("out.xml"))?.contains("<failure"));
    let suite: Value = serde_json::from_str(&suite_run(&stage).await?)?;
    let suite = suite["id"].as_str().context("an id")?;
    stage.says(&["runs", "report", suite, "--report", "junit=suite.xml"], 0).await?;
    let suite = fs::read_to_string(stage.file("suite.xml"))?;
    assert_eq!(suite.matches("<testcase").count(), 2, "{suite}");

    stage.says(&["runs", "trace", &good, "-o", "good.pb"], 0).await?;
    assert!(fs::metadata(stage.file("good.pb"))?.len() > 0);
    stage.says(&["runs", "trace", &good, "-o", "good.pb"], 2).await?;
    let piped = stage.output(&["runs", "trace", &good], &stage.server.api).await?;
    assert_eq!(piped.stdout, fs::read(stage.file("good.pb"))?, "a pipe gets the same bytes");

    stage.says(&["runs", "rejudge", &bad], 1).await?;
    fs::write(stage.file("now.yaml"), document("bad", "http://127.0.0.1:1", 200))?;
    let judged = stage.says(&["runs", "rejudge", &bad, "--document", "now.yaml"], 0).await?;
    assert!(judged.contains("✔ passed: bad"), "{judged}");
    assert!(stage.says(&["history", "tests", "bad"], 0).await?.lines().nth(1).is_some());
    assert_eq!(stage.says(&["history", "tests", "bad", "--format", "name"], 0).await?, "bad@1\n");

    refused(&stage, &good).await?;
    stage.server.terminate().await?;
    stage.database.remove().await
}

/// Runs the suite, and returns its run as the API has it, once it has ended.
async fn suite_run(stage: &Stage) -> Result<String> {
    let client = reqwest::Client::new();
    let url = format!("{}/api/v1/test-suites/both/runs", stage.server.api);
    let started: Value = client.post(url).body("{}").send().await?.json().await?;
    let id = started["id"].as_str().context("an id")?;
    let url = format!("{}/api/v1/suite-runs/{id}", stage.server.api);
    timeout(COMMAND_MAX, async {
        loop {
            let text = client.get(&url).send().await?.text().await?;
            if serde_json::from_str::<Value>(&text)?["state"] == "ended" {
                return Ok(text);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await?
}

/// What is not there, a server that is not there, and a reader that goes.
async fn refused(stage: &Stage, good: &str) -> Result<()> {
    let unknown = "01a1f36f-d453-7b1c-81ba-9fa9ae4e1b76";
    for command in ["view", "watch", "report", "trace", "rejudge", "stop"] {
        let output = stage.output(&["runs", command, unknown], &stage.server.api).await?;
        assert_eq!(output.status.code(), Some(2), "{command}: {output:?}");
        let error = String::from_utf8(output.stderr)?;
        assert!(error.contains(unknown), "{command}: {error}");
    }
    let nowhere = format!("http://127.0.0.1:{}", free_port()?);
    for arguments in [&["runs", "list"][..], &["runs", "view", good], &["runs", "stop", good]] {
        let output = stage.output(arguments, &nowhere).await?;
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {output:?}");
        assert!(String::from_utf8(output.stderr)?.contains("cannot be reached"));
    }
    // A closed pipe is no error.
    let mut command = Command::new(BINARY);
    command.args(["runs", "list", "--format", "json", "--server", &stage.server.api]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    drop(child.stdout.take());
    let output = timeout(COMMAND_MAX, child.wait_with_output()).await??;
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
    Ok(())
}

//! Documents on a server, by the built binary: apply, list, get, export, delete.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result};
use bench::parts::{Api, CommandResult, Database, Server, Target, answer, free_port, qualitytrace};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

const SETS: &str = "type: VariableSet
spec:
  id: staging
  name: Staging
  values:
    - {key: HOST, value: shop.example}
    - {key: TOKEN, value: hunter2, type: secret}
---
type: TestSuite
spec: {id: shop, name: The shop, steps: [nobody]}
";

#[tokio::test(flavor = "multi_thread")]
async fn documents_go_to_a_server_and_come_back() -> Result<()> {
    let database = Database::create("cli_documents").await?;
    let key = format!("secrets: {{keys: ['one:{}']}}\n", "07".repeat(32));
    let configuration = format!("{}\n{key}", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let folder = TempDir::new()?;
    let file = folder.path().join("sets.yaml");
    fs::write(&file, SETS)?;
    let file = file.display().to_string();
    let run = async |arguments: &[&str]| -> Result<CommandResult> {
        qualitytrace(Path::new(BINARY), &[arguments, &["--server", &server.api]].concat()).await
    };
    let said = async |arguments: &[&str]| -> Result<String> {
        let CommandResult { code, out, err } = run(arguments).await?;
        assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
        Ok(out)
    };

    let applied = "variable set staging `Staging`: version 1 (new)\ntest suite shop `The shop`: version 1 (new)\n";
    assert_eq!(said(&["apply", &file]).await?, applied);
    assert_eq!(
        said(&["apply", &folder.path().display().to_string()]).await?,
        applied.replace("new", "unchanged")
    );
    assert_eq!(
        said(&["list", "test-suites"]).await?,
        "ID    VERSION  NAME\nshop  1        The shop\n"
    );
    assert_eq!(said(&["list", "test-suites", "--project", "other"]).await?, "");
    let suite = said(&["get", "test-suite", "shop"]).await?;
    assert_eq!(suite, "type: TestSuite\nspec: {id: shop, name: The shop, steps: [nobody]}\n");
    assert_eq!(said(&["get", "test-suites", "shop@1"]).await?, suite);

    // An export can be applied, and a masked secret keeps its value.
    let exported = said(&["export"]).await?;
    assert!(exported.contains("***") && !exported.contains("hunter2"), "{exported}");
    let copy = folder.path().join("copy.yml");
    fs::write(&copy, exported.replace("shop.example", "other.example"))?;
    let again = said(&["apply", &copy.display().to_string()]).await?;
    assert!(again.contains("staging `Staging`: version 2 (new)"), "{again}");
    assert!(again.contains("shop `The shop`: version 1 (unchanged)"), "{again}");

    // The server's diagnostics are rendered like local ones.
    let wrong = folder.path().join("wrong.yaml").display().to_string();
    fs::write(&wrong, "type: TestSuite\nspec: {name: The shop, stepps: []}\n")?;
    let there = run(&["apply", &wrong]).await?;
    let here = qualitytrace(Path::new(BINARY), &["run", &wrong]).await?;
    assert_eq!((there.code, here.code), (Some(2), Some(2)), "{}{}", there.err, here.err);
    let (drawn, count) = here.err.split_once("error: 1 error in").context("a count of errors")?;
    assert!(there.err.contains(drawn.trim_end()), "{}\n{}", there.err, here.err);
    assert!(count.trim_end().ends_with("[invalid-document]"), "{count}");

    let stale = run(&["delete", "test-suite", "shop@7"]).await?;
    assert!(stale.code == Some(2) && stale.err.contains("is at version 1"), "{}", stale.err);
    assert_eq!(said(&["delete", "test-suite", "shop@1"]).await?, "test suite `shop`: deleted\n");
    let gone = run(&["get", "test-suite", "shop"]).await?;
    assert!(
        gone.code == Some(2) && gone.err.contains("there is no test suite `shop`"),
        "{}",
        gone.err
    );
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_compared_applied_and_pruned() -> Result<()> {
    let database = Database::create("cli_prune").await?;
    let key = format!("secrets: {{keys: ['one:{}']}}\n", "07".repeat(32));
    let configuration = format!("{}\n{key}", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let folder = TempDir::new()?;
    let tests = folder.path().join("tests");
    fs::create_dir(&tests)?;
    let suite = |id: &str, step: &str| {
        format!("type: TestSuite\nspec:\n  id: {id}\n  name: {id}\n  steps: [{step}]\n")
    };
    fs::write(tests.join("a.yaml"), suite("a", "one"))?;
    fs::write(tests.join("b.yaml"), suite("b", "two") + "---\n" + SETS)?;
    fs::write(folder.path().join("other.yaml"), suite("other", "one"))?;
    let run = async |arguments: &[&str]| -> Result<(Option<i32>, String)> {
        let mut command = tokio::process::Command::new(BINARY);
        command.args(arguments).args(["--server", &server.api]).current_dir(folder.path());
        let output = command.kill_on_drop(true).output().await?;
        let printed = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8(printed)?))
    };
    let listed = async || run(&["list", "test-suites", "--format", "name"]).await;

    let dry = run(&["apply", "tests", "--dry-run"]).await?;
    assert_eq!(dry.0, Some(0), "{}", dry.1);
    assert!(dry.1.contains("test suite a `a`: version 1 (would be new)"), "{}", dry.1);
    assert_eq!(listed().await?, (Some(0), String::new()), "nothing is stored");
    let new = run(&["apply", "tests", "--diff"]).await?;
    assert_eq!(new.0, Some(1), "{}", new.1);
    assert!(new.1.contains("\n  +  steps: [one]\n"), "{}", new.1);
    assert!(!new.1.contains("hunter2"), "{}", new.1);

    assert_eq!(run(&["apply", "tests", "other.yaml"]).await?.0, Some(0));
    assert_eq!(run(&["apply", "./tests/", "--diff", "--prune"]).await?.0, Some(0), "all is there");
    fs::write(tests.join("a.yaml"), suite("a", "three"))?;
    fs::write(tests.join("b.yaml"), suite("b", "two"))?;
    let differs = run(&["apply", "tests", "--diff", "--prune"]).await?;
    assert_eq!(differs.0, Some(1));
    for line in [
        "test suite a `a`: version 2 (would be new)\n",
        "  -  steps: [one]\n  +  steps: [three]\n",
        "test suite b `b`: version 1 (unchanged)\n",
        "variable set staging: would be deleted\n",
        "test suite shop: would be deleted\n",
    ] {
        assert!(differs.1.contains(line), "{line}: {}", differs.1);
    }
    assert!(!differs.1.contains("other"), "another file: {}", differs.1);
    let before = "a\nb\nother\nshop\n";
    assert_eq!(listed().await?.1, before, "nothing is deleted");

    // What a slip would cost: the folder is empty, or is all folders, or a file is wrong.
    fs::create_dir(folder.path().join("empty"))?;
    fs::write(tests.join("c.yaml"), "type: TestSuite\nspec: {stepps: []}\n")?;
    for (path, reason) in
        [("empty", "hold no files"), (".", "a folder with a name"), ("tests", "missing key `name`")]
    {
        let refused = run(&["apply", path, "--prune"]).await?;
        assert_eq!(refused.0, Some(2), "{}", refused.1);
        assert!(refused.1.contains(reason), "{reason}: {}", refused.1);
    }
    assert_eq!(listed().await?.1, before, "nothing is deleted");
    fs::remove_file(tests.join("c.yaml"))?;
    let pruned = run(&["apply", "tests", "--prune"]).await?;
    assert_eq!(pruned.0, Some(0), "{}", pruned.1);
    assert!(pruned.1.contains("test suite shop: deleted\n"), "{}", pruned.1);
    assert_eq!(listed().await?.1, "a\nb\nother\n");
    assert_eq!(run(&["apply", "tests", "--diff", "--prune"]).await?.0, Some(0), "done");
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_tells_its_state_and_takes_any_request() -> Result<()> {
    let database = Database::create("cli_status").await?;
    let server = Server::start(Path::new(BINARY), &database, free_port()?).await?;
    let run = async |arguments: &[&str]| -> Result<CommandResult> {
        qualitytrace(Path::new(BINARY), &[arguments, &["--server", &server.api]].concat()).await
    };
    let status = run(&["status"]).await?;
    assert_eq!(status.code, Some(0), "{status:?}");
    let version = env!("CARGO_PKG_VERSION");
    let first = format!("{}: version {version}, access off\nready\n", server.api);
    assert!(status.out.starts_with(&first), "{status:?}");
    assert_eq!(run(&["status", "--ready"]).await?.out, "ready\n");
    let json = run(&["status", "--format", "json"]).await?;
    let json: serde_json::Value = serde_json::from_str(&json.out)?;
    assert_eq!((&json["ready"], &json["version"]), (&json!(true), &json!(version)), "{json}");
    assert_eq!(run(&["status", "--format", "name"]).await?.out, "ready\n");

    let folder = TempDir::new()?;
    let file = folder.path().join("sets.yaml");
    fs::write(&file, "type: TestSuite\nspec: {id: shop, name: The shop, steps: [nobody]}\n")?;
    let file = file.display().to_string();
    let put =
        run(&["api", "put", "/api/v1/documents", "--input", &file, "--project", "own"]).await?;
    assert_eq!(put.code, Some(0), "{put:?}");
    let read =
        run(&["api", "GET", "/api/v1/test-suites", "-f", "limit=1", "--project", "own"]).await?;
    let read: serde_json::Value = serde_json::from_str(&read.out)?;
    assert_eq!(read["items"][0]["id"], "shop", "{read}");
    let missing = run(&["api", "GET", "/api/v1/test-suites/none"]).await?;
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.out.contains("\"status\":404"), "{missing:?}");
    assert!(missing.err.contains("the server answered 404"), "{missing:?}");
    let both = ["api", "PUT", "/api/v1/documents", "--input", &file, "-f", "a=b"];
    assert!(run(&both).await?.err.contains("leave one out"));
    for path in ["//evil.example/x", "https://evil.example", "api/v1/runs", "/a b"] {
        assert_eq!(run(&["api", "GET", path]).await?.code, Some(2), "{path}");
    }

    let id = "0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e";
    assert_eq!(run(&["open"]).await?.out, format!("{}/\n", server.api));
    assert_eq!(run(&["open", "checkout"]).await?.out, format!("{}/t/checkout\n", server.api));
    assert_eq!(
        run(&["open", id, "--project", "a"]).await?.out,
        format!("{}/r/{id}?project=a\n", server.api)
    );
    let (api, gone) = (server.api.clone(), server.terminate().await?);
    assert_eq!(gone, Some(0));
    let away = qualitytrace(Path::new(BINARY), &["status", "--server", &api]).await?;
    assert_eq!(away.code, Some(3), "{away:?}");

    // A server that waits for its database answers, and is not ready.
    let file = folder.path().join("waiting.yaml");
    fs::write(&file, "postgres: {host: 127.0.0.1, port: 1, user: x, password: y, dbname: z}\n")?;
    let address = format!("127.0.0.1:{}", free_port()?);
    let any = "127.0.0.1:0";
    let mut waiting = tokio::process::Command::new(BINARY);
    waiting.args(["serve", "--http", &address, "--otlp-grpc", any, "--otlp-http", any]);
    let _waiting = waiting.arg("--config").arg(&file).kill_on_drop(true).spawn()?;
    let url = format!("http://{address}");
    let began = Instant::now();
    let status = loop {
        let status = qualitytrace(Path::new(BINARY), &["status", "--server", &url]).await?;
        if status.code != Some(3) || began.elapsed() > Duration::from_secs(20) {
            break status;
        }
    };
    assert_eq!(status.code, Some(1), "{status:?}");
    assert!(status.out.starts_with("not ready: cannot speak to postgres"), "{status:?}");
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settle_profile_says_how_long_a_run_waits() -> Result<()> {
    let database = Database::create("cli_profiles").await?;
    let server = Server::start(Path::new(BINARY), &database, free_port()?).await?;
    let target = Target::start(None).await?;
    let api = Api::new(&server.api)?;
    let profile = |id: &str, timeout: &str, is_default: bool| {
        format!(
            "type: SettleProfile\nspec: {{id: {id}, name: {id}, default: {is_default}, timeout: {timeout}}}\n"
        )
    };
    let test = |id: &str, more: &str| {
        let request = format!("{{type: http, httpRequest: {{url: '{}/cart'}}}}", target.url);
        let count = "attr:tracetest.selected_spans.count = 1";
        let expects =
            format!("specs: [{{selector: 'span[name=\"GET /cart\"]', assertions: ['{count}']}}]");
        format!(
            "type: Test\nspec: {{id: {id}, name: {id}, {more} {expects}, trigger: {request}}}\n"
        )
    };
    let documents = [
        profile("short", "1s", false),
        profile("usual", "2s", true),
        test("named", "settleProfile: short,"),
        test("unnamed", ""),
        test("own", "settle: {timeout: 1500ms},"),
        test("lost", "settleProfile: absent,"),
    ];
    let apply = api.request(Method::PUT, "/api/v1/documents").body(documents.join("---\n"));
    let (status, applied) = answer(apply).await?;
    assert_eq!(status, 200, "{applied:#}");
    for (test, least, most) in [("named", 1.0, 1.5), ("own", 1.5, 2.0), ("unnamed", 2.0, 4.0)] {
        let run = api.start(test, &json!({})).await?;
        let run = api.ended(&run, Duration::from_secs(30)).await?;
        let waited = run["outcome"]["settlement"]["waitedNs"].as_f64().unwrap_or_default() / 1e9;
        assert!((least..most).contains(&waited), "{test} waited {waited} s: {run:#}");
    }
    let run = api.start("lost", &json!({})).await?;
    let run = api.ended(&run, Duration::from_secs(30)).await?;
    let why = run["outcome"]["reasons"].to_string();
    assert!(why.contains("there is no settle profile `absent`"), "{why}");
    assert_eq!(target.requests(), 3, "what cannot be waited for is not fired");
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

//! Documents on a server, by the built binary: apply, list, get, export, delete.

use std::{fs, path::Path, time::Duration};

use anyhow::Result;
use bench::parts::{Api, CommandResult, Database, Server, Target, answer, free_port, qualitytrace};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

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
    assert!(there.err.contains(here.err.trim_end()), "{}\n{}", there.err, here.err);

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

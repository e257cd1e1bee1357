//! Documents beside tests apply to their runs, locally and on a server: required gates, analyzers, settle profiles.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bench::parts::{Api, Database, Server, Target, answer, free_port, qualitytrace};
use reqwest::Method;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::timeout;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// How long the runs of this file may take; without the profile they would take 30 s.
const PROFILED_MAX: Duration = Duration::from_secs(15);

const GATES: &str = "type: Analyzer
spec: {name: ours, minimumScore: 100}
---
type: QualityGate
spec: {name: ours, requiredGates: [test-specs, analyzer-score, analyzer-rules]}
";

fn test_of(url: &str, more: &str) -> String {
    format!(
        "type: Test
spec:
  id: cart
  name: the cart is read
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart'}}}}
  specs:
    - selector: span[name=\"GET /cart\"]
      assertions: ['attr:cart.items = 3']
{more}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_is_not_met_fails_a_run_on_a_server() -> Result<()> {
    let database = Database::create("gates").await?;
    let server = Server::start(Path::new(BINARY), &database, free_port()?).await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    let folder = TempDir::new()?;
    fs::write(folder.path().join("cart.yaml"), test_of(&target.url, "  settle: {flush: 400ms}\n"))?;
    let path = folder.path().to_str().context("a path")?;
    let report = folder.path().join("report");
    let asked = format!("json={}", report.display());
    let arguments = ["run", "--server", &server.api, path, "--report", &asked];
    let before = qualitytrace(Path::new(BINARY), &arguments).await?;
    assert_eq!(before.code, Some(0), "{before:?}");
    let told: Value = serde_json::from_str(&fs::read_to_string(&report)?)?;
    assert_eq!(told["outcome"]["analysis"], Value::Null, "nobody asked for it");
    let run = told["outcome"]["runId"].as_str().context("a run")?.to_owned();

    // The documents beside the test are stored with it.
    fs::write(folder.path().join("gates.yaml"), GATES)?;
    let gated = qualitytrace(Path::new(BINARY), &arguments).await?;
    assert_eq!(gated.code, Some(1), "{gated:?}");
    let told: Value = serde_json::from_str(&fs::read_to_string(&report)?)?;
    let outcome = &told["outcome"];
    assert_eq!(
        (&outcome["verdict"], &outcome["judgement"]["specs"][0]["verdict"]),
        (&"failed".into(), &"passed".into())
    );
    let gates = outcome["judgement"]["claims"].as_array().context("gates")?;
    let named: Vec<_> = gates.iter().filter_map(|gate| gate["claim"].as_str()).collect();
    assert_eq!(named, ["analyzer-score", "analyzer-rules"]);
    assert_eq!(gates[0]["place"]["file"], "quality-gates/current");
    let reason = gates[0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("`minimumScore` is 100"), "{reason}");
    assert_eq!(outcome["analysis"]["minimumScore"], 100);

    // A run that passed before is re-judged by them too, and keeps its verdict.
    let again = api.request(Method::POST, &format!("/api/v1/runs/{run}/judgements"));
    let (status, again) = answer(again).await?;
    ensure!(status == 200, "{again:#}");
    assert_eq!(again["outcome"]["verdict"], "failed");

    // After their deletion they apply no more.
    fs::remove_file(folder.path().join("gates.yaml"))?;
    for collection in ["quality-gates", "analyzers"] {
        let path = format!("/api/v1/{collection}/current");
        let deleted = api.request(Method::DELETE, &path).send().await?;
        assert_eq!(deleted.status(), 204);
    }
    let after = qualitytrace(Path::new(BINARY), &arguments).await?;
    assert_eq!(after.code, Some(0), "{after:?}");
    server.kill().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_beside_a_test_says_how_long_it_waits_here() -> Result<()> {
    let target = Target::start(None).await?;
    let profile =
        |more: &str| format!("type: SettleProfile\nspec: {{id: short, {more}timeout: 700ms}}\n");
    let waiting = "  settle: {expect: [nobody]}\n";
    let cases = [
        ("of the default", profile("default: true, "), String::new(), 3),
        ("by its id", profile(""), "  settleProfile: short\n".to_owned(), 3),
        ("by its file", profile(""), "  settleProfile: ./profile.yaml\n".to_owned(), 3),
        ("by an id that is not there", profile(""), "  settleProfile: long\n".to_owned(), 2),
    ];
    for (name, profile, named, code) in cases {
        let folder = TempDir::new()?;
        fs::write(folder.path().join("profile.yaml"), profile)?;
        let test = test_of(&target.url, &format!("{waiting}{named}"));
        fs::write(folder.path().join("cart.yaml"), test)?;
        let path = folder.path().to_str().context("a path")?;
        let otlp = format!("127.0.0.1:{}", free_port()?);
        let arguments = ["run", path, "--otlp", &otlp];
        let ran = timeout(PROFILED_MAX, qualitytrace(Path::new(BINARY), &arguments)).await;
        let ran = ran.with_context(|| format!("{name}: it waits for longer than it should"))??;
        assert_eq!(ran.code, Some(code), "{name}: {ran:?}");
        if code == 2 {
            let told = format!("{ran:?}");
            assert!(told.contains("names the settle profile `long`"), "{told}");
        }
    }
    Ok(())
}

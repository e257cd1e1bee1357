//! Finished runs, with real parts: the server's reports equal those of the command, and a run can be re-judged.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bench::parts::{Api, Database, Server, Target, answer, free_port, qualitytrace};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const RUN_MAX: Duration = Duration::from_secs(30);

/// Returns the formats with the same report from server and command; those that show traces are absent, since the command has
/// no trace for them.
fn forms() -> impl Iterator<Item = &'static str> {
    let formats = report::FORMATS.iter().filter(|format| !format.shows_traces);
    formats.map(|format| format.name)
}

fn test_of(url: &str, path: &str, items: u32) -> String {
    format!(
        "type: Test
spec:
  id: cart
  name: the cart holds {items} items
  trigger:
    type: http
    httpRequest: {{method: GET, url: '{url}{path}'}}
  settle: {{timeout: 4s, flush: 400ms}}
  specs:
    - selector: span[name=\"GET {path}\"]
      assertions: ['attr:cart.items = {items}']
    - selector: span[name=\"DELETE {path}\"]
      assertions: ['attr:tracetest.selected_spans.count = 0']
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.status = 200']
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_reported_and_judged_once_more() -> Result<()> {
    let database = Database::create("afterwards").await?;
    let server = Server::start(Path::new(BINARY), &database, free_port()?).await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    let folder = TempDir::new()?;
    let file = folder.path().join("cart.yaml");
    fs::write(&file, test_of(&target.url, "/cart", 3))?;
    let file = file.to_str().context("a path")?;
    let written = |form: &str| folder.path().join(form);
    let asked: Vec<_> = forms().map(|form| format!("{form}={}", written(form).display())).collect();
    let reports = asked.iter().flat_map(|asked| ["--report", asked.as_str()]);
    let arguments: Vec<_> =
        ["run", "--server", &server.api, file].into_iter().chain(reports).collect();
    let ran = qualitytrace(Path::new(BINARY), &arguments).await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report: Value = serde_json::from_str(&fs::read_to_string(written("json"))?)?;
    let run = report["outcome"]["runId"].as_str().context("a run")?.to_owned();

    for form in forms() {
        let path = format!("/api/v1/runs/{run}/report?format={form}");
        let told = api.request(Method::GET, &path).send().await?.text().await?;
        assert_eq!(told, fs::read_to_string(written(form))?, "{form}");
    }
    let page = api.request(Method::GET, &format!("/api/v1/runs/{run}/report"));
    let page = page.header("accept", "text/html,*/*;q=0.8").send().await?;
    let policy = page.headers()["content-security-policy"].to_str()?.to_owned();
    assert!(policy.starts_with("sandbox allow-scripts; default-src 'none'"), "{policy}");
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    assert_eq!(page.headers()["x-content-type-options"], "nosniff");
    let page = page.text().await?;
    assert!(page.contains(r#""n":"GET /cart""#), "the page has the waterfall: {page}");

    judged_once_more(&api, &run, &target.url).await?;
    let before = format!("/api/v1/runs/{run}");
    let (_, kept) = answer(api.request(Method::GET, &before)).await?;
    assert_eq!(kept["outcome"], report["outcome"], "the record stays");
    assert_eq!(target.requests(), 1, "nothing was fired");
    still_under_way(&api, &target.url).await?;
    server.kill().await?;
    database.remove().await
}

async fn judged_once_more(api: &Api, run: &str, url: &str) -> Result<()> {
    let judge = |query: &str, body: String| {
        api.request(Method::POST, &format!("/api/v1/runs/{run}/judgements{query}")).body(body)
    };
    let (status, same) = answer(judge("", String::new())).await?;
    ensure!(status == 200, "{same:#}");
    assert_eq!((&same["version"], &same["outcome"]["verdict"]), (&json!(1), &json!("passed")));
    // A document that is not stored.
    let (_, wrong) = answer(judge("", test_of(url, "/cart", 4))).await?;
    assert_eq!((&wrong["version"], &wrong["outcome"]["verdict"]), (&Value::Null, &json!("failed")));
    let found = &wrong["outcome"]["judgement"]["specs"][0]["assertions"][0]["spans"][0]["found"];
    assert_eq!(found, "`cart.items` is 3, expected = 4", "{wrong:#}");
    // The document expects a service that the run did not receive.
    let expects = test_of(url, "/cart", 3);
    let expects = expects.replace("timeout: 4s,", "timeout: 4s, expect: [mailer],");
    assert!(expects.contains("mailer"), "{expects}");
    let (_, open) = answer(judge("", expects)).await?;
    assert_eq!(open["outcome"]["verdict"], "inconclusive", "{open:#}");
    // The current version of the test, and the earlier one.
    api.apply(&test_of(url, "/cart", 4)).await?;
    let (_, now) = answer(judge("", String::new())).await?;
    assert_eq!((&now["version"], &now["outcome"]["verdict"]), (&json!(2), &json!("failed")));
    let (_, then) = answer(judge("?version=1", String::new())).await?;
    assert_eq!((&then["version"], &then["outcome"]["verdict"]), (&json!(1), &json!("passed")));
    Ok(())
}

/// Checks that a run that has not ended has no report and cannot be re-judged.
async fn still_under_way(api: &Api, url: &str) -> Result<()> {
    api.apply(&test_of(url, "/slow", 3)).await?;
    let run = api.start("cart", &json!({})).await?;
    for (method, path) in [(Method::GET, "report"), (Method::POST, "judgements")] {
        let path = format!("/api/v1/runs/{run}/{path}");
        let (status, refused) = answer(api.request(method, &path)).await?;
        assert_eq!(status, 409, "{refused:#}");
        let detail = refused["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("has not ended"), "{detail}");
    }
    api.ended(&run, RUN_MAX).await?;
    Ok(())
}

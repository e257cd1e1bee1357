//! The start parameters of runs on a server, and their trend over time.

use std::{fs, path::Path};

use anyhow::Result;
use bench::parts::{Database, Server, Target, qualitytrace};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_that_flip_on_one_revision_are_flaky() -> Result<()> {
    let database = Database::create("trend").await?;
    let target = Target::start(None).await?;
    let keys = format!("secrets: {{keys: ['one:{}']}}", "07".repeat(32));
    let configuration = format!("{}\n{keys}\n", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let folder = TempDir::new()?;
    let (shop, tests) = (folder.path().join("shop.yaml"), folder.path().join("cart.yaml"));
    let set = format!("{{id: shop, name: shop, values: [{{key: SHOP, value: '{}'}}]}}", target.url);
    fs::write(&shop, format!("type: VariableSet\nspec: {set}\n"))?;
    fs::write(
        &tests,
        "type: Test
spec:
  id: cart
  name: cart
  skipTraceCollection: true
  trigger: {type: http, httpRequest: {method: GET, url: '${var:SHOP}/cart'}}
  specs:
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.status = var:STATUS']
",
    )?;
    let (shop, tests) = (shop.display().to_string(), tests.display().to_string());
    let said = async |arguments: &[&str]| {
        qualitytrace(Path::new(BINARY), &[arguments, &["--server", &server.api]].concat()).await
    };
    let applied = said(&["apply", &shop]).await?;
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let run = async |revision: &str, status: &str| {
        let status = format!("STATUS={status}");
        said(&["run", &tests, "--variable-set", "shop", "--set", &status, "--revision", revision])
            .await
    };
    for (revision, status, code) in
        [("a", "200", 0), ("b", "200", 0), ("b", "418", 1), ("c", "200", 0)]
    {
        let ran = run(revision, status).await?;
        assert_eq!(ran.code, Some(code), "{revision} {status}: {ran:?}");
    }
    let told = said(&["trend"]).await?;
    assert_eq!(told.code, Some(0), "{told:?}");
    let (line, times) = told.out.split_once(", median ").unwrap_or_default();
    assert_eq!(line, "cart  ✔✔✘✔  3 passed, 1 failed of 4", "{told:?}");
    assert!(times.ends_with(", FLAKY: 1 flip on the same revision\n"), "{times}");

    let last = said(&["trend", "cart", "--last", "1"]).await?;
    assert!(last.out.starts_with("cart  ✔  1 passed of 1, median "), "{last:?}");
    assert_eq!(said(&["trend", "--format", "name"]).await?.out, "cart\n");
    let json: serde_json::Value =
        serde_json::from_str(&said(&["trend", "--format", "json"]).await?.out)?;
    assert_eq!((&json[0]["test"], &json[0]["trend"]["passed"]), (&"cart".into(), &3.into()));
    let nobody = said(&["trend", "nobody"]).await?;
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    assert!(nobody.err.contains("there is no test `nobody`"), "{nobody:?}");
    server.terminate().await?;
    database.remove().await
}

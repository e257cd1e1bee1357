//! Errors that a server responds with in a certain state.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use bench::parts::{Api, Database, Gate, Hold, Server, Target, answer, free_port};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::Command,
    time::timeout,
};

use super::BINARY;

const TEST: &str = "type: Test
spec:
  id: cart
  name: the cart
  trigger: {type: http, httpRequest: {url: 'URL'}}
  settle: {timeout: 20s, flush: 200ms}
  trace: [response.status = 200]
";
const ENDED_MAX: Duration = Duration::from_secs(30);

/// The request fails with this name and status, and the name leads to its page.
async fn fails(api: &Api, request: RequestBuilder, (name, status): (&str, u16)) -> Result<Value> {
    let (found, problem) = answer(request).await?;
    assert_eq!((found, &problem["code"]), (status, &json!(name)), "{problem:#}");
    assert_eq!(problem["type"], format!("/errors/{name}"), "{problem:#}");
    let page = api.request(Method::GET, &format!("/errors/{name}")).send().await?;
    let text = page.text().await?;
    assert!(text.starts_with(name) && text.contains("What to do: "), "{text}");
    Ok(problem)
}

async fn start(configuration: &str) -> Result<(Server, Api)> {
    let server = Server::start_with(Path::new(BINARY), configuration, "127.0.0.1:0").await?;
    let api = Api::new(&server.api)?;
    Ok((server, api))
}

#[tokio::test(flavor = "multi_thread")]
async fn states_of_documents_and_runs() -> Result<()> {
    let database = Database::create("error_states").await?;
    let (server, api) = start(&database.section()?).await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    for (id, path) in [("cart", "/cart"), ("slow", "/slow")] {
        let document = TEST.replace("URL", &format!("{}{path}", target.url));
        api.apply(&document.replace("id: cart", &format!("id: {id}"))).await?;
    }
    let put = api.request(Method::PUT, "/api/v1/tests/cart").header("if-match", "\"9\"");
    let document = TEST.replace("URL", &target.url);
    fails(&api, put.body(document), ("version-changed", 412)).await?;
    let get = api.request(Method::GET, "/api/v1/tests/cart").header("accept", "image/png");
    fails(&api, get, ("not-acceptable", 406)).await?;

    let body = json!({"variables": {"a": "b"}});
    let run = api.start_once("slow", &json!({}), "one").await?;
    let again = api.request(Method::POST, "/api/v1/tests/slow/runs");
    let again = again.header("idempotency-key", "one").body(body.to_string());
    fails(&api, again, ("key-used", 422)).await?;
    let path = format!("/api/v1/runs/{run}/report?format=junit");
    fails(&api, api.request(Method::GET, &path), ("run-active", 409)).await?;

    let run = api.start("cart", &json!({})).await?;
    let ended = api.ended(&run, ENDED_MAX).await?;
    assert_eq!(ended["verdict"], "passed", "{ended:#}");
    database.execute("update traces set otlp_zstd = '\\x00'").await?;
    let path = format!("/api/v1/runs/{run}/trace");
    fails(&api, api.request(Method::GET, &path), ("internal", 500)).await?;
    database.execute("delete from traces").await?;
    let judge = api.request(Method::POST, &format!("/api/v1/runs/{run}/judgements"));
    fails(&api, judge, ("conflict", 409)).await?;

    let body =
        "POST /api/v1/tests/cart/runs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n{";
    let mut late = TcpStream::connect(server.api.trim_start_matches("http://")).await?;
    late.write_all(body.as_bytes()).await?;
    let mut response = String::new();
    let _read = timeout(ENDED_MAX, late.read_to_string(&mut response)).await?;
    assert!(response.contains("request-timeout"), "{response}");
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn states_of_a_server_and_what_it_needs() -> Result<()> {
    let database = Database::create("error_needs").await?;
    let away = database.section_at(free_port()?)?;
    let server = Server::start_listening(Path::new(BINARY), &away, "127.0.0.1:0").await?;
    let api = Api::new(&server.api)?;
    fails(&api, api.request(Method::GET, "/api/v1/tests"), ("not-ready", 503)).await?;
    server.kill().await?;

    let gate = Gate::start(&database, "no such statement", Hold::Statement).await?;
    let (server, api) = start(&database.section_at(gate.port)?).await?;
    drop(gate);
    fails(&api, api.request(Method::GET, "/api/v1/tests"), ("unavailable", 503)).await?;
    server.kill().await?;

    let exporter = format!(
        "{}\ntracer: {{own: {{type: open-telemetry, endpoint: 'http://127.0.0.1:{}', level: trace, buffer: {{memory: 1MiB, \
         disk: 1MiB, on-full: block}}}}}}",
        database.section()?,
        free_port()?
    );
    let (server, api) = start(&exporter).await?;
    api.apply(&TEST.replace("URL", "http://127.0.0.1:1/")).await?;
    let mut refused = None;
    for _ in 0..6_000 {
        let begin = api.request(Method::POST, "/api/v1/tests/cart/runs").body("{}");
        let (status, problem) = answer(begin).await?;
        if status != 202 {
            refused = Some((status, problem["code"].clone()));
            break;
        }
    }
    assert_eq!(refused, Some((429, json!("telemetry-blocked"))));
    server.kill().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn states_of_access_and_secrets() -> Result<()> {
    let database = Database::create("error_access").await?;
    let section = database.section()?;
    let limited =
        format!("{section}\nserver: {{auth: {{mode: on}}, limits: {{requestsPerSecond: 1}}}}");
    let (server, api) = start(&limited).await?;
    let viewer = token(&section).await?;
    let me = || api.request(Method::GET, "/api/v1/me").bearer_auth(viewer.trim());
    let mut last = Value::Null;
    for _ in 0..20 {
        last = answer(me()).await?.1;
        if last["code"].is_string() {
            break;
        }
    }
    assert_eq!(last["code"], "rate-limited", "{last:#}");
    assert_eq!(server.terminate().await?, Some(0));

    let keys = |key: &str| format!("{section}\nsecrets: {{keys: ['{key}:{}']}}", key.repeat(64));
    let (server, api) = start(&keys("a")).await?;
    api.apply("type: VariableSet\nspec: {id: own, name: own, values: [{key: A, value: b}]}\n")
        .await?;
    assert_eq!(server.terminate().await?, Some(0));
    let (server, api) = start(&keys("b")).await?;
    let get = api.request(Method::GET, "/api/v1/variable-sets/own");
    fails(&api, get, ("secret-key-lost", 500)).await?;
    assert_eq!(server.terminate().await?, Some(0));

    database.execute("update agreement set schema_min = 100000").await?;
    let error = token(&section).await.err().context("the database is of a later version")?;
    assert!(error.to_string().contains("[database-version]"), "{error}");
    database.remove().await
}

/// Creates a token in the database.
async fn token(section: &str) -> Result<String> {
    let folder = tempfile::TempDir::new()?;
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, section)?;
    let create = ["token", "create", "--name", "a", "--role", "viewer", "--config"];
    let output = Command::new(BINARY).args(create).arg(&config).output().await?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_is_not_printed_on_a_terminal() -> Result<()> {
    let run = "01a1f4ff-fe3f-7c34-b20e-79bbe0fb5a77";
    let line = format!("{BINARY} runs trace {run} --server http://127.0.0.1:1");
    let mut terminal = Command::new("script");
    let arguments = ["--quiet", "--return", "--command", &line, "/dev/null"];
    let output = timeout(ENDED_MAX, terminal.args(arguments).output()).await??;
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("[binary-output]"), "{printed}");
    assert_eq!(output.status.code(), Some(2), "{printed}");
    Ok(())
}

//! Runs that query a real trace store have the verdicts of runs that receive the same spans by OTLP.
//!
//! A store that is not installed is skipped: `cargo xtask services` reports which, and installs it by its name.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test has no main that hands down the environment, and prints what it skips"
)]

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bench::parts::{Api, Database, Server, answer, free_port};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

/// The key of stored secrets.
const SECRETS_KEY: &str = "2026:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// What is wrong with the shop, and the exit code of its test.
const FAULTS: &[(Option<&str>, i32)] =
    &[(None, 0), (Some("n-plus-one"), 1), (Some("lost-context"), 3), (Some("late-spans"), 0)];

/// A shop that sends its spans to a store.
struct Shop {
    process: Child,
    address: String,
}

impl Shop {
    fn open(otlp: &str, fault: Option<&str>) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut demo = Command::new(BINARY);
        demo.args(["demo", "--http", &address, "--otlp", otlp]);
        demo.args(fault.into_iter().flat_map(|fault| ["--fault", fault]));
        let mut process = demo.stdout(Stdio::piped()).spawn()?;
        let mut first = String::new();
        let output = process.stdout.take().context("it has an output")?;
        BufReader::new(output).read_line(&mut first)?;
        ensure!(first.contains(&address), "it reports where it is: {first}");
        Ok(Self { process, address })
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

/// Returns the addresses of an installed store.
fn installed<const N: usize>(variables: [&str; N]) -> Option<[String; N]> {
    let found = variables.map(|variable| env::var(variable).ok());
    if found.iter().any(Option::is_none) {
        println!("skipped: {variables:?} are not set, because the store is not installed");
        return None;
    }
    Some(found.map(Option::unwrap_or_default))
}

/// Runs the first test of the shop in a folder of its own, with this document of a store.
fn run(shop: &Shop, store: &str) -> Result<Output> {
    let folder = TempDir::new()?;
    let mut init = Command::new(BINARY);
    ensure!(init.current_dir(&folder).args(["init", "--http", &shop.address]).status()?.success());
    let test = folder.path().join("qualitytrace/checkout.yaml");
    // The store needs more time than the shop.
    let document = fs::read_to_string(&test)?.replace("    timeout: 5s\n", "");
    fs::write(&test, document)?;
    fs::write(folder.path().join("qualitytrace/store.yaml"), store)?;
    let mut run = Command::new(BINARY);
    run.current_dir(&folder).args(["run", "--otlp", "127.0.0.1:0"]);
    Ok(run.env("TOKEN", "s3cret").output()?)
}

/// Checks every fault of the shop with this store.
fn check(otlp: &str, store: &str) -> Result<()> {
    for (fault, expected) in FAULTS {
        let shop = Shop::open(&format!("http://{otlp}"), *fault)?;
        let output = run(&shop, store)?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.code() == Some(*expected), "{fault:?}: {:?}\n{text}", output.status);
    }
    Ok(())
}

#[test]
fn the_verdicts_through_jaeger_are_those_by_otlp() -> Result<()> {
    let variables = ["QUALITYTRACE_TEST_JAEGER_GRPC", "QUALITYTRACE_TEST_JAEGER_OTLP"];
    let Some([query, otlp]) = installed(variables) else { return Ok(()) };
    let store = format!(
        "type: TraceStore\nspec:\n  name: prod\n  type: jaeger\n  default: true\n  jaeger: {{endpoint: '{query}', tls: {{insecure: \
         true}}}}\n"
    );
    check(&otlp, &store)
}

#[test]
fn the_verdicts_through_tempo_are_those_by_otlp() -> Result<()> {
    let variables = ["QUALITYTRACE_TEST_TEMPO", "QUALITYTRACE_TEST_TEMPO_OTLP"];
    let Some([query, otlp]) = installed(variables) else { return Ok(()) };
    let store = format!(
        "type: TraceStore\nspec:\n  name: prod\n  type: tempo\n  default: true\n  tempo: {{http: {{url: '{query}'}}}}\n"
    );
    check(&otlp, &store)
}

/// No trigger is fired where the store of the tests cannot be read, and no message contains a credential.
#[test]
fn a_store_that_cannot_be_read_is_named_before_any_test_runs() -> Result<()> {
    let shop = Shop::open(&format!("http://127.0.0.1:{}", free_port()?), None)?;
    let address = format!("127.0.0.1:{}", free_port()?);
    let store = format!(
        "type: TraceStore\nspec:\n  name: prod\n  type: jaeger\n  default: true\n  jaeger: {{endpoint: 'http://{address}', headers: \
         {{authorization: 'Bearer ${{env:TOKEN}}'}}}}\n"
    );
    let began = Instant::now();
    let output = run(&shop, &store)?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(2), "{text}");
    ensure!(text.contains("`prod`") && text.contains(&address), "{text}");
    ensure!(text.contains("no test was run") && !text.contains("s3cret"), "{text}");
    ensure!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    Ok(())
}

/// A trace that a store has is judged without a trigger, and every step to a store is shown.
#[test]
fn a_trace_that_jaeger_has_is_judged_and_the_way_to_it_is_shown() -> Result<()> {
    let variables = ["QUALITYTRACE_TEST_JAEGER", "QUALITYTRACE_TEST_JAEGER_OTLP"];
    let Some([query, otlp]) = installed(variables) else { return Ok(()) };
    let shop = Shop::open(&format!("http://{otlp}"), None)?;
    let (trace, answer) = (fresh(), send(&shop)?);
    ensure!(answer.0 == 200, "{answer:?}");
    let folder = TempDir::new()?;
    let documents = format!(
        "type: Test\nspec:\n  name: listing\n  trigger: {{type: http, httpRequest: {{url: 'http://127.0.0.1:1'}}}}\n  settle: \
         {{absent: [gateway]}}\n  trace:\n    - count(span[service = \"gateway\"]) = 2\n    - no span[status = \"error\"]\n---\ntype: \
         TraceStore\nspec:\n  name: prod\n  type: jaeger\n  jaeger: {{endpoint: '{query}'}}\n---\ntype: TraceStore\nspec:\n  name: \
         away\n  type: tempo\n  tempo: {{http: {{url: 'http://127.0.0.1:{}'}}}}\n",
        free_port()?
    );
    fs::write(folder.path().join("documents.yaml"), documents)?;
    let command = |arguments: &[&str]| -> Result<(Option<i32>, String)> {
        let output = Command::new(BINARY).current_dir(&folder).args(arguments).output()?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8(text)?))
    };
    let check =
        |id: &str| command(&["check", "documents.yaml", "--store", "prod", "--trace-id", id]);
    let (code, text) = check(&answer.1)?;
    ensure!(code == Some(0), "{code:?}\n{text}");
    let (code, text) = check(&trace)?;
    ensure!(code == Some(3) && text.contains("is in the trace store `prod`"), "{code:?}\n{text}");
    let (code, text) = command(&["store", "test", "prod", "documents.yaml"])?;
    ensure!(code == Some(0) && text.lines().count() == 5, "{code:?}\n{text}");
    let (code, text) = command(&["store", "test", "away", "documents.yaml"])?;
    let last = text.lines().last().unwrap_or_default();
    ensure!(code == Some(2) && last.starts_with("connection     failed"), "{code:?}\n{text}");
    Ok(())
}

/// Returns a trace id that no other test uses.
fn fresh() -> String {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lists the products of the shop, and returns the status and the id of the trace.
fn send(shop: &Shop) -> Result<(u16, String)> {
    let id = fresh();
    let mut stream = TcpStream::connect(&shop.address)?;
    write!(
        stream,
        "GET /products HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ntraceparent: 00-{id}-b7ad6b7169203331-01\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split_whitespace().nth(1).context("a status")?;
    Ok((status.parse()?, id))
}

/// A server queries the stores that its operator allows, with the secrets of the run, and shows the way to them.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_queries_the_store_that_a_test_names() -> Result<()> {
    let variables = ["QUALITYTRACE_TEST_JAEGER", "QUALITYTRACE_TEST_JAEGER_OTLP"];
    let Some([query, otlp]) = installed(variables) else { return Ok(()) };
    let shop = Shop::open(&format!("http://{otlp}"), None)?;
    let database = Database::create("stores").await?;
    for (rule, verdict) in [("allow", "passed"), ("deny", "inconclusive")] {
        let data = TempDir::new()?;
        let configuration = format!(
            "{}\nserver: {{dataDirectory: '{}', stores: {{networks: {{{rule}: [loopback]}}}}}}\nsecrets: {{keys: ['{SECRETS_KEY}']}}\n",
            database.section()?,
            data.path().display(),
        );
        let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
        let api = Api::new(&server.api)?;
        api.apply(&format!(
            "type: VariableSet\nspec: {{id: keys, name: keys, values: [{{key: TOKEN, value: s3cret-word, type: secret}}]}}\n---\ntype: \
             TraceStore\nspec:\n  id: prod\n  name: prod\n  type: jaeger\n  jaeger: {{endpoint: '{query}', headers: {{authorization: \
             'Bearer ${{var:TOKEN}}'}}}}\n---\ntype: Test\nspec:\n  id: listing\n  name: listing\n  store: prod\n  trigger: {{type: http, \
             httpRequest: {{url: 'http://{}/products'}}}}\n  trace:\n    - count(span[service = \"gateway\"]) = 2\n    - no \
             span[status = \"error\"]\n",
            shop.address
        ))
        .await?;
        let run = api.start("listing", &json!({"variableSets": ["keys"]})).await?;
        let run = api.ended(&run, Duration::from_secs(40)).await?;
        ensure!(run["verdict"] == verdict, "{run:#}");
        let probe = api.request(Method::POST, "/api/v1/trace-stores/prod/probe?variableSet=keys");
        let (status, probe) = answer(probe).await?;
        ensure!(status == 200 && probe["ok"] == (rule == "allow"), "{probe:#}");
        let text = format!("{run}{probe}");
        ensure!(!text.contains("s3cret"), "{text}");
        match rule {
            "allow" => {
                ensure!(run["outcome"]["settlement"]["stores"][0]["store"] == "prod", "{run:#}");
            }
            _ => ensure!(text.contains("server.stores.networks.deny"), "{text}"),
        }
        // Without the variable set the document cannot be filled in.
        let run = api.start("listing", &json!({})).await?;
        let run = api.ended(&run, Duration::from_secs(40)).await?.to_string();
        ensure!(run.contains("`${var:TOKEN}` has no value here"), "{run}");
        ensure!(server.terminate().await? == Some(0), "it ended in order");
    }
    database.remove().await
}

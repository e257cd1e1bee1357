//! Refused input, with its error message and exit code: the built binary as a user runs it.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use bench::parts::{CommandResult, Database, free_port, qualitytrace};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// Runs a command on a file with this content; `FILE` is replaced by its path.
async fn with_file(name: &str, content: &str, arguments: &[&str]) -> Result<CommandResult> {
    let folder = TempDir::new()?;
    let path = folder.path().join(name);
    fs::write(&path, content)?;
    let path = path.to_str().context("a path that is text")?;
    let arguments: Vec<_> =
        arguments.iter().map(|word| if *word == "FILE" { path } else { word }).collect();
    qualitytrace(Path::new(BINARY), &arguments).await
}

/// Checks that the command ends with 2, and prints all these words on stderr.
fn refused(finished: &CommandResult, words: &[&str]) {
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert_eq!(finished.out, "", "nothing that looks like a result");
    for word in words {
        assert!(finished.err.contains(word), "`{word}` is not in:\n{}", finished.err);
    }
}

const TEST: &str = "type: Test
spec:
  name: cart
  trigger: {type: http, httpRequest: {method: GET, url: 'http://127.0.0.1:1/'}}
  specs:
    - selector: span[name=\"cart\"]
      assertions: ['attr:items = 3']
";

#[tokio::test]
async fn a_selector_with_a_syntax_error_is_a_picture_and_never_runs() -> Result<()> {
    let test = TEST.replace("span[name=\"cart\"]", "span[name=\"cart\"");
    let finished = with_file("cart.yaml", &test, &["run", "FILE"]).await?;
    refused(&finished, &["cart.yaml:6:21", "selector: span[name=\"cart\"", "close it with `]`"]);
    Ok(())
}

#[tokio::test]
async fn an_unknown_key_of_a_test_is_refused() -> Result<()> {
    let test = TEST.replace("assertions:", "asertions:");
    let finished = with_file("cart.yaml", &test, &["run", "FILE"]).await?;
    refused(&finished, &["unknown key `asertions`", "did you mean `assertions`?", "cart.yaml:7:7"]);
    Ok(())
}

#[tokio::test]
async fn an_unknown_key_of_the_configuration_is_refused() -> Result<()> {
    let config = "postgres: {}\nsever: {}\n";
    let finished =
        with_file("quality-trace-config.yaml", config, &["serve", "--config", "FILE"]).await?;
    refused(&finished, &["unknown key `sever`", "did you mean `server`?", "config.yaml:2:1"]);
    Ok(())
}

#[tokio::test]
async fn an_address_that_others_could_reach_is_refused() -> Result<()> {
    let arguments = ["serve", "--config", "FILE", "--http", "0.0.0.0:0"];
    let finished = with_file("quality-trace-config.yaml", "postgres: {}\n", &arguments).await?;
    refused(&finished, &["`0.0.0.0:0` is not a loopback address", "`server.auth.mode: on`"]);
    Ok(())
}

#[tokio::test]
async fn an_exporter_that_would_feed_the_server_itself_is_refused() -> Result<()> {
    let database = Database::create("own_endpoint").await?;
    let port = free_port()?;
    let config = format!(
        "{}
telemetry:
  exporters:
    self: {{exporter: {{type: collector, collector: {{endpoint: 'localhost:{port}'}}}}}}
server: {{telemetry: {{exporter: self}}}}
",
        database.section()?
    );
    let own = format!("127.0.0.1:{port}");
    let arguments = ["serve", "--config", "FILE", "--http", "127.0.0.1:0"];
    let ports = ["--otlp-grpc", &own, "--otlp-http", "127.0.0.1:0"];
    let finished =
        with_file("quality-trace-config.yaml", &config, &[&arguments[..], &ports[..]].concat())
            .await?;
    refused(
        &finished,
        &["`telemetry.exporters.self`", "this server's own OTLP port", "--otlp-grpc"],
    );
    database.remove().await
}

#[tokio::test]
async fn a_taken_port_is_refused() -> Result<()> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let arguments = ["run", "FILE", "--otlp", &address];
    let finished = with_file("cart.yaml", TEST, &arguments).await?;
    refused(&finished, &[&format!("`{address}` is taken: likely"), "--otlp"]);
    Ok(())
}

#[tokio::test]
async fn usage_and_files_that_are_not_there_are_refused() -> Result<()> {
    let finished = qualitytrace(Path::new(BINARY), &["run", "nowhere.yaml"]).await?;
    refused(&finished, &["cannot read `nowhere.yaml`"]);
    let finished = qualitytrace(Path::new(BINARY), &["serv"]).await?;
    refused(&finished, &["unrecognized subcommand 'serv'", "'serve'"]);
    let finished = with_file("empty.yaml", "", &["run", "FILE"]).await?;
    refused(&finished, &["there is no document of type `Test`"]);
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_reached_is_inconclusive() -> Result<()> {
    let ports = ["--otlp", "127.0.0.1:0"];
    let quick = TEST.replace("  specs:", "  settle: {timeout: 1s, flush: 100ms}\n  specs:");
    let finished = with_file("cart.yaml", &quick, &[&["run", "FILE"], &ports[..]].concat()).await?;
    assert_eq!(finished.code, Some(3), "nobody listens on port 1: {finished:?}");
    assert!(finished.out.contains("trigger not answered"), "{}", finished.out);
    let server = format!("http://127.0.0.1:{}", free_port()?);
    let finished = with_file("cart.yaml", TEST, &["run", "FILE", "--server", &server]).await?;
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.err.contains("cannot be reached"), "{}", finished.err);
    Ok(())
}

//! `doctor`, as a person uses it: a fault is planted, and the first line names it.

use std::{fs, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result};
use bench::parts::{Database, Server, free_port};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::Command,
    time::{Instant, sleep},
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// How long an exporter takes to notice that nothing is there.
const FAILED_MAX: Duration = Duration::from_secs(30);

/// Runs `doctor` in a folder; returns its exit code and what it printed.
async fn doctor(
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<(Option<i32>, String)> {
    let mut command = Command::new(BINARY);
    command.arg("doctor").args(arguments).current_dir(folder).stdin(Stdio::null());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "CI"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.env("XDG_CONFIG_HOME", folder.join("home")).envs(variables.iter().copied());
    let output = command.output().await?;
    let printed = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8(printed)?))
}

/// The first line has all of these words.
fn begins(printed: &str, sign: &str, words: &[&str]) {
    let first = printed.lines().next().unwrap_or_default();
    assert!(first.starts_with(sign), "{printed}");
    for word in words {
        assert!(first.contains(word), "{word}: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_machine_come_first() -> Result<()> {
    let folder = TempDir::new()?;
    fs::create_dir(folder.path().join(".git"))?;
    let plant = |name: &'static str, value: &'static str| [(name, value)];
    let faults = [
        (plant("HTTP_PROXY", "socks5://one:two@proxy:1"), "✘ proxy", "`HTTP_PROXY`", 1),
        (plant("https_proxy", "not a url"), "✘ proxy", "`HTTPS_PROXY`", 1),
        (plant("SSL_CERT_FILE", "/nowhere.pem"), "✘ trusted authorities", "/nowhere.pem", 1),
        (plant("OTEL_SDK_DISABLED", "true"), "! OTEL_ variables", "records nothing", 0),
        (plant("OTEL_TRACES_EXPORTER", "none"), "! OTEL_ variables", "not exported", 0),
        (plant("OTEL_TRACES_SAMPLER", "always_off"), "! OTEL_ variables", "no span", 0),
        (plant("OTEL_PROPAGATORS", "b3"), "! OTEL_ variables", "`traceparent`", 0),
    ];
    for (variables, sign, word, expected) in faults {
        let (code, printed) = doctor(folder.path(), &[], &variables).await?;
        // The ports of OTLP may be in use on this machine, which is worse than a warning.
        let line =
            printed.lines().find(|line| !line.contains("OTLP port") && !line.starts_with("  "));
        begins(line.unwrap_or_default(), sign, &[word]);
        if expected == 1 {
            assert_eq!(code, Some(1), "{printed}");
        }
        assert!(!printed.contains("one:two"), "a proxy's password: {printed}");
    }
    let headers = [("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret-word")];
    let (_, printed) = doctor(folder.path(), &[], &headers).await?;
    assert!(printed.contains("`OTEL_EXPORTER_OTLP_HEADERS`"), "{printed}");
    assert!(!printed.contains("secret-word"), "{printed}");

    fs::write(folder.path().join("qualitytrace.toml"), "[run]\njob = 1\n")?;
    let (code, printed) = doctor(folder.path(), &[], &[]).await?;
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("✘ project file: `qualitytrace.toml` is invalid"), "{printed}");
    assert!(printed.contains("did you mean `jobs`?"), "{printed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_has_its_process() -> Result<()> {
    let folder = TempDir::new()?;
    // Another program may have it: then that one is named.
    let _taken = TcpListener::bind("127.0.0.1:4318").await.ok();
    let (code, printed) = doctor(folder.path(), &[], &[]).await?;
    assert_eq!(code, Some(1), "{printed}");
    let line = printed.lines().find(|line| line.contains("port 4318")).context("a line")?;
    assert!(line.starts_with("✘ ") && line.contains("taken by `"), "{printed}");
    assert!(printed.contains("[otlp-port-in-use]"), "{printed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_between_a_machine_and_a_server_come_first() -> Result<()> {
    let folder = TempDir::new()?;
    let nothing = format!("http://127.0.0.1:{}", free_port()?);
    let (code, printed) = doctor(folder.path(), &["--server", &nothing], &[]).await?;
    begins(&printed, "✘ connection", &["cannot be reached", &nothing]);
    assert_eq!(code, Some(1), "{printed}");

    let database = Database::create("doctor").await?;
    let away = database.section_at(free_port()?)?;
    let server = Server::start_listening(Path::new(BINARY), &away, "127.0.0.1:0").await?;
    let (code, printed) = doctor(folder.path(), &["--server", &server.api], &[]).await?;
    begins(&printed, "✘ readiness", &["postgres"]);
    assert_eq!(code, Some(1), "{printed}");
    server.kill().await?;

    let exporter = format!(
        "{}\nserver: {{auth: {{mode: on}}}}\ntracer: {{own: {{type: open-telemetry, endpoint: '{nothing}'}}}}\n",
        database.section()?
    );
    let server = Server::start_with(Path::new(BINARY), &exporter, "127.0.0.1:0").await?;
    let (code, printed) = doctor(folder.path(), &["--server", &server.api], &[]).await?;
    begins(&printed, "✘ rights", &["token"]);
    assert_eq!(code, Some(1), "{printed}");
    let wrong = [("QUALITYTRACE_TOKEN", "qtt_secretwrong")];
    let (_, printed) = doctor(folder.path(), &["--server", &server.api], &wrong).await?;
    begins(&printed, "✘ rights", &["token"]);
    assert!(!printed.contains("secretwrong"), "{printed}");

    let config = server.config.display().to_string();
    let mut create = Command::new(BINARY);
    create.args(["token", "create", "--name", "a", "--role", "viewer", "--config", &config]);
    let token = String::from_utf8(create.output().await?.stdout)?;
    let right = [("QUALITYTRACE_TOKEN", token.trim())];
    let began = Instant::now();
    let (code, printed) = loop {
        let (code, printed) = doctor(folder.path(), &["--server", &server.api], &right).await?;
        if printed.starts_with("! ") || began.elapsed() > FAILED_MAX {
            break (code, printed);
        }
        // The exporter tries once it has a span of a request.
        sleep(Duration::from_millis(200)).await;
    };
    begins(&printed, "! exporter", &["`tracer.own`", "failing"]);
    assert_eq!(code, Some(0), "a warning is no error: {printed}");
    for line in ["✔ rights: `a`, role `viewer`", "✔ clocks", "✔ versions", "✔ readiness"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    assert!(!printed.contains(token.trim()), "{printed}");
    let (_, printed) =
        doctor(folder.path(), &["--server", &server.api, "--format", "json"], &right).await?;
    let findings: Value = serde_json::from_str(&printed)?;
    assert_eq!(findings[0]["state"], "warning", "{findings:#}");

    let plain = ["--server", "http://192.0.2.1:11633"];
    let (_, printed) = doctor(folder.path(), &plain, &right).await?;
    begins(&printed, "✘ connection", &["not sent", "TLS"]);
    assert!(printed.contains("[plain-token]"), "{printed}");
    let (_, printed) = doctor(folder.path(), &["--context", "nowhere"], &[]).await?;
    begins(&printed, "✘ context", &["`nowhere`"]);
    server.kill().await?;
    database.remove().await
}

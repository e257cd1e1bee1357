//! No secret is printed, and none is in the file of `--bundle`: each input has a word that must not come out.

use std::{fs, os::unix::fs::PermissionsExt};

use anyhow::{Context, Result};
use bench::parts::free_port;
use serde_json::Value;
use tempfile::TempDir;

use super::{
    begins, doctor,
    request::{open, shop},
    system::Fault,
};

/// Variables with secrets.
const VARIABLES: [(&str, &str); 8] = [
    ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=canary-one"),
    ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/home/canary-two.pem"),
    ("HTTPS_PROXY", "http://ada:canary-three@127.0.0.1:9"),
    ("QUALITYTRACE_TOKEN", "canary-four"),
    ("API_KEY", "canary-five"),
    ("DATABASE_URL", "postgres://ada:canary-six@localhost/shop"),
    ("OTEL_RESOURCE_ATTRIBUTES", "team=canary-seven"),
    ("OTEL_PROPAGATORS", "tracecontext"),
];

const PROJECT_FILE: &str = "[system]
command = [\"npm\", \"start\", \"--password=canary-eight\"]

[run]
timeout = \"30s\" # canary-nine
";

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_comes_out() -> Result<()> {
    let folder = TempDir::new()?;
    fs::write(folder.path().join("qualitytrace.toml"), PROJECT_FILE)?;
    let (port, otlp, closed) = (free_port()?, free_port()?, free_port()?);
    let _shop = open(port, otlp, &[])?;
    let address = format!("127.0.0.1:{otlp}");
    let url = format!("http://ada:canary-ten@127.0.0.1:{port}/cart?key=canary-eleven");
    let nowhere = url.replace(&port.to_string(), &closed.to_string());
    let server = format!("http://127.0.0.1:{closed}");
    let bundle = folder.path().join("report.json");
    let file = bundle.to_str().context("a path")?;
    let echo = ["sh", "-c", "echo canary-twelve; exit 7", "canary-thirteen"];
    for arguments in [
        vec![],
        vec![&*url, "--otlp", &address],
        vec![&*url, "--otlp", &address, "--format", "json"],
        vec![&*nowhere, "--otlp", &address],
        vec!["--server", &server],
        [&[&*nowhere, "--"], &echo[..]].concat(),
    ] {
        let arguments = [&["--bundle", file], arguments.as_slice()].concat();
        let (_, printed) = doctor(folder.path(), &arguments, &VARIABLES).await?;
        let is_of_command = arguments.contains(&"sh");
        // What a command writes, and how it was typed, are shown to who typed it, and not put into the file.
        assert!(is_of_command || !printed.contains("canary"), "{arguments:?}: {printed}");
        assert!(printed.contains("read it before you send it"), "{printed}");
        let text = fs::read_to_string(&bundle)?;
        assert!(!text.contains("canary"), "{arguments:?}: {text}");
        assert!(!text.contains("it works"), "a body: {text}");
        let report: Value = serde_json::from_str(&text)?;
        assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
        assert!(report["findings"].as_array().is_some_and(|it| !it.is_empty()), "{text}");
        assert_eq!(report["variables"]["OTEL_PROPAGATORS"], "tracecontext");
        assert_eq!(report["variables"]["OTEL_EXPORTER_OTLP_HEADERS"], Value::Null);
        assert_eq!(report["projectFile"]["run.timeout"], "30s");
        assert_eq!(report["projectFile"]["system.command"], Value::Null);
        assert_eq!(fs::metadata(&bundle)?.permissions().mode() & 0o777, 0o600);
        fs::remove_file(&bundle)?;
    }
    let unwritable = folder.path().join("qualitytrace.toml/report.json");
    let unwritable = unwritable.to_str().context("a path")?;
    let (code, printed) = doctor(folder.path(), &["--bundle", unwritable], &[]).await?;
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("[file-unwritable]"), "{printed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_system_returns_does_not_come_out() -> Result<()> {
    let folder = TempDir::new()?;
    let port = free_port()?;
    let url = format!("http://127.0.0.1:{port}/cart");
    // Its headers have a trace, and its body the items.
    let started = shop(folder.path(), (Fault::SampledAway, ""), port)?;
    let started: Vec<_> = started.iter().map(String::as_str).collect();
    let bundle = folder.path().join("report.json");
    let file = bundle.to_str().context("a path")?;
    let arguments = [&[&*url, "--timeout", "2s", "--bundle", file, "--"], &started[..]].concat();
    let (_, printed) = doctor(folder.path(), &arguments, &[]).await?;
    begins(&printed, "✘ sampling", &["does not keep"]);
    for text in [printed, fs::read_to_string(&bundle)?] {
        assert!(!text.contains("\"items\"") && !text.contains("items\\\""), "{text}");
    }
    Ok(())
}

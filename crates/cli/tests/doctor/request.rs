//! Faults of a system under test: each is planted in a shop with the official SDK, and one traced request finds it.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use bench::parts::free_port;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinSet};

use super::{
    begins, doctor, is_sound,
    system::{Fault, LISTENING},
};

/// How many faults at a time: they wait most of the time.
const AT_A_TIME: usize = 4;

/// A fault, with an argument for `env` that plants it; the beginning of the first line, and words in it.
type Planted = (Fault, &'static str, &'static str, &'static [&'static str]);

const FAULTS: &[Planted] = &[
    // Nothing arrived.
    (Fault::Uninstrumented, "", "✘ export", &["nobody connected"]),
    (Fault::MetricsOnly, "", "✘ export", &["not one span"]),
    (Fault::Uninstrumented, "-i", "✘ environment", &["without the variables"]),
    (Fault::None, "OTEL_TRACES_SAMPLER=always_off", "✘ sampling", &["always_off"]),
    (Fault::SampledAway, "", "✘ sampling", &["does not keep"]),
    (
        Fault::None,
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:9/v1/traces",
        "✘ environment",
        &["which is not this run's"],
    ),
    // It arrived, and was refused.
    (Fault::WrongPath, "", "✘ protocol", &["refused", "/otlp/v1/traces"]),
    (Fault::WrongType, "", "✘ protocol", &["refused", "text/plain"]),
    (Fault::Tls, "", "✘ protocol", &["TLS to a port without"]),
    (Fault::Zipkin, "", "✘ protocol", &["/api/v2/spans"]),
    // The context was lost.
    (Fault::ContextIgnored, "", "✘ propagation", &["`shop` began a trace of its own"]),
    (Fault::ContextNotSent, "", "✘ propagation", &["`stock`", "context was lost"]),
    (Fault::Mesh, "", "✘ propagation", &["names a caller that never came"]),
    // Parts are missing.
    (Fault::StockUninstrumented, "", "✘ peers", &["stock"]),
    (Fault::Unended, "", "✘ dropped spans", &["never came"]),
    (Fault::None, "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=1", "! dropped spans", &["dropped"]),
    (Fault::ClockBehind, "", "! clocks of services", &["behind"]),
    (Fault::NoAnswer, "", "✘ request", &["no response"]),
];

/// Returns the command line of a shop.
pub(crate) fn shop(folder: &Path, (fault, with): (Fault, &str), port: u16) -> Result<Vec<String>> {
    // The system is this program, under a name that does not change with every build.
    let shop = folder.join("shop");
    if !shop.exists() {
        symlink(std::env::current_exe()?, &shop)?;
    }
    let variables = [format!("SHOP_FAULT={fault:?}"), format!("SHOP_PORT={port}")];
    let program = [shop.to_str().context("a path")?, "system_under_test", "--exact", "--nocapture"];
    let words = ["env", with].into_iter().filter(|word| !word.is_empty()).map(str::to_owned);
    Ok(words.chain(variables).chain(program.map(str::to_owned)).collect())
}

/// Runs `doctor` on a shop that it starts.
async fn look(fault: Fault, with: &str, arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let folder = TempDir::new()?;
    let port = free_port()?;
    let url = format!("http://127.0.0.1:{port}/cart");
    let started = shop(folder.path(), (fault, with), port)?;
    let started = started.iter().map(String::as_str);
    let arguments = [&url].into_iter().map(String::as_str).chain(arguments.iter().copied());
    let arguments: Vec<_> = arguments.chain(["--"]).chain(started).collect();
    doctor(folder.path(), &arguments, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_system_come_first() -> Result<()> {
    let mut faults = FAULTS.iter();
    let mut running = JoinSet::new();
    let mut wrong = Vec::new();
    loop {
        while running.len() < AT_A_TIME
            && let Some((fault, with, sign, words)) = faults.next().copied()
        {
            running.spawn(async move {
                let (code, printed) = look(fault, with, &["--timeout", "3s"]).await?;
                let name = format!("{fault:?} {with}\n{printed}");
                let first = printed.lines().next().unwrap_or_default();
                ensure!(first.starts_with(sign), "{name}");
                ensure!(words.iter().all(|word| first.contains(word)), "{words:?}: {name}");
                ensure!(code == Some(i32::from(sign.starts_with('✘'))), "{code:?}: {name}");
                // Behind it: what to do, and the page.
                let link = printed.lines().nth(2).unwrap_or_default();
                ensure!(link.starts_with("  docs/"), "{name}");
                Ok(())
            });
        }
        match running.join_next().await {
            Some(ended) => wrong.extend(ended?.err().map(|error| format!("{error}"))),
            None => break,
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_system_has_no_warning() -> Result<()> {
    let (code, printed) = look(Fault::None, "", &[]).await?;
    is_sound(code, &printed);
    for words in ["status 200", "complete, with 2 spans of `shop`", "✔ receiver: on `127.0.0.1:"]
    {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let (code, printed) = look(Fault::None, "", &["--format", "json"]).await?;
    assert_eq!(code, Some(0), "{printed}");
    let findings: Value = serde_json::from_str(&printed)?;
    let findings = findings.as_array().context("a list")?;
    assert!(findings.iter().all(|it| it["state"] == "ok"), "{findings:#?}");
    let links = findings.iter().filter_map(|it| it["link"].as_str());
    assert_eq!(links.filter(|link| link.starts_with("docs/")).count(), findings.len());
    Ok(())
}

/// A shop that `doctor` did not start. Dropping it kills the process.
pub(crate) struct OpenShop {
    process: Child,
    _folder: TempDir,
}

impl Drop for OpenShop {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

/// Starts a shop that exports to a port, with these variables.
pub(crate) fn open(port: u16, otlp: u16, variables: &[(&str, &str)]) -> Result<OpenShop> {
    let folder = TempDir::new()?;
    let words = shop(folder.path(), (Fault::None, ""), port)?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdout(Stdio::piped()).envs(variables.iter().copied());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{otlp}"));
    let mut process = command.spawn()?;
    let out = process.stdout.take().context("it has a stdout")?;
    let open = OpenShop { process, _folder: folder };
    let mut lines = BufReader::new(out).lines();
    ensure!(lines.any(|line| line.is_ok_and(|line| line.contains(LISTENING))), "it did not start");
    Ok(open)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_system_that_runs_already_is_requested() -> Result<()> {
    let folder = TempDir::new()?;
    let (port, otlp) = (free_port()?, free_port()?);
    let url = format!("http://127.0.0.1:{port}/cart");
    let address = format!("127.0.0.1:{otlp}");
    let sound = open(port, otlp, &[])?;
    let (code, printed) = doctor(folder.path(), &[&url, "--otlp", &address], &[]).await?;
    is_sound(code, &printed);
    let elsewhere = format!("http://127.0.0.1:{port}/nowhere");
    let arguments = [&elsewhere, "--otlp", &address, "--timeout", "2s"];
    let (_, printed) = doctor(folder.path(), &arguments, &[]).await?;
    assert!(printed.contains("! request: ") && printed.contains("status 404"), "{printed}");
    let taken = TcpListener::bind(&address).await?;
    let (code, printed) = doctor(folder.path(), &[&url, "--otlp", &address], &[]).await?;
    begins(&printed, "✘ receiver", &["is taken", &address, "(process "]);
    assert_eq!(code, Some(1), "{printed}");
    drop((taken, sound));
    let (code, printed) = doctor(folder.path(), &[&url, "--otlp", &address], &[]).await?;
    begins(&printed, "✘ request", &["no response"]);
    assert_eq!(code, Some(1), "{printed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_receiver_on_the_usual_port_comes_first() -> Result<()> {
    let folder = TempDir::new()?;
    let (port, otlp) = (free_port()?, free_port()?);
    // Another program may have it: then that one is named.
    let _usual = TcpListener::bind("127.0.0.1:4317").await.ok();
    let _shop = open(port, 4317, &[])?;
    let (url, address) = (format!("http://127.0.0.1:{port}/cart"), format!("127.0.0.1:{otlp}"));
    let arguments = [&*url, "--otlp", &address, "--timeout", "1s"];
    let (code, printed) = doctor(folder.path(), &arguments, &[]).await?;
    begins(&printed, "✘ export", &["(process ", "listens on the usual port 4317"]);
    assert_eq!(code, Some(1), "{printed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_that_come_late_are_waited_for() -> Result<()> {
    let folder = TempDir::new()?;
    let (port, otlp) = (free_port()?, free_port()?);
    let _shop = open(port, otlp, &[("OTEL_BSP_SCHEDULE_DELAY", "5000")])?;
    let url = format!("http://127.0.0.1:{port}/cart");
    let address = format!("127.0.0.1:{otlp}");
    // The delay begins with the shop, some moment before the request.
    let arguments = [&url, "--otlp", &address, "--timeout", "2s"];
    let (code, printed) = doctor(folder.path(), &arguments, &[]).await?;
    begins(&printed, "✘ batch delay", &["first span of `shop` came", "s after the request"]);
    assert!(printed.contains("`OTEL_BSP_SCHEDULE_DELAY`"), "{printed}");
    assert_eq!(code, Some(1), "{printed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_port_of_a_command_is_found() -> Result<()> {
    let folder = TempDir::new()?;
    let port = free_port()?;
    let started = shop(folder.path(), (Fault::None, ""), port)?;
    let mut arguments = vec!["--timeout", "3s", "--"];
    arguments.extend(started.iter().map(String::as_str));
    // The shop has a second service, with a port of its own.
    let (code, printed) = doctor(folder.path(), &arguments, &[]).await?;
    begins(
        &printed,
        "✘ command",
        &["where to request it is not known", &format!("127.0.0.1:{port}")],
    );
    assert!(printed.contains("qualitytrace doctor http://127.0.0.1:PORT/PATH -- COMMAND"));
    assert_eq!(code, Some(1), "{printed}");

    fs::write(folder.path().join("index.html"), "it works")?;
    let words = port.to_string();
    let serving =
        ["--timeout", "2s", "--", "python3", "-m", "http.server", &words, "--bind", "127.0.0.1"];
    let (code, printed) = doctor(folder.path(), &serving, &[]).await?;
    begins(&printed, "✘ export", &["nobody connected"]);
    assert!(printed.contains(&format!("it listens on `127.0.0.1:{port}`")), "{printed}");
    assert!(printed.contains("status 200"), "{printed}");
    assert_eq!(code, Some(1), "{printed}");

    let silent = ["--ready-timeout", "1s", "--", "sleep", "60"];
    let (_, printed) = doctor(folder.path(), &silent, &[]).await?;
    begins(&printed, "✘ command", &["no process of it listens"]);
    let (_, printed) =
        doctor(folder.path(), &["--", "sh", "-c", "echo so it is >&2; exit 7"], &[]).await?;
    begins(&printed, "✘ command", &["exit status: 7", "so it is"]);
    let (_, printed) = doctor(folder.path(), &["--", "/nowhere/at-all"], &[]).await?;
    begins(&printed, "✘ command", &["cannot start `/nowhere/at-all`"]);
    Ok(())
}

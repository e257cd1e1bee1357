//! The binary as a child process, and its parsed report.

use std::{fs, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use model::{Outcome, Step, Timestamp};
use serde_json::Value;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use crate::parts::unix_nanos;

/// The timeout for a part to listen.
const LISTENING_MAX: Duration = Duration::from_secs(30);
/// The interval at which memory is sampled.
const LOOK: Duration = Duration::from_millis(10);

/// The result of a command that ran tests.
pub(crate) struct CommandRun {
    pub(super) code: Option<i32>,
    pub(crate) outcomes: Vec<Outcome>,
    /// The time from its start to its end.
    pub(super) took: Duration,
    /// When it ended, in milliseconds by the clock of reports.
    pub(super) ended_at_ms: f64,
    /// The peak of memory samples, in bytes.
    pub(super) peak_bytes: u64,
    pub(super) err: String,
}

/// Runs `qualitytrace run` in `folder` with these arguments and a JSON report.
pub(crate) async fn run(binary: &Path, folder: &Path, arguments: &[&str]) -> Result<CommandRun> {
    let report = folder.join("report.json");
    let began = Instant::now();
    let child = Command::new(binary)
        .arg("run")
        .args(arguments)
        .arg("--report")
        .arg(format!("json={}", report.display()))
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let status = format!("/proc/{}/status", child.id().context("it runs")?);
    let mut ending = std::pin::pin!(child.wait_with_output());
    let mut peak_bytes = 0;
    let output = loop {
        tokio::select! {
            output = &mut ending => break output?,
            () = sleep(LOOK) => peak_bytes = peak_bytes.max(high_water(&status)),
        }
    };
    let (took, ended_at_ms) = (began.elapsed(), unix_nanos() as f64 / 1e6);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = fs::read_to_string(&report).with_context(|| format!("no report: {err}"))?;
    fs::remove_file(&report)?;
    let outcomes = text.lines().map(outcome).collect::<Result<Vec<_>>>()?;
    Ok(CommandRun { code: output.status.code(), outcomes, took, ended_at_ms, peak_bytes, err })
}

fn outcome(line: &str) -> Result<Outcome> {
    let mut report: Value = serde_json::from_str(line)?;
    Ok(serde_json::from_value(report["outcome"].take())?)
}

/// Returns the peak memory of a process, in bytes.
pub(super) fn high_water(status: &str) -> u64 {
    memory(status, "VmHWM:")
}

/// Returns a line of a process's status, in bytes; zero if it is missing.
pub(super) fn memory(status: &str, line: &str) -> u64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let found = text.lines().find_map(|it| it.strip_prefix(line));
    let kilobytes = found.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

/// Starts a program that listens on this port, and waits until it does. It is killed on drop.
pub(crate) async fn listening(mut command: Command, port: u16) -> Result<Child> {
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
    let connected = async {
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    if timeout(LISTENING_MAX, connected).await.is_err() {
        child.kill().await?;
        ensure!(false, "nothing listens on port {port}");
    }
    Ok(child)
}

/// Returns the time from the arrival of a run's last span to its verdict, and the quiet period, in milliseconds.
pub(super) fn last_span_to_verdict(outcome: &Outcome) -> Result<(f64, f64)> {
    let settlement = outcome.settlement.as_ref().context("a trace was waited for")?;
    let last = settlement.last_at.context("spans came")?;
    let judged = outcome.steps.iter().rfind(|step| step.step == Step::Judge).context("judged")?;
    Ok((millis(last, judged.ended), settlement.quiet_ns as f64 / 1e6))
}

fn millis(from: Timestamp, to: Timestamp) -> f64 {
    to.since(from).as_secs_f64() * 1e3
}

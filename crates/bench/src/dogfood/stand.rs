//! The stand: a *subject* under test and an *observer* that tests it, both the built binary, as `run.sh` starts them.
//!
//! Users run the same script. Here it gets its own ports and databases, so that several stands can run concurrently. Deliberately
//! absent: the configuration and preparation of the servers, which the script does.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdin, Command},
    time::timeout,
};

use super::{folder, say};
use crate::parts::{Api, Database, Server, free_ports, setting};

/// The number of ports that the script uses, from `PORT` on.
const PORTS: u16 = 11;
/// The timeout for the shutdown of the servers.
const END_MAX: Duration = Duration::from_secs(60);
/// The command that keeps the script's servers up: it prints a line, and runs until its stdin is closed.
const HOLD: [&str; 3] = ["sh", "-c", "echo up; exec cat"];
const UP: &str = "up";
/// The variables of Jaeger, if it is installed: the address of its API, and the address where it receives OTLP.
const JAEGER: [&str; 2] = ["QUALITYTRACE_TEST_JAEGER", "QUALITYTRACE_TEST_JAEGER_OTLP"];

/// All running processes, until it is dropped.
pub(super) struct DogfoodStand {
    /// The observer's API.
    pub(super) observer: Api,
    script: Child,
    /// The script runs as long as this is open.
    hold: ChildStdin,
    database: Database,
    _out: TempDir,
}

impl DogfoodStand {
    /// Starts the stand; `plant` names a fault of the subject.
    pub(super) async fn start(binary: &Path, plant: Option<&str>) -> Result<Self> {
        let (database, out) = (Database::create("observer").await?, TempDir::new()?);
        let (mut command, url) = script(binary, &database, out.path())?;
        command.args(HOLD).envs(plant.map(|plant| ("PLANT", plant)));
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let hold = script.stdin.take().context("the script has an input")?;
        let stdout = script.stdout.take().context("the script has an output")?;
        let mut lines = BufReader::new(stdout).lines();
        loop {
            match lines.next_line().await? {
                Some(line) if line == UP => break,
                Some(_) => {}
                None => bail!("the stand is not up: {}", script.wait().await?),
            }
        }
        Ok(Self { observer: Api::new(&url)?, script, hold, database, _out: out })
    }

    /// Shuts everything down in order, and returns whether that succeeded.
    pub(super) async fn end(mut self) -> Result<()> {
        drop(self.hold);
        let status = timeout(END_MAX, self.script.wait()).await??;
        ensure!(status.success(), "the stand did not end well: {status}");
        self.database.remove().await
    }
}

/// Runs the suite once as a user does. Its artifacts are in `out`. Returns whether all tests passed.
pub(super) async fn suite(
    binary: &Path,
    observer: &Database,
    out: &Path,
    revision: &str,
) -> Result<bool> {
    let (mut command, _) = script(binary, observer, out)?;
    if let Some([_, otlp]) = jaeger() {
        command.env("JAEGER", otlp);
    }
    let status = command.env("REVISION", revision).stdin(Stdio::null()).status().await?;
    match status.code() {
        Some(0) => Ok(true),
        // The exit codes of `qualitytrace run` for failed and inconclusive.
        Some(1 | 3) => Ok(false),
        _ => bail!("the suite did not run to its end: {status}"),
    }
}

/// Returns the addresses of Jaeger, if it is installed: its API, and where it receives OTLP.
pub(super) fn jaeger() -> Option<[String; 2]> {
    let [api, otlp] = JAEGER.map(|name| setting(name).ok());
    Some([api?, otlp?])
}

/// Returns the script with all its variables, and the address of the observer.
fn script(binary: &Path, observer: &Database, out: &Path) -> Result<(Command, String)> {
    let port = free_ports(PORTS)?;
    let mut command = Command::new("sh");
    command.arg(folder().join("run.sh")).envs(observer.client()?);
    command.env("OBSERVER_DB", observer.name()).env("PORT", port.to_string());
    command.env("QUALITYTRACE", binary).env("OUT", out);
    command.env("OTELCOL", setting("QUALITYTRACE_TEST_COLLECTOR_BIN")?);
    Ok((command, format!("http://127.0.0.1:{port}")))
}

/// Returns the observer's database: restored from the last run, if there is a dump that this version can read.
pub(super) async fn past(binary: &Path, history: Option<&Path>) -> Result<Database> {
    if let Some(history) = history.filter(|history| history.exists()) {
        let database = Database::create("observer").await?;
        match understood(binary, &database, history).await {
            Ok(()) => return Ok(database),
            Err(error) => {
                say(&format!("the observer begins anew: its past is not understood: {error:#}"));
                database.remove().await?;
            }
        }
    }
    Database::create("observer").await
}

async fn understood(binary: &Path, database: &Database, history: &Path) -> Result<()> {
    database.restore(history).await?;
    let server = Server::start_with(binary, &database.section()?, "127.0.0.1:0").await?;
    ensure!(server.terminate().await? == Some(0), "the server did not end well");
    Ok(())
}

//! The built binary, as a server and as a command.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::{Instant, timeout},
};

use super::Database;

/// The timeout for a server to become ready.
const READY_MAX: Duration = Duration::from_secs(30);

/// The file in its folder with its stderr.
const LOG: &str = "server.log";

/// A server process that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// The URL of the API.
    pub api: String,
    /// The port that receives OTLP by gRPC.
    pub otlp_grpc: u16,
    /// The time from the start of the process to its message that it is ready.
    pub ready_after: Duration,
    /// Its configuration file.
    pub config: PathBuf,
    folder: TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub struct CommandResult {
    /// The exit code; none where a signal ended the process.
    pub code: Option<i32>,
    /// Its stdout: results.
    pub out: String,
    /// Its stderr: progress and errors.
    pub err: String,
}

impl Server {
    /// Starts `binary serve` with the seeds' configuration: `collector` is the port of its exporter.
    pub async fn start(binary: &Path, database: &Database, collector: u16) -> Result<Self> {
        Self::start_with(binary, &seeds_configuration(database, collector)?, "127.0.0.1:0").await
    }

    /// Starts it with OTLP by gRPC on this address: a restarted server that its senders find again.
    pub async fn start_on(
        binary: &Path,
        database: &Database,
        collector: u16,
        otlp_grpc: &str,
    ) -> Result<Self> {
        Self::start_with(binary, &seeds_configuration(database, collector)?, otlp_grpc).await
    }

    /// Starts `binary serve` with this configuration, OTLP by gRPC on `otlp_grpc`, and waits until it is ready.
    pub async fn start_with(binary: &Path, configuration: &str, otlp_grpc: &str) -> Result<Self> {
        Self::start_in(TempDir::new()?, binary, configuration, otlp_grpc).await
    }

    /// Starts it in the folder of a killed server, with the data that is there.
    pub async fn start_in(
        folder: TempDir,
        binary: &Path,
        configuration: &str,
        otlp_grpc: &str,
    ) -> Result<Self> {
        // On a busy machine it may first print that it waits for its database.
        Self::start_until((folder, "ready: "), binary, configuration, otlp_grpc).await
    }

    /// Starts it in the same way, and waits until it listens: its database may be unavailable.
    pub async fn start_listening(
        binary: &Path,
        configuration: &str,
        otlp_grpc: &str,
    ) -> Result<Self> {
        Self::start_until((TempDir::new()?, ""), binary, configuration, otlp_grpc).await
    }

    async fn start_until(
        (folder, word): (TempDir, &str),
        binary: &Path,
        configuration: &str,
        otlp_grpc: &str,
    ) -> Result<Self> {
        let config = folder.path().join("quality-trace-config.yaml");
        std::fs::write(&config, configuration)?;
        let began = Instant::now();
        let mut child = Command::new(binary)
            .args(["serve", "--http", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0"])
            .args(["--otlp-grpc", otlp_grpc])
            .arg("--config")
            .arg(&config)
            .env("STATE_DIRECTORY", folder.path())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.path().join(LOG))?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start `{}`", binary.display()))?;
        let stdout = child.stdout.take().context("the server has a stdout")?;
        let mut lines = BufReader::new(stdout).lines();
        let ready = loop {
            match timeout(READY_MAX, lines.next_line()).await?? {
                Some(line) if line.starts_with(word) => break line,
                Some(_) => {}
                None => {
                    let said = std::fs::read_to_string(folder.path().join(LOG))?;
                    bail!("the server ended before it was ready: {}\n{said}", child.wait().await?)
                }
            }
        };
        let ready_after = began.elapsed();
        let word = |after: &str| {
            let rest = ready.split_once(after).map(|(_, rest)| rest);
            rest.and_then(|rest| rest.split([',', ' ']).next())
                .with_context(|| format!("`{ready}` names what comes after `{after}`"))
        };
        // A server without the API answers probes and metrics there; one without ingest receives no OTLP.
        let api = word("API ").or_else(|_| word("metrics "))?.to_owned();
        let otlp = word("OTLP ").ok().and_then(|address| address.rsplit(':').next());
        let otlp_grpc = otlp.map_or(Ok(0), str::parse)?;
        Ok(Self { child, api, otlp_grpc, ready_after, config, folder })
    }

    /// Returns its stderr so far.
    pub fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.path().join(LOG))?)
    }

    /// Returns the path of the binary that was built with this benchmark.
    pub fn binary_beside_this() -> Result<PathBuf> {
        let binary = std::env::current_exe()?.with_file_name("qualitytrace");
        if !binary.exists() {
            bail!("`{}` is not built: run through `cargo xtask bench`", binary.display());
        }
        Ok(binary)
    }

    /// Returns its process id.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Kills the server like a crash: SIGKILL.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Kills the server like a crash, and returns the folder with its data.
    pub async fn kill_keeping_data(mut self) -> Result<TempDir> {
        self.child.kill().await?;
        Ok(std::mem::replace(&mut self.folder, TempDir::new()?))
    }

    /// Sends it a signal, such as `-STOP`.
    pub async fn signal(&self, signal: &str) -> Result<()> {
        let id = self.child.id().context("the server runs")?;
        Command::new("kill").arg(signal).arg(id.to_string()).status().await?;
        Ok(())
    }

    /// Requests the server to shut down, and returns its exit code.
    pub async fn terminate(mut self) -> Result<Option<i32>> {
        let id = self.child.id().context("the server runs")?;
        Command::new("kill").arg(id.to_string()).status().await?;
        Ok(timeout(READY_MAX, self.child.wait()).await??.code())
    }
}

impl Drop for Server {
    /// Prints its stderr, for the analysis of a failed test.
    #[expect(clippy::print_stderr, reason = "what the server said on stderr belongs there")]
    fn drop(&mut self) {
        if let Ok(said) = self.log()
            && !said.is_empty()
        {
            eprint!("{said}");
        }
    }
}

/// Runs `binary` with these arguments to its end, in its own folder: state that a run stores for the next one is not reused.
pub async fn qualitytrace(binary: &Path, arguments: &[&str]) -> Result<CommandResult> {
    let folder = TempDir::new()?;
    let mut command = Command::new(binary);
    command.args(arguments).current_dir(folder.path()).kill_on_drop(true);
    let output = command.output().await?;
    Ok(CommandResult {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Splits a command line; `'…'` keeps a word with spaces together.
pub fn words(typed: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, piece) in typed.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(piece.split_whitespace().map(str::to_owned)),
            _ => words.push(piece.to_owned()),
        }
    }
    words
}

/// Returns the configuration of the first seed document, with the addresses of the parts here.
fn seeds_configuration(database: &Database, collector: u16) -> Result<String> {
    let postgres = database.section()?;
    Ok(format!(
        "{postgres}

telemetry:
  exporters:
    collector:
      serviceName: quality-trace
      sampling: 100 # 100%
      exporter:
        type: collector
        collector:
          endpoint: 127.0.0.1:{collector}

server:
  telemetry:
    exporter: collector
    applicationExporter: collector
"
    ))
}

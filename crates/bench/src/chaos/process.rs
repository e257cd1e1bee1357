//! A server process of the chaos proof, with fixed ports and a path to each part that it uses.
//!
//! It is killed, suspended and cut off here. It has its data folder for the whole proof, so that it takes over its row in the table
//! of servers when it starts again.

use std::{
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tokio::process::{Child, Command};

use super::{balancer::ReplicaPorts, link::HoldableLink, schedule::FaultKind};
use crate::parts::free_ports;

/// How long a server may take to shut down.
const END_MAX: Duration = Duration::from_secs(40);

/// How servers find what they share.
#[derive(Clone, Debug)]
pub(super) struct SharedParts {
    pub(super) binary: PathBuf,
    /// The folder for all processes.
    pub(super) folder: PathBuf,
    pub(super) postgres: u16,
    pub(super) nats: Vec<u16>,
    /// The planted fault of all servers, in a build that has any.
    pub(super) plant: Option<String>,
}

/// A server, which runs or not.
#[derive(Debug)]
pub(super) struct ServerProcess {
    name: String,
    binary: PathBuf,
    plant: Option<String>,
    folder: PathBuf,
    /// The API, OTLP by gRPC and OTLP by HTTP.
    ports: [u16; 3],
    child: Option<Child>,
    to_nats: Vec<HoldableLink>,
    to_postgres: HoldableLink,
    /// From the balancer to the API and to OTLP.
    from_balancer: [HoldableLink; 2],
}

impl ServerProcess {
    /// Creates a server, without starting it. `postgres` returns the section of the configuration for a port.
    pub(super) async fn new(
        name: &str,
        parts: &SharedParts,
        postgres: impl Fn(u16) -> String,
        more: &str,
    ) -> Result<Self> {
        let first = free_ports(3)?;
        let ports = [first, first + 1, first + 2];
        let mut to_nats = Vec::new();
        for port in &parts.nats {
            to_nats.push(HoldableLink::open(*port).await?);
        }
        let to_postgres = HoldableLink::open(parts.postgres).await?;
        let from_balancer =
            [HoldableLink::open(ports[0]).await?, HoldableLink::open(ports[1]).await?];
        let folder = parts.folder.join(name);
        std::fs::create_dir(&folder)?;
        let urls: Vec<_> =
            to_nats.iter().map(|link| format!("nats://127.0.0.1:{}", link.port)).collect();
        let configuration = format!(
            "{}\nnats: {{endpoint: '{}', synced: true}}\n{more}",
            postgres(to_postgres.port),
            urls.join(",")
        );
        std::fs::write(folder.join("config.yaml"), configuration)?;
        let (name, binary, plant) = (name.to_owned(), parts.binary.clone(), parts.plant.clone());
        Ok(Self {
            name,
            binary,
            plant,
            folder,
            ports,
            child: None,
            to_nats,
            to_postgres,
            from_balancer,
        })
    }

    /// Starts it. Whether it is ready is seen by its probe.
    pub(super) fn start(&mut self) -> Result<()> {
        ensure!(self.child.is_none(), "`{}` runs already", self.name);
        let [http, grpc, otlp] = self.ports.map(|port| format!("127.0.0.1:{port}"));
        let log = || -> Result<File> {
            Ok(OpenOptions::new().create(true).append(true).open(self.log())?)
        };
        let mut command = Command::new(&self.binary);
        if let Some(plant) = &self.plant {
            command.env("QUALITYTRACE_TEST_PLANT", plant);
        }
        let child = command
            .args(["serve", "--http", &http, "--otlp-grpc", &grpc, "--otlp-http", &otlp])
            .arg("--config")
            .arg(self.folder.join("config.yaml"))
            .env("STATE_DIRECTORY", &self.folder)
            .stdin(Stdio::null())
            .stdout(log()?)
            .stderr(log()?)
            .kill_on_drop(true)
            .spawn();
        self.child = Some(child.with_context(|| format!("cannot start `{}`", self.name))?);
        Ok(())
    }

    /// Returns the ports on which the balancer reaches it.
    pub(super) fn balanced(&self) -> ReplicaPorts {
        let [http, otlp] = &self.from_balancer;
        ReplicaPorts { http: http.port, otlp: otlp.port }
    }

    /// Returns the URL of its probe, past everything that can be held.
    pub(super) fn ready_url(&self) -> String {
        format!("http://127.0.0.1:{}/readyz", self.ports[0])
    }

    /// Returns the file with its output.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Kills it by SIGKILL.
    pub(super) async fn kill(&mut self) -> Result<()> {
        self.child.take().context("it runs")?.kill().await.context("it can be killed")
    }

    /// Sends it a signal, such as `-STOP`.
    pub(super) async fn signal(&self, signal: &str) -> Result<()> {
        let id = self.child.as_ref().and_then(Child::id).context("it runs")?;
        send_signal(id, signal).await
    }

    /// Holds everything between it and the others; for [`FaultKind::CutNats`] what is between it and NATS.
    pub(super) fn cut(&self, kind: FaultKind) {
        self.to_nats.iter().for_each(HoldableLink::hold);
        if kind != FaultKind::CutNats {
            self.other_links().for_each(HoldableLink::hold);
        }
    }

    /// Ends every cut.
    pub(super) fn mend(&self) {
        self.to_nats.iter().chain(self.other_links()).for_each(HoldableLink::release);
    }

    fn other_links(&self) -> impl Iterator<Item = &HoldableLink> {
        self.from_balancer.iter().chain([&self.to_postgres])
    }

    /// Whether it ended although it was neither killed nor shut down.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        let Some(child) = &mut self.child else { return Ok(false) };
        let has_ended = child.try_wait()?.is_some();
        if has_ended {
            self.child = None;
        }
        Ok(has_ended)
    }

    /// Shuts it down, and returns its exit code.
    pub(super) async fn terminate(&mut self) -> Result<Option<i32>> {
        let mut child = self.child.take().context("it runs")?;
        send_signal(child.id().context("it runs")?, "-TERM").await?;
        let ended = tokio::time::timeout(END_MAX, child.wait()).await;
        Ok(ended.with_context(|| format!("`{}` does not end", self.name))??.code())
    }
}

/// Sends a signal to a process that this one started.
pub(super) async fn send_signal(id: u32, signal: &str) -> Result<()> {
    let status = Command::new("kill").arg(signal).arg(id.to_string()).status().await?;
    ensure!(status.success(), "`kill {signal} {id}` failed");
    Ok(())
}

/// Returns the last lines of a log.
pub(super) fn tail(log: &Path, lines: usize) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

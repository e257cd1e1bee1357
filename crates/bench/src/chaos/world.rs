//! The installation: Postgres, three NATS nodes, three workers, three replicas behind a balancer; and the faults that happen to it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};

use super::{
    balancer::Balancer,
    history::{HistoryFile, HistoryLine, now},
    process::{ServerProcess, SharedParts, tail},
    schedule::{Component, EACH, FaultKind, PlannedFault},
};
use crate::parts::{Cluster, NatsCluster};

/// The stream of the spans of the first 32 workers.
const STREAM: &str = "QUALITYTRACE_SPANS_0";
/// Enough connections for six processes with the default pool.
const POSTGRES: &[&str] = &["fsync=off", "max_connections=200"];
/// How long all servers may take to be ready.
const READY_MAX: Duration = Duration::from_secs(120);
/// The time between two looks at the processes.
const WATCH_EVERY: Duration = Duration::from_millis(500);
/// The lines of a log that are shown of a process that ended by itself.
const LOG_LINES: usize = 20;

/// The installation.
#[derive(Debug)]
pub(super) struct Installation {
    pub(super) balancer: Balancer,
    pub(super) postgres: Mutex<Cluster>,
    /// Processes that ended although they were not killed.
    pub(super) ended_alone: AtomicU64,
    nats: Mutex<NatsCluster>,
    workers: Vec<Mutex<ServerProcess>>,
    replicas: Vec<Mutex<ServerProcess>>,
    history: Arc<HistoryFile>,
    _folder: TempDir,
}

impl Installation {
    /// Starts everything, and waits until all servers are ready. `workers` is the section of the configuration, `plant` the planted
    /// fault of all servers.
    pub(super) async fn start(
        binary: &Path,
        workers: &str,
        plant: Option<&str>,
        history: Arc<HistoryFile>,
    ) -> Result<Self> {
        let mut postgres = Cluster::create().await?;
        postgres.start_with(POSTGRES).await?;
        let nats = NatsCluster::start(u16::from(EACH), true).await?;
        let folder = TempDir::new()?;
        let parts = SharedParts {
            binary: binary.to_owned(),
            folder: folder.path().to_owned(),
            postgres: postgres.port(),
            nats: nats.ports(),
            plant: plant.map(str::to_owned),
        };
        let limits = "limits: {requestsPerSecond: 10000, projectRequestsPerSecond: 10000}";
        let (mut of_work, mut of_senders) = (Vec::new(), Vec::new());
        for (all, role, roles) in
            [(&mut of_work, "worker", "worker"), (&mut of_senders, "replica", "api, ingest")]
        {
            for number in 0..EACH {
                let more = format!("server: {{roles: [{roles}], {limits}}}\n{workers}\n");
                let name = format!("{role}-{number}");
                let section = |port| postgres.section_at(port);
                let mut server = ServerProcess::new(&name, &parts, section, &more).await?;
                server.start()?;
                all.push(server);
            }
        }
        let ports: Vec<_> = of_senders.iter().map(ServerProcess::balanced).collect();
        let installation = Self {
            balancer: Balancer::start(&ports).await?,
            postgres: Mutex::new(postgres),
            ended_alone: AtomicU64::new(0),
            nats: Mutex::new(nats),
            workers: of_work.into_iter().map(Mutex::new).collect(),
            replicas: of_senders.into_iter().map(Mutex::new).collect(),
            history,
            _folder: folder,
        };
        installation.ready().await?;
        Ok(installation)
    }

    /// Waits until all servers are ready.
    pub(super) async fn ready(&self) -> Result<()> {
        let client =
            reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(3)).build()?;
        let began = Instant::now();
        for server in self.servers() {
            let (url, log) = {
                let server = server.lock().await;
                (server.ready_url(), server.log())
            };
            while !client.get(&url).send().await.is_ok_and(|answer| answer.status() == 200) {
                let lines = || tail(&log, LOG_LINES);
                ensure!(began.elapsed() < READY_MAX, "`{url}` is not ready:\n{}", lines());
                sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }

    /// Starts processes again that ended by themselves, as an orchestrator does. It does not return.
    pub(super) async fn watch(&self) -> Result<()> {
        loop {
            for server in self.servers() {
                let mut server = server.lock().await;
                if server.has_ended()? {
                    self.ended_alone.fetch_add(1, Ordering::Relaxed);
                    print(&format!("ended by itself:\n{}", tail(&server.log(), LOG_LINES)));
                    server.start()?;
                }
            }
            sleep(WATCH_EVERY).await;
        }
    }

    /// Lets a fault happen, repairs it, and writes both to the history.
    pub(super) async fn happen(&self, fault: PlannedFault) -> Result<()> {
        let (from, lasts) = (now(), Duration::from_millis(fault.for_ms));
        let component = match fault.component {
            Component::Worker(at) => happen_to(&self.workers[usize::from(at)], fault.kind, lasts)
                .await
                .map(|()| fault.component),
            Component::Replica(at) => happen_to(&self.replicas[usize::from(at)], fault.kind, lasts)
                .await
                .map(|()| fault.component),
            Component::NatsNode(at) => self.happen_to_node(at, fault.kind, lasts).await,
            Component::Store if fault.kind == FaultKind::KillLeader => {
                let leader = self.nats.lock().await.leader(STREAM).await?;
                // Without a leader there is none to kill, and any node will do.
                let leader = leader.and_then(|it| u8::try_from(it).ok()).unwrap_or_default();
                self.happen_to_node(leader, FaultKind::Kill, lasts).await
            }
            Component::Store => self.wipe(lasts).await.map(|()| fault.component),
            Component::Postgres => self.restart_postgres(lasts).await.map(|()| fault.component),
        };
        let component = component.with_context(|| format!("{fault:?}"))?;
        self.history.write(HistoryLine::Fault { fault: fault.kind, component, from, to: now() });
        Ok(())
    }

    async fn happen_to_node(&self, at: u8, kind: FaultKind, lasts: Duration) -> Result<Component> {
        let node = usize::from(at);
        if kind == FaultKind::Suspend {
            self.nats.lock().await.signal(node, "-STOP").await?;
            sleep(lasts).await;
            self.nats.lock().await.signal(node, "-CONT").await?;
        } else {
            self.nats.lock().await.kill(node).await?;
            sleep(lasts).await;
            self.nats.lock().await.start_node(node)?;
        }
        Ok(Component::NatsNode(at))
    }

    async fn wipe(&self, lasts: Duration) -> Result<()> {
        self.nats.lock().await.wipe().await?;
        sleep(lasts).await;
        let mut nats = self.nats.lock().await;
        for node in 0..usize::from(EACH) {
            nats.start_node(node)?;
        }
        nats.healthy().await
    }

    async fn restart_postgres(&self, lasts: Duration) -> Result<()> {
        let mut postgres = self.postgres.lock().await;
        postgres.stop().await?;
        sleep(lasts).await;
        postgres.start_with(POSTGRES).await
    }

    /// Shuts all servers down. Each has to end in order.
    pub(super) async fn end(&self) -> Result<()> {
        let mut codes = Vec::new();
        for server in self.servers() {
            codes.push(server.lock().await.terminate().await?);
        }
        ensure!(codes.iter().all(|code| *code == Some(0)), "exit codes: {codes:?}");
        Ok(())
    }

    /// Copies the logs of all servers into a folder.
    pub(super) async fn copy_logs(&self, to: &Path) -> Result<()> {
        std::fs::create_dir_all(to)?;
        for server in self.servers() {
            let log = server.lock().await.log();
            let name = log.parent().and_then(Path::file_name).context("the folder has a name")?;
            std::fs::copy(&log, PathBuf::from(to).join(name).with_extension("log"))?;
        }
        Ok(())
    }

    fn servers(&self) -> impl Iterator<Item = &Mutex<ServerProcess>> {
        self.workers.iter().chain(&self.replicas)
    }
}

async fn happen_to(server: &Mutex<ServerProcess>, kind: FaultKind, lasts: Duration) -> Result<()> {
    match kind {
        FaultKind::Suspend => {
            server.lock().await.signal("-STOP").await?;
            sleep(lasts).await;
            server.lock().await.signal("-CONT").await
        }
        FaultKind::CutOff | FaultKind::CutNats => {
            server.lock().await.cut(kind);
            sleep(lasts).await;
            server.lock().await.mend();
            Ok(())
        }
        _ => {
            server.lock().await.kill().await?;
            sleep(lasts).await;
            server.lock().await.start()
        }
    }
}

#[expect(clippy::print_stderr, reason = "progress of a long proof belongs there")]
pub(super) fn print(text: &str) {
    eprintln!("{text}");
}

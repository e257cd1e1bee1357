//! NATS servers of one test or benchmark: one node, or a cluster of three.

use std::{path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

use super::{free_ports, proc, setting};

/// How long a node may take to report.
const MONITOR_MAX: Duration = Duration::from_secs(2);
/// How long a cluster may take to be healthy.
const HEALTHY_MAX: Duration = Duration::from_secs(30);

/// The nodes of one NATS, which run until they are dropped.
#[derive(Debug)]
pub struct NatsCluster {
    nodes: Vec<NatsNode>,
    folder: TempDir,
}

#[derive(Debug)]
struct NatsNode {
    process: Option<Child>,
    config: PathBuf,
    port: u16,
    monitor: u16,
}

impl NatsCluster {
    /// Starts this many nodes, with JetStream; those of a cluster write to disk before they acknowledge if `is_synced`.
    pub async fn start(nodes: u16, is_synced: bool) -> Result<Self> {
        Self::start_with(nodes, is_synced, "").await
    }

    /// Starts them with these further lines in their configuration.
    pub async fn start_with(nodes: u16, is_synced: bool, more: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        let first = free_ports(3 * nodes)?;
        let routes: Vec<_> =
            (0..nodes).map(|node| format!("nats://127.0.0.1:{}", first + 3 * node + 2)).collect();
        let mut started = Self { nodes: Vec::new(), folder };
        for node in 0..nodes {
            let [port, monitor, route] = [0, 1, 2].map(|offset| first + 3 * node + offset);
            let data = started.folder.path().join(format!("data-{node}"));
            let sync = if is_synced { "sync_interval: always" } else { "" };
            let cluster = match nodes {
                1 => String::new(),
                // Clients get no address from a node: they use those of their configuration, which may be those of proxies.
                _ => format!(
                    "cluster {{ name: c, listen: \"127.0.0.1:{route}\", no_advertise: true, routes: [{}] }}\n",
                    routes.join(", ")
                ),
            };
            let config = started.folder.path().join(format!("node-{node}.conf"));
            std::fs::write(
                &config,
                format!(
                    "server_name: n{node}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n\
                     jetstream {{ store_dir: \"{}\", max_mem: 256M, max_file: 8G, {sync} }}\n{cluster}{more}",
                    data.display()
                ),
            )?;
            started.nodes.push(NatsNode { process: None, config, port, monitor });
        }
        for node in 0..nodes {
            started.start_node(usize::from(node))?;
        }
        started.healthy().await?;
        Ok(started)
    }

    /// Returns the `nats` section of a server's configuration, with these further keys.
    pub fn section(&self, more: &str) -> String {
        format!("nats: {{endpoint: '{}'{more}}}\n", self.urls())
    }

    /// Returns the URLs of all nodes.
    pub fn urls(&self) -> String {
        let urls = self.nodes.iter().map(|node| format!("nats://127.0.0.1:{}", node.port));
        urls.collect::<Vec<_>>().join(",")
    }

    /// Returns the ports of all nodes, for clients.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(|node| node.port).collect()
    }

    /// Returns the node that leads a stream, as the first node reports that answers.
    pub(crate) async fn leader(&self, stream: &str) -> Result<Option<usize>> {
        let client = reqwest::Client::builder().timeout(MONITOR_MAX).build()?;
        for node in self.nodes.iter().filter(|node| node.process.is_some()) {
            let url = format!("http://127.0.0.1:{}/jsz?streams=true", node.monitor);
            let Ok(answer) = client.get(url).send().await else { continue };
            let Ok(text) = answer.bytes().await else { continue };
            let report: Value = serde_json::from_slice(&text)?;
            let accounts = report["account_details"].as_array().into_iter().flatten();
            let streams = accounts.filter_map(|it| it["stream_detail"].as_array()).flatten();
            let named = streams.filter(|it| it["name"] == stream);
            let leaders = named.filter_map(|it| it["cluster"]["leader"].as_str());
            let number = |name: &str| name.strip_prefix('n')?.parse().ok();
            if let Some(leader) = leaders.filter_map(number).next() {
                return Ok(Some(leader));
            }
        }
        Ok(None)
    }

    /// Sends a node a signal, such as `-STOP`.
    pub async fn signal(&self, node: usize, signal: &str) -> Result<()> {
        let id = self.nodes[node].process.as_ref().and_then(Child::id).context("it runs")?;
        let status = Command::new("kill").arg(signal).arg(id.to_string()).status().await?;
        ensure!(status.success(), "`kill {signal} {id}` failed");
        Ok(())
    }

    /// Kills all nodes that run, and removes what they stored.
    pub(crate) async fn wipe(&mut self) -> Result<()> {
        for node in 0..self.nodes.len() {
            if self.nodes[node].process.is_some() {
                self.kill(node).await?;
            }
            std::fs::remove_dir_all(self.folder.path().join(format!("data-{node}")))?;
        }
        Ok(())
    }

    /// Kills a node.
    pub async fn kill(&mut self, node: usize) -> Result<()> {
        let process = self.nodes[node].process.take();
        process.context("it runs")?.kill().await.context("it can be killed")
    }

    /// Starts a node that was killed.
    pub fn start_node(&mut self, node: usize) -> Result<()> {
        let program = setting("QUALITYTRACE_TEST_NATS")?;
        let NatsNode { process, config, .. } = &mut self.nodes[node];
        ensure!(process.is_none(), "it runs already");
        let mut nats = Command::new(program);
        nats.arg("-c").arg(config).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        *process = Some(nats.spawn()?);
        Ok(())
    }

    /// Waits until all nodes that run are healthy.
    pub async fn healthy(&self) -> Result<()> {
        let (client, began) = (reqwest::Client::new(), Instant::now());
        for node in self.nodes.iter().filter(|node| node.process.is_some()) {
            let url = format!("http://127.0.0.1:{}/healthz", node.monitor);
            while !client.get(&url).send().await.is_ok_and(|answer| answer.status() == 200) {
                ensure!(began.elapsed() < HEALTHY_MAX, "NATS is not healthy");
                sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    /// Returns the CPU time of the nodes that run.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let ids = self.nodes.iter().filter_map(|node| node.process.as_ref()?.id());
        ids.map(proc::cpu).sum()
    }

    /// Returns how many messages clients have sent to the nodes, and how many they got.
    pub(crate) async fn messages(&self) -> Result<u64> {
        let (client, mut messages) = (reqwest::Client::new(), 0);
        for node in &self.nodes {
            let url = format!("http://127.0.0.1:{}/varz", node.monitor);
            let facts = client.get(url).send().await?.bytes().await?;
            let facts: serde_json::Value = serde_json::from_slice(&facts)?;
            for count in ["in_msgs", "out_msgs"] {
                messages += facts[count].as_u64().context("NATS counts messages")?;
            }
        }
        Ok(messages)
    }
}

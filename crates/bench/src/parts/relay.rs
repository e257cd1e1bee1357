//! A real Collector between an emitter and a [`Sink`](super::Sink): it can be killed, suspended, and restarted.
//!
//! It has no queue and retries nothing, so every span that it acknowledges is in the sink. It keeps its ports across restarts.
//! Deliberately absent: a count of its own.

use std::fs;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{
    collector::{CONFIGURATION, start},
    free_port,
};

/// A Collector with its own ports, which may be running or not.
#[derive(Debug)]
pub struct Relay {
    /// The port that receives OTLP over gRPC.
    pub grpc: u16,
    /// The port that receives OTLP over HTTP.
    pub http: u16,
    child: Option<Child>,
    folder: TempDir,
}

impl Relay {
    /// Creates a Collector that forwards to the sink on this port, without starting it.
    pub fn new(sink: u16) -> Result<Self> {
        let folder = TempDir::new()?;
        let (grpc, http) = (free_port()?, free_port()?);
        fs::write(folder.path().join(CONFIGURATION), configuration(grpc, http, sink))?;
        Ok(Self { grpc, http, child: None, folder })
    }

    /// Starts it, and waits until it listens on both ports.
    pub async fn start(&mut self) -> Result<()> {
        self.child = Some(start(self.folder.path(), &[self.grpc, self.http]).await?);
        Ok(())
    }

    /// Kills it like a crash: SIGKILL.
    pub async fn kill(&mut self) -> Result<()> {
        Ok(self.child.take().context("the Collector runs")?.kill().await?)
    }

    /// Suspends all its threads: it keeps its connections, and responds to nothing.
    pub async fn hang(&self) -> Result<()> {
        self.signal("-STOP").await
    }

    /// Resumes it after `hang`.
    pub async fn go_on(&self) -> Result<()> {
        self.signal("-CONT").await
    }

    async fn signal(&self, signal: &str) -> Result<()> {
        let id = self.child.as_ref().and_then(Child::id).context("the Collector runs")?;
        let status = Command::new("kill").arg(signal).arg(id.to_string()).status().await?;
        ensure!(status.success(), "`kill {signal} {id}` failed");
        Ok(())
    }
}

fn configuration(grpc: u16, http: u16, sink: u16) -> String {
    let pipeline = "{receivers: [otlp], exporters: [otlphttp]}";
    format!(
        "receivers:
  otlp: {{protocols: {{grpc: {{endpoint: '127.0.0.1:{grpc}'}}, http: {{endpoint: '127.0.0.1:{http}'}}}}}}
exporters:
  otlphttp:
    endpoint: http://127.0.0.1:{sink}
    compression: none
    sending_queue: {{enabled: false}}
    retry_on_failure: {{enabled: false}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}
  pipelines: {{traces: {pipeline}, logs: {pipeline}, metrics: {pipeline}}}
"
    )
}

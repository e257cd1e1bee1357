//! A real Collector between an emitter and a [`Sink`](super::Sink): it can be killed, hung, and started again.
//!
//! It has no queue and tries nothing again, so what it acknowledges is in the sink. It keeps its ports through all of
//! its lives. Deliberately absent: a count of its own.

use std::fs;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{
    collector::{CONFIGURATION, start},
    free_port,
};

/// A Collector with ports of its own, which may be running or not.
#[derive(Debug)]
pub struct Relay {
    /// Where it receives OTLP over gRPC.
    pub grpc: u16,
    /// Where it receives OTLP over HTTP.
    pub http: u16,
    child: Option<Child>,
    folder: TempDir,
}

impl Relay {
    /// One that sends on to the sink on this port, and that is not started yet.
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

    /// Ends it as a crash would: SIGKILL.
    pub async fn kill(&mut self) -> Result<()> {
        Ok(self.child.take().context("the Collector runs")?.kill().await?)
    }

    /// Stops its every thread: it keeps its connections, and answers nothing.
    pub async fn hang(&self) -> Result<()> {
        self.signal("-STOP").await
    }

    /// Lets it go on after a hang.
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

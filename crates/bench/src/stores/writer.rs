//! Processes that accept OTLP and write to a store that does not.

use std::fs;

use anyhow::Result;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::rows::RowWriter;
use crate::{
    parts::{collector_of, free_port},
    run::command::listening,
};

/// The configuration with which the tests of the driver let a Jaeger write to a search node.
const JAEGER_CONFIG: &str = include_str!("../../../drivers/tests/stores/search/jaeger-config.yaml");

/// A process that writes what it receives to a store. It ends with this value.
pub(super) struct StoreWriter {
    /// Where it accepts OTLP by gRPC.
    pub(super) otlp: String,
    _process: Child,
    _folder: TempDir,
    _rows: Option<RowWriter>,
}

impl StoreWriter {
    /// Starts a Jaeger that writes to a search node. It listens when it has made its index templates.
    pub(super) async fn jaeger(program: &str, backend: &str, node: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        let config = folder.path().join("config.yaml");
        fs::write(&config, JAEGER_CONFIG.replace("BACKEND", backend))?;
        let (port, health) = (free_port()?, format!("127.0.0.1:{}", free_port()?));
        let otlp = format!("127.0.0.1:{port}");
        let mut jaeger = Command::new(program);
        jaeger.arg("--config").arg(config);
        jaeger.env("JAEGER_STORAGE", node).env("JAEGER_OTLP", &otlp).env("JAEGER_HEALTH", health);
        let process = listening(jaeger, port).await?;
        Ok(Self { otlp, _process: process, _folder: folder, _rows: None })
    }

    /// Starts a Collector with this exporter.
    pub(super) async fn collector(exporter: &str) -> Result<Self> {
        let port = free_port()?;
        let name = exporter.split(':').next().unwrap_or_default();
        let configuration = format!(
            "receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '127.0.0.1:{port}'}}}}}}}}\n\
             exporters: {{{exporter}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}\n  \
             pipelines: {{traces: {{receivers: [otlp], exporters: [{name}]}}}}\n"
        );
        let (process, folder) = collector_of(&configuration, &[port]).await?;
        let otlp = format!("127.0.0.1:{port}");
        Ok(Self { otlp, _process: process, _folder: folder, _rows: None })
    }

    /// Starts a Collector whose spans become rows of a table.
    pub(super) async fn rows(url: &str) -> Result<Self> {
        let rows = RowWriter::start(url).await?;
        let to = rows.url();
        let exporter =
            format!("otlp_http: {{endpoint: '{to}', encoding: json, compression: none}}");
        Ok(Self { _rows: Some(rows), ..Self::collector(&exporter).await? })
    }
}

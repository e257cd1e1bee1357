//! The OpenTelemetry Collector: built with its own builder from a manifest, because no package registry offers it ready to use.
//!
//! The service is one Collector that writes everything it receives to a file. Tests that must stop, kill or configure a Collector
//! start their own from the same program; a variable holds its path.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{Launch, Service, golang::Go, ports};
use crate::{
    cache,
    machine::{Machine, fingerprint},
};

pub(super) struct Collector;

const VERSION: &str = "0.161.0";

const MANIFEST: &str = include_str!("collector-manifest.yaml");

const PROGRAM: &str = "otelcol";

impl Service for Collector {
    fn name(&self) -> &'static str {
        "collector"
    }

    fn install(&self, machine: &Machine) -> Result<()> {
        program(machine).map(drop)
    }

    fn data(&self, machine: &Machine) -> PathBuf {
        machine.state().join("collector")
    }

    fn launch(&self, machine: &Machine, data: &Path) -> Result<Launch> {
        let program = program(machine)?;
        let [grpc, http, health] = ports::free()?;
        let (config, received) = (data.join("config.yaml"), data.join("received.jsonl"));
        let text = format!(
            "\
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '{grpc}'}}, http: {{endpoint: '{http}'}}}}}}}}
exporters: {{file: {{path: {path}, flush_interval: 100ms}}}}
extensions: {{health_check: {{endpoint: '{health}'}}}}
service:
  extensions: [health_check]
  # Else it would open a port for its own metrics, the same one in every checkout.
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [file]}}
    metrics: {{receivers: [otlp], exporters: [file]}}
    logs: {{receivers: [otlp], exporters: [file]}}
",
            path = yaml(&received)
        );
        fs::write(&config, text)
            .with_context(|| format!("`{}` cannot be written", config.display()))?;
        let mut command = Command::new(&program);
        command.arg("--config").arg(&config);
        Ok(Launch {
            command,
            ready: Box::new(move || ports::answers(health)),
            address: grpc.to_string(),
            connect: format!(
                "OTLP gRPC {grpc}, HTTP http://{http}; received: {}",
                received.display()
            ),
            variables: vec![
                ("QUALITYTRACE_TEST_COLLECTOR_BIN", program.display().to_string()),
                ("QUALITYTRACE_TEST_COLLECTOR_GRPC", format!("http://{grpc}")),
                ("QUALITYTRACE_TEST_COLLECTOR_HTTP", format!("http://{http}")),
                ("QUALITYTRACE_TEST_COLLECTOR_FILE", received.display().to_string()),
            ],
        })
    }
}

/// Returns the path of the Collector, and builds it if this machine does not have it.
fn program(machine: &Machine) -> Result<PathBuf> {
    let key = format!("collector-{VERSION}-{:08x}", fingerprint(MANIFEST.as_bytes()) >> 32);
    let bin = cache::install(&machine.cache, &key, &[PROGRAM], |part| build(machine, &key, part))?;
    Ok(bin.join(PROGRAM))
}

fn build(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    let go = Go::find(machine, key, part)?;
    eprintln!(
        "{key}: building the OpenTelemetry Collector from the Go module registry; some 5 minutes on two cores, most of \
         it compiling, once per machine"
    );
    let builder = format!("go.opentelemetry.io/collector/cmd/builder@v{VERSION}");
    let mut install = Command::new("go");
    go.run(install.args(["install", &builder]).env("GOBIN", part.join("builder")))?;
    fs::write(part.join("manifest.yaml"), MANIFEST)?;
    go.run(Command::new(part.join("builder/builder")).args(["--config", "manifest.yaml"]))?;
    fs::create_dir(part.join("bin"))?;
    fs::rename(part.join("build").join(PROGRAM), part.join("bin").join(PROGRAM))?;
    cache::remove(&part.join("build"))?;
    cache::remove(&part.join("builder"))
}

/// Encodes a path as a YAML string in the Collector's configuration, where `$` starts a variable.
fn yaml(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''").replace('$', "$$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_builds_the_version_that_names_it() {
        assert!(MANIFEST.contains(&format!("\n  version: {VERSION}\n")));
        assert!(MANIFEST.contains(&format!("\n  name: {PROGRAM}\n")));
    }
}

//! Grafana Tempo, a trace store: built from its Go module, because no package registry offers it ready to use.
//!
//! The build takes eight minutes on two cores. It runs only for a user who names the service; all other commands use it if the
//! cache has it. The version is a commit after 2.6: no module registry serves a later one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{Launch, Service, golang::Go, ports};
use crate::{cache, machine::Machine};

pub(super) struct Tempo;

const MODULE: &str = "github.com/grafana/tempo";
const VERSION: &str = "v1.5.1-0.20241001135150-ed943d7a56b2";

/// The hashes of the module and of its `go.mod`. The public checksum database does not have them.
const HASHES: [&str; 2] = [
    "h1:XMreZ1SPjLpd9zhql5FXKFYwAcgBzS2E2MOPx4n+FyY=",
    "h1:UKONJhBCxmL+0ri27VMledCVzZIJqnl6Ah24A5vCRzs=",
];

const CONFIG: &str = include_str!("tempo-config.yaml");

const PROGRAM: &str = "tempo";

impl Service for Tempo {
    fn name(&self) -> &'static str {
        "tempo"
    }

    fn install(&self, machine: &Machine) -> Result<()> {
        program(machine).map(drop)
    }

    fn is_used_unnamed(&self, machine: &Machine) -> bool {
        machine.cache.join(key()).join("bin").join(PROGRAM).is_file()
    }

    fn data(&self, machine: &Machine) -> PathBuf {
        machine.state().join("tempo")
    }

    fn launch(&self, machine: &Machine, data: &Path) -> Result<Launch> {
        let [otlp, http, grpc, members] = ports::free()?;
        let config = data.join("config.yaml");
        fs::write(&config, CONFIG)
            .with_context(|| format!("`{}` cannot be written", config.display()))?;
        let mut command = Command::new(program(machine)?);
        command.arg("-config.expand-env=true").arg("-config.file").arg(&config);
        command.current_dir(data).env("TEMPO_DATA", data).env("TEMPO_OTLP_GRPC", otlp.to_string());
        let ports =
            [("TEMPO_HTTP_PORT", http), ("TEMPO_GRPC_PORT", grpc), ("TEMPO_MEMBERS_PORT", members)];
        command.envs(ports.map(|(name, address)| (name, address.port().to_string())));
        Ok(Launch {
            command,
            ready: Box::new(move || ports::answers_at(http, "/ready")),
            address: http.to_string(),
            connect: format!("http://{http}; OTLP gRPC {otlp}"),
            variables: vec![
                ("QUALITYTRACE_TEST_TEMPO", format!("http://{http}")),
                ("QUALITYTRACE_TEST_TEMPO_OTLP", otlp.to_string()),
            ],
        })
    }

    /// After it took data, `TERM` did not end it for minutes; its data is removed anyway.
    fn stop_signal(&self) -> &'static str {
        "KILL"
    }
}

/// Returns the name of its folder in the cache.
pub(super) fn key() -> String {
    format!("tempo-{VERSION}")
}

/// Returns the path of its program, and builds it if this machine does not have it.
fn program(machine: &Machine) -> Result<PathBuf> {
    let key = key();
    let bin = cache::install(&machine.cache, &key, &[PROGRAM], |part| build(machine, &key, part))?;
    Ok(bin.join(PROGRAM))
}

/// Downloads the module by its hashes, and builds in a copy of it.
fn build(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    eprintln!(
        "{key}: building Tempo from the Go module registry; some 8 minutes on two cores, most of it compiling, once per \
         machine"
    );
    let fetch = part.join("fetch");
    fs::create_dir_all(&fetch)?;
    let module = format!("module parts/tempo\n\ngo 1.22\n\nrequire {MODULE} {VERSION}\n");
    fs::write(fetch.join("go.mod"), module)?;
    let [content, description] = HASHES;
    let hashes = format!("{MODULE} {VERSION} {content}\n{MODULE} {VERSION}/go.mod {description}\n");
    fs::write(fetch.join("go.sum"), hashes)?;
    let go = Go::find(machine, key, &fetch)?;
    go.run(Command::new("go").args(["mod", "download", MODULE]))?;
    let source = part.join("source");
    go.copy(&format!("{MODULE}@{VERSION}"), &source)?;
    let go = Go::find(machine, key, part)?;
    let mut build = Command::new("go");
    build.args(["build", "-C", "source", "-mod=mod", "-trimpath", "-ldflags=-checklinkname=0"]);
    go.run(build.args(["-o", "../bin/tempo", "./cmd/tempo"]))?;
    cache::remove(&source)?;
    cache::remove(&fetch)
}

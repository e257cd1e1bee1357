//! Jaeger v2, a trace store: built from its Go module, because no package registry offers it ready to use.
//!
//! The build takes ten minutes on two cores. It runs only for a user who names the service; all other commands use it if the
//! cache has it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{Launch, Service, golang::Go, ports};
use crate::{cache, machine::Machine};

pub(super) struct Jaeger;

/// The Go module. Its `cmd/jaeger` is Jaeger v2.
const MODULE: &str = "github.com/jaegertracing/jaeger";
const VERSION: &str = "v1.76.0";

/// A correction of its memory store, which otherwise adds spans to a trace while a query encodes it: the whole process then
/// panics (pull request 7958 of the project). A query gets a copy.
const CORRECTED: &str = "internal/storage/v2/memory/tenant.go";
const SHARED: &str = "traces = append(traces, t.traces[index].trace)";
const COPIED: &str = "own := ptrace.NewTraces()
			t.traces[index].trace.CopyTo(own)
			traces = append(traces, own)";

const CONFIG: &str = include_str!("jaeger-config.yaml");

const PROGRAM: &str = "jaeger";

impl Service for Jaeger {
    fn name(&self) -> &'static str {
        "jaeger"
    }

    fn install(&self, machine: &Machine) -> Result<()> {
        program(machine).map(drop)
    }

    fn is_used_unnamed(&self, machine: &Machine) -> bool {
        installed(machine).is_some()
    }

    fn data(&self, machine: &Machine) -> PathBuf {
        machine.state().join("jaeger")
    }

    fn launch(&self, machine: &Machine, data: &Path) -> Result<Launch> {
        let [otlp_grpc, otlp_http, query_grpc, query_http, health] = ports::free()?;
        let config = data.join("config.yaml");
        fs::write(&config, CONFIG)
            .with_context(|| format!("`{}` cannot be written", config.display()))?;
        let mut command = Command::new(program(machine)?);
        command.arg("--config").arg(&config).current_dir(data);
        let addresses = [
            ("JAEGER_OTLP_GRPC", otlp_grpc),
            ("JAEGER_OTLP_HTTP", otlp_http),
            ("JAEGER_QUERY_GRPC", query_grpc),
            ("JAEGER_QUERY_HTTP", query_http),
            ("JAEGER_HEALTH", health),
        ];
        command.envs(addresses.map(|(name, address)| (name, address.to_string())));
        Ok(Launch {
            command,
            ready: Box::new(move || ports::answers_at(health, "/status")),
            address: query_http.to_string(),
            connect: format!("http://{query_http}; OTLP gRPC {otlp_grpc}, HTTP http://{otlp_http}"),
            variables: vec![
                ("QUALITYTRACE_TEST_JAEGER", format!("http://{query_http}")),
                ("QUALITYTRACE_TEST_JAEGER_GRPC", query_grpc.to_string()),
                ("QUALITYTRACE_TEST_JAEGER_OTLP", otlp_grpc.to_string()),
            ],
        })
    }
}

/// Returns the name of its folder in the cache.
pub(super) fn key() -> String {
    format!("jaeger-{VERSION}-corrected")
}

/// Returns the path of its program, if this machine has it.
pub(super) fn installed(machine: &Machine) -> Option<PathBuf> {
    let program = machine.cache.join(key()).join("bin").join(PROGRAM);
    program.is_file().then_some(program)
}

/// Returns the path of its program, and builds it if this machine does not have it.
fn program(machine: &Machine) -> Result<PathBuf> {
    let key = key();
    let bin = cache::install(&machine.cache, &key, &[PROGRAM], |part| build(machine, &key, part))?;
    Ok(bin.join(PROGRAM))
}

/// Builds in a copy of the module: only there Go applies the checksums of the module's own `go.sum`.
fn build(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    let go = Go::find(machine, key, part)?;
    eprintln!(
        "{key}: building Jaeger from the Go module registry; some 10 minutes on two cores, most of it compiling, once \
         per machine"
    );
    let module = format!("{MODULE}@{VERSION}");
    go.run(Command::new("go").args(["mod", "download", &module]))?;
    let source = part.join("source");
    go.copy(&module, &source)?;
    correct(&source.join(CORRECTED))?;
    let mut build = Command::new("go");
    build.args(["build", "-C", "source", "-trimpath", "-o", "../bin/jaeger", "./cmd/jaeger"]);
    go.run(&mut build)?;
    cache::remove(&source)
}

/// Writes the correction into the copy of the module.
fn correct(file: &Path) -> Result<()> {
    let shown = file.display();
    let code = fs::read_to_string(file).with_context(|| format!("`{shown}` cannot be read"))?;
    ensure!(code.contains(SHARED), "`{shown}` has changed: is the correction still needed?");
    fs::write(file, code.replace(SHARED, COPIED))
        .with_context(|| format!("`{shown}` cannot be written"))
}

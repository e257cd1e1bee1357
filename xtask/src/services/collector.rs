//! The OpenTelemetry Collector: built with its own builder from a manifest, because no package registry has it ready.
//!
//! The service is one Collector that writes all it receives to a file. Tests that must stop, kill or configure one
//! start their own from the same program, whose path is among the variables.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{Launch, Service, ports};
use crate::{
    cache,
    machine::{Machine, fingerprint},
    packages, spawn,
};

pub(super) struct Collector;

const VERSION: &str = "0.161.0";

const MANIFEST: &str = include_str!("collector-manifest.yaml");

const PROGRAM: &str = "otelcol";

/// The oldest Go, as the second number of its version, that fetches a newer one when a module asks for it.
const GO_MINOR_MIN: u32 = 21;

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

/// The Collector's program, built now if this machine does not have it.
fn program(machine: &Machine) -> Result<PathBuf> {
    let key = format!("collector-{VERSION}-{:08x}", fingerprint(MANIFEST.as_bytes()) >> 32);
    let bin = cache::install(&machine.cache, &key, &[PROGRAM], |part| build(machine, &key, part))?;
    Ok(bin.join(PROGRAM))
}

fn build(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    if machine.in_path("go").is_none() {
        packages::install(machine, "golang-go", "collector: no `go` is here to build it", None)?;
    }
    // Distributions switch the fetching of a newer Go off.
    let ask = |name: &str| {
        let mut go = Command::new("go");
        spawn::output(go.args(["env", name]).current_dir(part).env("GOTOOLCHAIN", "auto"))
    };
    check_go(&ask("GOVERSION")?)?;
    eprintln!(
        "{key}: building the OpenTelemetry Collector from the Go module registry; some 5 minutes on two cores, most of \
         it compiling, once per machine"
    );
    let log = machine.cache.join("logs").join(format!("{key}.log"));
    let proxy = without_direct(&ask("GOPROXY")?);
    let go = |command: &mut Command| {
        command.current_dir(part).env("GOPROXY", &proxy).env("GOFLAGS", "-buildvcs=false");
        command.env("CGO_ENABLED", "0").env("GOBIN", part.join("builder"));
        command.env("GOTOOLCHAIN", "auto");
        spawn::long(machine, command, &log)
            .context("the Collector could not be built; it wants a reachable module registry and Go 1.26, which any Go from 1.21 on fetches by itself")
    };
    let builder = format!("go.opentelemetry.io/collector/cmd/builder@v{VERSION}");
    go(Command::new("go").args(["install", &builder]))?;
    fs::write(part.join("manifest.yaml"), MANIFEST)?;
    go(Command::new(part.join("builder/builder")).args(["--config", "manifest.yaml"]))?;
    fs::create_dir(part.join("bin"))?;
    fs::rename(part.join("build").join(PROGRAM), part.join("bin").join(PROGRAM))?;
    cache::remove(&part.join("build"))?;
    cache::remove(&part.join("builder"))
}

/// Refuses a Go that could neither build the Collector nor fetch one that can.
fn check_go(version: &str) -> Result<()> {
    // A release says `go1.26.8`, an unreleased one `devel go1.27-5a3b…`, and one before 1.16 nothing.
    let minor = version.split("go1.").nth(1).map(|rest| {
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
    });
    if minor.unwrap_or(0) < GO_MINOR_MIN {
        let found = if version.is_empty() { "of an unknown version" } else { version };
        bail!(
            "collector: the `go` in `PATH` is {found}, too old to build it; install Go 1.{GO_MINOR_MIN} or newer from \
             https://go.dev/dl, or your distribution's `golang-go` from its backports, and put it first in `PATH`"
        );
    }
    Ok(())
}

/// The registries without the fallback to the authors' own hosts, which makes every miss a long wait.
fn without_direct(proxies: &str) -> String {
    let kept = proxies.strip_suffix(",direct").or_else(|| proxies.strip_suffix("|direct"));
    kept.unwrap_or(proxies).to_owned()
}

/// A path as a YAML string in the Collector's configuration, where `$` starts a variable.
fn yaml(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''").replace('$', "$$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fallback_goes_and_nothing_else() {
        let cases = [
            ("https://a.example,direct", "https://a.example"),
            ("https://a.example|https://b.example|direct", "https://a.example|https://b.example"),
            ("https://a.example", "https://a.example"),
            ("direct", "direct"),
        ];
        for (given, expected) in cases {
            assert_eq!(without_direct(given), expected);
        }
    }

    #[test]
    fn a_go_that_cannot_fetch_a_newer_one_is_refused_before_the_build() {
        for new in ["go1.21", "go1.21.0", "go1.26.8", "go1.22rc1", "devel go1.27-5a3b Mon"] {
            check_go(new).expect(new);
        }
        for old in ["go1.20.14", "go1.19.8", "go1.2", "", "gccgo"] {
            let words = check_go(old).expect_err(old).to_string();
            assert!(words.contains("install Go 1.21 or newer"), "{words}");
            assert!(words.contains(old), "{words}");
        }
    }

    #[test]
    fn the_manifest_builds_the_version_that_names_it() {
        assert!(MANIFEST.contains(&format!("\n  version: {VERSION}\n")));
        assert!(MANIFEST.contains(&format!("\n  name: {PROGRAM}\n")));
    }
}

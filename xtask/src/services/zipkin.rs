//! Zipkin, a trace store: its server from Maven Central, with its storage in memory.
//!
//! It is a download of 131 MB. It is installed only for a user who names the service; all other commands use it if the cache has it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};

use super::{Launch, Service, maven, ports};
use crate::{cache, machine::Machine};

pub(super) struct Zipkin;

const VERSION: &str = "3.5.1";
const PROGRAM: &str = "zipkin.jar";

impl Service for Zipkin {
    fn name(&self) -> &'static str {
        "zipkin"
    }

    fn install(&self, machine: &Machine) -> Result<()> {
        program(machine).map(drop)
    }

    fn is_used_unnamed(&self, machine: &Machine) -> bool {
        machine.cache.join(key()).join("bin").join(PROGRAM).is_file()
    }

    fn data(&self, machine: &Machine) -> PathBuf {
        machine.state().join("zipkin")
    }

    fn launch(&self, machine: &Machine, data: &Path) -> Result<Launch> {
        let [http] = ports::free()?;
        let mut command = Command::new("java");
        command.args(["-Xms64m", "-Xmx384m", "-XX:+UseSerialGC"]);
        command.arg("-jar").arg(program(machine)?).current_dir(data);
        // `QUERY_PORT` would listen on all addresses.
        command.arg(format!("--armeria.ports[0].ip={}", http.ip()));
        command.arg(format!("--armeria.ports[0].port={}", http.port()));
        command.arg("--armeria.ports[0].protocols[0]=http");
        Ok(Launch {
            command,
            ready: Box::new(move || ports::answers_at(http, "/health")),
            address: http.to_string(),
            connect: format!("http://{http}/zipkin/; spans are sent to /api/v2/spans"),
            variables: vec![("QUALITYTRACE_TEST_ZIPKIN", format!("http://{http}"))],
        })
    }

    fn ready_within(&self) -> Duration {
        // A Java program of 131 MB, on a busy machine.
        Duration::from_secs(240)
    }
}

/// Returns the name of its folder in the cache.
pub(super) fn key() -> String {
    format!("zipkin-{VERSION}")
}

/// Returns the path of its program, and downloads it if this machine does not have it.
fn program(machine: &Machine) -> Result<PathBuf> {
    let key = key();
    let bin =
        cache::install(&machine.cache, &key, &[PROGRAM], |part| download(machine, &key, part))?;
    Ok(bin.join(PROGRAM))
}

fn download(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    eprintln!("{key}: getting Zipkin from Maven Central, 131 MB, once per machine");
    let artifact = format!("io.zipkin:zipkin-server:{VERSION}:jar:exec");
    let repository = maven::get(machine, key, part, &artifact)?;
    let jar = format!("io/zipkin/zipkin-server/{VERSION}/zipkin-server-{VERSION}-exec.jar");
    let bin = part.join("bin");
    fs::create_dir_all(&bin)?;
    let program = bin.join(PROGRAM);
    fs::rename(repository.join(jar), &program)
        .with_context(|| format!("`{}` cannot be made", program.display()))?;
    cache::remove(&repository)
}

//! ClickHouse, a trace store: its engine from the Python package `chdb-core`, behind a small HTTP server of our own.
//!
//! No package registry offers a current server. The engine is the real one, of the version that the package contains: it executes
//! every statement with its parameters and settings. What the front imitates is the HTTP interface, and no more of it than the
//! tests need. The package has 170 MB and needs 560 MB: it is installed only for a user who names the service.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{
    Launch, Service, ports,
    sdks::{launcher, python_packages},
};
use crate::{
    cache,
    machine::{Machine, fingerprint},
};

pub(super) struct ClickHouse;

/// The version of the package; the engine in it is 26.9.2.1.
const PACKAGE: &str = "chdb-core==26.9.0\n";

const FRONT: &str = include_str!("clickhouse-front.py");

/// The script that becomes the front.
const PROGRAM: &str = "echo";

impl Service for ClickHouse {
    fn name(&self) -> &'static str {
        "clickhouse"
    }

    fn install(&self, machine: &Machine) -> Result<()> {
        program(machine).map(drop)
    }

    fn is_used_unnamed(&self, machine: &Machine) -> bool {
        machine.cache.join(key()).join("bin").join(PROGRAM).is_file()
    }

    fn data(&self, machine: &Machine) -> PathBuf {
        machine.state().join("clickhouse")
    }

    fn launch(&self, machine: &Machine, data: &Path) -> Result<Launch> {
        let [http] = ports::free()?;
        // Its own copy: the installed package serves later versions of the front too.
        let front = data.join("front.py");
        fs::write(&front, FRONT)
            .with_context(|| format!("`{}` cannot be written", front.display()))?;
        let mut command = Command::new(program(machine)?);
        command.arg(&front).arg(http.ip().to_string()).arg(http.port().to_string());
        command.arg(data.join("engine"));
        Ok(Launch {
            command,
            ready: Box::new(move || ports::answers_at(http, "/ping")),
            address: http.to_string(),
            connect: format!("http://{http}"),
            variables: vec![("QUALITYTRACE_TEST_CLICKHOUSE", format!("http://{http}"))],
        })
    }

    /// Its data is removed anyway.
    fn stop_signal(&self) -> &'static str {
        "KILL"
    }
}

/// Returns the name of its folder in the cache.
pub(super) fn key() -> String {
    format!("clickhouse-{:08x}", fingerprint(PACKAGE.as_bytes()) >> 32)
}

/// Returns the path of its program, and installs it if this machine does not have it.
fn program(machine: &Machine) -> Result<PathBuf> {
    let key = key();
    let bin = cache::install(&machine.cache, &key, &[PROGRAM], |part| {
        eprintln!(
            "{key}: getting the engine of ClickHouse from the Python package index, 170 MB, once per machine"
        );
        fs::create_dir(part.join("bin"))?;
        fs::write(part.join("requirements.txt"), PACKAGE)?;
        python_packages(machine, &key, part)?;
        launcher(part, "venv/bin/python \"$@\"")
    })?;
    Ok(bin.join(PROGRAM))
}

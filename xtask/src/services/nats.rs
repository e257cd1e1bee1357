//! The NATS server: built from its Go module, because distributions have old versions. Each test starts its own.

use std::{path::Path, process::Command};

use anyhow::Result;

use super::{Programs, ServiceVariables, golang::Go};
use crate::{cache, machine::Machine};

pub(super) const NATS: Programs = Programs { name: "nats", install, installed };

const MODULE: &str = "github.com/nats-io/nats-server/v2";
const VERSION: &str = "v2.15.2";
const PROGRAM: &str = "nats-server";
const VARIABLE: &str = "QUALITYTRACE_TEST_NATS";

/// Returns the name of its folder in the cache.
fn key() -> String {
    format!("nats-{VERSION}")
}

fn install(machine: &Machine) -> Result<ServiceVariables> {
    let key = key();
    let bin = cache::install(&machine.cache, &key, &[PROGRAM], |part| build(machine, &key, part))?;
    Ok(vec![(VARIABLE, bin.join(PROGRAM).display().to_string())])
}

fn installed(machine: &Machine) -> Option<ServiceVariables> {
    let program = machine.cache.join(key()).join("bin").join(PROGRAM);
    program.is_file().then(|| vec![(VARIABLE, program.display().to_string())])
}

fn build(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    let go = Go::find(machine, key, part)?;
    eprintln!(
        "{key}: building the NATS server from the Go module registry; half a minute, once per machine"
    );
    let mut install = Command::new("go");
    install.args(["install", "-trimpath", &format!("{MODULE}@{VERSION}")]);
    go.run(install.env("GOBIN", part.join("bin")))
}

//! Prometheus and its promtool: those in `PATH`, else the distribution's package, unpacked into the cache.
//!
//! The package is not installed, because that starts a server on port 9090. Each test starts its own Prometheus.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::{Programs, ServiceVariables};
use crate::{cache, machine::Machine, packages, spawn};

pub(super) const PROMETHEUS: Programs = Programs { name: "prometheus", install, installed };

const PACKAGE: &str = "prometheus";

/// The folder in the cache. The distribution determines the version.
const KEY: &str = "prometheus-package";

/// The programs, and the variables by which tests find them.
const ALL: [(&str, &str); 2] =
    [("prometheus", "QUALITYTRACE_TEST_PROMETHEUS"), ("promtool", "QUALITYTRACE_TEST_PROMTOOL")];

fn install(machine: &Machine) -> Result<ServiceVariables> {
    if let Some(told) = installed(machine) {
        return Ok(told);
    }
    let programs = ALL.map(|(program, _)| program);
    let bin = cache::install(&machine.cache, KEY, &programs, |part| unpack(machine, part))?;
    Ok(ALL.iter().map(|(program, variable)| variable_of(variable, &bin.join(program))).collect())
}

fn installed(machine: &Machine) -> Option<ServiceVariables> {
    let bin = machine.cache.join(KEY).join("bin");
    let cached = |program: &str| Some(bin.join(program)).filter(|file| file.is_file());
    let all = |find: &dyn Fn(&str) -> Option<PathBuf>| -> Option<ServiceVariables> {
        ALL.iter().map(|(program, variable)| Some(variable_of(variable, &find(program)?))).collect()
    };
    all(&|program| machine.in_path(program)).or_else(|| all(&cached))
}

fn variable_of(variable: &'static str, program: &Path) -> (&'static str, String) {
    (variable, program.display().to_string())
}

fn unpack(machine: &Machine, part: &Path) -> Result<()> {
    eprintln!("{KEY}: getting Prometheus from the distribution, 20 MB, once per machine");
    let package = packages::download(machine, PACKAGE, part)?;
    let unpacked = part.join("unpacked");
    spawn::run(Command::new("dpkg").arg("-x").arg(&package).arg(&unpacked))?;
    fs::rename(unpacked.join("usr/bin"), part.join("bin"))?;
    fs::remove_file(package)?;
    cache::remove(&unpacked)
}

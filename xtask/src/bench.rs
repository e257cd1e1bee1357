//! `cargo xtask bench NAME`: the measurements of the `bench` crate, in release mode, with real servers beside them.

use anyhow::Result;

use crate::{machine::Machine, packages, services, spawn};

pub(crate) fn run(machine: &Machine, name: &str, rest: &[&str]) -> Result<()> {
    // The binary that is measured is built beside the one that measures it; some measure themselves.
    let (services, packages): (&[&str], &[&str]) = match name {
        "ingest" | "telemetry" => (&["collector"], &["-p", "bench"]),
        "decode" | "lang" | "layout" | "page" => (&[], &["-p", "bench"]),
        "run" => (&[], &["-p", "bench"]),
        _ => (&["postgres", "collector"], &["-p", "cli", "-p", "bench"]),
    };
    if name == "page" {
        packages::browser(machine)?;
    }
    services::with(machine, services, |variables| {
        let mut build = machine.cargo();
        spawn::run(build.args(["build", "--quiet", "--release"]).args(packages))?;
        let mut cargo = machine.cargo();
        cargo.args(["run", "--quiet", "--release", "-p", "bench", "--", name]).args(rest);
        if name == "run" {
            // What people install is measured, which is built in a folder of its own.
            let mut build = machine.cargo();
            spawn::run(build.args(["build", "--quiet", "--profile", "dist", "-p", "cli"]))?;
            cargo.arg("--binary").arg(machine.target().join("dist/qualitytrace"));
        }
        spawn::run(cargo.envs(variables.iter().cloned()))
    })
}

/// `cargo xtask prove`: what tests do with a few throws of the dice, with a million.
pub(crate) fn prove(machine: &Machine, rest: &[&str]) -> Result<()> {
    // One of them kills servers, and needs the real parts.
    if rest.first() == Some(&"kill") {
        return run(machine, "prove", rest);
    }
    let mut cargo = machine.cargo();
    spawn::run(cargo.args(["run", "--quiet", "--release", "-p", "bench", "--", "prove"]).args(rest))
}

/// `cargo xtask compat`: the predecessor's own material, held against this language.
pub(crate) fn compat(machine: &Machine, rest: &[&str]) -> Result<()> {
    let mut cargo = machine.cargo();
    spawn::run(cargo.args(["run", "--quiet", "-p", "bench", "--", "compat"]).args(rest))
}

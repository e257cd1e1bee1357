//! `cargo xtask bench NAME`: the measurements of the `bench` crate, in release mode, with real servers beside them.

use anyhow::Result;

use crate::{machine::Machine, services, spawn};

pub(crate) fn run(machine: &Machine, name: &str, rest: &[&str]) -> Result<()> {
    services::with(machine, &["postgres", "collector"], |variables| {
        // The binary that is measured, beside the one that measures it.
        let mut build = machine.cargo();
        spawn::run(build.args(["build", "--quiet", "--release", "-p", "cli", "-p", "bench"]))?;
        let mut cargo = machine.cargo();
        cargo.args(["run", "--quiet", "--release", "-p", "bench", "--", name]).args(rest);
        spawn::run(cargo.envs(variables.iter().cloned()))
    })
}

//! `cargo xtask bench NAME`: the measurements of the `bench` crate, in release mode, with real servers beside them.

use anyhow::Result;

use crate::{machine::Machine, services, spawn};

pub(crate) fn run(machine: &Machine, name: &str, rest: &[&str]) -> Result<()> {
    services::with(machine, &["postgres", "collector"], |variables| {
        let mut cargo = machine.cargo();
        cargo.args(["run", "--quiet", "--release", "-p", "bench", "--", name]).args(rest);
        spawn::run(cargo.envs(variables.iter().cloned()))
    })
}

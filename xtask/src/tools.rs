//! The cargo tools that `ci` and `generate` call, each at one version, built from the crate registry into the cache.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{cache, machine::Machine, spawn};

pub(crate) struct Tool {
    pub(crate) name: &'static str,
    version: &'static str,
    programs: &'static [&'static str],
}

pub(crate) const DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", programs: &["cargo-deny"] };

const ALL: &[&Tool] = &[&DENY];

pub(crate) fn help() -> String {
    let lines: Vec<_> =
        ALL.iter().map(|tool| format!("  {} {}\n", tool.name, tool.version)).collect();
    format!("Tools:\n{}", lines.concat())
}

pub(crate) fn run(machine: &Machine, names: &[&str]) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|tool| tool.name != **name)) {
        bail!("`{unknown}` is not a tool; `cargo xtask --help` lists them");
    }
    for tool in ALL.iter().filter(|tool| names.is_empty() || names.contains(&tool.name)) {
        println!("{}", tool.bin(machine)?.display());
    }
    Ok(())
}

impl Tool {
    /// Returns the folder of the tool's programs, and builds it if this machine does not have it.
    pub(crate) fn bin(&self, machine: &Machine) -> Result<PathBuf> {
        let key = format!("{}-{}", self.name, self.version);
        let log = machine.cache.join("logs").join(format!("{key}.log"));
        cache::install(&machine.cache, &key, self.programs, |part| {
            eprintln!(
                "{key}: building it from the crate registry; some 2 minutes on two cores, once per machine"
            );
            let mut cargo = machine.cargo();
            // Not optimized: each runs for seconds, and compiling it takes minutes.
            cargo.args(["install", "--debug", "--locked", "--version", self.version, self.name]);
            cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
            cargo.arg("--root").arg(part);
            cargo.env("CARGO_TARGET_DIR", part.join("target"));
            // The checkout's own settings must not apply to the tool.
            cargo.current_dir(part).env_remove("RUSTFLAGS");
            spawn::long(machine, &mut cargo, &log)?;
            cache::remove(&part.join("target"))
        })
    }
}

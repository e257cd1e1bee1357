//! Debian packages: installed as root or through a sudo that asks nothing, and otherwise asked for.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cache, machine::Machine, spawn};

/// A file of the system that stands only while a package is installed: its path and its one line.
pub(crate) type Meanwhile = (&'static str, &'static str);

/// A shell's way to write a line into a file, in a folder that may be new.
const WRITE: &str = r#"mkdir -p "$(dirname "$1")" && printf '%s\n' "$2" > "$1""#;

/// Installs a package of the distribution, or says who has to.
pub(crate) fn install(
    machine: &Machine,
    package: &str,
    why: &str,
    meanwhile: Option<Meanwhile>,
) -> Result<()> {
    let Some(become_root) = become_root(machine) else {
        bail!(
            "{why}, and this user may not install it: run `apt-get install {package}` as root, or install it your way"
        );
    };
    let _lock = cache::lock(
        &machine.cache.join("locks/apt.lock"),
        "apt: another checkout is installing; waiting",
    )?;
    eprintln!("{why}: installing the package `{package}`; under a minute");
    let log = machine.cache.join("logs/apt.log");
    let root = |words: &[&str]| {
        let words = [&become_root[..], words].concat();
        spawn::long(machine, Command::new(words[0]).args(&words[1..]), &log)
    };
    let apt = |arguments: &[&str]| {
        let quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"];
        root(&[&quiet[..], &["-o", "DPkg::Lock::Timeout=300"], arguments].concat())
    };
    if let Some((file, line)) = meanwhile {
        eprintln!("  meanwhile `{file}` says `{line}`");
        root(&["sh", "-c", WRITE, "write", file, line])?;
    }
    let install = ["install", "--no-install-recommends", package];
    // A fresh machine has no package lists, and an old one has stale ones: both show as a failure, mended by an update.
    let installed = apt(&install).or_else(|_| apt(&["update"]).and_then(|()| apt(&install)));
    let removed = meanwhile.map_or(Ok(()), |(file, _)| root(&["rm", "-f", file]));
    installed.with_context(|| {
        format!("`{package}` could not be installed; install it your way and try again")
    })?;
    removed
}

/// Makes sure that there is a browser to look at pages with.
pub(crate) fn browser(machine: &Machine) -> Result<()> {
    match machine.in_path("chromium") {
        Some(_) => Ok(()),
        None => install(machine, "chromium", "there is no `chromium` to open pages in", None),
    }
}

/// The words to put before a command that needs root; none when there is no way to become it unasked.
fn become_root(machine: &Machine) -> Option<Vec<&'static str>> {
    machine.in_path("apt-get")?;
    if machine.is_root() {
        return Some(Vec::new());
    }
    let unasked = Command::new("sudo").args(["-n", "true"]).output();
    unasked.is_ok_and(|output| output.status.success()).then(|| vec!["sudo", "-n"])
}

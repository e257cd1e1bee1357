//! Debian packages: installed as root or through a sudo that asks nothing, and otherwise asked for.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cache, machine::Machine, spawn};

/// Installs a package of the distribution, or says who has to.
pub(crate) fn install(machine: &Machine, package: &str, why: &str) -> Result<()> {
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
    let apt = |arguments: &[&str]| {
        let mut words = become_root.clone();
        words.extend([
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "-q",
            "-y",
            "-o",
            "DPkg::Lock::Timeout=300",
        ]);
        words.extend(arguments);
        spawn::long(machine, Command::new(words[0]).args(&words[1..]), &log)
    };
    let install = ["install", "--no-install-recommends", package];
    // A fresh machine has no package lists, and an old one has stale ones: both show as a failure, mended by an update.
    apt(&install).or_else(|_| apt(&["update"]).and_then(|()| apt(&install))).with_context(|| {
        format!("`{package}` could not be installed; install it your way and try again")
    })
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

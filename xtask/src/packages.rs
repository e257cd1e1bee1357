//! Debian packages: installed as root or through a sudo without a password, otherwise the user is requested to install them; or
//! only downloaded, which any user may do.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{cache, machine::Machine, spawn};

/// A system file that exists only while a package is being installed: its path and its only line.
pub(crate) type Meanwhile = (&'static str, &'static str);

/// A shell script that writes a line into a file, and creates its folder.
const WRITE: &str = r#"mkdir -p "$(dirname "$1")" && printf '%s\n' "$2" > "$1""#;

/// apt, non-interactive, waiting for the lock of a concurrent installation.
const APT: &[&str] = &[
    "env",
    "DEBIAN_FRONTEND=noninteractive",
    "apt-get",
    "-q",
    "-y",
    "-o",
    "DPkg::Lock::Timeout=300",
];

/// Installs a package of the distribution, or fails with the command that root has to run.
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
    let root = |words: &[&str]| as_root(machine, &become_root, words);
    let apt = |arguments: &[&str]| root(&[APT, arguments].concat());
    if let Some((file, line)) = meanwhile {
        eprintln!("  meanwhile `{file}` says `{line}`");
        root(&["sh", "-c", WRITE, "write", file, line])?;
    }
    let install = ["install", "--no-install-recommends", package];
    // A fresh machine has no package lists, and an old one has stale ones: both show as a failure, which an update fixes.
    let installed = apt(&install).or_else(|_| apt(&["update"]).and_then(|()| apt(&install)));
    let removed = meanwhile.map_or(Ok(()), |(file, _)| root(&["rm", "-f", file]));
    installed.with_context(|| {
        format!("`{package}` could not be installed; install it your way and try again")
    })?;
    removed
}

/// Downloads a package of the distribution into a folder, as a file, without installing it.
pub(crate) fn download(machine: &Machine, package: &str, folder: &Path) -> Result<PathBuf> {
    if machine.in_path("apt-get").is_none() {
        bail!(
            "there is no `apt-get` to get `{package}` with: install it so that its programs are in `PATH`"
        );
    }
    let mut apt = Command::new("apt-get");
    apt.args(["-q", "download", package]).current_dir(folder);
    let mut get = || spawn::long(machine, &mut apt, &log(machine));
    // As above: an update fixes missing and stale package lists.
    get().or_else(|error| match become_root(machine) {
        Some(become_root) => {
            as_root(machine, &become_root, &[APT, &["update"]].concat()).and_then(|()| get())
        }
        None => Err(error.context("this user may not run `apt-get update`: run it as root")),
    })?;
    let files = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut files = files.into_iter().map(|file| file.path());
    files
        .find(|file| file.extension().is_some_and(|extension| extension == "deb"))
        .with_context(|| format!("`apt-get download {package}` ended well, but left no package"))
}

/// Installs a browser for page tests, unless there is one.
pub(crate) fn browser(machine: &Machine) -> Result<()> {
    match machine.in_path("chromium") {
        Some(_) => Ok(()),
        None => install(machine, "chromium", "there is no `chromium` to open pages in", None),
    }
}

fn as_root(machine: &Machine, become_root: &[&str], words: &[&str]) -> Result<()> {
    let words = [become_root, words].concat();
    spawn::long(machine, Command::new(words[0]).args(&words[1..]), &log(machine))
}

fn log(machine: &Machine) -> PathBuf {
    machine.cache.join("logs/apt.log")
}

/// Returns the prefix of a command that needs root; none if this user cannot become root without a password.
fn become_root(machine: &Machine) -> Option<Vec<&'static str>> {
    machine.in_path("apt-get")?;
    if machine.is_root() {
        return Some(Vec::new());
    }
    let unasked = Command::new("sudo").args(["-n", "true"]).output();
    unasked.is_ok_and(|output| output.status.success()).then(|| vec!["sudo", "-n"])
}

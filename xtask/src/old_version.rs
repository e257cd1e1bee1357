//! The product of an earlier commit, built once per machine: what `cargo xtask prove release-upgrade` starts before this version.
//!
//! Deliberately absent: packages of a release. A commit always gives the server of its day, whether a package of it was kept or not.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{cache, machine::Machine, programs::PRODUCT, spawn};

/// Returns the program of this commit, tag or branch, and builds it if it is missing.
pub(crate) fn program(machine: &Machine, reference: &str) -> Result<PathBuf> {
    let commit = format!("{reference}^{{commit}}");
    let commit = spawn::output(git(machine).args(["rev-parse", "--verify", "--quiet", &commit]))
        .with_context(|| {
            format!("`{reference}` is no commit of this checkout; fetch it, or name another one")
        })?;
    let key = format!("{PRODUCT}-{commit}");
    let bin = cache::install(&machine.cache, &key, &[PRODUCT], |part| {
        println!("{key}: building `{reference}`; ten minutes or more, once per machine");
        let source = part.join("source");
        spawn::run(
            git(machine)
                .args(["worktree", "add", "--quiet", "--force", "--detach"])
                .arg(&source)
                .arg(&commit),
        )?;
        let built = build(machine, &key, part, &source);
        // Git would keep the worktree in its list.
        spawn::run(git(machine).args(["worktree", "remove", "--force"]).arg(&source))?;
        built
    })?;
    Ok(bin.join(PRODUCT))
}

fn build(machine: &Machine, key: &str, part: &Path, source: &Path) -> Result<()> {
    let target = part.join("target");
    // Not the cargo that runs this program: the toolchain is that of the commit.
    let mut build = machine.command("cargo");
    build.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").current_dir(source);
    build.env("CARGO_TARGET_DIR", &target);
    build.env("SQLX_OFFLINE", "true").env_remove("DATABASE_URL");
    build.args(["build", "--locked", "-p", "cli", "--bin", PRODUCT]);
    spawn::long(machine, &mut build, &machine.cache.join("logs").join(format!("{key}.log")))?;
    let bin = part.join("bin");
    fs::create_dir_all(&bin)
        .and_then(|()| fs::copy(target.join("debug").join(PRODUCT), bin.join(PRODUCT)))
        .with_context(|| format!("`{}` cannot be written", bin.display()))?;
    cache::remove(&target)
}

fn git(machine: &Machine) -> Command {
    let mut git = Command::new("git");
    git.current_dir(&machine.root);
    git
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::machine_with_cache;

    #[test]
    fn a_reference_that_does_not_exist_is_named() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let machine = machine_with_cache(cache.path());
        let error = program(&machine, "no-such-release").expect_err("there is none");
        assert!(format!("{error:#}").contains("`no-such-release` is no commit"), "{error:#}");
    }
}

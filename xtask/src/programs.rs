//! The programs of the workspace, built with the features of tests: each step of CI reuses the artifacts of the steps before it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{machine::Machine, spawn};

/// The product's binary.
pub(crate) const PRODUCT: &str = "qualitytrace";

/// Builds all programs and examples, and returns their folder.
pub(crate) fn build(machine: &Machine) -> Result<PathBuf> {
    with(machine, &["--bins"])
}

/// Builds the product with planted faults in place of the one without, and returns its path.
pub(crate) fn planted(machine: &Machine) -> Result<PathBuf> {
    let debug = with(machine, &["--bin", PRODUCT, "--features", "cli/planted"])?;
    Ok(debug.join(PRODUCT))
}

/// The binary of the next version, beside that of this one.
const NEXT: &str = "qualitytrace-next";

/// Builds the product as it would be one version later, for tests of an upgrade, beside the one of this version.
pub(crate) fn next_version(machine: &Machine) -> Result<()> {
    copy_next(&with(machine, &["--bin", PRODUCT, "--features", "cli/next-version"])?)
}

/// Copies the product in this folder, which was built as the next version.
pub(crate) fn copy_next(folder: &Path) -> Result<()> {
    let copy = folder.join(NEXT);
    // It may be executed by another process just now.
    let half = folder.join(format!("{NEXT}.half"));
    fs::copy(folder.join(PRODUCT), &half)
        .and_then(|_| fs::rename(&half, &copy))
        .with_context(|| format!("cannot write `{}`", copy.display()))
}

fn with(machine: &Machine, arguments: &[&str]) -> Result<PathBuf> {
    let mut cargo = machine.cargo();
    // Queries are checked against the files of `generate`, whatever `DATABASE_URL` names.
    cargo.env("SQLX_OFFLINE", "true").env_remove("DATABASE_URL");
    // Examples enable the dependencies of tests, and their features.
    cargo.args(["build", "--quiet", "--workspace", "--examples"]);
    spawn::run(cargo.args(arguments))?;
    Ok(machine.target().join("debug"))
}

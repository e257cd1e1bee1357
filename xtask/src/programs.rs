//! The programs of the workspace, built with the features of tests: each step of CI reuses the artifacts of the steps before it.

use std::path::PathBuf;

use anyhow::Result;

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

fn with(machine: &Machine, arguments: &[&str]) -> Result<PathBuf> {
    let mut cargo = machine.cargo();
    // Queries are checked against the files of `generate`, whatever `DATABASE_URL` names.
    cargo.env("SQLX_OFFLINE", "true").env_remove("DATABASE_URL");
    // Examples enable the dependencies of tests, and their features.
    cargo.args(["build", "--quiet", "--workspace", "--examples"]);
    spawn::run(cargo.args(arguments))?;
    Ok(machine.target().join("debug"))
}

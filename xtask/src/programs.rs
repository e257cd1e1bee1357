//! The programs of the workspace, built with the features that tests have: what one step of CI compiled no other compiles again.

use std::path::PathBuf;

use anyhow::Result;

use crate::{machine::Machine, spawn};

/// The program that people use.
pub(crate) const PRODUCT: &str = "qualitytrace";

/// Builds all programs and examples, and says where they are.
pub(crate) fn build(machine: &Machine) -> Result<PathBuf> {
    with(machine, &["--bins"])
}

/// Builds the product with planted faults instead of the one without, and says where it is.
pub(crate) fn planted(machine: &Machine) -> Result<PathBuf> {
    let debug = with(machine, &["--bin", PRODUCT, "--features", "cli/planted"])?;
    Ok(debug.join(PRODUCT))
}

fn with(machine: &Machine, arguments: &[&str]) -> Result<PathBuf> {
    let mut cargo = machine.cargo();
    // Queries are checked against what `generate` wrote, whatever database a person names.
    cargo.env("SQLX_OFFLINE", "true").env_remove("DATABASE_URL");
    // With examples come the dependencies of tests, and their features.
    cargo.args(["build", "--quiet", "--workspace", "--examples"]);
    spawn::run(cargo.args(arguments))?;
    Ok(machine.target().join("debug"))
}

//! The crates of `lib/`, which the Rust package registry gets: each is packed from what git has.

use anyhow::{Context, Result, bail};

use crate::{
    machine::Machine,
    release::{Check, Release, Row, artefacts},
    spawn,
};

pub(crate) const CHECK: Check = Check {
    name: "crates",
    what: "cargo packs the crates of lib/; compiling them from the packed files is `cargo publish --dry-run`",
    missing: |_| None,
    run,
};

/// In the order in which they depend on each other.
const CRATES: [&str; 4] =
    ["qualitytrace-source", "qualitytrace-journal", "qualitytrace-net", "qualitytrace-telemetry"];

fn run(machine: &Machine, _release: &Release) -> Result<Vec<Row>> {
    let target = artefacts::kit(machine).join("crates");
    let mut cargo = machine.cargo();
    // The crates name each other by version, and a registry does not have these versions yet: cargo takes them from the workspace.
    cargo.args(["package", "--no-verify", "--allow-dirty", "--quiet"]);
    cargo.args(CRATES.iter().flat_map(|name| ["--package", name]));
    spawn::output(cargo.env("CARGO_TARGET_DIR", &target))?;
    let packed = artefacts::files(&target.join("package"))?;
    let mut rows = Vec::new();
    for name in CRATES {
        let file = packed.iter().find(|file| {
            file.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with("-0.") && rest.ends_with(".crate"))
        });
        let file = file.with_context(|| format!("cargo packed no `{name}`"))?;
        let path = target.join("package").join(file);
        check_content(&path)?;
        rows.push(Row {
            artefact: file.clone(),
            bytes: Some(path.metadata()?.len()),
            installed_in: None,
            green_in: None,
        });
    }
    Ok(rows)
}

/// Rejects a crate without its sources or with a dependency that has no version.
fn check_content(file: &std::path::Path) -> Result<()> {
    let mut tar = std::process::Command::new("tar");
    let listed = spawn::output(tar.args(["--list", "--gzip", "--file"]).arg(file))?;
    for expected in ["/Cargo.toml", "/src/lib.rs"] {
        if !listed.lines().any(|line| line.ends_with(expected)) {
            bail!("`{}` has no `{expected}`", file.display());
        }
    }
    Ok(())
}

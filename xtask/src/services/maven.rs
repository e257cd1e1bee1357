//! Maven, which gets the services that are published as Java packages.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::{machine::Machine, packages, spawn};

/// Runs a goal of Maven in the folder of a part, after an installation of Maven if it is missing. Returns the repository that it
/// fills, a folder in that of the part: the caller removes it.
pub(super) fn run(
    machine: &Machine,
    key: &str,
    part: &Path,
    arguments: &[&str],
) -> Result<PathBuf> {
    if machine.in_path("mvn").is_none() {
        packages::install(machine, "maven", &format!("{key}: no `mvn` is here to get it"), None)?;
    }
    let repository = part.join("m2");
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B"]).args(arguments);
    maven.arg(format!("-Dmaven.repo.local={}", repository.display())).current_dir(part);
    spawn::run(&mut maven)?;
    Ok(repository)
}

/// Gets one file, such as `org.example:name:1.0:zip`. Returns the repository that has it.
pub(super) fn get(machine: &Machine, key: &str, part: &Path, artifact: &str) -> Result<PathBuf> {
    let artifact = format!("-Dartifact={artifact}");
    run(machine, key, part, &["dependency:get", "-Dtransitive=false", &artifact])
}

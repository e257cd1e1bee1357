//! `release publish`: what would be uploaded, and why it is not.
//!
//! Uploads are jobs of the workflow on the forge: each registry trusts that workflow by its identity, so that there is no token in
//! the repository that could be lost. This command shows the same list on any machine, and checks what those jobs rely on.

use std::fs;

use anyhow::{Result, bail};

use super::{
    artefacts::{REPOSITORY, Release, SUMS},
    options::Options,
};
use crate::{machine::Machine, spawn};

/// Where files go, by how their names end.
const DESTINATIONS: [(&str, &str); 3] = [
    (".whl", "the Python package registry"),
    (".tgz", "the npm registry"),
    ("-image.oci.tar", "the registry of images"),
];

pub(crate) fn run(machine: &Machine, release: &Release, _options: &Options) -> Result<()> {
    let tag = format!("v{}", release.version);
    for name in release.names()? {
        let bytes = fs::metadata(release.file(&name))?.len();
        println!("would upload {name} ({bytes} bytes) to {}", destination(&name, &tag));
    }
    println!("would publish the crates of lib/ to the Rust package registry");
    let mut missing = Vec::new();
    if !release.file(SUMS).is_file() {
        missing.push(format!("{SUMS}: run `cargo xtask release package`"));
    }
    let tags = spawn::output(machine.command("git").args(["tag", "--points-at", "HEAD"]));
    if !tags.is_ok_and(|tags| tags.lines().any(|it| it == tag)) {
        missing.push(format!("the tag `{tag}` on this commit"));
    }
    let changes = spawn::output(machine.command("git").args(["status", "--porcelain"]));
    if changes.is_ok_and(|changes| !changes.is_empty()) {
        missing.push("a checkout without changes".to_owned());
    }
    if machine.find("ACTIONS_ID_TOKEN_REQUEST_URL").is_none() {
        missing.push(
            "the identity of the release workflow (`ACTIONS_ID_TOKEN_REQUEST_URL`): registries accept no other".to_owned(),
        );
    }
    if missing.is_empty() {
        println!("everything is there: the jobs of the workflow `release` upload these files");
        return Ok(());
    }
    bail!("nothing was published; missing: {}", missing.join("; "))
}

/// Returns where a file goes. A chart ends like a package of npm.
fn destination(name: &str, tag: &str) -> String {
    let known = DESTINATIONS.iter().find(|(end, _)| name.ends_with(end));
    match known {
        _ if name.ends_with("-chart.tgz") => "the registry of images, as a chart".to_owned(),
        Some((_, registry)) => format!("{registry}, and {REPOSITORY}/releases/tag/{tag}"),
        None => format!("{REPOSITORY}/releases/tag/{tag}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_destination() {
        let cases = [
            ("qualitytrace-0.1.0.tgz", "the npm registry"),
            ("qualitytrace-0.1.0-chart.tgz", "as a chart"),
            ("a.whl", "the Python package registry"),
            ("SHA256SUMS", "/releases/tag/v0.1.0"),
        ];
        for (name, expected) in cases {
            let found = destination(name, "v0.1.0");
            assert!(found.contains(expected), "{name}: {found}");
        }
    }
}

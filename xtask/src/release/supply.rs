//! The supply chain of a release: what each binary is made of, under which licences, and how the binary itself lists it.
//!
//! Three sources, each for one question. `cargo tree` states which crates are compiled for a target, at the features of that
//! build. The page's own build states which npm packages are in the page. `cargo-about` finds the texts of the licences.
//! See docs/adr/0052-supply-chain.md for the reasons, and for what was measured of the tools that are not used.

mod bom;
mod crates;
mod embedded;
mod json;
mod licences;
mod page;
mod rust_library;

use std::process::Command;

use anyhow::Result;

use super::{
    Release,
    artefacts::{self, binaries},
    package,
};
use crate::{machine::Machine, programs::PRODUCT, spawn};

/// The package that has the binary. A build that names it alone has the features that the files of this module state.
pub(crate) const PACKAGE: &str = "cli";

/// Writes what the binary for a target is made of, `<archive>.cdx.json`, in the form of CycloneDX 1.6.
///
/// The same commit gives the same bytes: its time is `SOURCE_DATE_EPOCH`, else that of the commit, and it has no serial number.
pub(crate) fn write(machine: &Machine, release: &Release, target: &str) -> Result<()> {
    let text = bom::of_binary(&provenance(machine, release)?, &binary(machine, target)?)?;
    artefacts::write(&release.file(&format!("{}.cdx.json", release.archive(target))), text)
}

/// A part of an image that is from a package of Debian, such as the root certificates.
#[derive(Debug)]
pub(crate) struct DebianPart {
    /// Of the package, such as `ca-certificates`.
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression.
    pub(crate) licence: String,
}

/// Writes what the image is made of, `qualitytrace-VERSION-image.cdx.json`: the binaries of all its platforms, and parts of Debian.
pub(crate) fn write_image(
    machine: &Machine,
    release: &Release,
    targets: &[&str],
    parts: &[DebianPart],
) -> Result<()> {
    let binaries = targets.iter().map(|target| binary(machine, target));
    let binaries = binaries.collect::<Result<Vec<_>>>()?;
    let text = bom::of_image(&provenance(machine, release)?, &binaries, parts)?;
    artefacts::write(
        &release.file(&format!("qualitytrace-{}-image.cdx.json", release.version)),
        text,
    )
}

/// Returns the Markdown of the licences of third parties: of the crates and the libraries in the binary, for any of its targets,
/// and of the packages in its page.
pub(crate) fn licences(machine: &Machine) -> Result<String> {
    licences::markdown(machine)
}

/// Returns a cargo that embeds the list of crates into the program that it builds for a target, as rustc names it. The caller adds
/// the command, `build` or `zigbuild`, and its arguments.
pub(crate) fn auditable(machine: &Machine, target: &str) -> Result<Command> {
    embedded::cargo(machine, target)
}

fn binary(machine: &Machine, target: &str) -> Result<bom::Binary> {
    Ok(bom::Binary {
        target: target.to_owned(),
        sha256: package::sum(&binaries(machine, target).join(PRODUCT))?,
        crates: crates::read(machine, target)?,
        packages: page::packages(machine)?,
    })
}

fn provenance(machine: &Machine, release: &Release) -> Result<bom::Provenance> {
    let rustc = spawn::output(machine.command("rustc").arg("--version"))?;
    Ok(bom::Provenance {
        version: release.version.clone(),
        epoch: artefacts::epoch(machine)?,
        rustc,
    })
}

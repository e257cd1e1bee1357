//! The archive for aarch64: the first run through an emulator of the processor.

use anyhow::{Context, Result};

use super::{
    Check, Row,
    first_run::{self, Place},
    root::{self, Root, User},
};
use crate::{
    machine::Machine,
    release::{
        Release,
        artefacts::{AARCH64, size},
    },
};

pub(crate) const CHECK: Check = Check {
    name: "aarch64",
    what: "the archive for aarch64 is used in a fresh Debian, through qemu-user",
    missing: |machine| {
        let no_qemu =
            || machine.in_path(QEMU).is_none().then(|| format!("there is no `{QEMU}` in `PATH`"));
        root::missing(machine).or_else(no_qemu).or_else(|| no_archive(machine))
    },
    run,
};

const QEMU: &str = "qemu-aarch64-static";

/// Starts the program through the emulator, whether or not the kernel knows it.
const LAUNCHER: &str = r#"#!/bin/sh
exec /usr/local/bin/qemu-aarch64-static /opt/qualitytrace/qualitytrace "$@"
"#;

/// A release on a small machine may be for x86_64 only.
fn no_archive(machine: &Machine) -> Option<String> {
    let release = Release::of(machine).ok()?;
    let archive = format!("{}.tar.gz", release.archive(AARCH64.triple));
    (!release.file(&archive).is_file()).then(|| format!("the release has no `{archive}`"))
}

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let archive = format!("{}.tar.gz", release.archive(AARCH64.triple));
    let root = Root::fresh(machine, CHECK.name)?;
    root.put(
        &machine.in_path(QEMU).context("it is in `PATH`")?,
        "/usr/local/bin/qemu-aarch64-static",
    )?;
    root.put(&release.file(&archive), "/tmp/archive.tar.gz")?;
    let folder = release.archive(AARCH64.triple);
    let script = format!("cd /opt; tar -xzf /tmp/archive.tar.gz; mv {folder} qualitytrace");
    let installed_in = root.run(User::Root, &script)?;
    std::fs::write(root.path("/usr/local/bin/qualitytrace"), LAUNCHER)?;
    root.run(User::Root, "chmod 755 /usr/local/bin/qualitytrace")?;
    let place = Place { user: User::Tester, before: "", manual: "", completions: "" };
    let green_in = first_run::make(&root, place)?;
    Ok(vec![Row {
        bytes: Some(size(release, &archive)?),
        artefact: archive,
        installed_in: Some(installed_in),
        green_in: Some(green_in),
    }])
}

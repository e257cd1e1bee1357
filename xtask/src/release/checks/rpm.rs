//! The rpm: its files, its digests, and an installation into an empty root.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use super::{
    Check, Row,
    first_run::{self, Place},
    root::{self, Root, User},
};
use crate::{
    cache,
    machine::Machine,
    release::{
        Release,
        artefacts::{TARGETS, X86_64, size},
    },
    spawn,
};

pub(crate) const CHECK: Check = Check {
    name: "rpm",
    what: "rpm lists, verifies and installs the rpm for x86_64 into an empty root; the program runs from there",
    missing: |machine| {
        let no_rpm =
            || machine.in_path("rpm").is_none().then(|| "there is no `rpm` in `PATH`".to_owned());
        root::missing(machine).or_else(no_rpm)
    },
    run,
};

/// Files that the package must have.
const FILES: [&str; 8] = [
    "/usr/bin/qualitytrace",
    "/usr/lib/systemd/system/qualitytrace.service",
    "/etc/qualitytrace/quality-trace-config.yaml",
    "/usr/share/man/man1/qualitytrace.1.gz",
    "/usr/share/bash-completion/completions/qualitytrace",
    "/usr/share/zsh/site-functions/_qualitytrace",
    "/usr/share/fish/vendor_completions.d/qualitytrace.fish",
    "/usr/share/doc/qualitytrace/copyright",
];

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    for target in TARGETS {
        let rpm = release.file(&release.rpm(target));
        if rpm.is_file() {
            check_file(&rpm, target.rpm).with_context(|| rpm.display().to_string())?;
        }
    }
    let name = release.rpm(&X86_64);
    let rpm = release.file(&name);
    let folder = machine.state().join("release/rpm-root");
    cache::remove(&folder)?;
    fs::create_dir_all(&folder)?;
    let began = (machine.clock.now)();
    // The scripts need a shell, which an empty root does not have.
    rpm_in(&folder, &["--install", "--noscripts", "--ignorearch"], &rpm)?;
    let installed_in = (machine.clock.now)() - began;
    let installed = folder.join("usr/bin/qualitytrace");
    let root = Root::fresh(machine, CHECK.name)?;
    for file in FILES {
        root.put(&folder.join(file.trim_start_matches('/')), file)
            .with_context(|| format!("`{file}` was not installed"))?;
    }
    for page in fs::read_dir(folder.join("usr/share/man/man1"))? {
        let page = page?;
        let place = format!("/usr/share/man/man1/{}", page.file_name().to_string_lossy());
        root.put(&page.path(), &place)?;
    }
    let place = Place { user: User::Tester, before: "", manual: "/usr", completions: "/usr" };
    let green_in = first_run::make(&root, place)?;
    let mut erase = Command::new("rpm");
    erase.arg("--root").arg(&folder).args(["--erase", "--noscripts", "qualitytrace"]);
    spawn::output(&mut erase)?;
    if installed.exists() {
        bail!("`rpm --erase` left `{}`", installed.display());
    }
    cache::remove(&folder)?;
    Ok(vec![Row {
        bytes: Some(size(release, &name)?),
        artefact: name,
        installed_in: Some(installed_in),
        green_in: Some(green_in),
    }])
}

fn rpm_in(root: &Path, flags: &[&str], rpm: &Path) -> Result<()> {
    let mut command = Command::new("rpm");
    spawn::output(command.arg("--root").arg(root).args(flags).arg(rpm)).map(drop)
}

/// Checks the list of files, the digests and the architecture of a package.
fn check_file(rpm: &Path, architecture: &str) -> Result<()> {
    let listed =
        spawn::output(Command::new("rpm").args(["--query", "--list", "--package"]).arg(rpm))?;
    if let Some(missing) = FILES.iter().find(|file| !listed.lines().any(|line| line == **file)) {
        bail!("`{missing}` is not in it");
    }
    let mut query = Command::new("rpm");
    query.args(["--query", "--package", "--queryformat", "%{ARCH} %{LICENSE} %{BUILDHOST}"]);
    let facts = spawn::output(query.arg(rpm))?;
    let expected = format!("{architecture} Apache-2.0 localhost");
    if facts != expected {
        bail!("its facts are `{facts}`: expected `{expected}`");
    }
    let configuration = spawn::output(
        Command::new("rpm").args(["--query", "--configfiles", "--package"]).arg(rpm),
    )?;
    if configuration != FILES[2] {
        bail!("its configuration files are `{configuration}`: expected `{}`", FILES[2]);
    }
    spawn::output(Command::new("rpm").arg("--checksig").arg(rpm)).map(drop)
}

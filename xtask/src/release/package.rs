//! `release package`: every file of the release from the programs that are built. The same programs give the same bytes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{
    archive,
    artefacts::{self, Release, SUMS, Target},
    build, generated, image, linux, npm,
    options::Options,
    supply, wheel,
};
use crate::{cache, machine::Machine, programs::PRODUCT, spawn};

/// What all files of a release are made from.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) release: &'a Release,
    /// A folder for what goes into the files.
    pub(crate) stage: PathBuf,
    /// The time of every file in every file.
    pub(crate) epoch: u64,
    pub(crate) targets: Vec<&'static Target>,
}

pub(crate) fn run(machine: &Machine, release: &Release, options: &Options) -> Result<()> {
    build::take(machine, options)?;
    let targets = if options.triples.is_empty() {
        artefacts::built(machine)
    } else {
        let is_named = |it: &&Target| options.targets().contains(it);
        artefacts::built(machine).into_iter().filter(is_named).collect()
    };
    if targets.is_empty() {
        bail!(
            "no program is built: run `cargo xtask release build`, or name one with `--target TRIPLE --binary FILE`"
        );
    }
    for target in &targets {
        println!("{}: the program was {}", target.triple, build::origin(machine, target));
    }
    write(machine, release, &targets)?;
    for name in release.names()? {
        println!("{:>12}  {name}", fs::metadata(release.file(&name))?.len());
    }
    if options.is_twice {
        println!("{}", twice(machine, release, &targets)?);
    }
    Ok(())
}

/// Packages once more in another folder, and compares every file.
pub(crate) fn twice(
    machine: &Machine,
    release: &Release,
    targets: &[&'static Target],
) -> Result<String> {
    let folder = artefacts::kit(machine).join("again").join(&release.version);
    let again = Release { folder, version: release.version.clone() };
    write(machine, &again, targets)?;
    let names = again.names()?;
    let differs =
        |name: &&String| fs::read(release.file(name)).ok() != fs::read(again.file(name)).ok();
    let differing: Vec<_> = names.iter().filter(differs).map(String::as_str).collect();
    if !differing.is_empty() {
        bail!(
            "packaged twice, these differ (was the release packaged at another commit?): {}; see `{}`",
            differing.join(", "),
            again.folder.display()
        );
    }
    Ok(format!("packaged twice: {} files, all equal", names.len()))
}

/// Writes all files of the release into its folder, in place of those that were there.
fn write(machine: &Machine, release: &Release, targets: &[&'static Target]) -> Result<()> {
    // Beside the folder: `with_extension` would take the last number of the version for one.
    let stage = release.folder.with_file_name(format!("{}.stage", release.version));
    for folder in [&release.folder, &stage] {
        cache::remove(folder)?;
        fs::create_dir_all(folder)
            .with_context(|| format!("`{}` cannot be made", folder.display()))?;
    }
    let epoch = artefacts::epoch(machine)?;
    let source = Source { machine, release, stage, epoch, targets: targets.to_vec() };
    pages(&source)?;
    artefacts::write(&source.stage.join(artefacts::LICENCES), supply::licences(machine)?)?;
    for target in targets {
        archive::write(&source, target)?;
        linux::write(&source, target)?;
        npm::write_program(&source, target)?;
        wheel::write(&source, target)?;
        supply::write(machine, release, target.triple)?;
    }
    npm::write_launcher(&source)?;
    generated::write(&source)?;
    source.tar(&machine.root.join("deploy/helm"), PRODUCT, &chart(release))?;
    match image::missing(machine) {
        None => drop(image::package(machine, release, epoch)?),
        Some(why) => eprintln!("package: without the image: {why}"),
    }
    write_sums(release)
}

/// Returns the name of the chart. Helm's own name for it is that of the npm package.
fn chart(release: &Release) -> String {
    format!("qualitytrace-{}-chart.tgz", release.version)
}

/// Returns the names of the files that this makes.
pub(crate) fn names(release: &Release, targets: &[&'static Target]) -> Vec<String> {
    let mut names = Vec::new();
    for target in targets {
        names.extend([
            format!("{}.tar.gz", release.archive(target.triple)),
            release.deb(target),
            release.rpm(target),
            release.npm(target),
            release.wheel(target),
            format!("{}.cdx.json", release.archive(target.triple)),
        ]);
    }
    names.extend([npm::launcher(release), generated::INSTALLER.into(), generated::FORMULA.into()]);
    names.push(chart(release));
    names.push(format!("qualitytrace-{}-image.oci.tar", release.version));
    names.push(format!("qualitytrace-{}-image.cdx.json", release.version));
    names.push(SUMS.to_owned());
    names
}

/// Writes the checksums of all files in the folder of the release. Every command that adds a file calls it again.
pub(crate) fn write_sums(release: &Release) -> Result<()> {
    let names: Vec<_> = release.names()?.into_iter().filter(|name| name != SUMS).collect();
    let mut sums = Command::new("sha256sum");
    let sums = spawn::output(sums.arg("--").args(&names).current_dir(&release.folder))?;
    artefacts::write(&release.file(SUMS), sums + "\n")
}

/// Returns the checksum of a file, as hexadecimal digits.
pub(crate) fn sum(file: &Path) -> Result<String> {
    let line = spawn::output(Command::new("sha256sum").arg("--").arg(file))?;
    let sum = line.split_whitespace().next().context("`sha256sum` prints a checksum first")?;
    Ok(sum.trim_start_matches('\\').to_owned())
}

impl Source<'_> {
    /// Returns the program for a target.
    pub(crate) fn program(&self, target: &Target) -> PathBuf {
        artefacts::binaries(self.machine, target.triple).join(PRODUCT)
    }

    /// Returns the folder of the manual pages.
    pub(crate) fn man(&self) -> PathBuf {
        self.stage.join("man")
    }

    /// Returns the folder of the completions.
    pub(crate) fn completions(&self) -> PathBuf {
        self.stage.join("completions")
    }

    /// Packs a folder of the stage, by name and without anything of this machine, into a file of the release.
    pub(crate) fn tar(&self, parent: &Path, folder: &str, name: &str) -> Result<()> {
        let tar = self.stage.join("part.tar");
        let mut command = Command::new("tar");
        command.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0"]);
        command.args(["--numeric-owner", "--mode=u=rwX,go=rX"]);
        command.arg(format!("--mtime=@{}", self.epoch));
        spawn::output(command.arg("--file").arg(&tar).arg("--directory").arg(parent).arg(folder))?;
        spawn::output(Command::new("gzip").args(["-n", "-9", "-f"]).arg(&tar))?;
        let packed = self.stage.join("part.tar.gz");
        let file = self.release.file(name);
        fs::rename(&packed, &file).with_context(|| format!("cannot write `{}`", file.display()))
    }
}

/// Writes the manual pages and the completions, as the program prints them: they are the same for all targets.
fn pages(source: &Source<'_>) -> Result<()> {
    let mut commands =
        source.targets.iter().filter_map(|it| build::runnable(source.machine, &source.program(it)));
    let first = commands.next().context(
        "this machine can run none of the programs, and they print the manual pages: install `qemu-user-static`",
    )?;
    let command = || {
        let mut command = Command::new(first.get_program());
        command.args(first.get_args()).env("SOURCE_DATE_EPOCH", source.epoch.to_string());
        command
    };
    fs::create_dir_all(source.man())?;
    spawn::output(command().args(["man", "--output"]).arg(source.man()))?;
    for (shell, file) in archive::COMPLETIONS {
        let script = spawn::output(command().args(["completion", shell]))?;
        artefacts::write(&source.completions().join(file), script + "\n")?;
    }
    Ok(())
}

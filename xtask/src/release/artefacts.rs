//! The files of a release, their names, and the targets that they are made for.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{machine::Machine, programs::PRODUCT, spawn};

/// Where the repository is, and so the files of its releases.
pub(crate) const REPOSITORY: &str = "https://github.com/qualitytrace/qualitytrace";

/// A target of the release, with the name that each kind of package gives to its processor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// As rustc names it, and with it the names of archives.
    pub(crate) triple: &'static str,
    /// As cargo-zigbuild names it: a target with glibc ends with the oldest glibc that it runs with.
    pub(crate) zig: &'static str,
    pub(crate) deb: &'static str,
    pub(crate) rpm: &'static str,
    pub(crate) npm: &'static str,
    /// The platform tag of the wheel. A static program runs with every libc, and pip wants both named.
    pub(crate) wheel: &'static str,
}

pub(crate) const X86_64: Target = Target {
    triple: "x86_64-unknown-linux-musl",
    zig: "x86_64-unknown-linux-musl",
    deb: "amd64",
    rpm: "x86_64",
    npm: "x64",
    wheel: "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
};

pub(crate) const AARCH64: Target = Target {
    triple: "aarch64-unknown-linux-musl",
    zig: "aarch64-unknown-linux-musl",
    deb: "arm64",
    rpm: "aarch64",
    npm: "arm64",
    wheel: "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
};

/// What a release is made for. A release with glibc changes `triple`, `zig` and `wheel` of both, and nothing else.
pub(crate) const TARGETS: [&Target; 2] = [&X86_64, &AARCH64];

/// What `release build` can build besides, to compare it with what is released.
pub(crate) const COMPARISON: &str = "x86_64-unknown-linux-gnu.2.17";

/// The checksums of all other files.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// The licences of what the program is linked with.
pub(crate) const LICENCES: &str = "THIRD-PARTY-LICENSES.md";

/// The files of one release, in one folder.
#[derive(Debug)]
pub(crate) struct Release {
    /// `<target folder>/release-kit/<version>`: everything that is published, and nothing else.
    pub(crate) folder: PathBuf,
    /// Such as `0.1.0`.
    pub(crate) version: String,
}

impl Release {
    /// Returns the release of this checkout's version.
    pub(crate) fn of(machine: &Machine) -> Result<Self> {
        let manifest = machine.root.join("Cargo.toml");
        let text = fs::read_to_string(&manifest)
            .with_context(|| format!("`{}` cannot be read", manifest.display()))?;
        let version = version(&text).with_context(|| {
            format!("`{}` has no `version` in `[workspace.package]`", manifest.display())
        })?;
        Ok(Self { folder: kit(machine).join(&version), version })
    }

    /// Returns the path of a file of the release.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the name of the archive for a target, without its ending; it is the name of the folder within it too.
    pub(crate) fn archive(&self, target: &str) -> String {
        format!("{PRODUCT}-{}-{target}", self.version)
    }

    pub(crate) fn deb(&self, target: &Target) -> String {
        format!("{PRODUCT}_{}_{}.deb", self.version, target.deb)
    }

    pub(crate) fn rpm(&self, target: &Target) -> String {
        format!("{PRODUCT}-{}-1.{}.rpm", self.version, target.rpm)
    }

    /// Returns the name of the npm package with the program for a target.
    pub(crate) fn npm(&self, target: &Target) -> String {
        format!("{}-{}.tgz", npm_package(target), self.version)
    }

    pub(crate) fn wheel(&self, target: &Target) -> String {
        format!("{PRODUCT}-{}-py3-none-{}.whl", self.version, target.wheel)
    }

    /// Returns the names of all files of the release, in the order of their bytes.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        files(&self.folder).context("there is no release: run `cargo xtask release package`")
    }
}

/// Returns the name of the npm package with the program for a target.
pub(crate) fn npm_package(target: &Target) -> String {
    format!("{PRODUCT}-linux-{}", target.npm)
}

/// Returns the folder of releases, and of what they are made from.
pub(crate) fn kit(machine: &Machine) -> PathBuf {
    machine.target().join("release-kit")
}

/// Returns the folder of the program that packages for a target carry.
pub(crate) fn binaries(machine: &Machine, triple: &str) -> PathBuf {
    kit(machine).join("binaries").join(triple)
}

/// Returns the targets that have a program to package.
pub(crate) fn built(machine: &Machine) -> Vec<&'static Target> {
    let is_built = |it: &&Target| binaries(machine, it.triple).join(PRODUCT).is_file();
    TARGETS.into_iter().filter(is_built).collect()
}

/// Returns the time of everything in a release: `SOURCE_DATE_EPOCH`, else the time of the commit.
pub(crate) fn epoch(machine: &Machine) -> Result<u64> {
    if let Some(set) = machine.find("SOURCE_DATE_EPOCH") {
        let text = set.to_string_lossy();
        return text
            .parse()
            .with_context(|| format!("`SOURCE_DATE_EPOCH` is `{text}`: expected seconds"));
    }
    let time = spawn::output(machine.command("git").args([
        "log",
        "-1",
        "--no-show-signature",
        "--format=%ct",
    ]));
    time.context("the time of the commit; set `SOURCE_DATE_EPOCH` where there is no git")?
        .parse()
        .context("git prints the time of a commit in seconds")
}

/// Copies a file with its mode, and creates the folder that it gets into.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let parent = to.parent().context("a file stands in a folder")?;
    fs::create_dir_all(parent)
        .and_then(|()| fs::copy(from, to))
        .with_context(|| format!("cannot copy `{}` to `{}`", from.display(), to.display()))?;
    Ok(())
}

/// Returns the bytes of a file of the release.
pub(crate) fn size(release: &Release, name: &str) -> Result<u64> {
    let file = release.file(name);
    let metadata = fs::metadata(&file).with_context(|| {
        format!("`{}` is not in the release: run `cargo xtask release package`", file.display())
    })?;
    Ok(metadata.len())
}

/// Returns the names of the files in a folder, in the order of their bytes.
pub(crate) fn files(folder: &Path) -> Result<Vec<String>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("`{}` cannot be read", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// Writes a file, and creates its folder.
pub(crate) fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let parent = file.parent().context("a file stands in a folder")?;
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(file, content))
        .with_context(|| format!("cannot write `{}`", file.display()))
}

/// Finds the version of the workspace in its manifest.
fn version(manifest: &str) -> Option<String> {
    let (_, package) = manifest.split_once("[workspace.package]")?;
    let lines = package.lines().skip(1).take_while(|line| !line.starts_with('['));
    let mut values = lines.filter_map(|line| line.split_once('='));
    let (_, value) = values.find(|(key, _)| key.trim() == "version")?;
    Some(value.trim().trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_workspace() {
        let manifest = "[a]\nversion = \"1\"\n[workspace.package]\nedition = \"2024\"\nversion = \"0.1.0\"\n[b]\n";
        assert_eq!(version(manifest).as_deref(), Some("0.1.0"));
        let elsewhere = "[workspace.package]\nedition = \"2024\"\n[b]\nversion = \"0.1.0\"\n";
        assert_eq!(version(elsewhere), None);
    }

    #[test]
    fn names_are_those_that_each_tool_expects() {
        let release = Release { folder: PathBuf::new(), version: "0.1.0".to_owned() };
        let names = [
            (release.archive(X86_64.triple), "qualitytrace-0.1.0-x86_64-unknown-linux-musl"),
            (release.deb(&AARCH64), "qualitytrace_0.1.0_arm64.deb"),
            (release.rpm(&X86_64), "qualitytrace-0.1.0-1.x86_64.rpm"),
            (release.npm(&X86_64), "qualitytrace-linux-x64-0.1.0.tgz"),
            (
                release.wheel(&AARCH64),
                "qualitytrace-0.1.0-py3-none-manylinux_2_17_aarch64.musllinux_1_1_aarch64.whl",
            ),
        ];
        for (name, expected) in names {
            assert_eq!(name, expected);
        }
    }
}

//! `install.sh` and the formula of Homebrew: text with the checksums of the archives in it.

use std::{fs, os::unix::fs::PermissionsExt};

use anyhow::Result;

use super::{
    artefacts::{self, REPOSITORY},
    package::{self, Source},
    template,
};

pub(crate) const INSTALLER: &str = "install.sh";
pub(crate) const FORMULA: &str = "qualitytrace.rb";

pub(crate) fn write(source: &Source<'_>) -> Result<()> {
    let release = source.release;
    let version = release.version.as_str();
    let (mut sums, mut blocks) = (Vec::new(), Vec::new());
    for target in &source.targets {
        let archive = format!("{}.tar.gz", release.archive(target.triple));
        let sum = package::sum(&release.file(&archive))?;
        let processor = if target.rpm == "x86_64" { "intel" } else { "arm" };
        let url = format!("{REPOSITORY}/releases/download/v{version}/{archive}");
        blocks.push(format!(
            "    on_{processor} do\n      url \"{url}\"\n      sha256 \"{sum}\"\n    end\n"
        ));
        sums.push(format!("{sum}  {archive}\n"));
    }
    let (sums, blocks) = (sums.concat(), blocks.concat());
    let values = [("VERSION", version), ("REPOSITORY", REPOSITORY), ("SUMS", sums.trim_end())];
    let script = template::filled(source.machine, INSTALLER, &values)?;
    artefacts::write(&release.file(INSTALLER), script)?;
    fs::set_permissions(release.file(INSTALLER), fs::Permissions::from_mode(0o755))?;
    let values = [("VERSION", version), ("REPOSITORY", REPOSITORY), ("TARGETS", blocks.trim_end())];
    let formula = template::filled(source.machine, FORMULA, &values)?;
    artefacts::write(&release.file(FORMULA), formula)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::release::{Release, artefacts::X86_64};

    /// `cargo binstall` reads where the archive is from the manifest of the crate.
    const MANIFEST: &str = include_str!("../../../crates/cli/Cargo.toml");
    const NFPM: &str = include_str!("../../../packaging/nfpm.yaml");

    #[test]
    fn binstall_finds_the_archive_and_the_program_in_it() {
        let release = Release { folder: PathBuf::new(), version: "1.2.3".to_owned() };
        let archive = release.archive(X86_64.triple);
        let values =
            [("{ version }", "1.2.3"), ("{ target }", X86_64.triple), ("{ bin }", "qualitytrace")];
        let filled = values
            .iter()
            .fold(MANIFEST.to_owned(), |text, (place, value)| text.replace(place, value));
        let url = format!("pkg-url = \"{REPOSITORY}/releases/download/v1.2.3/{archive}.tar.gz\"");
        let program = format!("bin-dir = \"{archive}/qualitytrace\"");
        for line in [&url, &program] {
            assert!(filled.lines().any(|it| it == line), "`{line}` is not in\n{filled}");
        }
    }

    #[test]
    fn packages_name_the_repository() {
        let line = format!("homepage: {REPOSITORY}");
        assert!(NFPM.lines().any(|it| it == line), "`{line}` is not in\n{NFPM}");
    }
}

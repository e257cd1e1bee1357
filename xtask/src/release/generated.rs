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

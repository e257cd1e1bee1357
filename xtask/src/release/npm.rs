//! npm: a package per target with the program, and one that starts the right one. No package runs a script when it is installed.

use anyhow::Result;

use super::{
    artefacts::{self, LICENCES, REPOSITORY, Release, Target},
    package::Source,
    template,
};
use crate::programs::PRODUCT;

/// The folder in every npm package.
const FOLDER: &str = "package";

/// Returns the name of the file of the package that users install.
pub(crate) fn launcher(release: &Release) -> String {
    format!("{PRODUCT}-{}.tgz", release.version)
}

/// Writes the package with the program for a target.
pub(crate) fn write_program(source: &Source<'_>, target: &Target) -> Result<()> {
    let name = artefacts::npm_package(target);
    let parent = source.stage.join("npm").join(&name);
    let folder = parent.join(FOLDER);
    let values = [
        ("NAME", name.as_str()),
        ("VERSION", &source.release.version),
        ("REPOSITORY", REPOSITORY),
        ("CPU", target.npm),
    ];
    let manifest = template::filled(source.machine, "npm/program.json", &values)?;
    artefacts::write(&folder.join("package.json"), manifest)?;
    let values = [("NAME", name.as_str()), ("CPU", target.npm)];
    let page = template::filled(source.machine, "npm/program.md", &values)?;
    artefacts::write(&folder.join("README.md"), page)?;
    artefacts::copy(&source.machine.root.join("LICENSE"), &folder.join("LICENSE"))?;
    artefacts::copy(&source.stage.join(LICENCES), &folder.join(LICENCES))?;
    artefacts::copy(&source.program(target), &folder.join("bin").join(PRODUCT))?;
    source.tar(&parent, FOLDER, &source.release.npm(target))
}

/// Writes the package that users install: it names one optional package per target, and npm installs the one that fits.
pub(crate) fn write_launcher(source: &Source<'_>) -> Result<()> {
    let parent = source.stage.join("npm").join(PRODUCT);
    let folder = parent.join(FOLDER);
    let version = &source.release.version;
    let platform = |it: &&Target| format!("    \"{}\": \"{version}\"", artefacts::npm_package(it));
    let platforms: Vec<_> = source.targets.iter().map(platform).collect();
    let pages = artefacts::files(&source.man())?;
    let pages: Vec<_> = pages.iter().map(|page| format!("    \"./man/{page}\"")).collect();
    let values = [
        ("VERSION", version.as_str()),
        ("REPOSITORY", REPOSITORY),
        ("PLATFORMS", &platforms.join(",\n")),
        ("PAGES", &pages.join(",\n")),
    ];
    let manifest = template::filled(source.machine, "npm/launcher.json", &values)?;
    artefacts::write(&folder.join("package.json"), manifest)?;
    for (from, to) in [("npm/launcher.md", "README.md"), ("npm/launcher.js", "bin/qualitytrace.js")]
    {
        let from = source.machine.root.join("packaging").join(from);
        artefacts::copy(&from, &folder.join(to))?;
    }
    for page in artefacts::files(&source.man())? {
        artefacts::copy(&source.man().join(&page), &folder.join("man").join(&page))?;
    }
    artefacts::copy(&source.machine.root.join("LICENSE"), &folder.join("LICENSE"))?;
    source.tar(&parent, FOLDER, &launcher(source.release))
}

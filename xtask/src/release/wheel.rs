//! The wheel for a target: the program as a script of the package, so that pip puts it into the folder of programs.

use std::process::Command;

use anyhow::{Context, Result};

use super::{
    archive::COMPLETIONS,
    artefacts::{self, LICENCES, REPOSITORY, Target},
    package::Source,
    template,
};
use crate::{programs::PRODUCT, spawn};

/// Where bash, zsh and fish look below a prefix for the completions of installed programs.
pub(crate) const COMPLETION_FOLDERS: [(&str, &str); 3] = [
    ("qualitytrace.bash", "share/bash-completion/completions/qualitytrace"),
    ("_qualitytrace", "share/zsh/site-functions/_qualitytrace"),
    ("qualitytrace.fish", "share/fish/vendor_completions.d/qualitytrace.fish"),
];

pub(crate) fn write(source: &Source<'_>, target: &Target) -> Result<()> {
    let version = &source.release.version;
    let folder = source.stage.join("wheel").join(target.triple);
    let data = folder.join(format!("{PRODUCT}-{version}.data"));
    let facts = folder.join(format!("{PRODUCT}-{version}.dist-info"));
    artefacts::copy(&source.program(target), &data.join("scripts").join(PRODUCT))?;
    for page in artefacts::files(&source.man())? {
        artefacts::copy(&source.man().join(&page), &data.join("data/share/man/man1").join(&page))?;
    }
    for ((_, file), (_, place)) in COMPLETIONS.iter().zip(COMPLETION_FOLDERS) {
        artefacts::copy(&source.completions().join(file), &data.join("data").join(place))?;
    }
    let values = [("VERSION", version.as_str()), ("REPOSITORY", REPOSITORY)];
    let metadata = template::filled(source.machine, "wheel/METADATA", &values)?;
    artefacts::write(&facts.join("METADATA"), metadata)?;
    // A tag with several platforms stands for one tag each.
    let tags: Vec<_> = target.wheel.split('.').map(|it| format!("Tag: py3-none-{it}\n")).collect();
    let values = [("VERSION", version.as_str()), ("TAGS", &tags.concat())];
    let wheel = template::filled(source.machine, "wheel/WHEEL", &values)?;
    artefacts::write(&facts.join("WHEEL"), wheel)?;
    artefacts::copy(&source.machine.root.join("LICENSE"), &facts.join("licenses/LICENSE"))?;
    artefacts::copy(&source.stage.join(LICENCES), &facts.join("licenses").join(LICENCES))?;
    let name = source.release.wheel(target);
    let mut python = Command::new("python3");
    python.arg(source.machine.root.join("packaging/wheel/write.py"));
    python.arg(&folder).arg(source.release.file(&name)).arg(source.epoch.to_string());
    spawn::output(&mut python).with_context(|| format!("`{name}` could not be written"))?;
    Ok(())
}

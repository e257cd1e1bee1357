//! The archive for a target: one folder with the program and what belongs to it.

use anyhow::Result;

use super::{
    artefacts::{self, LICENCES, Target},
    package::Source,
};
use crate::programs::PRODUCT;

/// The shells, and the names under which they look for the completions of a program.
pub(crate) const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "qualitytrace.bash"), ("zsh", "_qualitytrace"), ("fish", "qualitytrace.fish")];

pub(crate) fn write(source: &Source<'_>, target: &Target) -> Result<()> {
    let name = source.release.archive(target.triple);
    let parent = source.stage.join("archive");
    let folder = parent.join(&name);
    artefacts::copy(&source.program(target), &folder.join(PRODUCT))?;
    for file in ["LICENSE", "README.md"] {
        artefacts::copy(&source.machine.root.join(file), &folder.join(file))?;
    }
    artefacts::copy(&source.stage.join(LICENCES), &folder.join(LICENCES))?;
    for page in artefacts::files(&source.man())? {
        artefacts::copy(&source.man().join(&page), &folder.join("man").join(&page))?;
    }
    for (_, file) in COMPLETIONS {
        artefacts::copy(&source.completions().join(file), &folder.join("completions").join(file))?;
    }
    source.tar(&parent, &name, &format!("{name}.tar.gz"))
}

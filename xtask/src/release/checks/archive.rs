//! The archive: unpacked where a user puts it, without root.

use anyhow::Result;

use super::{
    Check, Row,
    first_run::{self, Place},
    root::{self, Root, User},
};
use crate::{
    machine::Machine,
    release::{
        Release,
        artefacts::{X86_64, size},
    },
};

pub(crate) const CHECK: Check = Check {
    name: "archive",
    what: "the archive for x86_64 is unpacked and used in a fresh Debian",
    missing: root::missing,
    run,
};

/// The files of the archive, but for the manual pages of commands.
const FILES: &str = "
for file in LICENSE README.md THIRD-PARTY-LICENSES.md man/qualitytrace.1 man/qualitytrace-run.1 \
  completions/qualitytrace.bash completions/_qualitytrace completions/qualitytrace.fish; do
  [ -s ~/qualitytrace/$file ] || { echo \"error: $file is missing\"; exit 1; }
done";

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let archive = format!("{}.tar.gz", release.archive(X86_64.triple));
    let root = Root::fresh(machine, CHECK.name)?;
    root.put(&release.file(&archive), "/tmp/archive.tar.gz")?;
    let script = format!(
        "cd; tar -xzf /tmp/archive.tar.gz; mv {} qualitytrace",
        release.archive(X86_64.triple)
    );
    let installed_in = root.run(User::Tester, &script)?;
    root.run(User::Tester, FILES)?;
    let place = Place {
        user: User::Tester,
        before: "PATH=~/qualitytrace:$PATH",
        manual: "",
        completions: "",
    };
    let green_in = first_run::make(&root, place)?;
    Ok(vec![Row {
        bytes: Some(size(release, &archive)?),
        artefact: archive,
        installed_in: Some(installed_in),
        green_in: Some(green_in),
    }])
}

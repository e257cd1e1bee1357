//! The npm packages: installed from their files without scripts, on a machine without a registry.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result};

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
        npm,
    },
    spawn,
};

pub(crate) const CHECK: Check = Check {
    name: "npm",
    what: "npm installs the packages for x86_64 without scripts; without the program they report what is missing",
    missing: |machine| {
        let no_npm =
            || folder_of_npm(machine).is_none().then(|| "there is no `npm` in `PATH`".to_owned());
        root::missing(machine).or_else(no_npm)
    },
    run,
};

/// How the program ends, and how a signal gets to it.
const ENDS: &str = include_str!("npm.sh");

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let (launcher, program) = (npm::launcher(release), release.npm(&X86_64));
    let root = Root::fresh(machine, CHECK.name)?;
    let npm = folder_of_npm(machine).context("npm is in `PATH`")?;
    // npm is JavaScript, and Debian's depends on hundreds of packages.
    let mut copy = Command::new("cp");
    spawn::output(copy.arg("-rL").arg(npm).arg(root.path("/opt/npm")))?;
    for name in [&launcher, &program] {
        root.put(&release.file(name), &format!("/srv/{name}"))?;
    }
    let install = format!(
        "node /opt/npm/bin/npm-cli.js install --global --prefix ~/npm --ignore-scripts --offline --no-audit --no-fund \
         /srv/{program} /srv/{launcher}"
    );
    let installed_in = root.run(User::Tester, &install)?;
    let place = Place {
        user: User::Tester,
        before: "PATH=~/npm/bin:$PATH",
        manual: "/home/tester/npm",
        completions: "",
    };
    let green_in = first_run::make(&root, place)?;
    root.run(User::Tester, &format!("launcher=/srv/{launcher} program=/srv/{program}\n{ENDS}"))?;
    let row = |artefact: String, installed_in, green_in| -> Result<Row> {
        Ok(Row { bytes: Some(size(release, &artefact)?), artefact, installed_in, green_in })
    };
    Ok(vec![row(launcher, Some(installed_in), Some(green_in))?, row(program, None, None)?])
}

/// Returns the folder of npm's own package.
fn folder_of_npm(machine: &Machine) -> Option<PathBuf> {
    let program = machine.in_path("npm")?.canonicalize().ok()?;
    let folder = program.parent()?.parent()?;
    folder.join("bin/npm-cli.js").is_file().then(|| folder.to_path_buf())
}

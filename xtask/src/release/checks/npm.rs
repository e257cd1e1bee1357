//! The npm packages: installed from their files without scripts, on a machine without a registry.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use super::{
    Check, Row,
    first_run::{self, Place},
    root::{self, Root, User},
};
use crate::{
    cache,
    machine::{Machine, fingerprint},
    release::{
        Release,
        artefacts::{self, TARGETS, X86_64, size},
        npm,
    },
    spawn,
};

pub(crate) const CHECK: Check = Check {
    name: "npm",
    what: "npm installs the packages without scripts, from files and from a registry; without the program they report what is missing",
    missing: |machine| {
        let no_npm =
            || folder_of_npm(machine).is_none().then(|| "there is no `npm` in `PATH`".to_owned());
        root::missing(machine).or_else(no_npm)
    },
    run,
};

/// The registry is of the same ecosystem; its versions are pinned by a lockfile.
const REGISTRY: &str = "packaging/npm/verdaccio";

/// Publishes the packages to a loopback registry, and installs by name: npm selects the program for its platform.
const FROM_REGISTRY: &str = include_str!("registry.sh");

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
    let mut copy = Command::new("cp");
    spawn::output(copy.arg("-r").arg(registry(machine)?).arg(root.path("/opt/verdaccio")))?;
    root.put(&machine.root.join(REGISTRY).join("config.yaml"), "/opt/verdaccio/config.yaml")?;
    for target in TARGETS {
        let name = release.npm(target);
        if release.file(&name).is_file() {
            root.put(&release.file(&name), &format!("/srv/{name}"))?;
        }
    }
    root.run(User::Tester, &format!("version={}\n{FROM_REGISTRY}", release.version))?;
    let row = |artefact: String, installed_in, green_in| -> Result<Row> {
        Ok(Row { bytes: Some(size(release, &artefact)?), artefact, installed_in, green_in })
    };
    Ok(vec![row(launcher, Some(installed_in), Some(green_in))?, row(program, None, None)?])
}

/// Returns the folder of the registry, which is installed if this machine does not have it.
fn registry(machine: &Machine) -> Result<PathBuf> {
    let source = machine.root.join(REGISTRY);
    let lockfile = source.join("package-lock.json");
    let print = fs::read(&lockfile).with_context(|| format!("`{}`", lockfile.display()))?;
    let key = format!("verdaccio-{:08x}", fingerprint(&print) >> 32);
    let bin = cache::install(&machine.cache, &key, &["package.json"], |part| {
        for (file, place) in [
            ("package.json", "package.json"),
            ("package-lock.json", "package-lock.json"),
            // Its copy marks the folder as complete.
            ("package.json", "bin/package.json"),
        ] {
            artefacts::copy(&source.join(file), &part.join(place))?;
        }
        eprintln!("{key}: installing it from the npm registry; under a minute, once per machine");
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(part);
        spawn::long(machine, &mut npm, &machine.cache.join("logs").join(format!("{key}.log")))
    })?;
    Ok(bin.parent().context("a folder of programs stands in a folder")?.to_path_buf())
}

/// Returns the folder of npm's own package.
fn folder_of_npm(machine: &Machine) -> Option<PathBuf> {
    let program = machine.in_path("npm")?.canonicalize().ok()?;
    let folder = program.parent()?.parent()?;
    folder.join("bin/npm-cli.js").is_file().then(|| folder.to_path_buf())
}

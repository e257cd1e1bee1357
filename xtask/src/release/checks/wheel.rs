//! The wheel: installed by pip into a virtual environment, without an index.

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
    name: "wheel",
    what: "pip installs the wheel for x86_64 without an index",
    missing: root::missing,
    run,
};

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let name = release.wheel(&X86_64);
    let root = Root::fresh(machine, CHECK.name)?;
    root.put(&release.file(&name), &format!("/srv/{name}"))?;
    root.run(User::Tester, "python3 -m venv ~/env")?;
    let install = "~/env/bin/pip install --no-index --find-links /srv qualitytrace";
    let installed_in = root.run(User::Tester, install)?;
    let version = &release.version;
    root.run(User::Tester, &format!("~/env/bin/pip list | grep -E '^qualitytrace +{version}$'"))?;
    // pip compares every file with the list in the wheel.
    root.run(User::Tester, "~/env/bin/pip check")?;
    let place = Place {
        user: User::Tester,
        before: ". ~/env/bin/activate",
        manual: "/home/tester/env",
        completions: "/home/tester/env",
    };
    let green_in = first_run::make(&root, place)?;
    root.run(
        User::Tester,
        "~/env/bin/pip uninstall --yes qualitytrace; [ ! -e ~/env/bin/qualitytrace ]",
    )?;
    Ok(vec![Row {
        bytes: Some(size(release, &name)?),
        artefact: name,
        installed_in: Some(installed_in),
        green_in: Some(green_in),
    }])
}

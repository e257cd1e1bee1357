//! The same programs packaged once more give the same bytes.

use anyhow::Result;

use crate::{
    machine::Machine,
    release::{Check, Release, Row, artefacts, package},
};

pub(crate) const CHECK: Check = Check {
    name: "twice",
    what: "packaging again gives the same bytes",
    missing: |machine| {
        artefacts::built(machine)
            .is_empty()
            .then(|| "no program is built on this machine".to_owned())
    },
    run,
};

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    println!("{}", package::twice(machine, release, &artefacts::built(machine))?);
    Ok(Vec::new())
}

//! Programs that check the API against its document: schemathesis, and a TypeScript client that is generated and compiled.
//!
//! Each is installed from its language's standard registry, at the versions that `tests/contract` pins.

use std::path::Path;

use anyhow::Result;

use super::{
    Programs, ServiceVariables,
    sdks::{Sdk, install_all, installed_all, launcher, node_packages, python_packages},
};
use crate::machine::Machine;

pub(super) const CONTRACT: Programs = Programs { name: "contract", install, installed };

const ALL: [Sdk; 2] = [
    Sdk {
        folder: "tests/contract/schemathesis",
        variable: "QUALITYTRACE_TEST_SCHEMATHESIS",
        needs: &[("python3", "python3-venv")],
        build: schemathesis,
    },
    Sdk {
        folder: "tests/contract/typescript",
        variable: "QUALITYTRACE_TEST_TYPESCRIPT",
        needs: &[("npm", "npm")],
        build: typescript,
    },
];

fn install(machine: &Machine) -> Result<ServiceVariables> {
    install_all(machine, &ALL)
}

fn installed(machine: &Machine) -> Option<ServiceVariables> {
    installed_all(machine, &ALL)
}

fn schemathesis(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    python_packages(machine, key, part)?;
    launcher(part, "venv/bin/python -m schemathesis.cli --config-file schemathesis.toml \"$@\"")
}

/// Creates a program that takes the API's document and an empty folder, and compiles a client there.
fn typescript(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    node_packages(machine, key, part)?;
    launcher(part, "sh compile.sh \"$@\"")
}

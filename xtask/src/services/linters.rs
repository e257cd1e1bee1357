//! What reads workflows, the GitHub action and the GitLab component: actionlint, zizmor, shellcheck and check-jsonschema, and the
//! Python with which `tests/action` runs.
//!
//! Each is installed from its language's standard registry: actionlint at the version below, the others at those that
//! `tests/action/requirements.txt` pins.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{Programs, ServiceVariables, golang::Go};
use crate::{
    cache,
    machine::{Machine, fingerprint},
    packages, spawn,
};

pub(super) const LINTERS: Programs = Programs { name: "linters", install, installed };

const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

const REQUIREMENTS: &str = "tests/action/requirements.txt";

const PROGRAMS: [&str; 5] = ["actionlint", "zizmor", "shellcheck", "check-jsonschema", "python3"];

const VARIABLE: &str = "QUALITYTRACE_TEST_LINTERS";

/// Finds its modules beside itself, wherever the folder is moved to; the script of the package names the folder of the installation.
const CHECK_JSONSCHEMA: &str =
    "#!/bin/sh\nexec \"$(dirname \"$0\")/python3\" -m check_jsonschema \"$@\"\n";

/// Returns the folder of the programs, if all of them are installed.
pub(crate) fn linters(machine: &Machine) -> Option<PathBuf> {
    let bin = machine.cache.join(key(machine).ok()?).join("bin");
    PROGRAMS.iter().all(|program| bin.join(program).is_file()).then_some(bin)
}

fn installed(machine: &Machine) -> Option<ServiceVariables> {
    linters(machine).map(|bin| vec![(VARIABLE, bin.display().to_string())])
}

fn install(machine: &Machine) -> Result<ServiceVariables> {
    let key = key(machine)?;
    let bin = cache::install(&machine.cache, &key, &PROGRAMS, |part| build(machine, &key, part))?;
    Ok(vec![(VARIABLE, bin.display().to_string())])
}

fn key(machine: &Machine) -> Result<String> {
    let file = machine.root.join(REQUIREMENTS);
    let pinned = fs::read(&file).with_context(|| format!("`{}` cannot be read", file.display()))?;
    let all = [pinned.as_slice(), ACTIONLINT.as_bytes()].concat();
    Ok(format!("linters-{:08x}", fingerprint(&all) >> 32))
}

fn build(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    let log = machine.cache.join("logs").join(format!("{key}.log"));
    // Debian's Python lacks the modules that a virtual environment needs.
    if spawn::output(Command::new("python3").args(["-c", "import ensurepip, venv"])).is_err() {
        let why = format!("{key}: `python3` cannot make a virtual environment");
        packages::install(machine, "python3-venv", &why, None)?;
    }
    eprintln!(
        "{key}: installing actionlint, zizmor, shellcheck; a minute or two, once per machine"
    );
    spawn::long(machine, Command::new("python3").args(["-m", "venv"]).arg(part), &log)?;
    let bin = part.join("bin");
    let mut pip = Command::new(bin.join("python3"));
    pip.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-deps"]);
    spawn::long(machine, pip.arg("--requirement").arg(machine.root.join(REQUIREMENTS)), &log)?;
    let launcher = bin.join("check-jsonschema");
    fs::write(&launcher, CHECK_JSONSCHEMA)?;
    fs::set_permissions(&launcher, Permissions::from_mode(0o755))?;
    let mut go = Command::new("go");
    Go::find(machine, key, part)?.run(go.args(["install", ACTIONLINT]).env("GOBIN", &bin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::machine_with_cache;

    #[test]
    fn nothing_counts_as_installed_in_an_empty_cache() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let machine = machine_with_cache(cache.path());
        assert_eq!(installed(&machine), None);
        let bin = cache.path().join(key(&machine).expect("the versions")).join("bin");
        fs::create_dir_all(&bin).expect("a folder");
        for program in PROGRAMS {
            assert_eq!(installed(&machine), None);
            fs::write(bin.join(program), "").expect("a file");
        }
        assert!(installed(&machine).is_some());
    }
}

//! The echo services of `tests/sdks`: a small program on each of four official SDKs.
//!
//! Each is installed from its language's standard registry, at the versions that are pinned beside its source, and is one program
//! afterwards, whatever runtime it needs. Deliberately absent: starting them, which the tests do through the binary; and
//! containers, of which none is needed.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, anyhow};

use super::{Programs, ServiceVariables, golang::Go};
use crate::{
    cache,
    machine::{Machine, fingerprint},
    packages, spawn,
};

pub(super) const SDKS: Programs = Programs { name: "sdks", install, installed };

pub(super) struct Sdk {
    /// The folder of its files, from the root of the checkout.
    pub(super) folder: &'static str,
    pub(super) variable: &'static str,
    /// The required programs, and the package of each.
    pub(super) needs: &'static [(&'static str, &'static str)],
    /// Creates `bin/echo` in the folder, which holds a copy of the service's files.
    pub(super) build: fn(&Machine, &str, &Path) -> Result<()>,
}

const ALL: [Sdk; 4] = [
    Sdk {
        folder: "tests/sdks/python",
        variable: "QUALITYTRACE_TEST_SDK_PYTHON",
        needs: &[("python3", "python3-venv")],
        build: python,
    },
    Sdk {
        folder: "tests/sdks/node",
        variable: "QUALITYTRACE_TEST_SDK_NODE",
        // A test starts this one with another clock.
        needs: &[("npm", "npm"), ("faketime", "faketime")],
        build: node,
    },
    Sdk { folder: "tests/sdks/go", variable: "QUALITYTRACE_TEST_SDK_GO", needs: &[], build: go },
    Sdk {
        folder: "tests/sdks/java",
        variable: "QUALITYTRACE_TEST_SDK_JAVA",
        needs: &[("javac", "default-jdk-headless"), ("curl", "curl")],
        build: java,
    },
];

const PROGRAM: &str = "echo";

const JARS: &str = "https://repo1.maven.org/maven2";

fn install(machine: &Machine) -> Result<ServiceVariables> {
    install_all(machine, &ALL)
}

fn installed(machine: &Machine) -> Option<ServiceVariables> {
    installed_all(machine, &ALL)
}

pub(super) fn install_all(machine: &Machine, all: &[Sdk]) -> Result<ServiceVariables> {
    // Registries are slow, and the installations are independent.
    thread::scope(|scope| {
        let each: Vec<_> = all.iter().map(|sdk| scope.spawn(|| sdk.install(machine))).collect();
        each.into_iter()
            .map(|one| one.join().map_err(|_| anyhow!("an installation panicked"))?)
            .collect()
    })
}

pub(super) fn installed_all(machine: &Machine, all: &[Sdk]) -> Option<ServiceVariables> {
    all.iter()
        .map(|sdk| {
            let program = machine.cache.join(sdk.key(&sdk.files(machine).ok()?)).join("bin/echo");
            program.is_file().then(|| (sdk.variable, program.display().to_string()))
        })
        .collect()
}

/// The files of a service, by name.
type Files = Vec<(PathBuf, Vec<u8>)>;

impl Sdk {
    fn install(&self, machine: &Machine) -> Result<(&'static str, String)> {
        let files = self.files(machine)?;
        let key = self.key(&files);
        let bin = cache::install(&machine.cache, &key, &[PROGRAM], |part| {
            for (program, package) in self.needs {
                if machine.in_path(program).is_none() {
                    let why = format!("{key}: no `{program}` is here");
                    packages::install(machine, package, &why, None)?;
                }
            }
            for (name, content) in &files {
                fs::write(part.join(name), content)?;
            }
            fs::create_dir(part.join("bin"))?;
            eprintln!(
                "{key}: installing it from its package registry; a minute or two, once per machine"
            );
            (self.build)(machine, &key, part)
                .with_context(|| format!("the program of `{}` could not be installed", self.folder))
        })?;
        Ok((self.variable, bin.join(PROGRAM).display().to_string()))
    }

    fn files(&self, machine: &Machine) -> Result<Files> {
        let folder = machine.root.join(self.folder);
        let read = || {
            let mut files = Vec::new();
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if entry.file_type()?.is_file() {
                    files.push((entry.file_name().into(), fs::read(entry.path())?));
                }
            }
            files.sort();
            std::io::Result::Ok(files)
        };
        read().with_context(|| format!("`{}` cannot be read", folder.display()))
    }

    fn key(&self, files: &Files) -> String {
        let mut all = Vec::new();
        for (name, content) in files {
            all.extend_from_slice(name.as_os_str().as_encoded_bytes());
            all.extend_from_slice(&content.len().to_be_bytes());
            all.extend_from_slice(content);
        }
        let name =
            self.folder.trim_start_matches("tests/").replace("sdks/", "sdk-").replace('/', "-");
        format!("{name}-{:08x}", fingerprint(&all) >> 32)
    }
}

fn python(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    python_packages(machine, key, part)?;
    // The environment's scripts name the interpreter by the temporary path of the build.
    launcher(part, "venv/bin/python venv/bin/opentelemetry-instrument venv/bin/python echo.py")
}

/// Installs the packages of `requirements.txt` in a virtual environment of the folder.
pub(super) fn python_packages(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    let run = |command: &mut Command| in_folder(machine, key, part, command);
    // Debian's Python lacks the modules that a virtual environment needs.
    if spawn::output(Command::new("python3").args(["-c", "import ensurepip, venv"])).is_err() {
        let why = format!("{key}: `python3` cannot make a virtual environment");
        packages::install(machine, "python3-venv", &why, None)?;
    }
    run(Command::new("python3").args(["-m", "venv", "venv"]))?;
    let mut pip = Command::new(part.join("venv/bin/python"));
    pip.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-deps"]);
    run(pip.args(["--requirement", "requirements.txt"]))
}

fn node(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    node_packages(machine, key, part)?;
    launcher(
        part,
        "node_modules/node-linux-*/bin/node --require @opentelemetry/auto-instrumentations-node/register echo.js",
    )
}

/// Installs the packages of `package-lock.json` in the folder.
pub(super) fn node_packages(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    in_folder(machine, key, part, &mut npm)
}

fn go(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    Go::find(machine, key, part)?.run(Command::new("go").args([
        "build",
        "-trimpath",
        "-o",
        "bin/echo",
        ".",
    ]))
}

fn java(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    let run = |command: &mut Command| in_folder(machine, key, part, command);
    let sums = fs::read_to_string(part.join("jars.sha256"))?;
    let jars = sums.lines().filter_map(|line| Some(line.split_once("  ")?.1));
    let (agents, libraries): (Vec<_>, Vec<_>) = jars.partition(|jar| jar.contains("/javaagent/"));
    for jar in agents.iter().chain(&libraries) {
        let mut curl = Command::new("curl");
        curl.args(["--fail", "--silent", "--show-error", "--location", "--retry", "3"]);
        run(curl.args(["--create-dirs", "--output", jar, &format!("{JARS}/{jar}")]))?;
    }
    run(Command::new("sha256sum").args(["--check", "--strict", "jars.sha256"]))?;
    let classes = libraries.join(":");
    let mut javac = Command::new("javac");
    run(javac.args(["-encoding", "UTF-8", "-cp", &classes, "-d", "classes", "Echo.java"]))?;
    let agent = agents.first().context("`jars.sha256` names no agent")?;
    // Optimizing the agent's many classes costs more than it gains in a run of seconds.
    let quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";
    launcher(part, &format!("java {quick} -javaagent:{agent} -cp classes:{classes} Echo"))
}

fn in_folder(machine: &Machine, key: &str, part: &Path, command: &mut Command) -> Result<()> {
    let log = machine.cache.join("logs").join(format!("{key}.log"));
    spawn::long(machine, command.current_dir(part), &log)
}

/// Writes `bin/echo`, which executes the command; its paths are relative to the folder, wherever that is.
pub(super) fn launcher(part: &Path, command: &str) -> Result<()> {
    let program = part.join("bin").join(PROGRAM);
    fs::write(&program, format!("#!/bin/sh\ncd \"$(dirname \"$0\")/..\" && exec {command}\n"))?;
    Ok(fs::set_permissions(&program, Permissions::from_mode(0o755))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::machine_with_cache;

    #[test]
    fn a_key_names_the_language_and_every_byte_of_its_files() {
        let sdk = &ALL[0];
        let files = |content: &str| vec![(PathBuf::from("echo.py"), content.as_bytes().to_vec())];
        let (one, other) = (sdk.key(&files("a")), sdk.key(&files("b")));
        assert!(one.starts_with("sdk-python-") && one != other, "{one} {other}");
        assert_ne!(one, sdk.key(&[files("a"), files("")].concat()));
    }

    #[test]
    fn every_service_is_there_and_none_counts_as_installed_in_an_empty_cache() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let machine = machine_with_cache(cache.path());
        for sdk in &ALL {
            let files = sdk.files(&machine).expect("its folder");
            assert!(files.len() >= 2, "{}: a source and its versions", sdk.folder);
        }
        assert_eq!(installed(&machine), None);
    }

    #[test]
    fn a_launcher_becomes_its_command_in_its_folder() {
        let part = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(part.path().join("bin")).expect("a folder");
        fs::write(part.path().join("said"), "it is here").expect("a file");
        launcher(part.path(), "cat said").expect("written");
        let said = spawn::output(&mut Command::new(part.path().join("bin/echo")));
        assert_eq!(said.expect("it runs"), "it is here");
    }
}

//! Fresh Linux systems: the root folder of a minimal Debian, unpacked for one check and removed after it.
//!
//! A program runs there in namespaces of its own: it sees only its own processes, and of the network only a loopback interface, so
//! that no package registry can add what the files of the release lack. Deliberately absent: containers, of which none is needed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::super::artefacts;
use crate::{
    cache,
    machine::{Machine, fingerprint},
    spawn,
};

/// The release of Debian, and what users of packages have beside its minimum.
const SUITE: &str = "bookworm";
const PACKAGES: &str = "ca-certificates,curl,fish,iproute2,man-db,nodejs,python3-venv,zsh";
/// The user of the checks that need no root.
const ADD_USER: &str = r#"chroot "$1" useradd --create-home --shell /bin/bash tester"#;

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Starts the loopback interface, becomes the user, and executes the script.
const ENTER: &str = r#"ip link set lo up
case "$1" in
  tester) exec setpriv --reuid=tester --regid=tester --init-groups env HOME=/home/tester sh -euc "$2" ;;
  root) exec env HOME=/root sh -euc "$2" ;;
esac"#;

/// The root folder of an unused system.
#[derive(Debug)]
pub(crate) struct Root<'a> {
    machine: &'a Machine,
    pub(crate) folder: PathBuf,
    log: PathBuf,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum User {
    Root,
    Tester,
}

/// Returns what a machine lacks for such a system.
pub(crate) fn missing(machine: &Machine) -> Option<String> {
    if !machine.is_root() {
        return Some("only root may unpack a system and enter it: run it by `sudo`".to_owned());
    }
    ["mmdebstrap", "unshare"]
        .into_iter()
        .find(|program| machine.in_path(program).is_none())
        .map(|program| format!("there is no `{program}` in `PATH`"))
}

impl<'a> Root<'a> {
    /// Unpacks a fresh system for a check.
    pub(crate) fn fresh(machine: &'a Machine, check: &str) -> Result<Self> {
        let archive = archive(machine)?;
        let folder = machine.state().join("release").join(check);
        cache::remove(&folder)?;
        fs::create_dir_all(&folder)
            .with_context(|| format!("`{}` cannot be made", folder.display()))?;
        let log = machine.state().join("release").join(format!("{check}.log"));
        let root = Self { machine, folder, log };
        let mut tar = Command::new("tar");
        tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(&root.folder);
        spawn::output(&mut tar)?;
        if root.log.is_file() {
            fs::remove_file(&root.log)?;
        }
        Ok(root)
    }

    /// Copies a file of this machine into the system.
    pub(crate) fn put(&self, file: &Path, place: &str) -> Result<()> {
        artefacts::copy(file, &self.path(place))
    }

    /// Returns the path on this machine of a path in the system.
    pub(crate) fn path(&self, place: &str) -> PathBuf {
        self.folder.join(place.trim_start_matches('/'))
    }

    /// Runs a script of the shell in the system, and returns how long it took. A command in it that fails ends it, and every
    /// process that it has started ends with it.
    pub(crate) fn run(&self, user: User, script: &str) -> Result<Duration> {
        let user = match user {
            User::Root => "root",
            User::Tester => "tester",
        };
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"]);
        unshare.arg("--root").arg(&self.folder).args(["--mount-proc", "--wd", "/"]);
        unshare.args(["env", "-i", PATH, "TERM=dumb", "LANG=C.UTF-8"]);
        unshare.args(["sh", "-euc", ENTER, "enter", user, script]);
        let began = (self.machine.clock.now)();
        let status = spawn::logged(&mut unshare, &self.log)?.status().context("`unshare`")?;
        let elapsed = (self.machine.clock.now)() - began;
        if !status.success() {
            bail!("a script ended with {status}; {}", spawn::last_lines(&self.log));
        }
        Ok(elapsed)
    }
}

impl Drop for Root<'_> {
    fn drop(&mut self) {
        if let Err(error) = cache::remove(&self.folder) {
            eprintln!("{error:#}");
        }
    }
}

/// Returns the packed system, which is made if this machine does not have it.
fn archive(machine: &Machine) -> Result<PathBuf> {
    let print = fingerprint([SUITE, PACKAGES, ADD_USER].join("\n").as_bytes());
    let key = format!("debian-{SUITE}-{:08x}", print >> 32);
    let bin = cache::install(&machine.cache, &key, &["root.tar"], |part| {
        eprintln!("{key}: making it of Debian packages; some 4 minutes, once per machine");
        fs::create_dir(part.join("bin"))?;
        let mut command = Command::new("mmdebstrap");
        command.args(["--variant=minbase", &format!("--include={PACKAGES}")]);
        command.arg(format!("--customize-hook={ADD_USER}"));
        command.arg(SUITE).arg(part.join("bin/root.tar"));
        let log = machine.cache.join("logs").join(format!("{key}.log"));
        spawn::long(machine, &mut command, &log)
    })?;
    Ok(bin.join("root.tar"))
}

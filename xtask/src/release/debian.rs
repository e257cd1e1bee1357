//! A root of Debian with the services that deployments need, made once per machine: a container that is made of it has systemd,
//! Postgres and a load balancer. Its images stand in for those of registries, and checks name them so.

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use crate::{cache, machine::Machine, packages, spawn};

/// The folder in the cache; the number rises with a change of the packages.
const KEY: &str = "debian-bookworm-services-1";

const ROOT: &str = "root.tar";

const SUITE: &str = "bookworm";

const PACKAGES: &str =
    "systemd,systemd-sysv,dbus,postgresql-15,haproxy,ca-certificates,curl,procps";

/// Returns the root as a tar, if this machine has it.
pub(crate) fn installed(machine: &Machine) -> Option<PathBuf> {
    Some(machine.cache.join(KEY).join("bin").join(ROOT)).filter(|root| root.is_file())
}

/// Returns the root as a tar, and makes it if this machine does not have it.
pub(crate) fn services(machine: &Machine) -> Result<PathBuf> {
    let bin = cache::install(&machine.cache, KEY, &[ROOT], |part| {
        if machine.in_path("mmdebstrap").is_none() {
            let why = "there is no `mmdebstrap` to make a root of Debian with";
            packages::install(machine, "mmdebstrap", why, None)?;
        }
        eprintln!("{KEY}: making a root of Debian, 520 MB; some 4 minutes, once per machine");
        std::fs::create_dir(part.join("bin"))?;
        let mut make = Command::new("mmdebstrap");
        make.args(["--variant=minbase", &format!("--include={PACKAGES}"), SUITE]);
        let log = machine.cache.join("logs").join(format!("{KEY}.log"));
        spawn::long(machine, make.arg(part.join("bin").join(ROOT)), &log)
    })?;
    Ok(bin.join(ROOT))
}

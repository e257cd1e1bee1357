//! The unit: what systemd thinks of it, and the life of a server under systemd as PID 1 of a container, with Debian's Postgres.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, bail};

use super::{Check, Row};
use crate::{
    cache,
    machine::Machine,
    release::{Release, container_engine::ContainerEngine, debian},
    spawn,
};

pub(crate) const CHECK: Check = Check {
    name: "systemd",
    what: "the deb under systemd as PID 1: start, run, reload, kill, restart, stop, and no span is lost",
    missing,
    run,
};

/// The unit in the package.
const UNIT: &str = "lib/systemd/system/qualitytrace.service";

/// The worst rating, in tenths.
const EXPOSURE_MAX: &str = "20";

const IMAGE: &str = "debian-services";

const CONTAINER: &str = "systemd";

/// What systemd needs as PID 1 of a container. With `SYS_PTRACE` it enters the namespaces of a process that `ProtectProc=` hides.
const PRIVILEGES: &[&str] = &[
    "--cap-add=SYS_ADMIN",
    "--cap-add=SYS_PTRACE",
    "--security-opt=seccomp=unconfined",
    "--security-opt=apparmor=unconfined",
    "--tmpfs=/run",
    "--tmpfs=/run/lock",
    "--tmpfs=/tmp",
    "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw",
    "--env=container=docker",
];

/// Mounts spread between namespaces, as on a machine: systemd mounts the credentials of a unit in one of their own.
const INIT: &str = r#"CMD ["sh", "-c", "mount --make-rshared / && exec /lib/systemd/systemd"]"#;

/// The script in the container, beside this file.
const SCRIPT: &str = "xtask/src/release/checks/systemd.sh";

fn missing(machine: &Machine) -> Option<String> {
    let analyze = || {
        let absent = machine.in_path("systemd-analyze").is_none();
        absent.then(|| "`systemd-analyze`".to_owned())
    };
    let root = || match debian::installed(machine) {
        Some(_) => None,
        None => Some("a root of Debian, which is in the cache once it was made".to_owned()),
    };
    ContainerEngine::missing(machine).or_else(analyze).or_else(root)
}

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let artefact = format!("qualitytrace_{}_amd64.deb", release.version);
    let deb = release.file(&artefact);
    let bytes = fs::metadata(&deb)
        .with_context(|| {
            format!("`{}` is not there: make it with `cargo xtask release package`", deb.display())
        })?
        .len();
    rate(machine, &deb)?;
    let root = debian::services(machine)?;
    let engine = ContainerEngine::start(machine, "systemd")?;
    engine.import(&root, IMAGE, &[INIT])?;
    let mut start = engine.docker();
    start.args(["run", "-d", "--name", CONTAINER]).args(PRIVILEGES).arg(IMAGE);
    spawn::output(&mut start)?;
    let to = format!("{CONTAINER}:/{artefact}");
    spawn::output(engine.docker().arg("cp").arg(&deb).arg(&to))?;
    let script = machine.root.join(SCRIPT);
    let printed = engine.script(CONTAINER, &script, &[&format!("/{artefact}")])?;
    print!("{printed}");
    let seconds = |name: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(name));
        let millis = line.and_then(|millis| millis.trim().parse().ok());
        millis.map(Duration::from_millis).with_context(|| format!("the script printed no `{name}`"))
    };
    Ok(vec![Row {
        artefact,
        bytes: Some(bytes),
        installed_in: Some(seconds("installed_ms")?),
        green_in: Some(seconds("green_ms")?),
    }])
}

/// Lets systemd check and rate the unit as it is in the package.
fn rate(machine: &Machine, deb: &Path) -> Result<()> {
    let folder = machine.state().join("systemd-check");
    cache::remove(&folder)?;
    fs::create_dir_all(&folder)?;
    spawn::output(Command::new("dpkg").arg("-x").arg(deb).arg(&folder))?;
    let unit = [UNIT.to_owned(), format!("usr/{UNIT}")];
    let unit = unit.iter().map(|path| folder.join(path)).find(|unit| unit.is_file());
    let unit = unit.with_context(|| format!("the package has no `{UNIT}`"))?;
    // What every system has, and the package has not.
    for name in ["sysinit.target", "basic.target", "shutdown.target", "network-online.target"] {
        fs::write(unit.with_file_name(name), "[Unit]\nDescription=A target of systemd\n")?;
    }
    fs::create_dir_all(folder.join("bin"))?;
    fs::write(folder.join("bin/kill"), "")?;
    fs::set_permissions(folder.join("bin/kill"), fs::Permissions::from_mode(0o755))?;
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=one"]);
    verify.arg(format!("--root={}", folder.display())).arg("qualitytrace.service");
    let verified = verify.output().context("`systemd-analyze` cannot be started")?;
    let complaints = String::from_utf8_lossy(&verified.stderr).into_owned();
    if !verified.status.success() || complaints.contains("qualitytrace.service:") {
        bail!("`systemd-analyze verify` ended with {}: {complaints}", verified.status);
    }
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--no-pager"]);
    security.arg(format!("--threshold={EXPOSURE_MAX}")).arg(&unit);
    let rated = spawn::output(&mut security)?;
    let level = rated.lines().last().unwrap_or_default();
    println!("systemd-analyze: {}", level.trim_start_matches(['→', ' ']));
    cache::remove(&folder)
}

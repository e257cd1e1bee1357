//! PostgreSQL: a private cluster for tests, without durability across power cuts.
//!
//! It has a password, generated at each start, because every user of the machine can reach loopback and a superuser can run
//! programs as the server's user. The password is never on a command line, which every user can read too.

use std::{
    fs::{self, File, Permissions},
    io::{Read, Write},
    os::unix::{
        fs::{OpenOptionsExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{Launch, Service, ports};
use crate::{
    machine::Machine,
    packages::{self, Meanwhile},
    spawn,
};

pub(super) struct Postgres;

/// The folder of the servers on Debian and Ubuntu, with a subfolder for each major version.
const PACKAGED: &str = "/usr/lib/postgresql";

/// For root only: a folder that another user can reach even when the cache is inside a closed home.
const REACHABLE: &str = "/var/lib/qualitytrace";

/// Debian's package also creates a cluster and starts it on port 5432, unless it finds this file.
const NO_CLUSTER: Meanwhile =
    ("/etc/postgresql-common/createcluster.d/qualitytrace.conf", "create_main_cluster = false");

const PASSWORD_BYTES: usize = 16;

/// Settings for speed over durability, and for many concurrent test programs.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    // A socket's path may be at most 107 bytes, which a cache folder can exceed.
    "unix_socket_directories=",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=300",
    "timezone=UTC",
];

impl Service for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn install(&self, machine: &Machine) -> Result<()> {
        if programs(machine).is_some() {
            return Ok(());
        }
        let why = "postgres: no `initdb` is here";
        packages::install(machine, "postgresql", why, Some(NO_CLUSTER))?;
        programs(machine)
            .map(drop)
            .context("`postgresql` was installed, but `initdb` is still not to be found")
    }

    fn data(&self, machine: &Machine) -> PathBuf {
        let state = machine.state().join("postgres");
        if !machine.is_root() || state.ancestors().skip(1).all(is_passable) {
            return state;
        }
        Path::new(REACHABLE).join(format!("postgres-{}", machine.checkout()))
    }

    fn launch(&self, machine: &Machine, data: &Path) -> Result<Launch> {
        let bin = programs(machine).context("`initdb` has gone")?;
        let user = other_user(machine)?;
        if let Some((uid, gid)) = user {
            chown(data, Some(uid), Some(gid))?;
            if data.starts_with(REACHABLE) {
                fs::set_permissions(REACHABLE, Permissions::from_mode(0o755))?;
            }
        }
        // Both programs refuse to run as root.
        let program = |name: &str| {
            let mut command = Command::new(bin.join(name));
            if let Some((uid, gid)) = user {
                command.uid(uid).gid(gid);
            }
            command.current_dir(data);
            command
        };
        let (cluster, password) = (data.join("cluster"), password()?);
        let secret = data.join("password");
        write_secret(&secret, &password, user)?;
        let mut initdb = program("initdb");
        initdb.arg("-D").arg(&cluster).args(["-N", "-U", "postgres"]);
        initdb.args(["-A", "scram-sha-256"]).arg("--pwfile").arg(&secret);
        spawn::output(initdb.args(["-E", "UTF8", "--locale=C.UTF-8"]))?;
        fs::remove_file(secret)?;

        let [address] = ports::free()?;
        let mut command = program("postgres");
        command.arg("-D").arg(&cluster).args(["-p", &address.port().to_string()]);
        command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        let status = cluster.join("postmaster.pid");
        // The server writes its state into the last line of this file; before that it listens, but rejects connections.
        let ready = move || {
            fs::read_to_string(&status)
                .is_ok_and(|text| text.lines().any(|line| line.trim() == "ready"))
        };
        Ok(Launch {
            command,
            ready: Box::new(ready),
            address: address.to_string(),
            connect: format!(
                "PGPASSWORD=\"$QUALITYTRACE_TEST_POSTGRES_PASSWORD\" psql -h {} -p {} -U postgres",
                address.ip(),
                address.port()
            ),
            variables: vec![
                (
                    "QUALITYTRACE_TEST_POSTGRES",
                    format!("postgres://postgres:{password}@{address}/postgres"),
                ),
                ("QUALITYTRACE_TEST_POSTGRES_PASSWORD", password),
                ("QUALITYTRACE_TEST_POSTGRES_BIN", bin.display().to_string()),
            ],
        })
    }

    /// `TERM` would wait for every client to disconnect.
    fn stop_signal(&self) -> &'static str {
        "INT"
    }
}

/// Generates a password, of characters without a meaning in a URL or a shell.
fn password() -> Result<String> {
    let mut bytes = [0; PASSWORD_BYTES];
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .context("`/dev/urandom` cannot be read")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file that only this user and the server's user may read.
fn write_secret(file: &Path, text: &str, user: Option<(u32, u32)>) -> Result<()> {
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("`{}` cannot be written", file.display()))?;
    if let Some((uid, gid)) = user {
        chown(file, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// Returns the folder of the server's programs: the newest packaged one, else the one in `PATH`.
fn programs(machine: &Machine) -> Option<PathBuf> {
    let versions = fs::read_dir(PACKAGED).into_iter().flatten().flatten();
    let packaged = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        Some((number, version.path().join("bin")))
    });
    let whole = |bin: &Path| ["initdb", "postgres"].iter().all(|name| bin.join(name).is_file());
    let newest = packaged.filter(|(_, bin)| whole(bin)).max().map(|(_, bin)| bin);
    newest.or_else(|| {
        // A symlink in `PATH` is beside other symlinks; the server looks for its parts beside its real file.
        let initdb = machine.in_path("initdb")?.canonicalize().ok()?;
        initdb.parent().filter(|bin| whole(bin)).map(Path::to_path_buf)
    })
}

/// Returns the user and group to switch to, if this process runs as root.
fn other_user(machine: &Machine) -> Result<Option<(u32, u32)>> {
    if !machine.is_root() {
        return Ok(None);
    }
    let number = |flag| -> Result<u32> {
        let number = spawn::output(Command::new("id").args([flag, "postgres"]));
        let missing = "postgres does not run as root, and there is no user `postgres`; make one with `useradd --system postgres`";
        Ok(number.context(missing)?.parse()?)
    };
    Ok(Some((number("-u")?, number("-g")?)))
}

/// Whether any user may traverse this folder.
fn is_passable(dir: &Path) -> bool {
    fs::metadata(dir).is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0)
}

//! Keycloak, an identity provider: its distribution from Maven Central, built once for an in-memory database.
//!
//! It starts with the realm of `keycloak-realm.json`, with users and a client that the tests know.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};

use super::{Launch, Service, maven, ports};
use crate::{
    cache,
    machine::{Machine, fingerprint},
    spawn,
};

pub(super) struct Keycloak;

const VERSION: &str = "26.0.8";
const REALM: &str = include_str!("keycloak-realm.json");
/// The script in the folder of the distribution, once it is built.
const PROGRAM: &str = "kc.sh";

impl Service for Keycloak {
    fn name(&self) -> &'static str {
        "keycloak"
    }

    fn install(&self, machine: &Machine) -> Result<()> {
        home(machine).map(drop)
    }

    fn data(&self, machine: &Machine) -> PathBuf {
        machine.state().join("keycloak")
    }

    fn launch(&self, machine: &Machine, data: &Path) -> Result<Launch> {
        let home = home(machine)?;
        let [http, management] = ports::free()?;
        let mut command = script(&home);
        command
            .args(["start", "--optimized", "--import-realm", "--cache=local"])
            .args(["--http-enabled=true", "--hostname-strict=false", "--http-host=127.0.0.1"])
            // Without it the database is deleted with the last idle connection to it.
            .arg("--db-url=jdbc:h2:mem:keycloak;NON_KEYWORDS=VALUE;DB_CLOSE_DELAY=-1")
            .arg(format!("--http-port={}", http.port()))
            .arg(format!("--http-management-port={}", management.port()))
            .current_dir(data);
        Ok(Launch {
            command,
            ready: Box::new(move || {
                ports::answers_at(http, "/realms/quality/.well-known/openid-configuration")
            }),
            address: http.to_string(),
            connect: format!(
                "http://{http}/realms/quality, with the people of keycloak-realm.json"
            ),
            variables: vec![(
                "QUALITYTRACE_TEST_KEYCLOAK",
                format!("http://{http}/realms/quality"),
            )],
        })
    }

    fn ready_within(&self) -> Duration {
        // A Java program of 150 MB, on a busy machine.
        Duration::from_secs(240)
    }
}

/// Returns its folder, and installs it if this machine does not have it.
fn home(machine: &Machine) -> Result<PathBuf> {
    let key = format!("keycloak-{VERSION}-{:08x}", fingerprint(REALM.as_bytes()) >> 32);
    let bin =
        cache::install(&machine.cache, &key, &[PROGRAM], |part| install(machine, &key, part))?;
    Ok(bin.parent().context("a program stands in a folder")?.to_owned())
}

fn install(machine: &Machine, key: &str, part: &Path) -> Result<()> {
    eprintln!("{key}: getting Keycloak from Maven Central, 150 MB, once per machine");
    let artifact = format!("org.keycloak:keycloak-quarkus-dist:{VERSION}:zip");
    let repository = maven::get(machine, key, part, &artifact)?;
    let zip =
        format!("org/keycloak/keycloak-quarkus-dist/{VERSION}/keycloak-quarkus-dist-{VERSION}.zip");
    spawn::run(Command::new("unzip").arg("-q").arg(repository.join(zip)).current_dir(part))?;
    cache::remove(&repository)?;
    let unpacked = part.join(format!("keycloak-{VERSION}"));
    for entry in fs::read_dir(&unpacked)? {
        let entry = entry?;
        fs::rename(entry.path(), part.join(entry.file_name()))?;
    }
    cache::remove(&unpacked)?;
    let import = part.join("data/import");
    fs::create_dir_all(&import)?;
    fs::write(import.join("quality-realm.json"), REALM)?;
    spawn::run(script(part).args(["build", "--db=dev-mem"]))
}

/// Returns its start script, which executes the server directly once the distribution is built.
fn script(home: &Path) -> Command {
    let mut command = Command::new(home.join("bin").join(PROGRAM));
    command.env("JAVA_OPTS_APPEND", "-Xms64m -Xmx512m");
    command
}

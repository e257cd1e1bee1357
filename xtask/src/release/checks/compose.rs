//! The Compose files as a user starts them: one command, one address, one file with a token, a green run; history outlives `down`.
//!
//! The image of the release is the one that is published. Those of Postgres, Prometheus, the Collector, NATS and HAProxy cannot be
//! pulled everywhere: images of the same programs from Debian and from source stand in for them, under their names. Grafana is not
//! started: a test of the crate `cli` checks the files that provision it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::{Check, Row};
use crate::{
    cache,
    machine::Machine,
    release::{
        Release,
        container_engine::ContainerEngine,
        debian, image,
        image_tools::CRANE,
        registry::{self, Registry},
    },
    services, spawn,
};

pub(crate) const CHECK: Check = Check {
    name: "compose",
    what: "the Compose files: server, observability and replicas, each to a green run with the token file",
    missing,
    run,
};

/// The script, beside this file.
const SCRIPT: &str = "xtask/src/release/checks/compose.sh";

const FILES: &str = "deploy/compose";

/// The image of Debian with all services.
const DEBIAN: &str = "debian-services";

/// An image that stands in for another one.
struct StandIn {
    /// The name in the Compose files, without its tag.
    name: &'static str,
    dockerfile: &'static str,
    /// Files beside the `Dockerfile`: the variable of a service that has the path of a program, and its name there.
    programs: &'static [(&'static str, &'static str)],
}

const STAND_INS: &[StandIn] = &[
    StandIn {
        name: "postgres",
        dockerfile: "FROM debian-services\nCOPY postgres.sh /\nENV PATH=/usr/lib/postgresql/15/bin:/usr/bin:/bin\n\
                     VOLUME /var/lib/postgresql/data\nENTRYPOINT [\"sh\", \"/postgres.sh\"]\n",
        programs: &[],
    },
    StandIn {
        name: "haproxy",
        dockerfile: "FROM debian-services\nUSER 99:99\nSTOPSIGNAL SIGUSR1\n\
                     ENTRYPOINT [\"haproxy\", \"-W\", \"-db\", \"-f\", \"/usr/local/etc/haproxy/haproxy.cfg\"]\n",
        programs: &[],
    },
    StandIn {
        name: "prom/prometheus",
        dockerfile: "FROM debian-services\nCOPY prometheus promtool /bin/\nRUN mkdir /prometheus && chown 65534:65534 /prometheus\n\
                     USER 65534:65534\nVOLUME /prometheus\nENTRYPOINT [\"/bin/prometheus\"]\n",
        programs: &[
            ("QUALITYTRACE_TEST_PROMETHEUS", "prometheus"),
            ("QUALITYTRACE_TEST_PROMTOOL", "promtool"),
        ],
    },
    StandIn {
        name: "otel/opentelemetry-collector-contrib",
        dockerfile: "FROM scratch\nCOPY otelcol /\nUSER 10001:10001\nENTRYPOINT [\"/otelcol\"]\n",
        programs: &[("QUALITYTRACE_TEST_COLLECTOR_BIN", "otelcol")],
    },
    StandIn {
        name: "nats",
        dockerfile: "FROM scratch\nCOPY nats-server /\nENTRYPOINT [\"/nats-server\"]\n",
        programs: &[("QUALITYTRACE_TEST_NATS", "nats-server")],
    },
];

/// Creates the cluster as the image does for which this stands in, by the same variables.
const POSTGRES: &str = r#"set -eu
D=/var/lib/postgresql/data
as() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }
if [ ! -s $D/PG_VERSION ]; then
    chown postgres:postgres $D && chmod 700 $D
    as initdb -D $D -U "$POSTGRES_USER" -A scram-sha-256 --pwfile="$POSTGRES_PASSWORD_FILE" -E UTF8 --locale=C.UTF-8
    echo 'host all all all scram-sha-256' >>$D/pg_hba.conf
    printf 'CREATE DATABASE %s;\n' "$POSTGRES_DB" | as postgres --single -D $D postgres
fi
mkdir -p /var/run/postgresql && chown postgres /var/run/postgresql
exec setpriv --reuid postgres --regid postgres --init-groups postgres -D $D -c 'listen_addresses=*'
"#;

fn missing(machine: &Machine) -> Option<String> {
    let program = |name: &str| {
        let absent = machine.in_path(name).is_none();
        absent.then(|| format!("`{name}`"))
    };
    let root = || match debian::installed(machine) {
        Some(_) => None,
        None => Some("a root of Debian, which is in the cache once it was made".to_owned()),
    };
    let crane = || match CRANE.installed(machine) {
        Some(_) => None,
        None => Some("`crane`, which is in the cache once it was built".to_owned()),
    };
    ContainerEngine::missing(machine)
        .or_else(|| program("docker-compose"))
        .or_else(|| program("curl"))
        .or_else(root)
        .or_else(crane)
}

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let mut printed = String::new();
    services::with(machine, &["collector", "prometheus", "nats"], |variables| {
        printed = play(machine, release, variables)?;
        Ok(())
    })?;
    let times = |prefix: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(prefix));
        let times = line.and_then(|line| {
            let (up, green) = line.trim().split_once(' ')?;
            Some((up.parse().ok()?, green.parse().ok()?))
        });
        times.with_context(|| format!("the script printed no `{prefix}`: {printed}"))
    };
    ["compose.yaml", "compose.observability.yaml", "compose.replicas.yaml"]
        .into_iter()
        .map(|file| {
            let (up, green) = times(&format!("ms {file}:"))?;
            Ok(Row {
                artefact: file.to_owned(),
                bytes: None,
                installed_in: Some(Duration::from_millis(up)),
                green_in: Some(Duration::from_millis(green)),
            })
        })
        .collect()
}

/// Prepares the images and a copy of the files, runs the script, and returns what it printed.
fn play(machine: &Machine, release: &Release, variables: &services::Variables) -> Result<String> {
    let layout = registry::unpack(machine, release, "compose-image")?;
    let engine = ContainerEngine::start(machine, "compose")?;
    let registry = Registry::start(machine, release, &engine, &layout)?;
    let pulled = registry.pull()?;
    cache::remove(&layout)?;
    engine.import(&debian::services(machine)?, DEBIAN, &["CMD [\"sh\"]"])?;

    let folder = machine.state().join("compose-check");
    cache::remove(&folder)?;
    fs::create_dir_all(&folder)?;
    let files = folder.join("compose");
    spawn::output(Command::new("cp").arg("-r").arg(machine.root.join(FILES)).arg(&files))?;
    for stand_in in STAND_INS {
        build(&engine, stand_in, &files, &folder, variables)?;
    }
    let own = value(&fs::read_to_string(files.join(".env"))?, "QUALITYTRACE_IMAGE=")?;
    spawn::output(engine.docker().args(["tag", &pulled, &own]))?;

    let archive = image::archive(release, "x86_64");
    let archive = archive.context("the release has no archive for x86_64")?;
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "--wildcards", "-xzf"]).arg(archive).arg("-C").arg(&folder);
    spawn::output(tar.arg("*/qualitytrace"))?;

    // Its programs run where the published ports are.
    let mut script = engine.within("sh");
    script.arg(machine.root.join(SCRIPT)).arg(folder.join("qualitytrace"));
    script.arg(CRANE.program(machine)?).arg(&registry.tag).current_dir(&files);
    let ended = script.output().context("`nsenter` cannot be started")?;
    let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
    print!("{printed}");
    if !ended.status.success() {
        bail!("compose.sh ended with {}: {}", ended.status, String::from_utf8_lossy(&ended.stderr));
    }
    cache::remove(&folder)?;
    Ok(printed)
}

/// Builds a stand-in under the name and the tag that the Compose files have.
fn build(
    engine: &ContainerEngine,
    stand_in: &StandIn,
    files: &Path,
    folder: &Path,
    variables: &services::Variables,
) -> Result<()> {
    let context = folder.join("stand-in");
    cache::remove(&context)?;
    fs::create_dir_all(&context)?;
    fs::write(context.join("Dockerfile"), stand_in.dockerfile)?;
    fs::write(context.join("postgres.sh"), POSTGRES)?;
    for (variable, name) in stand_in.programs {
        let found = variables.iter().find(|(known, _)| known == variable);
        let (_, program) = found.with_context(|| format!("no service sets `{variable}`"))?;
        fs::copy(program, context.join(name))?;
        fs::set_permissions(context.join(name), fs::Permissions::from_mode(0o755))?;
    }
    for image in images(files, stand_in.name)? {
        println!("{image}: a stand-in of the same program, not the image of the registry");
        engine.build(&context, &image)?;
    }
    cache::remove(&context)
}

/// Returns the images of this name in the Compose files.
fn images(files: &Path, name: &str) -> Result<Vec<String>> {
    let mut images = Vec::new();
    for file in fs::read_dir(files)? {
        let file: PathBuf = file?.path();
        if file.extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(&file)?;
            let begin = format!("image: {name}:");
            let lines = text.lines().filter(|line| line.trim().starts_with(&begin));
            images.extend(
                lines.filter_map(|line| Some(line.trim().strip_prefix("image: ")?.to_owned())),
            );
        }
    }
    images.sort();
    images.dedup();
    if images.is_empty() {
        bail!("no Compose file has an image `{name}`");
    }
    Ok(images)
}

/// Returns the rest of the line that begins so.
fn value(text: &str, begin: &str) -> Result<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(begin));
    line.map(str::to_owned).with_context(|| format!("`.env` has no `{begin}`"))
}

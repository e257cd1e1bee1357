//! The image: what it has in it, and a first green run in it, pulled by its digest from a registry.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use super::{Check, Row};
use crate::{
    cache,
    machine::Machine,
    release::{
        Release,
        container_engine::ContainerEngine,
        image::{self, PLATFORMS},
        image_tools::{CRANE, HADOLINT},
        registry::{self, Registry},
    },
    spawn,
};

pub(crate) const CHECK: Check = Check {
    name: "image",
    what: "the image holds what it must and nothing else, passes through a registry, and runs without a right",
    missing,
    run,
};

/// The most that is pulled for one platform. Its files take more than twice as much.
const BYTES_MAX: u64 = 40_000_000;

/// Every file of a layer: its mode, its owner, its path.
const FILES: &[&str] = &[
    "drwxr-xr-x 65532/65532 data/",
    "drwxr-xr-x 0/0 etc/",
    "-rw-r--r-- 0/0 etc/group",
    "-rw-r--r-- 0/0 etc/passwd",
    "drwxr-xr-x 0/0 etc/ssl/",
    "drwxr-xr-x 0/0 etc/ssl/certs/",
    "-rw-r--r-- 0/0 etc/ssl/certs/ca-certificates.crt",
    "drwxr-xr-x 0/0 usr/",
    "drwxr-xr-x 0/0 usr/bin/",
    "-rwxr-xr-x 0/0 usr/bin/qualitytrace",
    "drwxr-xr-x 0/0 usr/share/",
    "drwxr-xr-x 0/0 usr/share/doc/",
    "drwxr-xr-x 0/0 usr/share/doc/qualitytrace/",
    "-rw-r--r-- 0/0 usr/share/doc/qualitytrace/LICENSE",
    "-rw-r--r-- 0/0 usr/share/doc/qualitytrace/THIRD-PARTY-LICENSES.md",
];

/// The fewest authorities that Debian's package has.
const AUTHORITIES_MIN: usize = 100;

/// What the container is allowed: nothing but its volume.
const CONFINED: &[&str] =
    &["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];

const WAIT_MAX: Duration = Duration::from_secs(60);

fn missing(machine: &Machine) -> Option<String> {
    let tools = [&HADOLINT, &CRANE];
    let absent = tools.iter().find(|tool| tool.installed(machine).is_none());
    ContainerEngine::missing(machine).or_else(|| {
        absent.map(|tool| format!("`{}`, which is in the cache once it was built", tool.name))
    })
}

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let file = image::file(release);
    let bytes = fs::metadata(&file)
        .with_context(|| {
            format!("`{}` is not there: make it with `cargo xtask release package`", file.display())
        })?
        .len();
    let containerfile = machine.root.join("deploy/image/Containerfile");
    spawn::run(Command::new(HADOLINT.program(machine)?).arg(containerfile))?;

    let layout = registry::unpack(machine, release, "image-check")?;
    let checked = check(machine, release, &layout);
    cache::remove(&layout)?;
    let (installed_in, green_in) = checked?;
    let artefact = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(vec![Row {
        artefact,
        bytes: Some(bytes),
        installed_in: Some(installed_in),
        green_in: Some(green_in),
    }])
}

fn check(machine: &Machine, release: &Release, layout: &Path) -> Result<(Duration, Duration)> {
    let expected = PLATFORMS.iter().filter(|(_, it)| image::archive(release, it).is_some());
    let platforms: Vec<_> = expected.map(|(platform, _)| *platform).collect();
    let layers = layers(&layout.join("blobs/sha256"))?;
    ensure!(layers.len() == platforms.len(), "{} layers for {platforms:?}", layers.len());
    for layer in &layers {
        check_layer(layer)?;
    }
    let engine = ContainerEngine::start(machine, "image")?;
    let registry = Registry::start(machine, release, &engine, layout)?;
    registry.crane(&["validate", "--remote", &registry.tag])?;
    for platform in &platforms {
        let config = registry.crane(&[
            "config",
            "--platform",
            &format!("linux/{platform}"),
            &registry.tag,
        ])?;
        check_config(release, platform, &config)?;
    }
    let began = (machine.clock.now)();
    let pulled = registry.pull()?;
    let installed_in = (machine.clock.now)() - began;
    let green_in = first_run(machine, &engine, &pulled, release)?;
    Ok((installed_in, green_in))
}

/// Returns the layers of the layout; everything else in it is JSON.
fn layers(blobs: &Path) -> Result<Vec<PathBuf>> {
    let mut layers = Vec::new();
    for blob in fs::read_dir(blobs).context("the image is no OCI layout")? {
        let blob = blob?.path();
        let mut begin = [0; 2];
        File::open(&blob)?.read_exact(&mut begin)?;
        match begin {
            [0x1f, 0x8b] => layers.push(blob),
            [b'{', _] => {}
            _ => bail!("`{}` is neither a layer nor JSON", blob.display()),
        }
    }
    Ok(layers)
}

/// Checks every file of a layer, and its size.
fn check_layer(layer: &Path) -> Result<()> {
    let list = spawn::output(Command::new("tar").args(["--numeric-owner", "-tvzf"]).arg(layer))?;
    let mut found = Vec::new();
    let mut bytes = 0;
    for line in list.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [mode, owner, size, _, _, path] = words[..] else { bail!("a layer has `{line}`") };
        bytes += size.parse::<u64>().with_context(|| format!("a layer has `{line}`"))?;
        found.push(format!("{mode} {owner} {path}"));
    }
    found.sort_by(|one, other| path(one).cmp(path(other)));
    ensure!(found == FILES, "a layer has other files than the list in this check:\n{list}");
    let pulled = fs::metadata(layer)?.len();
    ensure!(pulled <= BYTES_MAX, "a layer has {pulled} bytes, over {BYTES_MAX}");
    println!("layer: {pulled} bytes to pull, {bytes} bytes of files");
    let mut tar = Command::new("tar");
    tar.arg("-xzOf").arg(layer).arg("etc/ssl/certs/ca-certificates.crt");
    let authorities = spawn::output(&mut tar)?.matches("-----BEGIN CERTIFICATE-----").count();
    ensure!(authorities >= AUTHORITIES_MIN, "the image trusts {authorities} authorities only");
    Ok(())
}

fn path(line: &str) -> &str {
    line.rsplit(' ').next().unwrap_or_default()
}

/// Checks the facts of an image that its users rely on.
fn check_config(release: &Release, platform: &str, config: &str) -> Result<()> {
    let version = &release.version;
    for fact in [
        format!(r#""architecture":"{platform}""#),
        r#""User":"65532:65532""#.to_owned(),
        r#""Entrypoint":["/usr/bin/qualitytrace"]"#.to_owned(),
        r#""Cmd":["serve"]"#.to_owned(),
        r#""Volumes":{"/data":{}}"#.to_owned(),
        r#""STATE_DIRECTORY=/data""#.to_owned(),
        format!(r#""org.opencontainers.image.version":"{version}""#),
        r#""org.opencontainers.image.licenses":"Apache-2.0""#.to_owned(),
        r#""org.opencontainers.image.revision":""#.to_owned(),
    ] {
        ensure!(config.contains(&fact), "the image for {platform} lacks `{fact}`: {config}");
    }
    Ok(())
}

/// Runs a first test in a container without rights, and returns how long it took from the start of the container.
fn first_run(
    machine: &Machine,
    engine: &ContainerEngine,
    image: &str,
    release: &Release,
) -> Result<Duration> {
    const NAME: &str = "shop";
    let began = (machine.clock.now)();
    let mut start = engine.docker();
    start.args(["run", "-d", "--name", NAME]).args(CONFINED);
    spawn::output(start.args(["--network", "none", image, "demo"]))?;
    let exec = |arguments: &[&str]| {
        let mut exec = engine.docker();
        exec.args(["exec", NAME, "qualitytrace"]).args(arguments);
        exec
    };
    let log = || {
        let mut logs = engine.client("sh");
        spawn::output(logs.args(["-c", "docker logs --tail 20 \"$1\" 2>&1", "logs", NAME]))
            .unwrap_or_default()
    };
    spawn::output(&mut exec(&["init"]))
        .with_context(|| format!("a container of the image has ended; it printed: {}", log()))?;
    let opened = until(machine, began, || {
        exec(&["run", "--timeout", "10s"]).output().is_ok_and(|it| it.status.success())
    });
    ensure!(opened, "no green run within {WAIT_MAX:?}: {}", log());
    let green_in = (machine.clock.now)() - began;

    let version = spawn::output(&mut exec(&["--version"]))?;
    ensure!(version.contains(&release.version), "the image reports `{version}`");
    let pid = spawn::output(engine.docker().args(["inspect", "-f", "{{.State.Pid}}", NAME]))?;
    check_confinement(&fs::read_to_string(format!("/proc/{pid}/status"))?)?;
    let mut outside = engine.docker();
    let outside = outside.args(["exec", "-w", "/", NAME, "qualitytrace", "init"]).output()?;
    ensure!(!outside.status.success(), "the image can write outside of /data");
    Ok(green_in)
}

/// Checks user, capabilities and privileges in the kernel's words.
fn check_confinement(status: &str) -> Result<()> {
    let lines: Vec<Vec<&str>> =
        status.lines().map(|line| line.split_whitespace().collect()).collect();
    for (name, expected) in [
        ("Uid:", "65532"),
        ("Gid:", "65532"),
        ("CapPrm:", "0000000000000000"),
        ("CapEff:", "0000000000000000"),
        ("CapBnd:", "0000000000000000"),
        ("NoNewPrivs:", "1"),
    ] {
        let line = lines.iter().find(|line| line.first() == Some(&name));
        let values = line.with_context(|| format!("the kernel reports no `{name}`"))?;
        let is_so = values.len() > 1 && values[1..].iter().all(|value| *value == expected);
        ensure!(is_so, "a process of the container has {values:?}, and not {expected}");
    }
    Ok(())
}

/// Waits for a condition, and returns whether it came true.
fn until(machine: &Machine, began: Instant, is_true: impl Fn() -> bool) -> bool {
    loop {
        if is_true() {
            return true;
        }
        if (machine.clock.now)() - began > WAIT_MAX {
            return false;
        }
        (machine.clock.sleep)(Duration::from_millis(50));
    }
}

//! `cargo xtask bench NAME`: the measurements of the `bench` crate, in release mode, with real servers beside them.

use std::{ffi::OsString, fs, process::Command};

use anyhow::{Context, Result, bail};

use crate::{
    machine::Machine,
    old_version, packages, programs,
    services::{self, Variables},
    spawn,
};

/// The real trace stores, and the Collector that writes to those which do not accept OTLP.
const STORES: &[&str] =
    &["collector", "jaeger", "tempo", "opensearch", "elasticsearch", "clickhouse", "zipkin"];

pub(crate) fn run(machine: &Machine, name: &str, rest: &[&str]) -> Result<()> {
    // The measured binary is built beside the one that measures it; some measurements measure their own process.
    let (services, packages): (&[&str], &[&str]) = match name {
        "ingest" | "telemetry" => (&["collector"], &["-p", "bench"]),
        "columns" | "decode" | "lang" | "layout" | "page" => (&[], &["-p", "bench"]),
        "run" => (&[], &["-p", "bench"]),
        "leasing" => (&["postgres"], &["-p", "bench"]),
        "chaos" => (&["postgres", "nats"], &["-p", "cli", "-p", "bench"]),
        "prove" => (&["postgres", "collector", "nats"], &["-p", "cli", "-p", "bench"]),
        "replicas" => (&["postgres", "nats"], &["-p", "cli", "-p", "bench"]),
        "stores" => (STORES, &["-p", "cli", "-p", "bench"]),
        _ => (&["postgres", "collector"], &["-p", "cli", "-p", "bench"]),
    };
    if name == "page" {
        packages::browser(machine)?;
    }
    services::with(machine, services, |variables| {
        if rest.first() == Some(&"upgrade") {
            next_version(machine)?;
        }
        let mut build = machine.cargo();
        build.args(["build", "--quiet", "--release"]).args(packages);
        if name == "chaos" && rest.contains(&"--plant") {
            build.args(["--features", "cli/planted"]);
        }
        spawn::run(&mut build)?;
        // Not by `cargo run`: for one package alone, it would choose other features and build everything again.
        let mut bench = machine.command(machine.target().join("release/bench"));
        bench.arg(name).args(rest);
        if name == "run" || name == "server" {
            // Measures the binary that users install, which is built in its own folder.
            let mut build = machine.cargo();
            spawn::run(build.args(["build", "--quiet", "--profile", "dist", "-p", "cli"]))?;
            bench.arg("--binary").arg(machine.target().join("dist/qualitytrace"));
        }
        spawn::run(bench.envs(variables.iter().cloned()))
    })
}

/// `cargo xtask prove`: runs with a million random cases the checks that tests run with a few.
pub(crate) fn prove(machine: &Machine, rest: &[&str]) -> Result<()> {
    if let Some((&"tenants", rest)) = rest.split_first() {
        return tenants(machine, rest);
    }
    if let Some((&"release-upgrade", rest)) = rest.split_first() {
        return release_upgrade(machine, rest);
    }
    if rest == ["trigger"] {
        return new_trigger(machine, &[]);
    }
    // Some of them need real services.
    if matches!(rest.first(), Some(&"bus" | &"kill" | &"upgrade" | &"dogfood")) {
        return run(machine, "prove", rest);
    }
    let mut cargo = machine.cargo();
    cargo.args(["run", "--quiet", "--release", "-p", "bench"]);
    if rest.iter().any(|word| word.starts_with("--fault")) {
        cargo.args(["--features", "planted"]);
    }
    spawn::run(cargo.args(["--", "prove"]).args(rest))
}

/// `cargo xtask prove release-upgrade`: from the server of another commit to this one, and back.
fn release_upgrade(machine: &Machine, rest: &[&str]) -> Result<()> {
    let ["--from", reference] = rest else {
        bail!(
            "`cargo xtask prove release-upgrade` needs `--from` with the tag of the last release, or a commit"
        );
    };
    let old = old_version::program(machine, reference)?;
    services::with(machine, &["postgres"], |variables| {
        let mut bench = machine.command(programs::build(machine)?.join("bench"));
        bench.args(["prove", "release-upgrade", "--old"]).arg(&old);
        spawn::run(bench.envs(variables.iter().cloned()))
    })
}

/// Builds the binary of the next version beside that of this one, which is built afterwards.
fn next_version(machine: &Machine) -> Result<()> {
    let mut build = machine.cargo();
    build.args(["build", "--quiet", "--release", "-p", "cli", "--features", "cli/next-version"]);
    spawn::run(&mut build)?;
    programs::copy_next(&machine.target().join("release"))
}

/// `cargo xtask prove tenants`: one project abuses each resource that projects share, and another must not notice.
fn tenants(machine: &Machine, rest: &[&str]) -> Result<()> {
    // Several servers share spans over NATS.
    let needed: &[&str] =
        if rest.contains(&"--replicas") { &["postgres", "nats"] } else { &["postgres"] };
    services::with(machine, needed, |variables| {
        spawn::run(machine.cargo().args(["build", "--quiet", "--release", "-p", "cli"]))?;
        let mut python = machine.command("python3");
        python.arg(machine.root.join("tests/tenants/prove.py")).args(rest);
        python.env("QUALITYTRACE", machine.target().join("release/qualitytrace"));
        spawn::run(python.envs(variables.iter().cloned()))
    })
}

/// `cargo xtask prove trigger`: applies the patch of a new trigger to a copy of the checkout, and fires it.
pub(crate) fn new_trigger(machine: &Machine, rest: &[&str]) -> Result<()> {
    let mut python = machine.command("python3");
    python.arg(machine.root.join("tests/new-trigger/run.py")).arg("--folder");
    python.arg(machine.target().join("new-trigger")).args(rest);
    spawn::run(&mut python)
}

/// `cargo xtask compat`: evaluates the predecessor's own material with this language.
pub(crate) fn compat(machine: &Machine, rest: &[&str]) -> Result<()> {
    let mut bench = machine.command(programs::build(machine)?.join("bench"));
    spawn::run(bench.arg("compat").args(rest))
}

/// The binary with planted faults, beside the one without.
const PLANTED: &str = "qualitytrace-planted";

/// The services that the suite uses. Jaeger is skipped where it is not installed.
pub(crate) const DOGFOOD_NEEDS: &[&str] = &["postgres", "collector", "jaeger"];

/// `cargo xtask dogfood`: the suite of `tests/dogfood`, or with `--faults` proof that it can fail.
pub(crate) fn dogfood(machine: &Machine, rest: &[&str], variables: &Variables) -> Result<()> {
    let mut arguments: Vec<OsString> = rest.iter().map(OsString::from).collect();
    if rest.first() == Some(&"--faults") {
        if rest.len() == 1 {
            arguments.push(OsString::new());
        }
        let planted = programs::planted(machine)?;
        let copy = planted.with_file_name(PLANTED);
        fs::copy(planted, &copy).with_context(|| format!("cannot write `{}`", copy.display()))?;
    } else {
        let mut git = Command::new("git");
        let revision = spawn::output(git.args(["rev-parse", "HEAD"]).current_dir(&machine.root));
        let revision = revision.unwrap_or_else(|_| "unknown".to_owned());
        arguments.extend(["--revision".into(), revision.trim().into(), "--history".into()]);
        arguments.push(machine.cache.join("dogfood.history").into_os_string());
        if let Some(summary) = machine.find("GITHUB_STEP_SUMMARY") {
            arguments.extend(["--summary".into(), summary]);
        }
    }
    let mut bench = machine.command(programs::build(machine)?.join("bench"));
    spawn::run(bench.arg("dogfood").args(arguments).envs(variables.iter().cloned()))
}

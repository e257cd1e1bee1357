//! The chart: every value file is rendered, held against golden files, against the API of the oldest and the newest Kubernetes that
//! it supports, against the Pod Security Standard, and against the program, which has to accept the configuration.
//!
//! Deliberately absent: a cluster. Nothing here schedules a pod, and a ServiceMonitor has no schema in the API of Kubernetes.

mod chart;
mod configuration;
mod manifests;
mod pods;
mod server;
mod tools;
mod values;

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};

use super::{Check, Row};
use crate::{machine::Machine, release::Release, spawn};
use chart::Chart;
use tools::Tools;

pub(crate) const CHECK: Check = Check {
    name: "helm",
    what: "the chart renders what Kubernetes and the program accept, with and without a cluster's plain manifests",
    missing,
    run,
};

/// Returns what this machine lacks: `go` builds the tools, and is installed if it is missing.
fn missing(machine: &Machine) -> Option<String> {
    ["python3", "openssl", "tar"]
        .into_iter()
        .find(|program| machine.in_path(program).is_none())
        .map(|program| format!("there is no `{program}` in `PATH`"))
}

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let name = format!("qualitytrace-{}-chart.tgz", release.version);
    let file = release.file(&name);
    let bytes = fs::metadata(&file)
        .with_context(|| {
            format!("`{}` is not in the release: run `cargo xtask release package`", file.display())
        })?
        .len();
    let tools = Tools::install(machine)?;
    let folder = crate::cache::remove(&work(machine)).map(|()| work(machine))?;
    fs::create_dir_all(&folder)
        .with_context(|| format!("`{}` cannot be made", folder.display()))?;
    let chart = Chart { tools: &tools, file, sources: machine.root.join("deploy/helm"), folder };
    is_this_version(&chart, &release.version)?;
    is_of_this_checkout(machine, &chart)?;
    let rendered = manifests::check(machine, &chart)?;
    values::schema(machine, &chart)?;
    values::keys(&chart)?;
    values::refusals(&chart)?;
    let program = program(machine, release, &chart.folder)?;
    configuration::check(&chart, &program, &rendered)?;
    let green = server::check(machine, &chart, &program)?;
    Ok(vec![Row { artefact: name, bytes: Some(bytes), installed_in: None, green_in: Some(green) }])
}

/// Returns the folder for what this check makes.
fn work(machine: &Machine) -> std::path::PathBuf {
    machine.state().join("release").join("helm")
}

/// Refuses a chart of another version: it names its image by that.
fn is_this_version(chart: &Chart<'_>, version: &str) -> Result<()> {
    let shown = chart.helm(&["show", "chart"])?;
    for key in ["version", "appVersion"] {
        let line = format!("{key}: {version}");
        if !shown.lines().any(|it| it == line) {
            bail!("the chart has no `{line}`: change deploy/helm/qualitytrace/Chart.yaml");
        }
    }
    Ok(())
}

/// Refuses a file that does not have the chart of this checkout, whose golden files it is held against.
fn is_of_this_checkout(machine: &Machine, chart: &Chart<'_>) -> Result<()> {
    let unpacked = chart.folder.join("unpacked");
    unpack(&chart.file, &unpacked)?;
    let mut diff = machine.command("diff");
    diff.arg("--recursive").arg(chart.sources.join("qualitytrace"));
    spawn::output(diff.arg(unpacked.join("qualitytrace")))
        .context("the packed chart differs from that of this checkout: package it again")?;
    Ok(())
}

/// Unpacks the program of the release, as a user of the archive does.
fn program(machine: &Machine, release: &Release, folder: &Path) -> Result<std::path::PathBuf> {
    let prefix =
        format!("qualitytrace-{}-{}-unknown-linux-", release.version, std::env::consts::ARCH);
    let names = fs::read_dir(&release.folder)?.collect::<Result<Vec<_>, _>>()?;
    let names = names.into_iter().map(|it| it.file_name().to_string_lossy().into_owned());
    let stem = names
        .filter_map(|name| name.strip_suffix(".tar.gz").map(str::to_owned))
        .find(|stem| stem.starts_with(&prefix))
        .with_context(|| format!("the release has no `{prefix}….tar.gz`"))?;
    let unpacked = folder.join("program");
    unpack(&release.file(&format!("{stem}.tar.gz")), &unpacked)?;
    let program = unpacked.join(&stem).join("qualitytrace");
    spawn::output(machine.command(&program).arg("--version"))?;
    Ok(program)
}

fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut tar = std::process::Command::new("tar");
    tar.arg("--extract").arg("--gzip").arg("--file").arg(archive).arg("--directory").arg(folder);
    spawn::output(&mut tar).map(drop)
}

//! The checks of `release verify`: each uses artefacts of a release as their users do.

mod aarch64;
mod action;
mod archive;
mod compose;
mod crates;
mod deb;
mod first_run;
mod helm;
mod image;
mod install_script;
mod npm;
mod root;
mod rpm;
mod sums;
mod supply;
mod systemd;
mod twice;
mod wheel;

use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Release;
use crate::machine::Machine;

/// All checks, in the order in which they run.
const ALL: &[&Check] = &[
    &sums::CHECK,
    &supply::CHECK,
    &twice::CHECK,
    &archive::CHECK,
    &install_script::CHECK,
    &deb::CHECK,
    &rpm::CHECK,
    &wheel::CHECK,
    &npm::CHECK,
    &aarch64::CHECK,
    &crates::CHECK,
    &image::CHECK,
    &systemd::CHECK,
    &compose::CHECK,
    &helm::CHECK,
    &action::CHECK,
];

/// One check of a release.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// What it shows, for the help.
    pub(crate) what: &'static str,
    /// Returns why it cannot run on this machine, by the name of what is missing; none if it can.
    pub(crate) missing: fn(&Machine) -> Option<String>,
    pub(crate) run: fn(&Machine, &Release) -> Result<Vec<Row>>,
}

/// A line of the table that `release verify` prints.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) artefact: String,
    pub(crate) bytes: Option<u64>,
    /// From the file to an installed program.
    pub(crate) installed_in: Option<Duration>,
    /// From the installed program to the first green run.
    pub(crate) green_in: Option<Duration>,
}

pub(crate) fn help() -> String {
    let lines: Vec<_> =
        ALL.iter().map(|check| format!("  {:17} {}\n", check.name, check.what)).collect();
    format!("Checks of `release verify`:\n{}", lines.concat())
}

/// Runs the named checks, or all. A check that this machine cannot run is skipped by name; one that was named installs what it can, or fails.
pub(crate) fn run(machine: &Machine, release: &Release, names: &[String]) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|check| check.name != **name)) {
        bail!("`{unknown}` is not a check of a release; `cargo xtask --help` lists them");
    }
    let is_named = |check: &&&Check| names.is_empty() || names.iter().any(|it| it == check.name);
    let (mut rows, mut skipped, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for check in ALL.iter().filter(is_named) {
        match (check.missing)(machine) {
            Some(why) if names.is_empty() => {
                skipped.push(format!("skipped {}: {why}", check.name));
                continue;
            }
            // Who names a check wants what it needs to be installed, as far as it can be.
            Some(why) => eprintln!("release verify {}: missing so far: {why}", check.name),
            None => {}
        }
        eprintln!("release verify {}: {}", check.name, check.what);
        let began = (machine.clock.now)();
        match (check.run)(machine, release).with_context(|| check.name.to_owned()) {
            Ok(more) => {
                let seconds = ((machine.clock.now)() - began).as_secs_f64();
                println!("passed {} ({seconds:.1} s)", check.name);
                rows.extend(more);
            }
            Err(error) => {
                eprintln!("failed {error:#}");
                failed.push(check.name.to_owned());
            }
        }
    }
    print!("\n{}", table(&rows));
    for line in skipped {
        println!("{line}");
    }
    if !failed.is_empty() {
        bail!("checks of the release failed: {}", failed.join("; "));
    }
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let seconds = |time: Option<Duration>| {
        time.map_or("-".to_owned(), |time| format!("{:.2}", time.as_secs_f64()))
    };
    let mut lines = vec![[
        "artefact".to_owned(),
        "bytes".to_owned(),
        "install, s".to_owned(),
        "first green run, s".to_owned(),
    ]];
    lines.extend(rows.iter().map(|row| {
        [
            row.artefact.clone(),
            row.bytes.map_or("-".to_owned(), |bytes| bytes.to_string()),
            seconds(row.installed_in),
            seconds(row.green_in),
        ]
    }));
    let widths: Vec<_> = (0..4)
        .map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or_default())
        .collect();
    let line = |[artefact, bytes, install, green]: &[String; 4]| {
        let [a, b, c, d] = [widths[0], widths[1], widths[2], widths[3]];
        format!("{artefact:a$}  {bytes:>b$}  {install:>c$}  {green:>d$}\n")
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_what_was_measured_and_a_dash_for_what_was_not() {
        let row = |artefact: &str, bytes, installed_in, green_in| Row {
            artefact: artefact.to_owned(),
            bytes,
            installed_in,
            green_in,
        };
        let rows = [
            row("a.deb", Some(1234), Some(Duration::from_millis(1500)), None),
            row("an index", None, None, Some(Duration::from_secs(2))),
        ];
        let expected = "\
artefact  bytes  install, s  first green run, s
a.deb      1234        1.50                   -
an index      -           -                2.00
";
        assert_eq!(table(&rows), expected);
    }
}

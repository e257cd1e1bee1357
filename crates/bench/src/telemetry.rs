//! Losses and cost of telemetry: the stock exporters compared with ours, in front of a real Collector.
//!
//! The Collector forwards to a sink that counts, without queue or retry, so every acknowledged span has been counted; the emitter
//! is its own process that writes each ended span to a file, so the list of expected spans survives a kill. Every subject has its
//! own Collector and sink, so several can be measured concurrently.

pub mod cost;
mod emit;
mod ended;
pub mod faults;
pub mod kill;
mod ours;
pub mod outage;
pub mod reload;
pub mod shutdown;
mod stand;
mod stock;
mod subject;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::table::Row;

pub use emit::run as emit;
pub use ended::{EndedSpan, read as read_ended};
pub use stand::{Emitter, TelemetryStand};
pub use subject::{
    Durability, EmitterLoad, EmitterOrder, EmitterOutcome, ExporterKind, SpanCounts, Subject,
    Transport, Within,
};

/// The figures, each group under its name for `--only`, the quick ones first.
const FIGURES: &[&str] =
    &["cost", "current-thread", "never-up", "reload", "kill", "kill-away", "outage"];

/// The groups of `--faults`; each has its arm in `rows`.
const FAULTS: &[&str] = faults::NAMES;

/// The parsed arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct TelemetryArgs {
    /// Short outages and few kills.
    short: bool,
    /// Only one group.
    only: Option<String>,
    /// The faults in place of the figures.
    faults: bool,
}

/// Measures the requested groups; `program` is this binary, which also runs as the emitter.
pub async fn measure(program: &Path, arguments: &[String]) -> Result<Vec<Row>> {
    let asked = read(arguments)?;
    let groups = if asked.faults { FAULTS } else { FIGURES };
    let wanted = |group: &&str| asked.only.as_deref().is_none_or(|only| only == *group);
    let groups: Vec<_> = groups.iter().copied().filter(wanted).collect();
    ensure!(!groups.is_empty(), "there is no such group; there are: {}", names());
    let mut all = Vec::new();
    for group in groups {
        progress(group);
        all.extend(rows(group, program, asked.short).await.with_context(|| group.to_owned())?);
    }
    Ok(all)
}

async fn rows(group: &str, program: &Path, short: bool) -> Result<Vec<Row>> {
    match group {
        "cost" => cost::rows(program, short).await,
        "current-thread" => shutdown::rows_current_thread(program).await,
        "never-up" => shutdown::rows_never_up(program, short).await,
        "reload" => reload::rows(program, short).await,
        "kill" => kill::rows(program, short).await,
        "kill-away" => kill::rows_away(program, short).await,
        "outage" => outage::rows(program, short).await,
        fault => faults::rows(fault, program, short).await,
    }
}

fn read(arguments: &[String]) -> Result<TelemetryArgs> {
    let mut asked = TelemetryArgs::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--short" => asked.short = true,
            "--faults" => asked.faults = true,
            "--only" => {
                let group = arguments.next().with_context(|| {
                    format!("`--only` wants the name of a group: one of {}", names())
                })?;
                asked.only = Some(group.clone());
            }
            other => bail!("`{other}` is not an option: expected --short, --only NAME, --faults"),
        }
    }
    Ok(asked)
}

fn names() -> String {
    [FIGURES, FAULTS].concat().join(", ")
}

/// Prints a progress line: the table comes last.
#[expect(clippy::print_stderr, reason = "a long bench says what it is doing")]
fn progress(line: &str) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::{TelemetryArgs, read};

    #[test]
    fn arguments_are_read_and_mistakes_are_named() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let asked = read(&words("--short --only kill")).unwrap();
        let expected = TelemetryArgs { short: true, only: Some("kill".to_owned()), faults: false };
        assert_eq!(asked, expected);
        for (text, part) in [("--shrot", "`--shrot`"), ("--only", "outage")] {
            let error = read(&words(text)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}

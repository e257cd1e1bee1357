//! `qualitytrace run` from its user's view: the time from the last span to the verdict, and the cost of a big trace.
//!
//! The binary runs against its own demo and against our systems that send the spans that a figure needs; all of them are separate
//! processes. The figures of a run are read from its JSON report.

mod big;
pub(crate) mod command;
mod latency;
mod linger;
mod many;
pub(crate) mod system;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::{parts::Server, table::Row};

pub(crate) use command::listening;
pub use system::serve;

/// Measures all, or one part: `latency`, `linger`, `suite`, `big`, `services`, `idle`. `--short` repeats less; `--binary PATH`
/// measures that binary.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let mut words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let binary = match words.iter().position(|word| *word == "--binary") {
        Some(at) => words.drain(at..words.len().min(at + 2)).nth(1).map(PathBuf::from),
        None => Some(Server::binary_beside_this()?),
    };
    let binary = binary.context("--binary needs a path")?;
    let is_short = words.contains(&"--short");
    let parts: Vec<&str> = words.into_iter().filter(|word| *word != "--short").collect();
    let known = ["idle", "latency", "linger", "suite", "big", "services"];
    if let Some(unknown) = parts.iter().find(|part| !known.contains(part)) {
        bail!("`{unknown}` is no part of this bench; there are: {}", known.join(", "));
    }
    let mut rows = Vec::new();
    for part in known.into_iter().filter(|part| parts.is_empty() || parts.contains(part)) {
        rows.extend(match part {
            "idle" => latency::idle(&binary).await?,
            "latency" => latency::measure(&binary, is_short).await?,
            "linger" => linger::measure(&binary, is_short).await?,
            "suite" => latency::suite(&binary).await?,
            "big" => big::measure(&binary, is_short).await?,
            _ => many::measure(&binary, is_short).await?,
        });
    }
    Ok(rows)
}

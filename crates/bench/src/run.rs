//! `qualitytrace run` as its user meets it: how soon the verdict follows the last span, and what a big trace costs.
//!
//! The binary runs against its own demo and against systems of ours that send what a figure needs; all of them are
//! processes of their own. What is told of a run is read from its JSON report.

mod big;
mod command;
mod latency;
mod many;
mod system;

use anyhow::{Result, bail};

use crate::{parts::Server, table::Row};

pub use system::serve;

/// Measures all, or one part: `latency`, `suite`, `big`, `services`, `idle`. `--short` repeats less.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let binary = Server::binary_beside_this()?;
    let is_short = rest.iter().any(|word| word == "--short");
    let parts: Vec<&str> =
        rest.iter().map(String::as_str).filter(|word| *word != "--short").collect();
    let known = ["idle", "latency", "suite", "big", "services"];
    if let Some(unknown) = parts.iter().find(|part| !known.contains(part)) {
        bail!("`{unknown}` is no part of this bench; there are: {}", known.join(", "));
    }
    let mut rows = Vec::new();
    for part in known.into_iter().filter(|part| parts.is_empty() || parts.contains(part)) {
        rows.extend(match part {
            "idle" => latency::idle(&binary).await?,
            "latency" => latency::measure(&binary, is_short).await?,
            "suite" => latency::suite(&binary).await?,
            "big" => big::measure(&binary, is_short).await?,
            _ => many::measure(&binary, is_short).await?,
        });
    }
    Ok(rows)
}

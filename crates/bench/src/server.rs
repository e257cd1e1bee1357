//! A server from its operator's view: a thousand concurrent runs, a long history, and idle.
//!
//! The built binary, its own Postgres with the default settings, the demo and a Collector are separate processes. CPU times of
//! processes are read from `/proc`, times of statements from Postgres and from the server's own metrics.

mod footprint;
mod foreign;
mod history;
mod load;
mod plans;
mod replay;
mod statements;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use self::history::History;
pub use self::plans::StatementPlan;
use crate::{
    parts::Server,
    table::{Goal, Row},
};

/// Measures all, or one part: `footprint`, `load`, `history`, `foreign`. `--short` does less; `--binary PATH` measures that
/// binary.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let mut words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let binary = match words.iter().position(|word| *word == "--binary") {
        Some(at) => words.drain(at..words.len().min(at + 2)).nth(1).map(PathBuf::from),
        None => Some(Server::binary_beside_this()?),
    };
    let binary = binary.context("--binary needs a path")?;
    let is_short = words.contains(&"--short");
    let parts: Vec<&str> = words.into_iter().filter(|word| *word != "--short").collect();
    let known = ["footprint", "load", "history", "foreign"];
    if let Some(unknown) = parts.iter().find(|part| !known.contains(part)) {
        bail!("`{unknown}` is no part of this bench; there are: {}", known.join(", "));
    }
    let mut rows = Vec::new();
    let mut history = None;
    if parts.is_empty() || parts.iter().any(|part| ["foreign", "history"].contains(part)) {
        history = Some(History::make(&binary, is_short).await?);
    }
    for part in known.into_iter().filter(|part| parts.is_empty() || parts.contains(part)) {
        rows.extend(match part {
            "footprint" => footprint::measure(&binary).await?,
            "load" => load::measure(&binary, is_short).await?,
            part => match &history {
                Some(history) if part == "foreign" => {
                    foreign::measure(&binary, history, is_short).await?
                }
                Some(history) => history.measure().await?,
                None => Vec::new(),
            },
        });
    }
    Ok(rows)
}

/// Explains the plans on a short history; a bad plan is an error.
pub async fn plans(binary: &Path) -> Result<Vec<StatementPlan>> {
    History::make(binary, true).await?.explain().await
}

fn row(name: &str, value: f64, unit: &'static str, goal: Option<Goal>) -> Row {
    Row { name: name.to_owned(), value, unit, goal }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

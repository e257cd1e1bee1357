//! Servers that share their spans over NATS: how soon they act, what their parts cost, and what a load takes of them.
//!
//! Servers, Postgres and NATS are processes of their own, with commits and messages on disk. Each goal is a ratio to bare engines or
//! to one server, measured in turns in the same run. `page` multiplies the costs out to a load of a given size.

mod bare_nats;
mod door;
mod fire;
mod fit;
mod one;
mod page;
mod shop;
mod stand;
mod units;
mod verdict;
mod workers;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{
    parts::Server,
    table::{Goal, Row},
};

/// The parts of this bench.
pub const GROUPS: [&str; 6] = ["fire", "verdict", "workers", "one", "door", "units"];

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaExtent {
    /// As much as the goals are stated for.
    Long,
    /// A part of it, in less than a minute each.
    Short,
    /// Enough to show that the results are right, by an unoptimised build on a busy machine.
    Test,
}

impl ReplicaExtent {
    fn pick<T>(self, long: T, short: T, test: T) -> T {
        match self {
            Self::Long => long,
            Self::Short => short,
            Self::Test => test,
        }
    }
}

/// Measures all groups, or those that `--only GROUP` names. `--short` does less; `--page` writes the figures of `units` into
/// `docs/scale.md`.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let (mut extent, mut groups, mut is_page) = (ReplicaExtent::Long, Vec::new(), false);
    let mut words = rest.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--short" => extent = ReplicaExtent::Short,
            "--page" => is_page = true,
            "--only" => groups.push(words.next().context("`--only` needs a group")?),
            _ => bail!("`{word}` is no part of this bench; there are: --only, --short, --page"),
        }
    }
    if let Some(unknown) = groups.iter().find(|group| !GROUPS.contains(group)) {
        bail!("`{unknown}` is no group of this bench; there are: {}", GROUPS.join(", "));
    }
    if is_page && !groups.is_empty() && !groups.contains(&"units") {
        bail!("`--page` writes the figures of `units`");
    }
    let binary = Server::binary_beside_this()?;
    let mut rows = Vec::new();
    for group in GROUPS.into_iter().filter(|it| groups.is_empty() || groups.contains(it)) {
        progress(group);
        if group == "units" && is_page {
            let costs = units::measure(&binary, extent).await?;
            page::write(Path::new(page::FILE), &costs)?;
            rows.extend(costs.rows());
        } else {
            rows.extend(measure_group(&binary, group, extent).await?);
        }
    }
    Ok(rows)
}

/// Measures one group.
pub async fn measure_group(binary: &Path, group: &str, extent: ReplicaExtent) -> Result<Vec<Row>> {
    match group {
        "fire" => fire::measure(binary, extent).await,
        "verdict" => verdict::measure(binary, extent).await,
        "workers" => workers::measure(binary, extent).await,
        "one" => one::measure(binary, extent).await,
        "door" => door::measure(binary, extent).await,
        "units" => Ok(units::measure(binary, extent).await?.rows()),
        _ => bail!("`{group}` is no group of this bench; there are: {}", GROUPS.join(", ")),
    }
}

/// Measures the costs, and returns the figures of the page.
pub async fn figures(binary: &Path, extent: ReplicaExtent) -> Result<String> {
    Ok(page::figures(&units::measure(binary, extent).await?))
}

fn row(name: &str, value: f64, unit: &'static str) -> Row {
    Row { name: name.to_owned(), value, unit, goal: None }
}

fn at_most(most: f64, row: Row) -> Row {
    Row { goal: Some(Goal::AtMost(most)), ..row }
}

/// Returns the value below which this share of the values is.
fn percentile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values.get(at.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

#[expect(clippy::print_stderr, reason = "long work shows progress")]
fn progress(text: &str) {
    eprintln!("{text}");
}

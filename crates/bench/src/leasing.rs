//! Leasing of queued runs by many workers: what a lease costs with few and many lanes, what it brings while workers compete, and
//! whether its cost stays level over minutes and past a long transaction.
//!
//! The functions of the database crate execute their statements on a Postgres of their own with its default settings. Its statistics
//! tell the time of each statement, `/proc` its CPU time.

mod contest;
mod cost;
mod soak;
mod stand;
mod windows;

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Result, bail};

use self::stand::Stand;
use crate::table::{Goal, Row};

/// The numbers of lanes: projects, and hosts of each.
const LANES: [(usize, usize); 3] = [(1, 1), (10, 10), (100, 10)];

/// The extent of the measurement.
#[derive(Clone, Copy, Debug)]
struct LoadExtent {
    /// Runs that are queued from the beginning on.
    queued: usize,
    /// The duration of the load, in windows of ten seconds.
    windows: usize,
    /// The windows in which a transaction is open.
    long: (usize, usize),
}

const LONG: LoadExtent = LoadExtent { queued: 1_000_000, windows: 60, long: (24, 36) };
const SHORT: LoadExtent = LoadExtent { queued: 100_000, windows: 12, long: (4, 6) };

/// Measures; `--short` does less. Numbers of lanes select a part.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let mut extent = LONG;
    let mut chosen = Vec::new();
    for word in rest {
        match (word.as_str(), word.parse::<usize>()) {
            ("--short", _) => extent = SHORT,
            (_, Ok(lanes)) if LANES.iter().any(|(projects, hosts)| projects * hosts == lanes) => {
                chosen.push(lanes);
            }
            _ => bail!("`{word}` is no part of this bench; there are: --short, 1, 100, 1000"),
        }
    }
    let (mut rows, mut costs) = (Vec::new(), BTreeMap::new());
    for (projects, hosts) in LANES {
        let lanes = projects * hosts;
        if !chosen.is_empty() && !chosen.contains(&lanes) {
            continue;
        }
        let stand = Arc::new(Stand::start(projects, hosts, extent.queued).await?);
        let cost = cost::measure(&stand).await?;
        rows.push(row(lanes, "CPU of a lease of 16 runs", cost, "ms", None));
        costs.insert(lanes, cost);
        rows.extend(contest::measure(&stand).await?);
        // What the contest left behind is not part of the load.
        stand::execute(&mut stand.cluster.connect().await?, "vacuum open_runs").await?;
        rows.extend(soak::measure(&stand, extent).await?);
        stand.db.close().await;
    }
    if let (Some(one), Some(many)) = (costs.get(&1), costs.get(&1_000)) {
        let goal = Some(Goal::AtMost(3.0));
        let name = "CPU of a lease, 1,000 lanes over one lane".to_owned();
        rows.push(Row { name, value: many / one, unit: "ratio", goal });
    }
    Ok(rows)
}

fn row(lanes: usize, name: &str, value: f64, unit: &'static str, goal: Option<Goal>) -> Row {
    let plural = if lanes == 1 { "" } else { "s" };
    Row { name: format!("{lanes} lane{plural}: {name}"), value, unit, goal }
}

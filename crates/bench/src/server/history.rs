//! A server with a long history: the pages that its statements read, and their times.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::time::Instant;

use super::{
    plans::{self, StatementPlan},
    row,
};
use crate::{
    parts::{Cluster, Server},
    table::{Goal, Row},
};

/// Runs of the long history, and of the short one.
const RUNS: usize = 1_000_000;
const RUNS_SHORT: usize = 30_000;

/// The upper bound of the time of a statement, in milliseconds.
const MS_MAX: f64 = 50.0;

/// A database with this many runs.
#[derive(Debug)]
pub(super) struct History {
    pub(super) cluster: Cluster,
    pub(super) runs: usize,
    filled: Duration,
}

impl History {
    /// Lets a server create its tables, and fills them.
    pub(super) async fn make(binary: &Path, is_short: bool) -> Result<Self> {
        let mut cluster = Cluster::create().await?;
        cluster.start().await?;
        let configuration = cluster.section();
        Server::start_with(binary, &configuration, "127.0.0.1:0").await?.terminate().await?;
        let runs = if is_short { RUNS_SHORT } else { RUNS };
        let began = Instant::now();
        fill(&mut cluster.connect().await?, runs).await?;
        Ok(Self { cluster, runs, filled: began.elapsed() })
    }

    /// Explains every statement.
    pub(super) async fn explain(&self) -> Result<Vec<StatementPlan>> {
        plans::explain(&mut self.cluster.connect().await?).await
    }

    /// Checks every plan, and returns a row for each executed statement.
    pub(super) async fn measure(&self) -> Result<Vec<Row>> {
        let explained = self.explain().await?;
        let of_one_list = explained.iter().filter(|it| it.words != plans::OF_EVERY_TEST.0);
        let pages = of_one_list.map(|it| it.pages).max().unwrap_or_default();
        let mut rows = vec![
            row("history: runs", self.runs as f64, "runs", None),
            row("history: written in", self.filled.as_secs_f64(), "s", None),
            row(
                "history: pages of a statement, at the most",
                pages as f64,
                "pages",
                Some(Goal::AtMost(plans::PAGES_MAX as f64)),
            ),
        ];
        for it in explained {
            let name = format!("history: {} pages, {}", it.pages, it.words);
            rows.push(row(&name, it.ms, "ms", Some(Goal::AtMost(MS_MAX))));
        }
        Ok(rows)
    }
}

/// Writes a history of this many runs into a migrated database.
async fn fill(connection: &mut PgConnection, runs: usize) -> Result<()> {
    // Written like a restore: without foreign key checks, since the rows are consistent.
    let setting = format!("set bench.runs = {runs}; set session_replication_role = replica");
    sqlx::raw_sql(AssertSqlSafe(setting)).execute(&mut *connection).await?;
    let filled = sqlx::raw_sql(include_str!("history.sql")).execute(connection).await;
    filled.context("the history could not be written")?;
    Ok(())
}

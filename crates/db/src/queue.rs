//! The number of queued runs: a metric for operators, and the bound for new runs.

use std::collections::HashMap;

use model::{Project, Timestamp};

use crate::{Db, DbError};

/// Runs that are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedRuns {
    /// The number of queued runs.
    pub runs: u64,
    /// When the oldest of them was accepted.
    pub oldest: Option<Timestamp>,
}

impl Db {
    /// Returns the number of runs of each project that no worker has leased.
    pub async fn backlog(&self) -> Result<HashMap<Project, u64>, DbError> {
        let rows = sqlx::query!(
            r#"select project as "project!", count(*) as "runs!" from open_runs where epoch = 0 group by project"#
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let rows = rows
            .into_iter()
            .filter_map(|row| Some((row.project.parse().ok()?, u64::try_from(row.runs).ok()?)));
        Ok(rows.collect())
    }

    /// Returns the runs that no worker has leased. It reads open runs only, however long the history is.
    pub async fn queue(&self) -> Result<QueuedRuns, DbError> {
        let row = sqlx::query!(
            r#"select count(*) as "runs!", min(accepted_at_ns) as oldest from open_runs where epoch = 0"#
        )
        .fetch_one(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let oldest = row.oldest.and_then(|nanos| u64::try_from(nanos).ok());
        Ok(QueuedRuns {
            runs: u64::try_from(row.runs).unwrap_or_default(),
            oldest: oldest.map(Timestamp::from_nanos),
        })
    }
}

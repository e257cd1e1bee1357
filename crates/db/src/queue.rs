//! The number of queued runs: a metric for operators, which no decision depends on.

use model::Timestamp;

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

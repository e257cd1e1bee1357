//! How many runs wait for a worker: a figure for whoever watches the server, and for nobody's decision.

use model::Timestamp;

use crate::{Db, DbError};

/// Runs that wait for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedRuns {
    /// How many.
    pub runs: u64,
    /// When the oldest was accepted.
    pub oldest: Option<Timestamp>,
}

impl Db {
    /// The runs that no worker has taken. It looks at open runs only, however long the history.
    pub async fn waiting(&self) -> Result<QueuedRuns, DbError> {
        let row = sqlx::query!(
            r#"select count(*) as "runs!", min(accepted_at_ns) as oldest from runs where epoch = 0 and verdict is null"#
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

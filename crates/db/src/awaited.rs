//! Which traces runs wait for, whoever owns them.

use model::TraceId;

use crate::{Db, DbError};

impl Db {
    /// The traces of runs that were attempted and have no verdict, so many at the most, the oldest runs first. An id that
    /// is none is passed over: whoever takes its run says so. What was attempted was taken, which is said so that the index
    /// of running runs is known to hold them all.
    pub async fn awaited_traces(&self, traces_max: u32) -> Result<Vec<TraceId>, DbError> {
        let rows = sqlx::query_scalar!(
            r#"select trace_id as "trace_id!" from runs
               where epoch > 0 and verdict is null and trace_id is not null order by id limit $1"#,
            i64::from(traces_max),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let id = |bytes: Vec<u8>| TraceId::from_bytes(bytes.try_into().ok()?);
        Ok(rows.into_iter().filter_map(id).collect())
    }
}

//! The traces that runs wait for, of all owners.

use model::{Project, TraceId};

use crate::{Db, DbError};

impl Db {
    /// Returns the projects and traces of runs that were attempted and have no verdict, at most `traces_max`, the oldest runs
    /// first. Skips an invalid id: the worker that leases its run reports it. The query has a part for
    /// each of the two indexes of leased runs.
    pub async fn awaited_traces(
        &self,
        traces_max: u32,
    ) -> Result<Vec<(Project, TraceId)>, DbError> {
        let rows = sqlx::query!(
            r#"select project as "project!", trace_id as "trace_id!" from (
                   select id, project, trace_id from open_runs
                   where epoch > 0 and provisional is null and trace_id is not null
                   union all
                   select id, project, trace_id from open_runs where provisional is not null and trace_id is not null
               ) as attempted order by id limit $1"#,
            i64::from(traces_max),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let awaited = rows.into_iter().filter_map(|row| {
            let trace = TraceId::from_bytes(row.trace_id.try_into().ok()?)?;
            Some((row.project.parse().ok()?, trace))
        });
        Ok(awaited.collect())
    }
}

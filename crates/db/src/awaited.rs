//! The traces that runs wait for, of all owners.

use model::{BusSlot, Project, TraceId};

use crate::{Db, DbError, server::slot};

/// A trace that a run waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AwaitedTrace {
    /// The project of the run.
    pub project: Project,
    /// The trace.
    pub trace: TraceId,
    /// The slot to which its spans go, on a shared bus.
    pub slot: Option<BusSlot>,
}

impl Db {
    /// Returns the traces of runs that were attempted and have no verdict, on a shared bus only those with a slot; at most `traces_max`, the oldest runs
    /// first. Skips an invalid id: the worker that leases its run reports it. The query has a part for
    /// each of the two indexes of leased runs.
    pub async fn awaited_traces(
        &self,
        is_shared: bool,
        traces_max: u32,
    ) -> Result<Vec<AwaitedTrace>, DbError> {
        let rows = sqlx::query!(
            r#"select project as "project!", trace_id as "trace_id!", bus_slot from (
                   select id, project, trace_id, bus_slot from open_runs
                   where epoch > 0 and provisional is null and trace_id is not null
                   union all
                   select id, project, trace_id, bus_slot from open_runs where provisional is not null and trace_id is not null
               ) as attempted where bus_slot is not null or not $2 order by id limit $1"#,
            i64::from(traces_max),
            is_shared,
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let awaited = rows.into_iter().filter_map(|row| {
            let trace = TraceId::from_bytes(row.trace_id.try_into().ok()?)?;
            let project = row.project.parse().ok()?;
            Some(AwaitedTrace { project, trace, slot: row.bus_slot.and_then(slot) })
        });
        Ok(awaited.collect())
    }
}

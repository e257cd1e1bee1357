//! The provisional verdict of a run, while spans may still change it.
//!
//! The owner keeps the run and its lease until [`Db::finish`] writes the final verdict. A worker that leases the run meanwhile
//! receives the provisional verdict and writes none of its own: a run has at most one provisional verdict, and then exactly one
//! final verdict.

use model::{RunEvent, RunId, Verdict};

use crate::{Db, DbError, lease::owned, run::json};

impl Db {
    /// Records a provisional verdict with the events since the last stored one. A run has one: another one is fenced, and so is
    /// one after the final verdict.
    pub async fn provisional(
        &self,
        run: RunId,
        epoch: i64,
        verdict: Verdict,
        events: &[RunEvent],
    ) -> Result<(), DbError> {
        let events: Vec<String> =
            events.iter().map(|event| json(run, "event", event)).collect::<Result<_, _>>()?;
        let written = sqlx::query!(
            "with run as (
                 update open_runs
                 set provisional = $3, provisional_epoch = epoch,
                     events_last = events_last + cardinality($4::text[])
                 where id = $1 and epoch = $2 and provisional is null
                 returning project, id, events_last - cardinality($4::text[]) as events_before
             ), event as (
                 insert into events (project, run_id, n, event)
                 select project, id, events_before + n, event::json
                 from run cross join unnest($4::text[]) with ordinality as new (event, n)
             )
             select id from run",
            run.as_uuid(),
            epoch,
            verdict.as_str(),
            &events,
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        if written.is_some() {
            return Ok(());
        }
        let repeated = sqlx::query!(
            "select id from open_runs
             where id = $1 and epoch = $2 and provisional_epoch = $2 and provisional = $3
             union all
             select id from runs
             where id = $1 and epoch = $2 and provisional_epoch = $2 and provisional = $3",
            run.as_uuid(),
            epoch,
            verdict.as_str(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        owned(run, epoch, repeated.is_some())
    }
}

//! Ownership of runs, and the writes of an owner.
//!
//! `lease_runs.rs` leases a run to one worker and increments its epoch. Every later write names the run and the epoch, and finds no
//! open run once another worker has leased it or the verdict is stored: it fails with [`DbError::Fenced`] and has changed nothing.
//! Each write is one statement, which also numbers its events from the counter in the run's row, so that event and change exist
//! together or not at all.
//!
//! An owner that lost the acknowledgement of a write may repeat it: where the database holds the same write from the same epoch,
//! the repeat succeeds and writes nothing.

use std::time::Duration;

use model::{Answer, Attempt, Outcome, Overtaken, RunEvent, RunId, Timestamp, What};

use crate::{
    BusPlace, Db, DbError, OtlpTrace,
    answer::StoredOutcome,
    run::{json, moment, nanos},
};

/// The final state of a run.
#[derive(Clone, Debug)]
pub struct RunCompletion<'a> {
    /// The outcome, with the verdict.
    pub outcome: &'a Outcome,
    /// The events since the last stored event.
    pub events: &'a [RunEvent],
    /// The trace, where one is to be stored.
    pub trace: Option<OtlpTrace>,
}

impl Db {
    /// Renews the leases of runs in one statement, and returns for each run that the caller still owns the time of its stop
    /// request, if any. A run that is missing in the result has another owner. A renewal after the owner's own verdict has no
    /// effect and is no error: the two may race.
    pub async fn renew(
        &self,
        runs: &[(RunId, i64)],
        lease: Duration,
    ) -> Result<Vec<(RunId, Option<Timestamp>)>, DbError> {
        let (ids, epochs): (Vec<_>, Vec<_>) =
            runs.iter().map(|(run, epoch)| (run.as_uuid(), *epoch)).unzip();
        let rows = sqlx::query!(
            "update open_runs set lease_until = now() + make_interval(secs => $3)
             where id = any ($1) and epoch = ($2::bigint[])[array_position($1, id)]
             returning id, stop_at_ns",
            &ids,
            &epochs,
            lease.as_secs_f64(),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let mut renewed: Vec<_> =
            rows.into_iter().map(|row| (RunId::from(row.id), row.stop_at_ns.map(moment))).collect();
        if renewed.len() < ids.len() {
            let ended = sqlx::query_scalar!(
                "select runs.id from unnest($1::uuid[], $2::bigint[]) as mine (id, epoch) cross join lateral (
                     select id from runs where runs.id = mine.id and runs.epoch = mine.epoch and verdict is not null
                 ) as runs",
                &ids,
                &epochs,
            )
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.error(error))?;
            renewed.extend(ended.into_iter().map(|id| (RunId::from(id), None)));
        }
        Ok(renewed)
    }

    /// Releases runs that their owner does not finish: the next owner need not wait for the end of the lease.
    ///
    /// The owner MUST have ended all its work on them. Runs that have another owner by now are left unchanged.
    pub async fn release(&self, runs: &[(RunId, i64)]) -> Result<(), DbError> {
        let (ids, epochs): (Vec<_>, Vec<_>) =
            runs.iter().map(|(run, epoch)| (run.as_uuid(), *epoch)).unzip();
        sqlx::query!(
            "update open_runs set lease_until = null
             from unnest($1::uuid[], $2::bigint[]) as mine (id, epoch)
             where open_runs.id = mine.id and open_runs.epoch = mine.epoch",
            &ids,
            &epochs,
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(())
    }

    /// Records that the worker is about to fire the trigger, and where its spans are on the bus. A run has one attempt: another one is
    /// fenced.
    pub async fn attempted(
        &self,
        run: RunId,
        epoch: i64,
        attempt: &Attempt,
        bus: &BusPlace,
    ) -> Result<(), DbError> {
        let event = RunEvent { at: attempt.at, what: What::Attempted(*attempt) };
        let event = json(run, "event", &event)?;
        let written = sqlx::query!(
            "with run as (
                 update open_runs
                 set trace_id = $3, span_id = $4, attempted_at_ns = $5, attempted_epoch = epoch,
                     bus_state = $7, bus_slot = $8, events_last = events_last + 1
                 where id = $1 and epoch = $2 and attempted_at_ns is null
                 returning project, id, events_last
             )
             insert into events (project, run_id, n, event)
             select project, id, events_last, $6::text::json from run",
            run.as_uuid(),
            epoch,
            attempt.trace_id.as_bytes(),
            attempt.span_id.as_bytes(),
            nanos(attempt.at),
            event,
            bus.state.as_deref(),
            bus.slot.map(|slot| i32::from(slot.0)),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        if written.rows_affected() > 0 {
            return Ok(());
        }
        let repeated = sqlx::query!(
            "select id from open_runs
             where id = $1 and epoch = $2 and attempted_epoch = $2
                 and trace_id = $3 and span_id = $4 and attempted_at_ns = $5
             union all
             select id from runs
             where id = $1 and epoch = $2 and attempted_epoch = $2
                 and trace_id = $3 and span_id = $4 and attempted_at_ns = $5",
            run.as_uuid(),
            epoch,
            attempt.trace_id.as_bytes(),
            attempt.span_id.as_bytes(),
            nanos(attempt.at),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        owned(run, epoch, repeated.is_some())
    }

    /// Records how the trigger ended. An attempt has one response: another one is fenced. Once there is a verdict, the response
    /// is not stored any longer, and any repeat by the same owner is accepted.
    pub async fn answered(
        &self,
        run: RunId,
        epoch: i64,
        answer: &Answer,
        at: Timestamp,
    ) -> Result<(), DbError> {
        let what = What::from(answer);
        let form = self.answer_form(run, answer).await?;
        let sealed = self.seal_answer(run, &form)?;
        let written = sqlx::query!(
            "with run as (
                 update open_runs
                 set answer_sealed = $3, answer_bytes = $5, answered_epoch = epoch,
                     events_last = events_last + 1
                 where id = $1 and epoch = $2
                     and attempted_at_ns is not null and answered_epoch is null
                 returning project, id, events_last
             )
             insert into events (project, run_id, n, event)
             select project, id, events_last, $4::text::json from run",
            run.as_uuid(),
            epoch,
            sealed,
            json(run, "event", &RunEvent { at, what })?,
            i64::try_from(answer.body_len()).unwrap_or(i64::MAX),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        if written.rows_affected() > 0 {
            return Ok(());
        }
        let known = sqlx::query!(
            "select answer_sealed, false as \"is_ended!\" from open_runs
             where id = $1 and epoch = $2 and answered_epoch = $2
             union all
             select null, true from runs
             where id = $1 and epoch = $2 and answered_epoch = $2 and verdict is not null",
            run.as_uuid(),
            epoch,
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let is_repeated = match known {
            Some(known) if known.is_ended => true,
            Some(known) => match known.answer_sealed {
                Some(sealed) => self.open_form(run, &sealed)? == form,
                None => false,
            },
            None => false,
        };
        owned(run, epoch, is_repeated)
    }

    /// Records the verdict with the outcome, the events and the trace: all of it, once, or nothing. Deletes the open run, and with it
    /// the original response: no later owner needs it, and the outcome holds the part that may be shown.
    pub async fn finish(
        &self,
        run: RunId,
        epoch: i64,
        finished: &RunCompletion<'_>,
    ) -> Result<(), DbError> {
        let packed = match &finished.trace {
            Some(trace) => Some(self.pack(run, trace).await?),
            None => None,
        };
        let events: Vec<String> = finished
            .events
            .iter()
            .map(|event| json(run, "event", event))
            .collect::<Result<_, _>>()?;
        let outcome = StoredOutcome::of(run, finished.outcome).await?;
        let written = sqlx::query!(
            "with open as (
                 delete from open_runs where id = $1 and epoch = $2
                 returning epoch, worker, stalls, stop_at_ns, trace_id, span_id, attempted_at_ns, attempted_epoch,
                     answered_epoch, provisional, provisional_epoch, outputs_sealed, events_last
             ), run as (
                 update runs
                 set verdict = $3, outcome = $4::text::json, outcome_zstd = $9, ended_at_ns = $8,
                     epoch = open.epoch, worker = open.worker, stalls = open.stalls, stop_at_ns = open.stop_at_ns,
                     trace_id = open.trace_id, span_id = open.span_id, attempted_at_ns = open.attempted_at_ns,
                     attempted_epoch = open.attempted_epoch, answered_epoch = open.answered_epoch,
                     provisional = open.provisional, provisional_epoch = open.provisional_epoch,
                     outputs_sealed = open.outputs_sealed,
                     events_last = open.events_last + cardinality($5::text[])
                 from open where id = $1
                 returning project, id, open.events_last as events_before
             ), event as (
                 insert into events (project, run_id, n, event)
                 select project, id, events_before + n, event::json
                 from run cross join unnest($5::text[]) with ordinality as new (event, n)
             ), trace as (
                 insert into traces (project, run_id, spans, otlp_zstd, columns_zstd)
                 select project, id, $6, $7, $10 from run where $7::bytea is not null
             )
             select id from run",
            run.as_uuid(),
            epoch,
            finished.outcome.verdict.as_str(),
            outcome.json,
            &events,
            packed.as_ref().map(|packed| packed.spans),
            packed.as_ref().map(|packed| packed.otlp.as_slice()),
            finished.events.last().map(|event| nanos(event.at)),
            outcome.zstd,
            packed.as_ref().and_then(|packed| packed.columns.as_deref()),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        if !written.is_empty() {
            return Ok(());
        }
        let repeated = sqlx::query!(
            "select id from runs
             where id = $1 and epoch = $2 and outcome::text = $3
                 and outcome_zstd is not distinct from $4",
            run.as_uuid(),
            epoch,
            outcome.json,
            outcome.zstd,
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        owned(run, epoch, repeated.is_some())
    }

    /// Records the verdict that late spans would have caused. Only the worker that judged may do so: the epoch is that of the
    /// verdict.
    pub async fn overtaken(
        &self,
        run: RunId,
        epoch: i64,
        overtaken: &Overtaken,
        at: Timestamp,
    ) -> Result<(), DbError> {
        let event = RunEvent { at, what: What::Overtaken(overtaken.clone()) };
        let overtaken = json(run, "overtaken verdict", overtaken)?;
        let written = sqlx::query!(
            "with run as (
                 update runs set overtaken = $3::text::json, events_last = events_last + 1
                 where id = $1 and epoch = $2 and verdict is not null and overtaken is null
                 returning project, id, events_last
             )
             insert into events (project, run_id, n, event)
             select project, id, events_last, $4::text::json from run",
            run.as_uuid(),
            epoch,
            overtaken,
            json(run, "event", &event)?,
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        if written.rows_affected() > 0 {
            return Ok(());
        }
        let repeated = sqlx::query!(
            "select id from runs where id = $1 and epoch = $2 and overtaken::text = $3",
            run.as_uuid(),
            epoch,
            overtaken,
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        owned(run, epoch, repeated.is_some())
    }
}

/// Returns [`DbError::Fenced`] if neither a write nor its repeat found a row: the writer does not own the run.
pub(crate) fn owned(run: RunId, epoch: i64, found: bool) -> Result<(), DbError> {
    if found { Ok(()) } else { Err(DbError::Fenced { run, epoch }) }
}

//! Who owns a run, and what an owner writes.
//!
//! [`Db::take`] gives a run to one worker under a lease and raises its epoch. Every later write names the run
//! and the epoch, and finds no row once another worker has taken the run or the verdict is written: it fails
//! with [`DbError::Fenced`] and has changed nothing. Each write is one statement, which also numbers its events
//! from the counter in the run's row, so that event and change exist together or not at all.
//!
//! An owner that lost the acknowledgement of a write may repeat it: where the record has the same from the same
//! epoch, the repeat succeeds and writes nothing.

use std::time::Duration;

use model::{Answer, Attempt, Event, Outcome, Progress, Project, RunId, SpanId, Timestamp, What};
use sqlx::types::Json;

use crate::{
    Db, DbError, OtlpTrace, StoredTest,
    run::{json, moment, nanos, read, trace_id},
};

/// A run in the hands of the worker that took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The run.
    pub run_id: RunId,
    /// Whose it is.
    pub project: Project,
    /// To be named in every write; a later taking has a higher one.
    pub epoch: i64,
    /// The version of the test that the run started with.
    pub test: StoredTest,
    /// How far an earlier owner came.
    pub progress: Progress,
    /// When the run was accepted.
    pub accepted_at: Timestamp,
    /// The `traceparent` of the request that started it.
    pub traceparent: Option<String>,
}

/// What a run ends with.
#[derive(Clone, Debug)]
pub struct Finished<'a> {
    /// The outcome, with the verdict.
    pub outcome: &'a Outcome,
    /// What happened since the last event in the record.
    pub events: &'a [Event],
    /// The trace, where one is to be kept.
    pub trace: Option<OtlpTrace>,
}

impl Db {
    /// Takes the oldest run that nobody owns: one that is new, or whose owner's lease is over.
    ///
    /// The lease counts by the database's clock, from a moment after this was called: an owner that counts
    /// by its own clock from before the call ends earlier, never later.
    pub async fn take(
        &self,
        worker: &str,
        lease: Duration,
        at: Timestamp,
    ) -> Result<Option<Taken>, DbError> {
        // The event's epoch is known only here, so the event is written here, in the form of `model::Event`.
        let row = sqlx::query!(
            "with next as materialized (
                 select id from runs
                 where verdict is null and (lease_until is null or lease_until <= now())
                 order by id limit 1
                 for update skip locked
             ), taken as (
                 update runs
                 set epoch = epoch + 1, worker = $1, lease_until = now() + make_interval(secs => $2),
                     events_last = events_last + 1
                 from next where runs.id = next.id
                 returning runs.*
             ), event as (
                 insert into events (project, run_id, n, event)
                 select project, id, events_last, json_build_object(
                     'at', $3::text, 'what', json_build_object('taken', json_build_object('epoch', epoch)))
                 from taken
             )
             select taken.id as \"id!\", taken.project as \"project!\", epoch as \"epoch!\",
                 accepted_at_ns as \"accepted_at_ns!\", traceparent, trace_id, span_id, attempted_at_ns,
                 answer as \"answer: Json<Answer>\",
                 taken.test_id as \"test_id!\", test_versions.version, name, document, file
             from taken
             join tests on tests.project = taken.project and tests.id = taken.test_id
             join test_versions on test_versions.project = taken.project
                 and test_versions.test_id = taken.test_id and test_versions.version = test_version",
            worker,
            lease.as_secs_f64(),
            at.to_string(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let Some(row) = row else { return Ok(None) };
        let run_id = RunId::from(row.id);
        let attempt = match (row.trace_id, row.span_id, row.attempted_at_ns) {
            (Some(trace), Some(span), Some(at)) => Some(Attempt {
                trace_id: trace_id(run_id, trace)?,
                span_id: span_id(run_id, span)?,
                at: moment(at),
            }),
            _ => None,
        };
        Ok(Some(Taken {
            run_id,
            project: read(run_id, row.project.parse())?,
            epoch: row.epoch,
            test: StoredTest {
                id: read(run_id, row.test_id.parse())?,
                name: row.name,
                version: row.version,
                file: row.file,
                document: row.document,
            },
            progress: match (attempt, row.answer) {
                (None, _) => Progress::New,
                (Some(attempt), None) => Progress::Attempted(attempt),
                (Some(attempt), Some(Json(answer))) => Progress::Answered(attempt, answer),
            },
            accepted_at: moment(row.accepted_at_ns),
            traceparent: row.traceparent,
        }))
    }

    /// Starts the lease anew. After the owner's own verdict it means nothing and is no error: the two may race.
    pub async fn renew(&self, run: RunId, epoch: i64, lease: Duration) -> Result<(), DbError> {
        let renewed = sqlx::query!(
            "update runs set lease_until = now() + make_interval(secs => $3)
             where id = $1 and epoch = $2",
            run.as_uuid(),
            epoch,
            lease.as_secs_f64(),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        owned(run, epoch, renewed.rows_affected() > 0)
    }

    /// Records that the trigger is about to be fired. A run has one attempt: another one is fenced.
    pub async fn attempted(
        &self,
        run: RunId,
        epoch: i64,
        attempt: &Attempt,
    ) -> Result<(), DbError> {
        let event = Event { at: attempt.at, what: What::Attempted(*attempt) };
        let event = json(run, "event", &event)?;
        let written = sqlx::query!(
            "with run as (
                 update runs
                 set trace_id = $3, span_id = $4, attempted_at_ns = $5, attempted_epoch = epoch,
                     events_last = events_last + 1
                 where id = $1 and epoch = $2 and verdict is null and attempted_at_ns is null
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
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        if written.rows_affected() > 0 {
            return Ok(());
        }
        let repeated = sqlx::query!(
            "select id from runs
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

    /// Records how the trigger ended. An attempt has one answer: another one is fenced.
    pub async fn answered(
        &self,
        run: RunId,
        epoch: i64,
        answer: &Answer,
        at: Timestamp,
    ) -> Result<(), DbError> {
        let what = match answer {
            Answer::Response(response) => What::Answered { status: response.status },
            Answer::Exit(exit) => What::Exited { code: exit.code },
            Answer::NotFired => What::NotFired,
            Answer::NoAnswer(none) => What::NotAnswered { message: none.message.clone() },
        };
        let answer = json(run, "answer", answer)?;
        let written = sqlx::query!(
            "with run as (
                 update runs
                 set answer = $3::text::json, answered_epoch = epoch, events_last = events_last + 1
                 where id = $1 and epoch = $2 and verdict is null
                     and attempted_at_ns is not null and answer is null
                 returning project, id, events_last
             )
             insert into events (project, run_id, n, event)
             select project, id, events_last, $4::text::json from run",
            run.as_uuid(),
            epoch,
            answer,
            json(run, "event", &Event { at, what })?,
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        if written.rows_affected() > 0 {
            return Ok(());
        }
        let repeated = sqlx::query!(
            "select id from runs
             where id = $1 and epoch = $2 and answered_epoch = $2 and answer::text = $3",
            run.as_uuid(),
            epoch,
            answer,
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        owned(run, epoch, repeated.is_some())
    }

    /// Records the verdict with the outcome, the events and the trace: all of it, once, or nothing.
    pub async fn finish(
        &self,
        run: RunId,
        epoch: i64,
        finished: &Finished<'_>,
    ) -> Result<(), DbError> {
        let (spans, packed) = match &finished.trace {
            Some(trace) => {
                let spans = i64::try_from(trace.spans).unwrap_or(i64::MAX);
                (Some(spans), Some(self.pack(run, trace).await?))
            }
            None => (None, None),
        };
        let events: Vec<String> = finished
            .events
            .iter()
            .map(|event| json(run, "event", event))
            .collect::<Result<_, _>>()?;
        let outcome = json(run, "outcome", finished.outcome)?;
        let written = sqlx::query!(
            "with run as (
                 update runs
                 set verdict = $3, outcome = $4::text::json, lease_until = null,
                     events_last = events_last + cardinality($5::text[])
                 where id = $1 and epoch = $2 and verdict is null
                 returning project, id, events_last - cardinality($5::text[]) as events_before
             ), event as (
                 insert into events (project, run_id, n, event)
                 select project, id, events_before + n, event::json
                 from run cross join unnest($5::text[]) with ordinality as new (event, n)
             ), trace as (
                 insert into traces (project, run_id, spans, otlp_zstd)
                 select project, id, $6, $7 from run where $7::bytea is not null
             )
             select id from run",
            run.as_uuid(),
            epoch,
            finished.outcome.verdict.as_str(),
            outcome,
            &events,
            spans,
            packed,
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        if !written.is_empty() {
            return Ok(());
        }
        let repeated = sqlx::query!(
            "select id from runs where id = $1 and epoch = $2 and outcome::text = $3",
            run.as_uuid(),
            epoch,
            outcome,
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        owned(run, epoch, repeated.is_some())
    }
}

/// A writer whose write, or a repeat of it, finds no row does not own the run.
fn owned(run: RunId, epoch: i64, found: bool) -> Result<(), DbError> {
    if found { Ok(()) } else { Err(DbError::Fenced { run, epoch }) }
}

fn span_id(run: RunId, bytes: Vec<u8>) -> Result<SpanId, DbError> {
    let id = bytes.try_into().ok().and_then(SpanId::from_bytes);
    read(run, id.ok_or("its span id is not one"))
}

//! Runs as anyone may read them, and how one begins.

use std::fmt;

use model::{Event, Outcome, Project, RunId, TestId, Timestamp, TraceId, Verdict, What};
use serde::Serialize;
use sqlx::types::Json;

use crate::{Db, DbError};

/// A run to be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// Whose it is.
    pub project: Project,
    /// The test to run, in its current version.
    pub test: TestId,
    /// When.
    pub accepted_at: Timestamp,
    /// The `traceparent` of the request that started it.
    pub traceparent: Option<String>,
}

/// Where a run is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody took it yet.
    Queued,
    /// Somebody took it.
    Running,
    /// It has its verdict.
    Ended,
}

/// A run as the record holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
    /// Its id.
    pub id: RunId,
    /// The test.
    pub test: TestId,
    /// The version of the test that it runs.
    pub version: i32,
    /// Where it is in its life.
    pub state: State,
    /// Its one verdict, once it ended.
    pub verdict: Option<Verdict>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The trace under test, once the attempt is recorded.
    pub trace_id: Option<TraceId>,
    /// What it ended with.
    pub outcome: Option<Outcome>,
}

impl State {
    /// The state as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Ended => "ended",
        }
    }
}

impl Db {
    /// Accepts a run of the current version of its test, which it keeps, and tells that version.
    pub async fn create_run(&self, run: &NewRun) -> Result<i32, DbError> {
        let accepted = json(run.id, "event", &Event { at: run.accepted_at, what: What::Accepted })?;
        let version = sqlx::query_scalar!(
            "with run as (
                 insert into runs (project, id, test_id, test_version, accepted_at_ns, traceparent, events_last)
                 select project, $2, id, version, $4, $5, 1 from tests where project = $1 and id = $3
                 returning project, id, test_version, events_last
             ), event as (
                 insert into events (project, run_id, n, event)
                 select project, id, events_last, $6::text::json from run
             )
             select test_version from run",
            run.project.as_str(),
            run.id.as_uuid(),
            run.test.as_str(),
            nanos(run.accepted_at),
            run.traceparent.as_deref(),
            accepted,
        )
        .fetch_optional(&self.pool)
        .await;
        match version {
            Ok(Some(version)) => Ok(version),
            Ok(None) => {
                Err(DbError::NoSuchTest { project: run.project.clone(), test: run.test.clone() })
            }
            Err(sqlx::Error::Database(answer)) if answer.is_unique_violation() => {
                Err(DbError::RunExists { run: run.id })
            }
            Err(error) => Err(self.error(error)),
        }
    }

    /// A run.
    pub async fn run(&self, project: &Project, run: RunId) -> Result<Option<StoredRun>, DbError> {
        let row = sqlx::query!(
            "select test_id, test_version, state as \"state!\", verdict, accepted_at_ns, trace_id,
                 outcome as \"outcome: Json<Outcome>\"
             from runs where project = $1 and id = $2",
            project.as_str(),
            run.as_uuid(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(StoredRun {
            id: run,
            test: read(run, row.test_id.parse())?,
            version: row.test_version,
            state: state(run, &row.state)?,
            verdict: row.verdict.map(|word| verdict(run, &word)).transpose()?,
            accepted_at: moment(row.accepted_at_ns),
            trace_id: row.trace_id.map(|bytes| trace_id(run, bytes)).transpose()?,
            outcome: row.outcome.map(|Json(outcome)| outcome),
        }))
    }

    /// The events of a run after number `after`, each with its number, at most `limit` of them.
    ///
    /// Numbers begin at 1 and have no gaps.
    pub async fn events(
        &self,
        project: &Project,
        run: RunId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Event)>, DbError> {
        let rows = sqlx::query!(
            "select n, event as \"event: Json<Event>\" from events
             where project = $1 and run_id = $2 and n > $3
             order by n limit $4",
            project.as_str(),
            run.as_uuid(),
            after,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(rows.into_iter().map(|row| (row.n, row.event.0)).collect())
    }
}

/// A moment as the record keeps it. Its nanoseconds fit until the year 2262; later ones become the last.
pub(crate) fn nanos(moment: Timestamp) -> i64 {
    i64::try_from(moment.as_nanos()).unwrap_or(i64::MAX)
}

/// A moment from the record, which holds none before 1970.
pub(crate) fn moment(nanos: i64) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

/// A value as JSON. It goes to Postgres as text and becomes `json` there: the driver's own form is `jsonb`, which
/// refuses a NUL.
pub(crate) fn json(
    run: RunId,
    what: &'static str,
    value: &impl Serialize,
) -> Result<String, DbError> {
    serde_json::to_string(value).map_err(|error| DbError::Unwritable {
        run,
        what,
        reason: error.to_string(),
    })
}

/// What was read of a run's row, or that the row is damaged.
pub(crate) fn read<T, E: fmt::Display>(run: RunId, read: Result<T, E>) -> Result<T, DbError> {
    read.map_err(|error| DbError::corrupt(format!("run `{run}`"), error))
}

pub(crate) fn trace_id(run: RunId, bytes: Vec<u8>) -> Result<TraceId, DbError> {
    let id = bytes.try_into().ok().and_then(TraceId::from_bytes);
    read(run, id.ok_or("its trace id is not one"))
}

fn state(run: RunId, word: &str) -> Result<State, DbError> {
    let states = [State::Queued, State::Running, State::Ended];
    let state = states.into_iter().find(|state| state.as_str() == word);
    read(run, state.ok_or_else(|| format!("`{word}` is not a state")))
}

fn verdict(run: RunId, word: &str) -> Result<Verdict, DbError> {
    let verdicts = [Verdict::Passed, Verdict::Failed, Verdict::Inconclusive];
    let verdict = verdicts.into_iter().find(|verdict| verdict.as_str() == word);
    read(run, verdict.ok_or_else(|| format!("`{word}` is not a verdict")))
}

//! Runs over time: lists of them, the newest first.
//!
//! Each way to ask has a statement of its own, so that each has an index to go by however long the history is.

use model::{Project, RunId, TestId, Timestamp, TraceId, Verdict};
use sqlx::types::Uuid;

use crate::{
    Db, DbError, State,
    months::least,
    run::{moment, read, state, trace_id, verdict},
};

/// Which runs are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Whose they are.
    pub project: Project,
    /// Of this test.
    pub test: Option<TestId>,
    /// With this verdict.
    pub verdict: Option<Verdict>,
    /// Accepted at this moment or later.
    pub from: Option<Timestamp>,
    /// Accepted before this moment.
    pub until: Option<Timestamp>,
    /// Older than this run.
    pub before: Option<RunId>,
    /// So many at the most.
    pub limit: u32,
}

/// A run in a list: without what it ended with, which may be large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRun {
    /// Its id.
    pub id: RunId,
    /// The test.
    pub test: TestId,
    /// The version of the test that it runs.
    pub version: i32,
    /// Where it is in its life.
    pub state: State,
    /// Its one final verdict, once it ended.
    pub verdict: Option<Verdict>,
    /// Its verdict for now, while spans may still change it.
    pub provisional: Option<Verdict>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The trace under test, once the attempt is recorded.
    pub trace_id: Option<TraceId>,
    /// The state of the system that it ran against, if its caller said so.
    pub revision: Option<String>,
}

/// A run as a list's statement gives it.
struct RunRow {
    id: Uuid,
    test_id: String,
    test_version: i32,
    state: String,
    verdict: Option<String>,
    provisional: Option<String>,
    accepted_at_ns: i64,
    ended_at_ns: Option<i64>,
    trace_id: Option<Vec<u8>>,
    revision: Option<String>,
}

/// The rows that a statement gives, planned with its values: by which index depends on how rare they are.
macro_rules! rows {
    ($db:expr, $file:literal, $($value:expr),*) => {{
        let rows = async {
            let mut transaction = $db.begin().await?;
            let custom = sqlx::query!("set local plan_cache_mode = force_custom_plan");
            custom.execute(&mut *transaction).await?;
            let rows = sqlx::query_file_as!(RunRow, $file, $($value),*);
            let rows = rows.fetch_all(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(rows)
        };
        rows.await.map_err(|error| $db.error(error))
    }};
}

impl Db {
    /// The runs that are asked for, the newest first.
    pub async fn runs(&self, wanted: &RunFilter) -> Result<Vec<ListedRun>, DbError> {
        let project = wanted.project.as_str();
        let from = wanted.from.map_or(Uuid::nil(), least);
        let until = wanted.until.map_or(Uuid::max(), least);
        let until = wanted.before.map_or(until, |before| until.min(before.as_uuid()));
        let limit = i64::from(wanted.limit);
        let rows = match (&wanted.test, wanted.verdict) {
            (None, None) => rows!(self, "queries/history/newest.sql", project, from, until, limit),
            (Some(test), None) => rows!(
                self,
                "queries/history/of_test.sql",
                project,
                from,
                until,
                limit,
                test.as_str()
            ),
            (None, Some(verdict)) => rows!(
                self,
                "queries/history/by_verdict.sql",
                project,
                from,
                until,
                limit,
                verdict.as_str()
            ),
            (Some(test), Some(verdict)) => rows!(
                self,
                "queries/history/of_test_by_verdict.sql",
                project,
                from,
                until,
                limit,
                test.as_str(),
                verdict.as_str()
            ),
        }?;
        rows.into_iter().map(listed).collect()
    }

    /// The runs of a trace: one, or those that were asked about a trace that somebody else made.
    pub async fn runs_of_trace(
        &self,
        project: &Project,
        trace: TraceId,
        limit: u32,
    ) -> Result<Vec<ListedRun>, DbError> {
        let rows = rows!(
            self,
            "queries/history/of_trace.sql",
            project.as_str(),
            trace.as_bytes(),
            i64::from(limit)
        )?;
        rows.into_iter().map(listed).collect()
    }
}

fn listed(row: RunRow) -> Result<ListedRun, DbError> {
    let run = RunId::from(row.id);
    Ok(ListedRun {
        id: run,
        test: read(run, row.test_id.parse())?,
        version: row.test_version,
        state: state(run, &row.state)?,
        verdict: row.verdict.map(|word| verdict(run, &word)).transpose()?,
        provisional: row.provisional.map(|word| verdict(run, &word)).transpose()?,
        accepted_at: moment(row.accepted_at_ns),
        ended_at: row.ended_at_ns.map(moment),
        trace_id: row.trace_id.map(|bytes| trace_id(run, bytes)).transpose()?,
        revision: row.revision,
    })
}

//! History of runs: lists, the newest first.
//!
//! Each combination of filters has its own statement, so that each can use an index, however long the history is.

use model::{Project, RunId, TestId, Timestamp, TraceId, Verdict};
use sqlx::types::Uuid;

use crate::{
    Db, DbError, State,
    partitions::least,
    run::{moment, read, trace_id, verdict},
};

/// A filter for a list of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The project that owns them.
    pub project: Project,
    /// Only runs of this test.
    pub test: Option<TestId>,
    /// Only runs with this verdict.
    pub verdict: Option<Verdict>,
    /// Only runs accepted at this time or later.
    pub from: Option<Timestamp>,
    /// Only runs accepted before this time.
    pub until: Option<Timestamp>,
    /// Only runs older than this run.
    pub before: Option<RunId>,
    /// The upper bound of runs.
    pub limit: u32,
}

/// A run in a list, without its outcome, which may be large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRun {
    /// Its id.
    pub id: RunId,
    /// The test.
    pub test: TestId,
    /// The version of the test that it runs.
    pub version: i32,
    /// Its state.
    pub state: State,
    /// Its final verdict, once it ended.
    pub verdict: Option<Verdict>,
    /// Its provisional verdict, while spans may still change it.
    pub provisional: Option<Verdict>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The trace under test, once the attempt is recorded.
    pub trace_id: Option<TraceId>,
    /// The state of the system under test, such as a commit, if the caller gave one.
    pub revision: Option<String>,
}

/// A run as a row of a list statement.
struct RunRow {
    id: Uuid,
    test_id: String,
    test_version: i32,
    open_epoch: Option<i64>,
    verdict: Option<String>,
    provisional: Option<String>,
    accepted_at_ns: i64,
    ended_at_ns: Option<i64>,
    trace_id: Option<Vec<u8>>,
    revision: Option<String>,
}

/// Fetches the rows of a statement with a custom plan: the best index depends on how rare the values are.
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
    /// Returns the runs that match the filter, the newest first.
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

    /// Returns up to `last` runs of each of these tests: the newest first, by test.
    pub async fn runs_of_tests(
        &self,
        project: &Project,
        tests: &[TestId],
        last: u32,
    ) -> Result<Vec<ListedRun>, DbError> {
        let tests: Vec<String> = tests.iter().map(TestId::to_string).collect();
        let rows =
            rows!(self, "queries/history/of_tests.sql", project.as_str(), &tests, i64::from(last))?;
        rows.into_iter().map(listed).collect()
    }

    /// Returns the runs of a trace: one run, or all runs that were started for an external trace id.
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
        state: State::of(row.open_epoch),
        verdict: row.verdict.map(|word| verdict(run, &word)).transpose()?,
        provisional: row.provisional.map(|word| verdict(run, &word)).transpose()?,
        accepted_at: moment(row.accepted_at_ns),
        ended_at: row.ended_at_ns.map(moment),
        trace_id: row.trace_id.map(|bytes| trace_id(run, bytes)).transpose()?,
        revision: row.revision,
    })
}

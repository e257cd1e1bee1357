//! Runs as anyone may read them, how one begins, and how one is asked to stop.

use std::{collections::BTreeMap, fmt, time::Duration};

use model::{
    Outcome, Overtaken, Project, RunEvent, RunId, SpanId, TestId, Timestamp, TraceId, Verdict, What,
};
use serde::{Deserialize, Serialize};
use sqlx::types::Json;

use crate::{Db, DbError, SecretValues, answer};

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
    /// The values that it is started with.
    pub vars: RunVars,
    /// How long it may take; none leaves that to the worker.
    pub timeout: Option<Duration>,
    /// By what a repeated request is known.
    pub key: Option<IdempotencyKey>,
    /// Who started it.
    pub starter: Starter,
}

/// Who started a run, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// Somebody who need not say who they are, since access is off.
    Anyone,
    /// A program, by its token.
    Token,
    /// A person who has logged in.
    Person,
    /// A suite, of which it is a step.
    Suite,
}

/// The values that a run is started with. Never secrets: those stay in variable sets, which it names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunVars {
    /// Variable sets; of two that have the same variable, the later one holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Values given at the start, which overrule those of the sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// The state of the system that it runs against, such as a commit: the caller's word, by which runs are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// By what a repeated request is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The caller's word for it.
    pub key: String,
    /// All that the request says, as one text. Only a hash of it is kept.
    pub request: String,
}

/// What became of a run that was to be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunAcceptance {
    /// It waits for a worker, in this version of its test.
    New {
        /// The version.
        version: i32,
    },
    /// The same request has started this run before; nothing was written.
    Again {
        /// The run of that time.
        run: RunId,
    },
}

/// Where a run is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody took it yet.
    Queued,
    /// Somebody took it. One that lingers, with a provisional verdict, is running.
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
    /// Its one final verdict, once it ended.
    pub verdict: Option<Verdict>,
    /// Its verdict for now, while spans may still change it.
    pub provisional: Option<Verdict>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The trace under test, once the attempt is recorded.
    pub trace_id: Option<TraceId>,
    /// Since when it is asked to stop.
    pub stop_at: Option<Timestamp>,
    /// What it ended with, and what became of that later; without its answer where that is apart.
    pub outcome: Option<Outcome>,
    /// Whether the answer is large, and read by [`Db::outcome`] alone.
    pub answer_apart: bool,
    /// The values that it was started with.
    pub vars: RunVars,
    /// Of those, the ones that nobody may see.
    pub secrets: SecretValues,
    /// The trigger's span, once the attempt is recorded.
    pub trigger: Option<SpanId>,
}

impl RunVars {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.values.is_empty() && self.revision.is_none()
    }
}

impl Starter {
    const ALL: [Self; 4] = [Self::Anyone, Self::Token, Self::Person, Self::Suite];

    /// The kind as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anyone => "anyone",
            Self::Token => "token",
            Self::Person => "person",
            Self::Suite => "suite",
        }
    }

    /// The kind of this word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|starter| starter.as_str() == word)
    }
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
    /// Accepts a run of the current version of its test, which it keeps. With a key that is known it starts nothing, and
    /// tells what was started under it; the key of another request is refused.
    pub async fn create_run(&self, run: &NewRun) -> Result<RunAcceptance, DbError> {
        let accepted =
            json(run.id, "event", &RunEvent { at: run.accepted_at, what: What::Accepted })?;
        // The revision has a column: a server that does not know it reads the rest.
        let given = RunVars { revision: None, ..run.vars.clone() };
        let vars = match given.is_empty() {
            true => None,
            false => Some(json(run.id, "variables", &given)?),
        };
        let row = sqlx::query!(
            "with test as (
                 select tests.project, tests.id, tests.version, host
                 from tests join test_versions on test_versions.project = tests.project
                     and test_versions.test_id = tests.id and test_versions.version = tests.version
                 where tests.project = $1 and tests.id = $3 and not deleted
             ), key as (
                 insert into idempotency_keys (project, key, request, started)
                 select project, $9, sha256(convert_to($10, 'UTF8')), $2 from test where $9::text is not null
                 on conflict (project, key) do nothing
                 returning key
             ), run as (
                 insert into runs (project, id, test_id, test_version, host, accepted_at_ns, traceparent,
                     vars, timeout_ms, revision, events_last, starter)
                 select project, $2, id, version, host, $4, $5, $7::text::json, $8, $11, 1, $12 from test
                 where $9::text is null or exists (select from key)
                 returning project, id, events_last
             ), event as (
                 insert into events (project, run_id, n, event)
                 select project, id, events_last, $6::text::json from run
             )
             select version, exists (select from run) as \"is_started!\" from test",
            run.project.as_str(),
            run.id.as_uuid(),
            run.test.as_str(),
            nanos(run.accepted_at),
            run.traceparent.as_deref(),
            accepted,
            vars,
            run.timeout.map(|timeout| i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX)),
            run.key.as_ref().map(|key| key.key.as_str()),
            run.key.as_ref().map(|key| key.request.as_str()),
            run.vars.revision.as_deref(),
            run.starter.as_str(),
        )
        .fetch_optional(&self.pool)
        .await;
        match (row, &run.key) {
            (Ok(Some(row)), Some(key)) if !row.is_started => {
                let run = self.started_before(&run.project, key).await?;
                Ok(RunAcceptance::Again { run })
            }
            (Ok(Some(row)), _) => Ok(RunAcceptance::New { version: row.version }),
            (Ok(None), _) => {
                Err(DbError::NoSuchTest { project: run.project.clone(), test: run.test.clone() })
            }
            (Err(sqlx::Error::Database(answer)), _) if answer.is_unique_violation() => {
                Err(DbError::RunExists { run: run.id })
            }
            (Err(error), _) => Err(self.error(error)),
        }
    }

    /// What was started under a key, by the same request.
    pub(crate) async fn started_before(
        &self,
        project: &Project,
        key: &IdempotencyKey,
    ) -> Result<RunId, DbError> {
        let row = sqlx::query!(
            "select started, request = sha256(convert_to($3, 'UTF8')) as \"is_same!\"
             from idempotency_keys where project = $1 and key = $2",
            project.as_str(),
            key.key,
            key.request,
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        match row {
            Some(row) if row.is_same => Ok(RunId::from(row.started)),
            // Pruned in between, or another request's.
            _ => Err(DbError::OtherRequest { key: key.key.clone() }),
        }
    }

    /// Asks a run to stop, unless it has its verdict; its owner sees it soon. To ask again changes nothing.
    pub async fn stop_run(
        &self,
        project: &Project,
        run: RunId,
        at: Timestamp,
    ) -> Result<(), DbError> {
        sqlx::query!(
            "update runs set stop_at_ns = $3
             where project = $1 and id = $2 and verdict is null and stop_at_ns is null",
            project.as_str(),
            run.as_uuid(),
            nanos(at),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(())
    }

    /// A run.
    pub async fn run(&self, project: &Project, run: RunId) -> Result<Option<StoredRun>, DbError> {
        let row = sqlx::query!(
            "select test_id, test_version, state as \"state!\", verdict,
                 case when verdict is null then provisional end as provisional, accepted_at_ns, trace_id, span_id, stop_at_ns,
                 vars as \"vars: Json<RunVars>\",
                 outcome::text as outcome, outcome_zstd is not null as \"answer_apart!\", secrets_sealed,
                 overtaken as \"overtaken: Json<Overtaken>\"
             from runs where project = $1 and id = $2",
            project.as_str(),
            run.as_uuid(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let Some(row) = row else { return Ok(None) };
        let outcome = answer::outcome(run, row.outcome, None).await?;
        Ok(Some(StoredRun {
            id: run,
            test: read(run, row.test_id.parse())?,
            version: row.test_version,
            state: state(run, &row.state)?,
            verdict: row.verdict.map(|word| verdict(run, &word)).transpose()?,
            provisional: row.provisional.map(|word| verdict(run, &word)).transpose()?,
            accepted_at: moment(row.accepted_at_ns),
            trace_id: row.trace_id.map(|bytes| trace_id(run, bytes)).transpose()?,
            stop_at: row.stop_at_ns.map(moment),
            outcome: outcome.map(|outcome| Outcome {
                overtaken: row.overtaken.map(|Json(overtaken)| overtaken),
                ..outcome
            }),
            answer_apart: row.answer_apart,
            vars: row.vars.map(|Json(vars)| vars).unwrap_or_default(),
            // What cannot be opened any more is not needed to read a run.
            secrets: self.open_values(run, "variables", row.secrets_sealed).unwrap_or_default(),
            trigger: row.span_id.map(|bytes| span_id(run, bytes)).transpose()?,
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
    ) -> Result<Vec<(i64, RunEvent)>, DbError> {
        let rows = sqlx::query!(
            "select n, event as \"event: Json<RunEvent>\" from events
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

    /// The number of the last event of each of these runs.
    pub async fn events_last(&self, runs: &[RunId]) -> Result<Vec<(RunId, i64)>, DbError> {
        let ids: Vec<_> = runs.iter().map(|run| run.as_uuid()).collect();
        let rows = sqlx::query!("select id, events_last from runs where id = any ($1)", &ids)
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.error(error))?;
        Ok(rows.into_iter().map(|row| (RunId::from(row.id), row.events_last)).collect())
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

pub(crate) fn span_id(run: RunId, bytes: Vec<u8>) -> Result<SpanId, DbError> {
    let id = bytes.try_into().ok().and_then(SpanId::from_bytes);
    read(run, id.ok_or("its span id is not one"))
}

pub(crate) fn state(run: RunId, word: &str) -> Result<State, DbError> {
    let states = [State::Queued, State::Running, State::Ended];
    let state = states.into_iter().find(|state| state.as_str() == word);
    read(run, state.ok_or_else(|| format!("`{word}` is not a state")))
}

pub(crate) fn verdict(run: RunId, word: &str) -> Result<Verdict, DbError> {
    let verdicts = [Verdict::Passed, Verdict::Failed, Verdict::Inconclusive];
    let verdict = verdicts.into_iter().find(|verdict| verdict.as_str() == word);
    read(run, verdict.ok_or_else(|| format!("`{word}` is not a verdict")))
}

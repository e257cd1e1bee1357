//! Runs for readers, how a run is accepted, and how it is requested to stop.

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
    /// The project that owns it.
    pub project: Project,
    /// The test to run, in its current version.
    pub test: TestId,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The `traceparent` of the request that started it.
    pub traceparent: Option<String>,
    /// The values that it is started with.
    pub vars: RunVars,
    /// Its timeout; none: the worker's default.
    pub timeout: Option<Duration>,
    /// The idempotency key of the request.
    pub key: Option<IdempotencyKey>,
    /// The kind of the caller that started it.
    pub starter: Starter,
}

/// The kind of the caller that started a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// An anonymous caller, since access control is off.
    Anyone,
    /// A program with a token.
    Token,
    /// A person who is logged in.
    Person,
    /// The suite of which the run is a step.
    Suite,
}

/// The values that a run is started with. Never secrets: those stay in variable sets, which the run names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunVars {
    /// Variable sets; where two define the same variable, the later one wins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Values given at the start, which override those of the sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// The state of the system under test, such as a commit: chosen by the caller, and used to compare runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// The key by which a repeated request is recognized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key that the caller chose.
    pub key: String,
    /// The complete content of the request as one text. Only its hash is stored.
    pub request: String,
}

/// The result of accepting a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunAcceptance {
    /// The run is queued, with this version of its test.
    New {
        /// The version.
        version: i32,
    },
    /// The same request has started this run before; nothing was written.
    Again {
        /// The run that it started.
        run: RunId,
    },
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No worker has leased it yet.
    Queued,
    /// A worker has leased it. A run that lingers, with a provisional verdict, is running.
    Running,
    /// It has its final verdict.
    Ended,
}

/// A run as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
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
    /// The trace under test, once the attempt is recorded.
    pub trace_id: Option<TraceId>,
    /// When it was requested to stop.
    pub stop_at: Option<Timestamp>,
    /// Its outcome, and whether late spans superseded it; without its response where that is stored apart.
    pub outcome: Option<Outcome>,
    /// Whether the response is large, and returned by [`Db::outcome`] only.
    pub answer_apart: bool,
    /// The values that it was started with.
    pub vars: RunVars,
    /// The secrets among those values.
    pub secrets: SecretValues,
    /// The trigger's span, once the attempt is recorded.
    pub trigger: Option<SpanId>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The kind of the caller that started it; none if a server started it that did not record that.
    pub starter: Option<Starter>,
    /// The suite run of which it is a step.
    pub suite_run: Option<RunId>,
    /// The size of its trace, if the trace is stored.
    pub trace: Option<StoredTraceSize>,
}

/// The size of a stored trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredTraceSize {
    /// The number of its spans.
    pub spans: u64,
    /// The size in bytes as stored, which is compressed.
    pub bytes: u64,
}

impl RunVars {
    /// Whether it holds no values.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.values.is_empty() && self.revision.is_none()
    }
}

impl Starter {
    const ALL: [Self; 4] = [Self::Anyone, Self::Token, Self::Person, Self::Suite];

    /// Returns the kind as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anyone => "anyone",
            Self::Token => "token",
            Self::Person => "person",
            Self::Suite => "suite",
        }
    }

    /// Parses a kind.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|starter| starter.as_str() == word)
    }
}

impl State {
    /// Returns the state of a run by the epoch of its open run; an ended run has none.
    pub(crate) fn of(open_epoch: Option<i64>) -> Self {
        match open_epoch {
            None => Self::Ended,
            Some(0) => Self::Queued,
            Some(_) => Self::Running,
        }
    }

    /// Returns the state as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Ended => "ended",
        }
    }
}

impl Db {
    /// Accepts a run of the current version of its test, and pins that version. With a known key it starts nothing, and returns
    /// the run that was started with it; the key of another request is an error.
    pub async fn create_run(&self, run: &NewRun) -> Result<RunAcceptance, DbError> {
        let accepted =
            json(run.id, "event", &RunEvent { at: run.accepted_at, what: What::Accepted })?;
        // The revision has a column of its own: a server that does not know it can read the rest.
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
                     vars, timeout_ms, revision, starter)
                 select project, $2, id, version, host, $4, $5, $7::text::json, $8, $11, $12 from test
                 where $9::text is null or exists (select from key)
                 returning project, id, host, accepted_at_ns
             ), open as (
                 insert into open_runs (id, project, host, accepted_at_ns, events_last)
                 select id, project, host, accepted_at_ns, 1 from run
             ), event as (
                 insert into events (project, run_id, n, event)
                 select project, id, 1, $6::text::json from run
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

    /// Returns the run that the same request started under a key.
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
            // The key was pruned in between, or belongs to another request.
            _ => Err(DbError::OtherRequest { key: key.key.clone() }),
        }
    }

    /// Requests a run to stop, unless it has its verdict; its owner sees the request soon. A repeat changes nothing.
    pub async fn stop_run(
        &self,
        project: &Project,
        run: RunId,
        at: Timestamp,
    ) -> Result<(), DbError> {
        sqlx::query!(
            "update open_runs set stop_at_ns = $3
             where project = $1 and id = $2 and stop_at_ns is null",
            project.as_str(),
            run.as_uuid(),
            nanos(at),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(())
    }

    /// Returns a run.
    pub async fn run(&self, project: &Project, run: RunId) -> Result<Option<StoredRun>, DbError> {
        let row = sqlx::query!(
            "select test_id, test_version, verdict, open.epoch as \"open_epoch?\", open.provisional as \"provisional?\",
                 runs.accepted_at_ns, coalesce(open.trace_id, runs.trace_id) as trace_id,
                 coalesce(open.span_id, runs.span_id) as span_id, coalesce(open.stop_at_ns, runs.stop_at_ns) as stop_at_ns,
                 vars as \"vars: Json<RunVars>\",
                 outcome::text as outcome, outcome_zstd is not null as \"answer_apart!\", secrets_sealed,
                 overtaken as \"overtaken: Json<Overtaken>\", ended_at_ns, revision, starter, suite_run,
                 traces.spans as \"trace_spans?\", octet_length(traces.otlp_zstd) as \"trace_bytes?\"
             from runs left join open_runs as open on open.id = $2
                 left join traces on traces.run_id = $2
             where runs.project = $1 and runs.id = $2",
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
            state: State::of(row.open_epoch),
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
            vars: RunVars {
                revision: row.revision,
                ..row.vars.map(|Json(vars)| vars).unwrap_or_default()
            },
            // A secret that cannot be opened any more is not needed to read a run.
            secrets: self.open_values(run, "variables", row.secrets_sealed).unwrap_or_default(),
            trigger: row.span_id.map(|bytes| span_id(run, bytes)).transpose()?,
            ended_at: row.ended_at_ns.map(moment),
            // A later version may know further kinds.
            starter: row.starter.as_deref().and_then(Starter::parse),
            suite_run: row.suite_run.map(RunId::from),
            trace: row.trace_spans.zip(row.trace_bytes).map(|(spans, bytes)| StoredTraceSize {
                spans: u64::try_from(spans).unwrap_or_default(),
                bytes: u64::try_from(bytes).unwrap_or_default(),
            }),
        }))
    }

    /// Returns the events of a run after number `after`, each with its number, at most `limit` of them.
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

    /// Returns the number of the last event of each of these runs.
    pub async fn events_last(&self, runs: &[RunId]) -> Result<Vec<(RunId, i64)>, DbError> {
        let ids: Vec<_> = runs.iter().map(|run| run.as_uuid()).collect();
        let rows = sqlx::query!(
            "select id as \"id!\", events_last as \"events_last!\" from open_runs where id = any ($1)
             union all
             select id, events_last from runs where id = any ($1) and verdict is not null",
            &ids
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(rows.into_iter().map(|row| (RunId::from(row.id), row.events_last)).collect())
    }
}

/// Encodes a time for the database. Nanoseconds fit until the year 2262; later times are clamped.
pub(crate) fn nanos(moment: Timestamp) -> i64 {
    i64::try_from(moment.as_nanos()).unwrap_or(i64::MAX)
}

/// Decodes a time from the database, which holds none before 1970.
pub(crate) fn moment(nanos: i64) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

/// Encodes a value as JSON. It is sent to Postgres as text and cast to `json` there: the driver's own type is `jsonb`, which
/// rejects NUL.
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

/// Maps an error of decoding a run's row to [`DbError::Corrupt`].
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

//! Suite runs: owned like runs, under a lease and an epoch that every write names.
//!
//! The owner starts at most one run for each step that may start, and ends the suite run with one verdict. All state that a later
//! owner needs is in the database: the steps, and the run of each step.

use std::time::Duration;

use model::{Outcome, Project, RunEvent, RunId, TestId, Timestamp, Verdict, What};
use serde::{Deserialize, Serialize};
use sqlx::types::Json;

use crate::{
    Db, DbError, NewRun, RunVars, SecretValues, State,
    lease::owned,
    run::{IdempotencyKey, json, moment, nanos, read, state, verdict},
};

/// A suite run to be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSuiteRun {
    /// The id of the suite run.
    pub id: RunId,
    /// The project that owns it.
    pub project: Project,
    /// The suite.
    pub suite: TestId,
    /// Its name.
    pub name: String,
    /// Its current steps, which the suite run stores.
    pub steps: Vec<SuiteStep>,
    /// The values that each step is started with.
    pub vars: RunVars,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The `traceparent` of the request that started it.
    pub traceparent: Option<String>,
    /// The idempotency key of the request.
    pub key: Option<IdempotencyKey>,
}

/// A step of a suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SuiteStep {
    /// The name by which other steps refer to it.
    pub name: String,
    /// The test that it runs.
    pub test: TestId,
    /// The steps that have to end first, by their indexes.
    pub needs: Vec<usize>,
}

/// A suite run that a worker has leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteLease {
    /// The suite run.
    pub id: RunId,
    /// The project that owns it.
    pub project: Project,
    /// The epoch that every write names; a later lease has a higher one.
    pub epoch: i64,
    /// The steps that it started with.
    pub steps: Vec<SuiteStep>,
    /// The values that each step is started with.
    pub vars: RunVars,
    /// The `traceparent` of the request that started it.
    pub traceparent: Option<String>,
    /// When it was requested to stop.
    pub stop_at: Option<Timestamp>,
}

/// The run of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRun {
    /// The index of the step.
    pub step: usize,
    /// Its run.
    pub run: RunId,
    /// Its outcome, once it ended.
    pub outcome: Option<Outcome>,
    /// Its secret outputs.
    pub secret_outputs: SecretValues,
}

/// The outcome of a suite run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SuiteOutcome {
    /// The verdict of the suite run.
    pub verdict: Verdict,
    /// The outcome of each step, in the order of the document.
    pub steps: Vec<StepOutcome>,
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepOutcome {
    /// The step.
    pub name: String,
    /// Its test.
    pub test: TestId,
    /// Its run; none where it did not start.
    pub run: Option<RunId>,
    /// Its verdict; none until it ended.
    pub verdict: Option<Verdict>,
    /// The reason why it did not start.
    pub reason: Option<String>,
}

/// A suite run as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSuiteRun {
    /// Its id.
    pub id: RunId,
    /// The suite.
    pub suite: TestId,
    /// The suite's name.
    pub name: String,
    /// Its state.
    pub state: State,
    /// Its verdict, once it ended.
    pub verdict: Option<Verdict>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it was requested to stop.
    pub stop_at: Option<Timestamp>,
    /// Its steps, with the outcomes so far.
    pub steps: Vec<StepOutcome>,
}

impl Db {
    /// Accepts a suite run. With a known key it starts nothing, and returns the suite run that was started with it.
    pub async fn create_suite_run(&self, run: &NewSuiteRun) -> Result<Option<RunId>, DbError> {
        let vars = match run.vars.is_empty() {
            true => None,
            false => Some(json(run.id, "variables", &run.vars)?),
        };
        let started = sqlx::query_scalar!(
            "with key as (
                 insert into idempotency_keys (project, key, request, started)
                 select $2, $9, sha256(convert_to($10, 'UTF8')), $1 where $9::text is not null
                 on conflict (project, key) do nothing
                 returning key
             )
             insert into suite_runs (id, project, suite_id, name, steps, vars, accepted_at_ns, traceparent)
             select $1, $2, $3, $4, $5::text::json, $6::text::json, $7, $8
             where $9::text is null or exists (select from key)
             returning id",
            run.id.as_uuid(),
            run.project.as_str(),
            run.suite.as_str(),
            run.name,
            json(run.id, "steps", &run.steps)?,
            vars,
            nanos(run.accepted_at),
            run.traceparent.as_deref(),
            run.key.as_ref().map(|key| key.key.as_str()),
            run.key.as_ref().map(|key| key.request.as_str()),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        match (started, &run.key) {
            (None, Some(key)) => self.started_before(&run.project, key).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Leases suite runs without an owner, the oldest first.
    pub async fn take_suites(
        &self,
        worker: &str,
        lease: Duration,
        suites_max: usize,
    ) -> Result<Vec<SuiteLease>, DbError> {
        let rows = sqlx::query!(
            "update suite_runs
             set epoch = epoch + 1, worker = $1, lease_until = now() + make_interval(secs => $2)
             where id = any (array(
                 select id from suite_runs
                 where verdict is null and (lease_until is null or lease_until <= now())
                 order by id limit $3
                 for update skip locked))
             returning id, project, epoch, steps::text as \"steps!\", vars::text as vars, traceparent, stop_at_ns",
            worker,
            lease.as_secs_f64(),
            i64::try_from(suites_max).unwrap_or(i64::MAX),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let taken = rows.into_iter().map(|row| {
            let id = RunId::from(row.id);
            let vars = row.vars.map(|vars| read(id, serde_json::from_str(&vars))).transpose()?;
            Ok(SuiteLease {
                id,
                project: read(id, row.project.parse())?,
                epoch: row.epoch,
                steps: read(id, serde_json::from_str(&row.steps))?,
                vars: vars.unwrap_or_default(),
                traceparent: row.traceparent,
                stop_at: row.stop_at_ns.map(moment),
            })
        });
        taken.collect()
    }

    /// Renews the lease of a suite run, and returns when it was requested to stop.
    pub async fn renew_suite(
        &self,
        suite: RunId,
        epoch: i64,
        lease: Duration,
    ) -> Result<Option<Timestamp>, DbError> {
        let row = sqlx::query!(
            "update suite_runs set lease_until = now() + make_interval(secs => $3)
             where id = $1 and epoch = $2 and verdict is null
             returning stop_at_ns",
            suite.as_uuid(),
            epoch,
            lease.as_secs_f64(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        owned(suite, epoch, row.is_some())?;
        Ok(row.and_then(|row| row.stop_at_ns).map(moment))
    }

    /// Accepts the only run of a step. Returns false where the step has its run, or the epoch does not own the suite run; a
    /// deleted test is an error.
    pub async fn start_step(
        &self,
        (suite, epoch): (RunId, i64),
        step: usize,
        (run, secrets): (&NewRun, &SecretValues),
    ) -> Result<bool, DbError> {
        let accepted =
            json(run.id, "event", &RunEvent { at: run.accepted_at, what: What::Accepted })?;
        let step = i32::try_from(step).unwrap_or(i32::MAX);
        let sealed = match secrets.is_empty() {
            true => None,
            false => Some(self.seal_values(run.id, "variables", secrets)?),
        };
        let row = sqlx::query!(
            "with test as (
                 select tests.project, tests.id, tests.version, host
                 from tests join test_versions on test_versions.project = tests.project
                     and test_versions.test_id = tests.id and test_versions.version = tests.version
                 where tests.project = $3 and tests.id = $4 and not deleted
             ), suite as (
                 select id from suite_runs where id = $1 and epoch = $2 and verdict is null for update
             ), step as (
                 insert into suite_steps (suite_run, step, run_id)
                 select suite.id, $5, $6 from suite cross join test
                 on conflict (suite_run, step) do nothing
                 returning suite_run, step
             ), run as (
                 insert into runs (project, id, test_id, test_version, host, accepted_at_ns, traceparent, vars,
                     revision, suite_run, suite_step, secrets_sealed, starter)
                 select project, $6, test.id, version, host, $7, $8, $9::text::json, $11, suite_run, step, $12, $13
                 from test cross join step
                 returning project, id, host, accepted_at_ns
             ), open as (
                 insert into open_runs (id, project, host, accepted_at_ns, events_last)
                 select id, project, host, accepted_at_ns, 1 from run
             ), event as (
                 insert into events (project, run_id, n, event)
                 select project, id, 1, $10::text::json from run
             )
             select exists (select from run) as \"is_started!\" from test",
            suite.as_uuid(),
            epoch,
            run.project.as_str(),
            run.test.as_str(),
            step,
            run.id.as_uuid(),
            nanos(run.accepted_at),
            run.traceparent.as_deref(),
            json(run.id, "variables", &RunVars { revision: None, ..run.vars.clone() })?,
            accepted,
            run.vars.revision.as_deref(),
            sealed,
            run.starter.as_str(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let no_test =
            || DbError::NoSuchTest { project: run.project.clone(), test: run.test.clone() };
        row.map(|row| row.is_started).ok_or_else(no_test)
    }

    /// Returns the runs of the steps of a suite run.
    pub async fn step_runs(&self, suite: RunId) -> Result<Vec<StepRun>, DbError> {
        let rows = sqlx::query!(
            "select step, run_id, outcome as \"outcome?: Json<Outcome>\", outputs_sealed as \"outputs?\"
             from suite_steps left join runs on runs.id = run_id
             where suite_steps.suite_run = $1 order by step",
            suite.as_uuid(),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let runs = rows.into_iter().map(|row| {
            let run = RunId::from(row.run_id);
            Ok(StepRun {
                step: usize::try_from(row.step).unwrap_or(usize::MAX),
                run,
                outcome: row.outcome.map(|Json(outcome)| outcome),
                secret_outputs: self.open_values(run, "outputs", row.outputs)?,
            })
        });
        runs.collect()
    }

    /// Records the verdict of a suite run, once. A repeat is no error.
    pub async fn finish_suite(
        &self,
        suite: RunId,
        epoch: i64,
        outcome: &SuiteOutcome,
    ) -> Result<(), DbError> {
        let verdict = outcome.verdict.as_str();
        let outcome = json(suite, "outcome", outcome)?;
        let written = sqlx::query!(
            "update suite_runs set verdict = $3, outcome = $4::text::json, lease_until = null
             where id = $1 and epoch = $2 and (verdict is null or outcome::text = $4)",
            suite.as_uuid(),
            epoch,
            verdict,
            outcome,
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        owned(suite, epoch, written.rows_affected() > 0)
    }

    /// Requests a suite run and the runs of its steps to stop, unless they have ended.
    pub async fn stop_suite(
        &self,
        project: &Project,
        suite: RunId,
        at: Timestamp,
    ) -> Result<(), DbError> {
        sqlx::query!(
            "with suite as (
                 update suite_runs set stop_at_ns = coalesce(stop_at_ns, $3)
                 where project = $1 and id = $2 and verdict is null
                 returning id
             )
             update open_runs set stop_at_ns = $3
             where id = any (array(select run_id from suite_steps where suite_run in (select id from suite)))
                 and stop_at_ns is null",
            project.as_str(),
            suite.as_uuid(),
            nanos(at),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(())
    }

    /// Returns a suite run.
    pub async fn suite_run(
        &self,
        project: &Project,
        suite: RunId,
    ) -> Result<Option<StoredSuiteRun>, DbError> {
        let row = sqlx::query!(
            "select suite_id, name, state as \"state!\", verdict, accepted_at_ns, stop_at_ns, steps::text as \"steps!\",
                 outcome::text as outcome
             from suite_runs where project = $1 and id = $2",
            project.as_str(),
            suite.as_uuid(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let Some(row) = row else { return Ok(None) };
        let outcome: Option<SuiteOutcome> =
            row.outcome.map(|outcome| read(suite, serde_json::from_str(&outcome))).transpose()?;
        let steps = match outcome {
            Some(outcome) => outcome.steps,
            None => {
                let steps: Vec<SuiteStep> = read(suite, serde_json::from_str(&row.steps))?;
                so_far(steps, &self.step_runs(suite).await?)
            }
        };
        Ok(Some(StoredSuiteRun {
            id: suite,
            suite: read(suite, row.suite_id.parse())?,
            name: row.name,
            state: state(suite, &row.state)?,
            verdict: row.verdict.map(|word| verdict(suite, &word)).transpose()?,
            accepted_at: moment(row.accepted_at_ns),
            stop_at: row.stop_at_ns.map(moment),
            steps,
        }))
    }
}

/// Returns the steps, with their runs.
fn so_far(steps: Vec<SuiteStep>, runs: &[StepRun]) -> Vec<StepOutcome> {
    let steps = steps.into_iter().enumerate().map(|(at, step)| {
        let run = runs.iter().find(|run| run.step == at);
        StepOutcome {
            name: step.name,
            test: step.test,
            run: run.map(|run| run.run),
            verdict: run.and_then(|run| run.outcome.as_ref()).map(|outcome| outcome.verdict),
            reason: None,
        }
    });
    steps.collect()
}

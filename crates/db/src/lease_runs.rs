//! Distribution of work: which worker leases which runs.
//!
//! The project with the fewest active runs goes first, then the oldest run; a host with the maximum of active runs is skipped.
//! One statement leases them. It reads open runs only, along their indexes, and has the turn meanwhile: of many concurrent
//! workers, each sees the leases of the others. A second statement reads what a worker needs of its runs, after the turn.
//!
//! A run with an unreadable row is leased as well, as damaged, so that it ends and is not leased for ever.

use std::{collections::BTreeMap, time::Duration};

use model::{
    Attempt, LearnedProfile, LearnedService, LearnedTest, Progress, Project, RunId, Timestamp,
    Verdict,
};
use serde::de::DeserializeOwned;
use sqlx::types::Uuid;

use crate::{
    BusPlace, Db, DbError, RunVars, SecretValues, Starter, StoredTest,
    run::{moment, read, span_id, trace_id, verdict},
    server::slot,
};

/// The worker that requests leases, and its bounds.
#[derive(Clone, Copy, Debug)]
pub struct LeaseRequest<'a> {
    /// The name of the worker.
    pub worker: &'a str,
    /// The duration of the lease without renewal.
    pub lease: Duration,
    /// The time of the lease.
    pub at: Timestamp,
    /// The upper bound of runs.
    pub runs_max: usize,
    /// The upper bound of active runs against one host, of all workers.
    pub host_max: usize,
    /// How many of the free slots are reserved for projects that have at most this number of active runs.
    pub runs_reserved: usize,
    /// The same for the runs against one host: reserved for projects that have at most this number of active runs there.
    pub host_reserved: usize,
    /// Whether runs with an expired lease are looked for.
    pub with_expired: bool,
    /// The oldest lease that can be active, from the last result; none at first. Dead rows of older leases are not read.
    pub oldest_lease: Option<LeaseNumber>,
}

/// The number of a lease: each lease of a run has a higher one than all leases before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseNumber(i64);

/// The runs that a worker has leased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLeases {
    /// Runs to work on.
    pub runs: Vec<RunLease>,
    /// Runs that the worker can only end.
    pub damaged: Vec<DamagedRun>,
    /// The oldest lease that can be active, for the next request.
    pub oldest_lease: Option<LeaseNumber>,
    /// Whether a further request may lease more: there are queued runs that were not considered, or that were for a host without
    /// room for all of them.
    pub is_partial: bool,
}

/// A run that a worker has leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLease {
    /// The run.
    pub run_id: RunId,
    /// The project that owns it.
    pub project: Project,
    /// The epoch that every write names; a later lease has a higher one.
    pub epoch: i64,
    /// How many earlier owners stalled or died while they held the lease.
    pub stalls: i32,
    /// The version of the test that the run started with.
    pub test: StoredTest,
    /// The progress of an earlier owner, without the response.
    pub progress: Progress,
    /// The size of the response body, where there is a response: [`Db::progress`] reads it.
    pub answer_bytes: Option<usize>,
    /// When the run was accepted.
    pub accepted_at: Timestamp,
    /// The `traceparent` of the request that started it.
    pub traceparent: Option<String>,
    /// The values that it was started with.
    pub vars: RunVars,
    /// The secrets among those values.
    pub secrets: SecretValues,
    /// The kind of the caller that started it; none if the accepting server did not store that.
    pub starter: Option<Starter>,
    /// Its timeout, where the start request states one.
    pub timeout: Option<Duration>,
    /// When it was requested to stop.
    pub stop_at: Option<Timestamp>,
    /// The provisional verdict that an earlier owner recorded; there is no second one.
    pub provisional: Option<Verdict>,
    /// Where its spans are on the bus since an earlier owner fired the trigger.
    pub bus: BusPlace,
    /// The learned profile of the project's services, and of this test.
    pub learned: LearnedProfile,
    /// The name of the suite that it is a step of.
    pub suite: Option<String>,
    /// The settle profiles of the project, by their ids.
    pub settle_profiles: BTreeMap<String, String>,
    /// The analyzer and the quality gate of the project that apply to runs, by their kinds.
    pub gates: BTreeMap<String, String>,
    /// Whether the project has trace stores.
    pub has_stores: bool,
}

/// A leased run that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRun {
    /// The run.
    pub run_id: RunId,
    /// The epoch that the write of its end names.
    pub epoch: i64,
    /// The name of its test.
    pub test: String,
    /// The trace context of the request that started it, as in its lease.
    pub traceparent: Option<String>,
    /// The reason why it cannot be read.
    pub reason: String,
}

/// A row of the statement, not yet decoded.
struct LeaseRow {
    id: Uuid,
    project: String,
    epoch: i64,
    stalls: i32,
    accepted_at_ns: i64,
    traceparent: Option<String>,
    trace_id: Option<Vec<u8>>,
    span_id: Option<Vec<u8>>,
    attempted_at_ns: Option<i64>,
    answer_bytes: Option<i64>,
    vars: Option<String>,
    revision: Option<String>,
    starter: Option<String>,
    secrets_sealed: Option<Vec<u8>>,
    timeout_ms: Option<i64>,
    stop_at_ns: Option<i64>,
    provisional: Option<String>,
    bus_state: Option<String>,
    bus_slot: Option<i32>,
    learned: Option<String>,
    learned_test: Option<String>,
    suite: Option<String>,
    settle_profiles: Option<String>,
    gates: Option<String>,
    has_stores: bool,
    test_id: String,
    version: i32,
    name: String,
    document: String,
    file: String,
}

impl Db {
    /// Leases runs without an owner: new runs, and runs with an expired lease, which come first. Returns none while another worker
    /// does so: the caller comes again.
    ///
    /// The lease counts by the database's clock, from a time after this call began: an owner that counts by its own clock from
    /// before the call ends earlier, never later.
    pub async fn lease_runs(
        &self,
        request: &LeaseRequest<'_>,
    ) -> Result<Option<RunLeases>, DbError> {
        let most = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        // Before the turn: it may read the dead rows of many leases.
        let expired = match request.with_expired {
            true => self.expired_runs(most(request.runs_max)).await?,
            false => Vec::new(),
        };
        // Only the statement knows the epoch of the event, so it writes the event, in the form of `model::RunEvent`.
        let rows = sqlx::query_file!(
            "queries/lease_runs.sql",
            request.worker,
            request.lease.as_secs_f64(),
            most(request.runs_max),
            most(request.host_max),
            request.at.to_string(),
            most(request.runs_reserved),
            most(request.host_reserved),
            request.oldest_lease.map_or(0, |lease| lease.0),
            &expired,
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let Some(last) = rows.iter().find(|row| row.id.is_none()) else { return Ok(None) };
        let mut leases = RunLeases {
            oldest_lease: last.oldest_lease.map(LeaseNumber),
            is_partial: last.is_partial.unwrap_or_default(),
            ..RunLeases::default()
        };
        let leased: Vec<_> =
            rows.iter().filter_map(|row| Some((RunId::from(row.id?), row.epoch?))).collect();
        if leased.is_empty() {
            return Ok(Some(leases));
        }
        if let Err(error) = self.read_leased(&leased, &mut leases).await {
            // No worker has begun them. If that fails as well, their lease expires.
            self.release(&leased).await.ok();
            return Err(error);
        }
        Ok(Some(leases))
    }

    /// Returns runs whose lease has expired, or was released.
    async fn expired_runs(&self, runs_max: i64) -> Result<Vec<Uuid>, DbError> {
        sqlx::query_scalar!(
            "select id as \"id!\" from (
                 select id, lease_number from open_runs
                 where epoch > 0 and provisional is null and (lease_until is null or lease_until <= now())
                 union all
                 select id, lease_number from open_runs
                 where provisional is not null and (lease_until is null or lease_until <= now())
             ) as expired order by lease_number limit $1",
            runs_max,
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))
    }

    async fn read_leased(
        &self,
        leased: &[(RunId, i64)],
        leases: &mut RunLeases,
    ) -> Result<(), DbError> {
        let (ids, epochs): (Vec<_>, Vec<_>) =
            leased.iter().map(|(run, epoch)| (run.as_uuid(), *epoch)).unzip();
        let rows = sqlx::query_file_as!(LeaseRow, "queries/leased_runs.sql", &ids, &epochs)
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.error(error))?;
        for row in rows {
            let (run_id, epoch, test) = (RunId::from(row.id), row.epoch, row.name.clone());
            let traceparent = row.traceparent.clone();
            match row.read(self) {
                Ok(run) => leases.runs.push(run),
                Err(error) => {
                    let reason = error.to_string();
                    let damaged = DamagedRun { run_id, epoch, test, traceparent, reason };
                    leases.damaged.push(damaged);
                }
            }
        }
        Ok(())
    }
}

impl LeaseRow {
    fn read(self, db: &Db) -> Result<RunLease, DbError> {
        let run_id = RunId::from(self.id);
        let attempt = match (self.trace_id, self.span_id, self.attempted_at_ns) {
            (Some(trace), Some(span), Some(at)) => Some(Attempt {
                trace_id: trace_id(run_id, trace)?,
                span_id: span_id(run_id, span)?,
                at: moment(at),
            }),
            _ => None,
        };
        // The learned profile only shortens waits: an unreadable part is learned again.
        let services: BTreeMap<String, LearnedService> =
            parsed(run_id, self.learned).ok().flatten().unwrap_or_default();
        let test: Option<LearnedTest> = parsed(run_id, self.learned_test).ok().flatten();
        let tests = test.map(|test| (self.test_id.clone(), test)).into_iter().collect();
        Ok(RunLease {
            run_id,
            project: read(run_id, self.project.parse())?,
            epoch: self.epoch,
            stalls: self.stalls,
            test: StoredTest {
                id: read(run_id, self.test_id.parse())?,
                name: self.name,
                version: self.version,
                file: self.file,
                document: self.document,
            },
            progress: attempt.map_or(Progress::New, Progress::Attempted),
            answer_bytes: self.answer_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(0)),
            accepted_at: moment(self.accepted_at_ns),
            traceparent: self.traceparent,
            vars: RunVars {
                revision: self.revision,
                ..parsed(run_id, self.vars)?.unwrap_or_default()
            },
            starter: self.starter.as_deref().and_then(Starter::parse),
            secrets: db.open_values(run_id, "variables", self.secrets_sealed)?,
            timeout: self
                .timeout_ms
                .and_then(|ms| u64::try_from(ms).ok())
                .map(Duration::from_millis),
            stop_at: self.stop_at_ns.map(moment),
            provisional: self.provisional.map(|word| verdict(run_id, &word)).transpose()?,
            bus: BusPlace { slot: self.bus_slot.and_then(slot), state: self.bus_state },
            learned: LearnedProfile { services, tests, ..LearnedProfile::default() },
            suite: self.suite,
            settle_profiles: parsed(run_id, self.settle_profiles)?.unwrap_or_default(),
            gates: parsed(run_id, self.gates)?.unwrap_or_default(),
            has_stores: self.has_stores,
        })
    }
}

fn parsed<T: DeserializeOwned>(run: RunId, text: Option<String>) -> Result<Option<T>, DbError> {
    text.map(|text| read(run, serde_json::from_str(&text))).transpose()
}

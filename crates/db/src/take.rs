//! How work is handed out: who gets which runs.
//!
//! The project with the fewest runs in flight goes first, then the oldest run; a host that has as many runs as it may
//! is passed over. All of it is one statement, which looks at open runs only, along two small indexes, and has the turn
//! while it does: of many who take at once, each sees what the others took.
//!
//! A run whose row cannot be read is handed out as well, as damaged, so that it ends instead of coming back for ever.

use std::{collections::BTreeMap, time::Duration};

use model::{
    Attempt, LearnedProfile, LearnedService, LearnedTest, Progress, Project, RunId, Timestamp,
    Verdict,
};
use serde::de::DeserializeOwned;

use crate::{
    Db, DbError, RunVars, SecretValues, Starter, StoredTest,
    run::{moment, read, span_id, trace_id, verdict},
};

/// Runs of a lane that are looked at beyond those that are asked for: as many may have been taken by others while this
/// one waited for its turn.
const SPARE: i64 = 64;

/// Who takes, and how much.
#[derive(Clone, Copy, Debug)]
pub struct LeaseRequest<'a> {
    /// The name of the worker.
    pub worker: &'a str,
    /// How long the runs are its own without renewal.
    pub lease: Duration,
    /// When.
    pub at: Timestamp,
    /// Runs at the most.
    pub runs_max: usize,
    /// Runs in flight against one host at the most, whoever has taken them.
    pub host_max: usize,
    /// Of the free slots, how many are for projects that have no more runs in flight than this.
    pub runs_reserved: usize,
    /// The same of the runs against one host, for projects that have no more than this in flight there.
    pub host_reserved: usize,
}

/// What a worker got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLeases {
    /// Runs to work on.
    pub runs: Vec<RunLease>,
    /// Runs of which nothing can be made but an end.
    pub damaged: Vec<DamagedRun>,
}

/// A run in the hands of the worker that took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLease {
    /// The run.
    pub run_id: RunId,
    /// Whose it is.
    pub project: Project,
    /// To be named in every write; a later taking has a higher one.
    pub epoch: i64,
    /// How many owners before this one stalled or died while they had it.
    pub stalls: i32,
    /// The version of the test that the run started with.
    pub test: StoredTest,
    /// How far an earlier owner came, but for the answer.
    pub progress: Progress,
    /// How large the body of the answer is, where there is one: [`Db::progress`] reads it.
    pub answer_bytes: Option<usize>,
    /// When the run was accepted.
    pub accepted_at: Timestamp,
    /// The `traceparent` of the request that started it.
    pub traceparent: Option<String>,
    /// The values that it was started with.
    pub vars: RunVars,
    /// Of those, the ones that nobody may see.
    pub secrets: SecretValues,
    /// Who started it; none for a run that a server accepted which did not keep that.
    pub starter: Option<Starter>,
    /// How long it may take, where its start says so.
    pub timeout: Option<Duration>,
    /// Since when it is asked to stop.
    pub stop_at: Option<Timestamp>,
    /// The provisional verdict that an earlier owner recorded; there is no further one.
    pub provisional: Option<Verdict>,
    /// What earlier runs have shown: of the services of the project, and of this test.
    pub learned: LearnedProfile,
    /// The name of the suite that it is a step of.
    pub suite: Option<String>,
    /// The settle profiles of the project, by their ids.
    pub settle_profiles: BTreeMap<String, String>,
    /// The analyzer and the gate of the project that hold for runs, by their kinds.
    pub gates: BTreeMap<String, String>,
}

/// A run that was taken and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRun {
    /// The run.
    pub run_id: RunId,
    /// To be named when it is ended.
    pub epoch: i64,
    /// The name of its test.
    pub test: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A row as it comes.
struct LeaseRow {
    id: sqlx::types::Uuid,
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
    learned: Option<String>,
    learned_test: Option<String>,
    suite: Option<String>,
    settle_profiles: Option<String>,
    gates: Option<String>,
    test_id: String,
    version: i32,
    name: String,
    document: String,
    file: String,
}

impl Db {
    /// Takes runs that nobody owns: new ones, and those whose owner's lease is over, which come first.
    ///
    /// The lease counts by the database's clock, from a moment after this was called: an owner that counts
    /// by its own clock from before the call ends earlier, never later.
    pub async fn take(&self, taking: &LeaseRequest<'_>) -> Result<RunLeases, DbError> {
        let runs_max = i64::try_from(taking.runs_max).unwrap_or(i64::MAX);
        // The event's epoch is known only there, so the event is written there, in the form of `model::RunEvent`.
        let rows = sqlx::query_file_as!(
            LeaseRow,
            "queries/take.sql",
            taking.worker,
            taking.lease.as_secs_f64(),
            runs_max,
            i64::try_from(taking.host_max).unwrap_or(i64::MAX),
            taking.at.to_string(),
            SPARE,
            i64::try_from(taking.runs_reserved).unwrap_or(i64::MAX),
            i64::try_from(taking.host_reserved).unwrap_or(i64::MAX),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let mut took = RunLeases::default();
        for row in rows {
            let (run_id, epoch, test) = (RunId::from(row.id), row.epoch, row.name.clone());
            match row.read(self) {
                Ok(taken) => took.runs.push(taken),
                Err(error) => {
                    let reason = error.to_string();
                    took.damaged.push(DamagedRun { run_id, epoch, test, reason });
                }
            }
        }
        Ok(took)
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
        // What is learned only shortens waits: what cannot be read of it is learned again.
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
            learned: LearnedProfile { services, tests },
            suite: self.suite,
            settle_profiles: parsed(run_id, self.settle_profiles)?.unwrap_or_default(),
            gates: parsed(run_id, self.gates)?.unwrap_or_default(),
        })
    }
}

fn parsed<T: DeserializeOwned>(run: RunId, text: Option<String>) -> Result<Option<T>, DbError> {
    text.map(|text| read(run, serde_json::from_str(&text))).transpose()
}

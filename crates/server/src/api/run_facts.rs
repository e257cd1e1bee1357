//! The facts of a run in the API: what it was started with, its state, and what is stored of its trace.

use std::collections::BTreeMap;

use db::{NewRun, RunVars, Starter, State as RunState, StoredRun};
use model::{Outcome, RunId, SpanId, TestId, Timestamp, TraceId, Verdict};
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi;

/// A run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    #[schema(schema_with = openapi::run_id)]
    id: RunId,
    #[schema(schema_with = openapi::word)]
    test: TestId,
    /// The version of the test that it runs.
    version: i32,
    /// `queued`, `running` or `ended`.
    state: &'static str,
    #[schema(schema_with = openapi::moment)]
    accepted_at: Timestamp,
    /// When it ended.
    #[schema(schema_with = openapi::moment_or_null)]
    ended_at: Option<Timestamp>,
    /// Who started it: `anyone` where access is off, `token`, `person`, or `suite`. The audit log has their names. Null for a
    /// run of a server that did not record it.
    started_by: Option<&'static str>,
    /// The run of the suite of which it is a step.
    #[schema(value_type = Option<String>)]
    suite_run: Option<RunId>,
    /// The state of the system under test, such as a commit, if the start named one.
    revision: Option<String>,
    /// The values of variables that it was started with; null for a secret. Those of variable sets are not recorded.
    variables: BTreeMap<String, Option<String>>,
    /// The variable sets that it was started with; a later one overrules an earlier one.
    variable_sets: Vec<String>,
    /// The trace under test, once the attempt is recorded.
    #[schema(value_type = Option<String>)]
    trace_id: Option<TraceId>,
    /// The span of the trigger, once the attempt is recorded.
    #[schema(value_type = Option<String>)]
    trigger_span_id: Option<SpanId>,
    /// What is stored of the trace.
    trace: StoredTrace,
    /// `passed`, `failed` or `inconclusive`, once it ended. It is final.
    #[schema(schema_with = openapi::verdict_or_null)]
    verdict: Option<Verdict>,
    /// The current verdict while it is provisional: the run lingers, and late spans may change it. Null before, and
    /// once it ended.
    #[schema(schema_with = openapi::verdict_or_null)]
    provisional_verdict: Option<Verdict>,
    /// When a stop was requested.
    #[schema(value_type = Option<String>)]
    stop_at: Option<Timestamp>,
    /// The outcome of the run.
    #[schema(schema_with = openapi::outcome_or_null)]
    outcome: Option<Outcome>,
}

/// What is stored of the trace of a run.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct StoredTrace {
    state: StoredTraceState,
    /// The number of its spans, if it is stored.
    spans: Option<u64>,
    /// Its size in bytes as it is stored, which is compressed.
    bytes: Option<u64>,
}

/// Whether the trace of a run is stored.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum StoredTraceState {
    /// It can be read.
    Stored,
    /// The run has none, or not yet.
    None,
    /// It was removed after its retention period.
    Expired,
}

impl Run {
    /// Returns a run that was just accepted.
    pub(super) fn queued(new: NewRun, version: i32) -> Self {
        let RunVars { sets, values, revision } = new.vars;
        Self {
            id: new.id,
            test: new.test,
            version,
            state: RunState::Queued.as_str(),
            accepted_at: new.accepted_at,
            ended_at: None,
            started_by: Some(new.starter.as_str()),
            suite_run: None,
            revision,
            variables: values.into_iter().map(|(name, value)| (name, Some(value))).collect(),
            variable_sets: sets,
            trace_id: None,
            trigger_span_id: None,
            trace: StoredTrace { state: StoredTraceState::None, spans: None, bytes: None },
            verdict: None,
            provisional_verdict: None,
            stop_at: None,
            outcome: None,
        }
    }
}

impl StoredTrace {
    fn of(stored: &StoredRun) -> Self {
        let settlement = stored.outcome.as_ref().and_then(|outcome| outcome.settlement.as_ref());
        let state = match stored.trace {
            Some(_) => StoredTraceState::Stored,
            None if settlement.is_some_and(|it| it.spans > 0) => StoredTraceState::Expired,
            None => StoredTraceState::None,
        };
        let (spans, bytes) = stored.trace.map(|size| (size.spans, size.bytes)).unzip();
        Self { state, spans, bytes }
    }
}

impl From<StoredRun> for Run {
    fn from(stored: StoredRun) -> Self {
        let trace = StoredTrace::of(&stored);
        let RunVars { sets, values, revision } = stored.vars;
        let given = values.into_iter().map(|(name, value)| (name, Some(value)));
        let secrets = stored.secrets.into_keys().map(|name| (name, None));
        Self {
            ended_at: stored.ended_at,
            started_by: stored.starter.map(Starter::as_str),
            suite_run: stored.suite_run,
            revision,
            variables: given.chain(secrets).collect(),
            variable_sets: sets,
            trigger_span_id: stored.trigger,
            trace,
            id: stored.id,
            test: stored.test,
            version: stored.version,
            state: stored.state.as_str(),
            accepted_at: stored.accepted_at,
            trace_id: stored.trace_id,
            verdict: stored.verdict,
            provisional_verdict: stored.provisional,
            stop_at: stored.stop_at,
            outcome: stored.outcome,
        }
    }
}

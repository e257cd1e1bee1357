//! Runs: started, and read with their events and trace.

use axum::{
    Extension, Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use db::{NewRun, State as RunState};
use model::{Event, Fault, Outcome, Project, RunId, TestId, Timestamp, TraceId, Verdict};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    App,
    given::{Asked, Named},
    problem::Problem,
    runs_waiting,
};
use crate::{own_spans::Call, traceparent::TraceParent};

/// Events in one answer at the most.
const EVENTS_MAX: u32 = 1000;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    id: RunId,
    test: TestId,
    version: i32,
    state: &'static str,
    accepted_at: Timestamp,
    trace_id: Option<TraceId>,
    verdict: Option<Verdict>,
    outcome: Option<Outcome>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Numbered {
    n: i64,
    event: Event,
}

/// `?project=`: whose runs are meant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Owner {
    #[serde(default)]
    project: Project,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct After {
    #[serde(default)]
    project: Project,
    /// The last event that the caller knows.
    #[serde(default)]
    after: i64,
}

/// Accepts a run of the test's latest version; a worker takes it from there.
pub(super) async fn start(
    State(app): State<App>,
    Asked(Owner { project }): Asked<Owner>,
    Extension(context): Extension<TraceParent>,
    Named(test): Named<TestId>,
) -> Result<Response, Problem> {
    if app.watch.telemetry.is_pressed() {
        return Err(Problem::new(
            Fault::Overloaded,
            "no new runs for now: an exporter's buffer is nearly full, because its destination does not take the \
             server's telemetry; try again later, or see `GET /metrics` (telemetry_exporter_…)",
        ));
    }
    let accepted_at = app.world.now();
    let new = NewRun {
        id: RunId::new(accepted_at, app.world.random()),
        project,
        test: test.clone(),
        accepted_at,
        traceparent: Some(context.stored()),
    };
    let created = app.db.create_run(&new);
    let version = app.watch.db(context, Call("INSERT", "runs"), created).await?;
    app.bus.hint(runs_waiting());
    let run = Run {
        id: new.id,
        test,
        version,
        state: RunState::Queued.as_str(),
        accepted_at,
        trace_id: None,
        verdict: None,
        outcome: None,
    };
    let location = format!("/api/v1/runs/{}", new.id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(run)).into_response())
}

pub(super) async fn read(
    State(app): State<App>,
    Asked(Owner { project }): Asked<Owner>,
    Extension(context): Extension<TraceParent>,
    Named(id): Named<RunId>,
) -> Result<Response, Problem> {
    let stored = app.watch.db(context, Call("SELECT", "runs"), app.db.run(&project, id)).await?;
    let stored = stored.ok_or_else(|| no_such_run(id))?;
    Ok(Json(Run {
        id,
        test: stored.test,
        version: stored.version,
        state: stored.state.as_str(),
        accepted_at: stored.accepted_at,
        trace_id: stored.trace_id,
        verdict: stored.verdict,
        outcome: stored.outcome,
    })
    .into_response())
}

pub(super) async fn events(
    State(app): State<App>,
    Asked(After { project, after }): Asked<After>,
    Extension(context): Extension<TraceParent>,
    Named(id): Named<RunId>,
) -> Result<Response, Problem> {
    let run = app.watch.db(context, Call("SELECT", "runs"), app.db.run(&project, id)).await?;
    run.ok_or_else(|| no_such_run(id))?;
    let events = app.db.events(&project, id, after, EVENTS_MAX);
    let events = app.watch.db(context, Call("SELECT", "events"), events).await?;
    let events: Vec<_> = events.into_iter().map(|(n, event)| Numbered { n, event }).collect();
    Ok(Json(events).into_response())
}

/// The trace that was judged, as OTLP protobuf.
pub(super) async fn trace(
    State(app): State<App>,
    Asked(Owner { project }): Asked<Owner>,
    Extension(context): Extension<TraceParent>,
    Named(id): Named<RunId>,
) -> Result<Response, Problem> {
    // The semaphore is never closed; without a place there is no answer either way.
    let place = app.trace_reads.acquire_owned().await.ok();
    let bytes = app.db.trace(&project, id);
    let bytes = app.watch.db(context, Call("SELECT", "traces"), bytes).await?.ok_or_else(|| {
        Problem::new(
            Fault::Missing,
            format!("the run `{id}` has no trace (yet), or there is no such run"),
        )
    })?;
    let bytes = Bytes::from_owner(HeldTrace { bytes, _place: place });
    Ok(([(header::CONTENT_TYPE, "application/x-protobuf")], bytes).into_response())
}

/// A trace on its way out, which keeps its place until the last byte is gone.
struct HeldTrace {
    bytes: Vec<u8>,
    _place: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for HeldTrace {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn no_such_run(id: RunId) -> Problem {
    Problem::new(Fault::Missing, format!("there is no run `{id}`"))
}

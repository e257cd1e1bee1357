//! Runs: start, stop, and read.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use bus::Bus;
use db::{DbError, IdempotencyKey, NewRun, RunAcceptance, RunVars, StoredRun};
use model::{ErrorCode, Fault, Project, RunId, TestId};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{openapi, run_facts::Run};
use crate::{
    access::Caller,
    http::{
        app::App,
        extract::{Document, PathId, QueryParams},
        permit::ReaderPermit,
        problem::Problem,
    },
    plant::{Plant, is_planted},
    subjects,
    telemetry::{call::Call, events, traceparent::TraceParent},
};

/// The maximum number of variables of one run.
const VARIABLES_MAX: usize = 1000;
/// The maximum length of a revision in characters.
const REVISION_CHARS_MAX: usize = 255;
/// The maximum length of an idempotency key in characters.
const KEY_CHARS_MAX: usize = 255;
/// The allowed range of a run's timeout in seconds.
const TIMEOUT_SECS: std::ops::RangeInclusive<f64> = 0.1..=86_400.0;
/// The header with the idempotency key of a start, by which a repeated request is recognized.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(start)).routes(routes!(stop)).routes(routes!(read))
}

/// The options of a new run; the body may be empty.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Start {
    /// Values of variables. They are stored with the run, and everyone who may read the run sees them: do not put secrets here.
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// Variable sets by their ids; a later one overrules an earlier one, and `variables` overrule all of them.
    #[serde(default)]
    #[schema(max_items = 1000)]
    variable_sets: Vec<String>,
    /// How long the run may take, in seconds.
    #[serde(default)]
    #[schema(minimum = 0.1, maximum = 86400)]
    timeout_seconds: Option<f64>,
    /// The state of the system that is tested, such as a commit. Runs of one revision that come to different verdicts are
    /// reported as flaky.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")]
    revision: Option<String>,
}

/// `?project=`: the project of the run.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ProjectQuery {
    /// The project of the run.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    pub(super) project: Project,
}

/// The header with the idempotency key of a start.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it only describes the header, which is read by its name")]
pub(super) struct IdempotencyHeader {
    /// The idempotency key of this start, of up to 255 visible characters. The same request with the same key starts nothing and
    /// returns the first run; another request with the key is refused with 422.
    #[param(rename = "idempotency-key", schema_with = openapi::key, required = false)]
    key: String,
}

/// Accepts a run of the test's latest version; a worker takes it from there.
#[utoipa::path(
    post,
    path = "/api/v1/tests/{test}/runs",
    tag = "runs",
    operation_id = "startRun",
    params(
        ProjectQuery,
        ("test" = inline(openapi::Word), Path, description = "The test."),
        IdempotencyHeader,
    ),
    request_body(content = Option<Start>, description = "What it is started with."),
    responses(
        (
            status = 202,
            description = "The run is accepted.",
            body = Run,
            headers(("location" = String, description = "Where the run is read.")),
        ),
        (status = 200, description = "The same request has started this run before.", body = Run),
    ),
)]
pub(super) async fn start(
    State(app): State<App>,
    QueryParams(ProjectQuery { project }): QueryParams<ProjectQuery>,
    Extension(context): Extension<TraceParent>,
    Extension(caller): Extension<Caller>,
    PathId(test): PathId<TestId>,
    headers: HeaderMap,
    Document(body): Document,
) -> Result<Response, Problem> {
    pressed(&app)?;
    app.backlog.has_room(&project)?;
    let start = Start::read(&body)?;
    let key = idempotency_key(&headers, format!("start {test} {body}"))?;
    let accepted_at = app.world.now();
    let new = NewRun {
        id: RunId::new(accepted_at, app.world.random()),
        project,
        test,
        accepted_at,
        traceparent: Some(context.stored()),
        timeout: start.timeout_seconds.map(Duration::from_secs_f64),
        vars: start.vars(),
        key,
        starter: caller.starter(),
    };
    let created = app.db.create_run(&new);
    let accepted = app.watch.db(context, Call("INSERT", "runs"), created).await;
    let version = match accepted.map_err(refused)? {
        RunAcceptance::New { version } => version,
        RunAcceptance::Again { run } => {
            return answered(&app, context, (&new.project, run)).await;
        }
    };
    app.backlog.add(&new.project);
    events::run_accepted(new.id, &new.project, &new.test);
    app.watch.hint(context, &*app.bus, subjects::runs_waiting());
    if is_planted(Plant::HintTwice) {
        app.watch.hint(context, &*app.bus, subjects::runs_waiting());
    }
    app.bus.hint(subjects::project_news(&new.project));
    let location = format!("/api/v1/runs/{}", new.id);
    let run = Run::queued(new, version);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(run)).into_response())
}

/// Stops a run. It soon ends as inconclusive; a run that has its verdict does not change.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/stop",
    tag = "runs",
    operation_id = "stopRun",
    params(ProjectQuery, ("run" = inline(openapi::RunId), Path, description = "The run.")),
    responses((status = 200, description = "The run, which stops unless it had ended.", body = Run)),
)]
pub(super) async fn stop(
    State(app): State<App>,
    QueryParams(ProjectQuery { project }): QueryParams<ProjectQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
) -> Result<Response, Problem> {
    let stopped = app.db.stop_run(&project, id, app.world.now());
    app.watch.db(context, Call("UPDATE", "runs"), stopped).await?;
    app.bus.hint(subjects::run_stopped(id));
    answered(&app, context, (&project, id)).await
}

/// Refuses new runs while an exporter cannot deliver its telemetry.
pub(super) fn pressed(app: &App) -> Result<(), Problem> {
    if !app.watch.telemetry.is_pressed() {
        return Ok(());
    }
    Err(Problem::new(
        Fault::Overloaded,
        "no new runs for now: an exporter's buffer is nearly full, because its destination does not take the \
         server's telemetry; try again later, or see `GET /metrics` (telemetry_exporter_…)",
    )
    .with_code(ErrorCode::TelemetryBlocked))
}

impl Start {
    pub(super) fn read(body: &str) -> Result<Self, Problem> {
        if body.trim().is_empty() {
            return Ok(Self::default());
        }
        // No body, and a body of `null`, mean the same.
        let start: Option<Self> = serde_json::from_str(body).map_err(|error| {
            Problem::new(Fault::Invalid, format!("the body is not a start of a run: {error}"))
        })?;
        let start = start.unwrap_or_default();
        if start.variables.len().max(start.variable_sets.len()) > VARIABLES_MAX {
            let detail =
                format!("a run has at most {VARIABLES_MAX} variables, and as many sets of them");
            return Err(Problem::new(Fault::Invalid, detail));
        }
        if start.timeout_seconds.is_some_and(|seconds| !TIMEOUT_SECS.contains(&seconds)) {
            let detail = "`timeoutSeconds` must be from 0.1 to 86400";
            return Err(Problem::new(Fault::Invalid, detail));
        }
        let is_word = |it: &String| {
            (1..=REVISION_CHARS_MAX).contains(&it.chars().count()) && !it.contains(char::is_control)
        };
        if start.revision.as_ref().is_some_and(|revision| !is_word(revision)) {
            let detail =
                format!("`revision` must be 1 to {REVISION_CHARS_MAX} letters that can be seen");
            return Err(Problem::new(Fault::Invalid, detail));
        }
        Ok(start)
    }

    pub(super) fn vars(self) -> RunVars {
        // A set that is named twice is read once, at the position where it overrides.
        let mut known = HashSet::new();
        let mut sets = self.variable_sets;
        sets.reverse();
        sets.retain(|set| known.insert(set.clone()));
        sets.reverse();
        RunVars { sets, values: self.variables, revision: self.revision }
    }
}

/// Parses the idempotency key of a request, if it has one.
pub(super) fn idempotency_key(
    headers: &HeaderMap,
    request: String,
) -> Result<Option<IdempotencyKey>, Problem> {
    let header = headers.get(IDEMPOTENCY_KEY).filter(|_| !is_planted(Plant::KeyIgnored));
    let Some(value) = header else { return Ok(None) };
    let is_key = |key: &&str| {
        (1..=KEY_CHARS_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let key = value.to_str().ok().filter(is_key).ok_or_else(|| {
        let detail = format!(
            "`{IDEMPOTENCY_KEY}` must be 1 to {KEY_CHARS_MAX} visible letters without spaces"
        );
        Problem::new(Fault::Invalid, detail)
    })?;
    Ok(Some(IdempotencyKey { key: key.to_owned(), request }))
}

/// Maps an error of a start; a key that another request used has its own status.
pub(super) fn refused(error: DbError) -> Problem {
    let is_other = matches!(error, DbError::OtherRequest { .. });
    let problem = Problem::from(error);
    match is_other {
        true => problem.with_status(StatusCode::UNPROCESSABLE_ENTITY).with_code(ErrorCode::KeyUsed),
        false => problem,
    }
}

/// A run, with what it ended with.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}",
    tag = "runs",
    operation_id = "readRun",
    params(ProjectQuery, ("run" = inline(openapi::RunId), Path, description = "The run.")),
    responses((status = 200, description = "The run.", body = Run)),
)]
pub(super) async fn read(
    State(app): State<App>,
    QueryParams(ProjectQuery { project }): QueryParams<ProjectQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
) -> Result<Response, Problem> {
    answered(&app, context, (&project, id)).await
}

/// Returns a run as JSON. A run with a large response is read and serialized under a permit.
async fn answered(
    app: &App,
    context: TraceParent,
    (project, id): (&Project, RunId),
) -> Result<Response, Problem> {
    let run = stored(app, context, (project, id)).await?;
    if !run.answer_apart {
        return Ok(Json(Run::from(run)).into_response());
    }
    let place = ReaderPermit::take(app, project).await;
    let run = with_answer(app, context, project, run).await?;
    let (place, json) = place.work(move || serde_json::to_vec(&Run::from(run))).await;
    let json = json.map_err(|error| Problem::new(Fault::Internal, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], place.held(json)).into_response())
}

/// Reads a run with its response, however large. The caller must hold a permit.
pub(super) async fn whole(
    app: &App,
    context: TraceParent,
    (project, id): (&Project, RunId),
) -> Result<StoredRun, Problem> {
    let run = stored(app, context, (project, id)).await?;
    with_answer(app, context, project, run).await
}

/// Adds the response to a run that was read, if it is stored separately.
async fn with_answer(
    app: &App,
    context: TraceParent,
    project: &Project,
    run: StoredRun,
) -> Result<StoredRun, Problem> {
    if !run.answer_apart {
        return Ok(run);
    }
    let outcome = app.db.outcome(project, run.id);
    let outcome = app.watch.db(context, Call("SELECT", "runs"), outcome).await?;
    Ok(StoredRun { outcome, ..run })
}

/// Reads a run from the database, without a large response.
pub(super) async fn stored(
    app: &App,
    context: TraceParent,
    (project, id): (&Project, RunId),
) -> Result<StoredRun, Problem> {
    let stored = app.watch.db(context, Call("SELECT", "runs"), app.db.run(project, id)).await?;
    stored.ok_or_else(|| Problem::new(Fault::Missing, format!("there is no run `{id}`")))
}

//! Runs of suites: start, stop, and read with the results of their steps.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use bus::Bus;

use db::{NewSuiteRun, State as RunState, StepOutcome, StoredSuiteRun, SuiteStep};
use lang::{Document as Written, Reference, TestSuite};
use model::{DocumentKind, Fault, Project, RunId, TestId, Timestamp, Verdict};
use serde::Serialize;
use source::Text;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    openapi,
    runs::{IdempotencyHeader, ProjectQuery, Start, idempotency_key, pressed, refused},
};
use crate::{
    http::{
        app::App,
        extract::{Document, PathId, QueryParams},
        problem::Problem,
    },
    subjects,
    telemetry::{call::Call, traceparent::TraceParent},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(start)).routes(routes!(read)).routes(routes!(stop))
}

/// A run of a suite.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SuiteRun {
    #[schema(schema_with = openapi::run_id)]
    id: RunId,
    #[schema(schema_with = openapi::word)]
    suite: TestId,
    name: String,
    /// `queued`, `running` or `ended`.
    state: &'static str,
    #[schema(schema_with = openapi::moment)]
    accepted_at: Timestamp,
    /// When a stop was requested.
    #[schema(value_type = Option<String>)]
    stop_at: Option<Timestamp>,
    /// `passed`, `failed` or `inconclusive`, once it ended.
    #[schema(schema_with = openapi::verdict_or_null)]
    verdict: Option<Verdict>,
    /// In the order written.
    steps: Vec<SuiteRunStep>,
}

/// A step of a suite's run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SuiteRunStep {
    name: String,
    #[schema(schema_with = openapi::word)]
    test: TestId,
    /// Its run; null where it has not started.
    #[schema(value_type = Option<String>)]
    run: Option<RunId>,
    /// `passed`, `failed` or `inconclusive`; null while it has none.
    #[schema(schema_with = openapi::verdict_or_null)]
    verdict: Option<Verdict>,
    /// Why it did not start.
    reason: Option<String>,
}

/// Accepts a run of the suite as it is now; its steps start as far as what they need has passed.
#[utoipa::path(
    post,
    path = "/api/v1/test-suites/{suite}/runs",
    tag = "test suites",
    operation_id = "startSuiteRun",
    params(
        ProjectQuery,
        ("suite" = inline(openapi::Word), Path, description = "The suite."),
        IdempotencyHeader,
    ),
    request_body(content = Option<Start>, description = "What each step is started with."),
    responses(
        (
            status = 202,
            description = "The suite's run is accepted.",
            body = SuiteRun,
            headers(("location" = String, description = "Where it is read.")),
        ),
        (status = 200, description = "The same request has started this one before.", body = SuiteRun),
    ),
)]
async fn start(
    State(app): State<App>,
    QueryParams(ProjectQuery { project }): QueryParams<ProjectQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(suite): PathId<TestId>,
    headers: HeaderMap,
    Document(body): Document,
) -> Result<Response, Problem> {
    pressed(&app)?;
    app.backlog.has_room(&project)?;
    let start = Start::read(&body)?;
    let key = idempotency_key(&headers, format!("start suite {suite} {body}"))?;
    let found = app.db.document(&project, DocumentKind::TestSuite, &suite, None);
    let found = app.watch.db(context, Call("SELECT", "documents"), found).await?;
    let found = found.ok_or_else(|| {
        let detail = format!("project `{project}` has no test suite `{suite}`: apply it first");
        Problem::new(Fault::Missing, detail)
    })?;
    let kept = suite_of(&Text::new(&found.file, found.document), &suite)?;
    let accepted_at = app.world.now();
    let new = NewSuiteRun {
        id: RunId::new(accepted_at, app.world.random()),
        project: project.clone(),
        suite,
        name: kept.name.clone(),
        steps: steps(&kept)?,
        vars: start.vars(),
        accepted_at,
        traceparent: Some(context.stored()),
        key,
    };
    let created = app.db.create_suite_run(&new);
    let created = app.watch.db(context, Call("INSERT", "suite_runs"), created).await;
    let before = created.map_err(refused)?;
    if let Some(before) = before {
        return Ok(Json(answered(&app, context, &project, before).await?).into_response());
    }
    app.bus.hint(subjects::suites_waiting());
    let location = format!("/api/v1/suite-runs/{}", new.id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(SuiteRun::from(new)))
        .into_response())
}

/// A run of a suite, with what became of its steps.
#[utoipa::path(
    get,
    path = "/api/v1/suite-runs/{run}",
    tag = "test suites",
    operation_id = "readSuiteRun",
    params(ProjectQuery, ("run" = inline(openapi::RunId), Path, description = "The suite's run.")),
    responses((status = 200, description = "The suite's run.", body = SuiteRun)),
)]
async fn read(
    State(app): State<App>,
    QueryParams(ProjectQuery { project }): QueryParams<ProjectQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
) -> Result<Response, Problem> {
    Ok(Json(answered(&app, context, &project, id).await?).into_response())
}

/// Stops a suite run and the runs of its steps. A run that has its verdict does not change.
#[utoipa::path(
    post,
    path = "/api/v1/suite-runs/{run}/stop",
    tag = "test suites",
    operation_id = "stopSuiteRun",
    params(ProjectQuery, ("run" = inline(openapi::RunId), Path, description = "The suite's run.")),
    responses((status = 200, description = "The suite's run, which stops unless it had ended.", body = SuiteRun)),
)]
async fn stop(
    State(app): State<App>,
    QueryParams(ProjectQuery { project }): QueryParams<ProjectQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
) -> Result<Response, Problem> {
    let stopped = app.db.stop_suite(&project, id, app.world.now());
    app.watch.db(context, Call("UPDATE", "suite_runs"), stopped).await?;
    let run = answered(&app, context, &project, id).await?;
    app.bus.hint(subjects::run_news(id));
    for step in run.steps.iter().filter(|step| step.verdict.is_none()) {
        if let Some(run) = step.run {
            app.bus.hint(subjects::run_stopped(run));
        }
    }
    Ok(Json(run).into_response())
}

async fn answered(
    app: &App,
    context: TraceParent,
    project: &Project,
    id: RunId,
) -> Result<SuiteRun, Problem> {
    Ok(SuiteRun::from(stored(app, context, (project, id)).await?))
}

/// Reads a suite's run from the database.
pub(super) async fn stored(
    app: &App,
    context: TraceParent,
    (project, id): (&Project, RunId),
) -> Result<StoredSuiteRun, Problem> {
    let stored = app.db.suite_run(project, id);
    let stored = app.watch.db(context, Call("SELECT", "suite_runs"), stored).await?;
    stored.ok_or_else(|| Problem::new(Fault::Missing, format!("there is no run of a suite `{id}`")))
}

fn suite_of(text: &Text, id: &TestId) -> Result<TestSuite, Problem> {
    let (documents, mistakes) = lang::read(text);
    let suite = documents.into_iter().find_map(|document| match document {
        Written::TestSuite(suite) if suite.id == *id => Some(suite),
        _ => None,
    });
    suite.ok_or_else(|| Problem::document(&mistakes))
}

/// Returns the steps, each with the id of its test.
fn steps(suite: &TestSuite) -> Result<Vec<SuiteStep>, Problem> {
    let step = |step: &lang::Step| {
        let Reference::Id(id) = &step.test else {
            let detail = format!(
                "the step `{}` names its test by a file, which a server does not have: name it by its id",
                step.name
            );
            return Err(Problem::new(Fault::Invalid, detail));
        };
        let test = id.parse().map_err(|error| Problem::new(Fault::Invalid, format!("{error}")))?;
        Ok(SuiteStep { name: step.name.clone(), test, needs: step.needs.clone() })
    };
    suite.steps.iter().map(step).collect()
}

/// A suite's run at its start.
impl From<NewSuiteRun> for SuiteRun {
    fn from(new: NewSuiteRun) -> Self {
        let step = |SuiteStep { name, test, .. }| SuiteRunStep {
            name,
            test,
            run: None,
            verdict: None,
            reason: None,
        };
        Self {
            id: new.id,
            suite: new.suite,
            name: new.name,
            state: RunState::Queued.as_str(),
            accepted_at: new.accepted_at,
            stop_at: None,
            verdict: None,
            steps: new.steps.into_iter().map(step).collect(),
        }
    }
}

impl From<StoredSuiteRun> for SuiteRun {
    fn from(stored: StoredSuiteRun) -> Self {
        Self {
            id: stored.id,
            suite: stored.suite,
            name: stored.name,
            state: stored.state.as_str(),
            accepted_at: stored.accepted_at,
            stop_at: stored.stop_at,
            verdict: stored.verdict,
            steps: stored.steps.into_iter().map(SuiteRunStep::from).collect(),
        }
    }
}

impl From<StepOutcome> for SuiteRunStep {
    fn from(StepOutcome { name, test, run, verdict, reason }: StepOutcome) -> Self {
        Self { name, test, run, verdict, reason }
    }
}

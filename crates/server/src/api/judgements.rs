//! Re-judges the stored evidence of a run: by the current test, by a version of it, or by a document that is not stored.
//!
//! No trigger is fired, and the run keeps its verdict. Deliberately absent: storing these judgements. They would only
//! repeat what the document and the run contain.

use axum::{
    Extension, Json,
    extract::State,
    response::{IntoResponse, Response},
};
use db::StoredRun;
use lang::{Gates, Plan, Vars};
use model::{
    DocumentKind, Fault, Faulty, Outcome, Project, RunId, SpanId, Step, StepTime, TestId,
    Timestamp, Trace,
};
use runner::{RejudgeInput, rejudge};
use serde::{Deserialize, Serialize};
use source::Text;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{documents::Body, openapi, reports::under_way, runs::whole};
use crate::{
    http::{
        app::App,
        extract::{self, Document, PathId, QueryParams},
        permit::ReaderPermit,
        problem::Problem,
    },
    telemetry::{call::Call, spans::send_judgement, traceparent::TraceParent},
    worker::{
        gates::gates,
        variables::{VariablesError, as_recorded, variables},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(judge))
}

/// What a run has left, judged once more.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Rejudgement {
    #[schema(schema_with = openapi::run_id)]
    run: RunId,
    /// The test that it was judged by.
    #[schema(schema_with = openapi::word)]
    test: TestId,
    /// The version of the test; null where the request brought a document.
    version: Option<i32>,
    /// The new outcome. The run keeps its own.
    #[schema(schema_with = openapi::outcome)]
    outcome: Outcome,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct By {
    /// The project of the run.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// A version of the run's test; where it is left out, the current one.
    #[serde(default)]
    #[param(minimum = 1, maximum = 2147483647, required = false, value_type = i32)]
    version: Option<i32>,
    /// The file name in the locations of diagnostics and evidence, for the document of the request.
    #[serde(default)]
    #[param(schema_with = openapi::file, required = false)]
    file: Option<String>,
}

/// Judges once more what a run that ended has left, and fires nothing. The run's own verdict stays; this one is not kept.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/judgements",
    tag = "runs",
    operation_id = "judgeRun",
    params(By, ("run" = inline(openapi::RunId), Path, description = "The run.")),
    request_body(
        content((Option<Body> = "application/yaml"), (Option<Body> = "application/json")),
        description = "A test to judge by; where the body is empty, the test that is kept.",
    ),
    responses((status = 200, description = "What came of it.", body = Rejudgement)),
)]
async fn judge(
    State(app): State<App>,
    QueryParams(by): QueryParams<By>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
    Document(body): Document,
) -> Result<Response, Problem> {
    let project = &by.project;
    // Acquire the permit before large data is read.
    let place = ReaderPermit::take(&app, project).await;
    let run = whole(&app, context, (project, id)).await?;
    let recorded = run.outcome.clone().ok_or_else(|| under_way(id))?;
    let (text, version) = test(&app, context, (&by, &run.test), body).await?;
    let vars = variables((&app.watch, context), &app.db, project, (&run.vars, &run.secrets)).await;
    let vars = vars.map_err(|error| not_filled(&error)).map(as_recorded)?;
    let gates = gates_of(&app, context, project).await?;
    let (place, trace) = place.trace(&app, context, (project, id)).await?;
    let left = StoredEvidence { run, recorded, trace, vars };
    let world = app.world;
    let work = move || {
        let mut plan = plan(&text)?;
        plan.require(gates);
        let began = world.now();
        let mut outcome = left.judged(&plan)?;
        let ended = world.now();
        outcome.steps = vec![StepTime { step: Step::Judge, began, ended }];
        Ok::<_, Problem>((plan.id, outcome, (began, ended)))
    };
    let (_place, judged) = place.work(work).await;
    let (test, outcome, times): (_, _, (Timestamp, Timestamp)) = judged?;
    let span = SpanId::from_random(app.world.random());
    send_judgement(&app.watch.telemetry, (context, span), &outcome, times);
    Ok(Json(Rejudgement { run: id, test, version, outcome }).into_response())
}

/// Returns the test to judge by: the document of the request, or a stored version of the test.
async fn test(
    app: &App,
    context: TraceParent,
    (by, test): (&By, &TestId),
    body: String,
) -> Result<(Text, Option<i32>), Problem> {
    if !matches!(body.trim(), "" | "null") {
        if by.version.is_some() {
            let detail = "the request has a document and names a version: leave out one of them";
            return Err(Problem::new(Fault::Invalid, detail));
        }
        return Ok((Text::new(extract::file(by.file.clone())?, body), None));
    }
    if by.version.is_some_and(|version| version < 1) {
        return Err(Problem::new(Fault::Invalid, "`version` must be at least 1"));
    }
    let kept = app.db.document(&by.project, DocumentKind::Test, test, by.version);
    let kept = app.watch.db(context, Call("SELECT", "documents"), kept).await?;
    let kept = kept.ok_or_else(|| {
        let version = by.version.map_or(String::new(), |version| format!(" in version {version}"));
        let detail = format!(
            "there is no test `{test}`{version} to judge by: send a document, or name a version that is there"
        );
        Problem::new(Fault::Missing, detail)
    })?;
    Ok((Text::new(kept.file, kept.document), Some(kept.version)))
}

/// Returns the current gates of the project.
async fn gates_of(app: &App, context: TraceParent, project: &Project) -> Result<Gates, Problem> {
    let current = lang::CURRENT.parse::<TestId>();
    let current = current.map_err(|error| Problem::new(Fault::Internal, error.to_string()))?;
    let mut stored = [None, None];
    for (kind, document) in
        [DocumentKind::Analyzer, DocumentKind::QualityGate].into_iter().zip(&mut stored)
    {
        let kept = app.db.document(project, kind, &current, None);
        let kept = app.watch.db(context, Call("SELECT", "documents"), kept).await?;
        *document = kept.map(|kept| kept.document);
    }
    let [analyzer, runner] = &stored;
    gates(analyzer.as_deref(), runner.as_deref())
        .map_err(|reason| Problem::new(Fault::Conflict, reason))
}

fn plan(text: &Text) -> Result<Plan, Problem> {
    let (planned, diagnostics) = lang::plans(text);
    let mut plans = planned.into_iter().map(|planned| planned.plan);
    match (plans.next(), plans.next()) {
        (Some(plan), None) => Ok(plan),
        (None, _) => Err(Problem::document(&diagnostics)),
        (Some(_), Some(_)) => {
            let detail =
                "the document holds several tests, and a run is judged by one: send that alone";
            Err(Problem::new(Fault::Invalid, detail))
        }
    }
}

fn not_filled(error: &VariablesError) -> Problem {
    Problem::new(error.fault(), format!("the run cannot be judged again: {error}"))
}

/// The stored evidence of a run.
struct StoredEvidence {
    run: StoredRun,
    recorded: Outcome,
    trace: Option<Trace>,
    vars: Vars,
}

impl StoredEvidence {
    fn judged(&self, plan: &Plan) -> Result<Outcome, Problem> {
        if self.trace.is_none() && !plan.skip_trace_collection() {
            let detail = format!(
                "the run `{}` has no trace to be judged by: it gathered none, or it is not kept any longer",
                self.run.id
            );
            return Err(Problem::new(Fault::Conflict, detail));
        }
        let again = RejudgeInput {
            run_id: self.run.id,
            plan,
            vars: &self.vars,
            recorded: &self.recorded,
            trace: self.trace.as_ref(),
            trigger: self.run.trigger,
        };
        rejudge(&again).map_err(|error| Problem::new(Fault::Invalid, error.to_string()))
    }
}

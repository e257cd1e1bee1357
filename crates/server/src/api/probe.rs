//! Tries out a trace store from where runs query it.

use axum::Json;
use db::{RunVars, SecretValues};
use drivers::store::ProbeStep;
use model::{DocumentKind, Fault, Faulty, Project, TestId, TraceId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::openapi;
use crate::{
    http::{
        app::App,
        extract::{PathId, QueryParams, RequestContext},
        problem::Problem,
    },
    worker::{stores::StoreDocuments, variables::variables},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(probe))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ProbeQuery {
    /// The project of the store.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// A variable set that has what the document names by `${var:…}`.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    variable_set: Option<TestId>,
}

/// The way to a trace store.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StoreProbe)]
pub(super) struct StoreProbe {
    /// Whether every step succeeded.
    ok: bool,
    /// The steps in order; the first that failed is the last.
    steps: Vec<Step>,
}

/// A step of the way to a trace store.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StoreProbeStep)]
pub(super) struct Step {
    /// Such as `connection`.
    name: &'static str,
    /// Whether it succeeded.
    ok: bool,
    /// What was found; or why it failed, and what to do.
    message: String,
}

impl From<ProbeStep> for Step {
    fn from(ProbeStep { name, result }: ProbeStep) -> Self {
        let ok = result.is_ok();
        let (Ok(message) | Err(message)) = result;
        Self { name, ok, message }
    }
}

/// Tries out the store from this server: its address, a connection, a query, its lag.
#[utoipa::path(
    post,
    path = "/api/v1/trace-stores/{id}/probe",
    tag = "trace stores",
    operation_id = "probeTraceStore",
    params(ProbeQuery, ("id" = inline(openapi::Word), Path, description = "Its id.")),
    responses((status = 200, description = "What was found.", body = StoreProbe)),
)]
async fn probe(
    heard: RequestContext,
    QueryParams(ProbeQuery { project, variable_set }): QueryParams<ProbeQuery>,
    PathId(id): PathId<TestId>,
) -> Result<Json<StoreProbe>, Problem> {
    let RequestContext { app, context, .. } = &heard;
    let (watch, project) = ((&app.watch, *context), &project);
    let sets = variable_set.iter().map(ToString::to_string).collect();
    let given = RunVars { sets, ..RunVars::default() };
    let vars = variables(watch, &app.db, project, (&given, &SecretValues::new())).await;
    let vars = vars.map_err(|error| refused(&error))?;
    let documents = StoreDocuments { db: &app.db, project, watch };
    let store = documents.named(id.as_str()).await.map_err(|error| refused(&error))?;
    let kind = DocumentKind::TraceStore;
    let missing = || Problem::new(Fault::Missing, format!("there is no {kind} `{id}`"));
    let store = store.ok_or_else(missing)?;
    let unknown = TraceId::from_random(app.world.random());
    let steps = app.stores.probe(&store, &vars, (unknown, app.world.now())).await;
    let steps = steps.map_err(|error| refused(&error))?;
    let ok = steps.iter().all(|step| step.result.is_ok());
    Ok(Json(StoreProbe { ok, steps: steps.into_iter().map(Step::from).collect() }))
}

fn refused(error: &impl Faulty) -> Problem {
    Problem::new(error.fault(), error.to_string())
}

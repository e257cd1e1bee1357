//! Applies a file that holds only tests. All other operations on documents are in `documents`.

use axum::{Extension, Json, extract::State};
use db::{ApplyOptions, NewDocument, Precondition};
use model::{DocumentKind, Project, TestId};
use serde::{Deserialize, Serialize};
use source::{Colour, Diagnostic, Text};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{documents::Body, openapi};
use crate::{
    http::{
        app::App,
        extract::{self, Document, QueryParams},
        problem::Problem,
    },
    telemetry::{call::Call, events, traceparent::TraceParent},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(apply))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Apply {
    /// The project of the tests.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// The file name in the locations of diagnostics and evidence.
    #[serde(default)]
    #[param(schema_with = openapi::file, required = false)]
    file: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AppliedTests)]
pub(super) struct AppliedTests {
    tests: Vec<AppliedTest>,
    /// What is worth a word about the documents, drawn; empty for nothing.
    notices: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AppliedTest)]
struct AppliedTest {
    #[schema(schema_with = openapi::word)]
    id: TestId,
    name: String,
    /// The version that new runs use, from 1.
    version: i32,
    /// Whether this request made it.
    changed: bool,
}

/// Keeps every test of a YAML file, or none of them.
#[utoipa::path(
    put,
    path = "/api/v1/tests",
    tag = "tests",
    operation_id = "applyTests",
    params(Apply),
    request_body(content((Body = "application/yaml"), (Body = "application/json")), description = "Documents of type `Test`."),
    responses((status = 200, description = "All of them are kept.", body = AppliedTests)),
)]
pub(super) async fn apply(
    State(app): State<App>,
    QueryParams(Apply { project, file }): QueryParams<Apply>,
    Extension(context): Extension<TraceParent>,
    Document(body): Document,
) -> Result<Json<AppliedTests>, Problem> {
    let text = Text::new(extract::file(file)?, body);
    // Compilation may take long.
    let compile = move || (lang::plans(&text), text);
    let ((planned, diagnostics), text) = app.pool.share(project.clone()).run(compile).await;
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Problem::document(&diagnostics));
    }
    let new: Vec<_> = planned
        .into_iter()
        .map(|planned| NewDocument {
            host: planned.plan.host(),
            project: project.clone(),
            kind: DocumentKind::Test,
            id: planned.plan.id,
            name: planned.plan.name,
            file: text.name().to_owned(),
            document: planned.document,
        })
        .collect();
    let applying = ApplyOptions {
        at: Some(app.world.now()),
        expected: Precondition::Anything,
        is_dry_run: false,
    };
    let kept = app.db.apply(&new, applying);
    let kept = app.watch.db(context, Call("INSERT", "test_versions"), kept).await?;
    events::documents_applied(&new, &kept);
    let tests = new.into_iter().zip(kept).map(|(new, kept)| AppliedTest {
        id: new.id,
        name: new.name,
        version: kept.version,
        changed: kept.changed,
    });
    let notices = source::draw(&diagnostics, Colour::Never);
    Ok(Json(AppliedTests { tests: tests.collect(), notices }))
}

//! Tests: applied as documents, kept with their versions.

use axum::{Extension, Json, extract::State};
use db::NewTest;
use model::{Project, TestId};
use serde::{Deserialize, Serialize};
use source::{Colour, Diagnostic, Text};

use super::{
    App,
    given::{Asked, Document},
    problem::Problem,
};
use crate::{own_spans::Call, traceparent::TraceParent};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Apply {
    /// Whose tests they are.
    #[serde(default)]
    project: Project,
    /// The name that messages and evidence give as the place.
    #[serde(default)]
    file: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Applied {
    tests: Vec<Kept>,
    /// What is worth a word about the documents, drawn; empty for nothing.
    notices: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    id: TestId,
    name: String,
    version: i32,
    changed: bool,
}

/// Keeps every test of a YAML file, or none of them.
pub(super) async fn apply(
    State(app): State<App>,
    Asked(Apply { project, file }): Asked<Apply>,
    Extension(context): Extension<TraceParent>,
    Document(body): Document,
) -> Result<Json<Applied>, Problem> {
    let text = Text::new(file.unwrap_or_else(|| "document.yaml".to_owned()), body);
    let (planned, diagnostics) = lang::plans(&text);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Problem::document(&diagnostics));
    }
    let new: Vec<_> = planned
        .into_iter()
        .map(|planned| NewTest {
            project: project.clone(),
            id: planned.plan.id,
            name: planned.plan.name,
            file: text.name().to_owned(),
            document: planned.document,
        })
        .collect();
    let kept = app.db.apply_tests(&new);
    let kept = app.watch.db(context, Call("INSERT", "test_versions"), kept).await?;
    let tests = new.into_iter().zip(kept).map(|(new, kept)| Kept {
        id: new.id,
        name: new.name,
        version: kept.version,
        changed: kept.changed,
    });
    let notices = source::draw(&diagnostics, Colour::Never);
    Ok(Json(Applied { tests: tests.collect(), notices }))
}

//! Tests: applied as documents, kept with their versions.

use axum::{
    Json,
    extract::{Query, State},
};
use db::NewTest;
use lang::Document;
use model::TestId;
use serde::{Deserialize, Serialize};
use source::{Diagnostic, Text};

use super::{App, Owner, problem::Problem};

#[derive(Debug, Deserialize)]
pub(super) struct File {
    /// The name that messages and evidence give as the place.
    #[serde(default)]
    file: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Applied {
    id: TestId,
    name: String,
    version: i32,
    changed: bool,
}

/// Keeps every test of a YAML file. One mistake anywhere refuses the whole file.
pub(super) async fn apply(
    State(app): State<App>,
    Query(owner): Query<Owner>,
    Query(File { file }): Query<File>,
    body: String,
) -> Result<Json<Vec<Applied>>, Problem> {
    let text = Text::new(file.unwrap_or_else(|| "document.yaml".to_owned()), body);
    let (documents, mut diagnostics) = lang::read(&text);
    let mut plans = Vec::new();
    for document in &documents {
        let Document::Test(test) = document;
        let (plan, found) = lang::compile(test);
        diagnostics.extend(found);
        plans.extend(plan.map(|plan| (plan, test)));
    }
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Problem::document(&diagnostics));
    }
    let mut applied = Vec::new();
    for (plan, test) in plans {
        let new = NewTest {
            project: owner.project.clone(),
            id: plan.id.clone(),
            name: plan.name.clone(),
            file: text.name().to_owned(),
            document: test.document(),
        };
        let kept = app.db.apply_test(&new).await?;
        applied.push(Applied {
            id: new.id,
            name: new.name,
            version: kept.version,
            changed: kept.changed,
        });
    }
    Ok(Json(applied))
}

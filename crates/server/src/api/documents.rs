//! Documents of every kind: list, read as YAML or JSON, put with a precondition, delete; and apply a complete file at once.
//!
//! All kinds share one set of functions; `collections` defines the paths of each kind. A document is its own representation:
//! a client can put back what it read. Its version is the ETag.

mod collections;

use std::sync::Arc;

use axum::{
    Json,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use db::{ApplyOptions, DocumentSummary, NewDocument, Precondition, StoredVersion};
use lang::StorableDocument;
use model::{DocumentKind, ErrorCode, Fault, Project, Role, TestId, Timestamp};
use serde::{Deserialize, Serialize};
use source::{Colour, Diagnostic, Text};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    form::{self, AnswerFormat},
    openapi,
    page::{self, Page},
};
use crate::{
    database::provision,
    http::{
        app::App,
        extract::{self, Document, QueryParams, RequestContext},
        problem::Problem,
    },
    plant::{Plant, is_planted},
    telemetry::{call::Call, events},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    collections::routes().routes(routes!(apply))
}

/// A document: YAML, or the same as JSON. `qualitytrace schema tests` prints the schema of each type.
#[derive(ToSchema)]
#[schema(as = Document)]
#[expect(dead_code, reason = "it only describes what goes in and out as text")]
pub(super) struct Body {
    /// Such as `Test`, `TestSuite` or `VariableSet`.
    #[schema(value_type = String)]
    r#type: String,
    /// The content, by the schema of its type.
    #[schema(value_type = Object)]
    spec: (),
}

/// A document in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ListedDocument)]
pub(super) struct ListedDocument {
    #[schema(schema_with = openapi::word)]
    id: TestId,
    name: String,
    /// The current version, from 1.
    version: i32,
    /// The file it was last applied from, as it was named.
    file: String,
    /// Whether the server's own files brought it: it is applied anew at every start.
    is_provisioned: bool,
    /// When the version was created; null if that is not known.
    #[schema(schema_with = openapi::moment_or_null)]
    created_at: Option<Timestamp>,
}

/// A version of a document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DocumentVersion)]
pub(super) struct Version {
    /// From 1.
    version: i32,
    name: String,
    /// When it was created; null if that is not known.
    #[schema(schema_with = openapi::moment_or_null)]
    created_at: Option<Timestamp>,
}

/// What became of a file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AppliedDocuments)]
pub(super) struct ApplyResult {
    /// In the order of the file.
    documents: Vec<Change>,
    /// What is worth a word about the documents, drawn; empty for nothing.
    notices: String,
}

/// What became of a document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AppliedDocument)]
pub(super) struct Change {
    /// Such as `test` or `variableSet`.
    #[schema(value_type = String)]
    kind: DocumentKind,
    #[schema(schema_with = openapi::word)]
    id: TestId,
    name: String,
    /// The version that holds from now on, from 1.
    version: i32,
    /// Whether this request made it.
    changed: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Listing {
    /// The project of the listed documents.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// How many at the most.
    #[serde(default)]
    #[param(minimum = 1, maximum = 500, required = false, value_type = u32)]
    limit: Option<u32>,
    /// The `next` of the page before.
    #[serde(default)]
    #[param(schema_with = openapi::opaque, required = false)]
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReadQuery {
    /// The project of the document.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// An older version than the current one.
    #[serde(default)]
    #[param(minimum = 1, maximum = 2147483647, required = false, value_type = i32)]
    version: Option<i32>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PutQuery {
    /// The project of the document.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// The file name in the locations of diagnostics and evidence.
    #[serde(default)]
    #[param(schema_with = openapi::file, required = false)]
    file: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ApplyQuery {
    /// The project of the documents.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// The file name in the locations of diagnostics and evidence.
    #[serde(default)]
    #[param(schema_with = openapi::file, required = false)]
    file: Option<String>,
    /// Whether to keep nothing, and return what a request without it would do.
    #[serde(default)]
    #[param(required = false)]
    dry_run: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DeleteQuery {
    /// The project of the document.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
}

/// The precondition of a change. [`expected`] parses it from the headers.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it only describes a header")]
pub(super) struct Condition {
    /// The required version, in quotes; or `*` for any.
    #[param(rename = "if-match", schema_with = openapi::opaque, required = false)]
    if_match: String,
}

/// Keeps every document of a YAML file, of whatever kinds, or none of them.
#[utoipa::path(
    put,
    path = "/api/v1/documents",
    tag = "documents",
    operation_id = "applyDocuments",
    params(ApplyQuery),
    request_body(content((Body = "application/yaml"), (Body = "application/json")), description = "One or more documents."),
    responses((status = 200, description = "All of them are kept, or would be.", body = ApplyResult)),
)]
async fn apply(
    heard: RequestContext,
    QueryParams(putting): QueryParams<ApplyQuery>,
    Document(body): Document,
) -> Result<Json<ApplyResult>, Problem> {
    if is_planted(Plant::RejectedIsAsked) {
        let RequestContext { app, context, .. } = &heard;
        app.watch.db(*context, Call("SELECT", "documents"), app.db.queue()).await?;
    }
    let (kept, notices, file) = read_file(&heard, &putting.project, body, putting.file).await?;
    let new = prepare(&heard, kept, (&putting.project, &file)).await?;
    let expected = Precondition::Anything;
    let documents = store(&heard, &putting.project, (new, expected, putting.dry_run)).await?;
    Ok(Json(ApplyResult { documents, notices }))
}

async fn list(
    kind: DocumentKind,
    heard: &RequestContext,
    asked: &Listing,
) -> Result<Json<Page<ListedDocument>>, Problem> {
    let limit = page::limit(asked.limit)?;
    let after = page::key(asked.cursor.as_deref())?;
    let RequestContext { app, context, .. } = heard;
    let listed = app.db.documents(&asked.project, kind, after.as_ref(), limit + 1);
    let listed = app.watch.db(*context, Call("SELECT", "documents"), listed).await?;
    let items = listed.into_iter().map(ListedDocument::from).collect();
    Ok(Json(Page::new(items, limit, |item: &ListedDocument| item.id.to_string())))
}

async fn read(
    kind: DocumentKind,
    heard: &RequestContext,
    asked: &ReadQuery,
    id: &TestId,
) -> Result<Response, Problem> {
    let form = AnswerFormat::accepted(&heard.headers)?;
    let RequestContext { app, context, .. } = heard;
    let stored = app.db.document(&asked.project, kind, id, asked.version);
    let stored = app.watch.db(*context, Call("SELECT", "documents"), stored).await?;
    let stored = stored.ok_or_else(|| missing(kind, id, asked.version))?;
    let media = match form {
        AnswerFormat::Json => "application/json",
        AnswerFormat::Yaml => "application/yaml",
    };
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(media)), etag(stored.version)];
    Ok((headers, form::given(kind, &stored.document, form)).into_response())
}

async fn versions(
    kind: DocumentKind,
    heard: &RequestContext,
    asked: &Listing,
    id: &TestId,
) -> Result<Json<Page<Version>>, Problem> {
    let limit = page::limit(asked.limit)?;
    let before = page::key(asked.cursor.as_deref())?;
    let RequestContext { app, context, .. } = heard;
    let stored = app.db.versions((&asked.project, kind, id), before, limit + 1);
    let stored = app.watch.db(*context, Call("SELECT", "document_versions"), stored).await?;
    if stored.is_empty() && before.is_none() {
        return Err(missing(kind, id, None));
    }
    let items = stored.into_iter().map(Version::from).collect();
    Ok(Json(Page::new(items, limit, |item: &Version| item.version.to_string())))
}

async fn put(
    kind: DocumentKind,
    heard: &RequestContext,
    (asked, id): (PutQuery, TestId),
    body: String,
) -> Result<Response, Problem> {
    let expected = expected(&heard.headers)?;
    let (kept, notices, file) = read_file(heard, &asked.project, body, asked.file).await?;
    let [one] = &kept[..] else {
        let detail =
            format!("there are {} documents: expected the {kind} `{id}` alone", kept.len());
        return Err(Problem::new(Fault::Invalid, detail)
            .with_status(StatusCode::UNPROCESSABLE_ENTITY)
            .with_code(ErrorCode::InvalidDocument));
    };
    if (one.kind, &one.id) != (kind, &id) {
        let detail =
            format!("the document is the {} `{}`: expected the {kind} `{id}`", one.kind, one.id);
        return Err(Problem::new(Fault::Invalid, detail)
            .with_status(StatusCode::UNPROCESSABLE_ENTITY)
            .with_code(ErrorCode::InvalidDocument));
    }
    let documents = keep(heard, kept, (&asked.project, &file, expected)).await?;
    let version = documents.first().map_or(0, |change| change.version);
    let is_new = documents.first().is_some_and(|change| change.changed && change.version == 1);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, [etag(version)], Json(ApplyResult { documents, notices })).into_response())
}

async fn delete(
    kind: DocumentKind,
    heard: &RequestContext,
    asked: &DeleteQuery,
    id: &TestId,
) -> Result<StatusCode, Problem> {
    let expected = expected(&heard.headers)?;
    let RequestContext { app, context, .. } = heard;
    let deleted = app.db.delete(&asked.project, kind, id, expected);
    match app.watch.db(*context, Call("UPDATE", "documents"), deleted).await {
        Err(db::DbError::Changed { found: None, .. }) => Err(missing(kind, id, None)),
        Err(error) => Err(error.into()),
        Ok(()) => {
            events::document_deleted(&asked.project, kind, id);
            Ok(StatusCode::NO_CONTENT)
        }
    }
}

/// Compiles the documents of a file, which may take long. Returns them with the rendered notices and the file's name.
pub(super) async fn read_file(
    heard: &RequestContext,
    project: &Project,
    body: String,
    file: Option<String>,
) -> Result<(Vec<StorableDocument>, String, String), Problem> {
    let (text, otlp) = (Text::new(extract::file(file)?, body), Arc::clone(&heard.app.otlp));
    let share = heard.app.pool.share(project.clone());
    share.run(move || compile(&text, &otlp)).await
}

fn compile(text: &Text, otlp: &str) -> Result<(Vec<StorableDocument>, String, String), Problem> {
    let (kept, diagnostics) = lang::storable_documents(text, otlp);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Problem::document(&diagnostics));
    }
    // A line of a document that may hold secrets is never rendered, not even for its sender: many systems log responses.
    let notices = match kept.iter().any(|one| one.kind.holds_secrets()) {
        true => diagnostics.iter().map(|it| format!("{}\n", provision::in_words(it))).collect(),
        false => source::draw(&diagnostics, Colour::Never),
    };
    Ok((kept, notices, text.name().to_owned()))
}

pub(super) async fn keep(
    heard: &RequestContext,
    kept: Vec<StorableDocument>,
    (project, file, expected): (&Project, &str, Precondition),
) -> Result<Vec<Change>, Problem> {
    let new = prepare(heard, kept, (project, file)).await?;
    store(heard, project, (new, expected, false)).await
}

/// Checks that the caller may store these documents, and completes their secrets from those that are stored.
async fn prepare(
    heard: &RequestContext,
    kept: Vec<StorableDocument>,
    (project, file): (&Project, &str),
) -> Result<Vec<NewDocument>, Problem> {
    let RequestContext { app, context, caller, .. } = heard;
    // A server sends queries to its address, with the secrets of the project.
    if caller.role < Role::Admin
        && let Some(store) = kept.iter().find(|one| one.kind == DocumentKind::TraceStore)
    {
        let detail = format!(
            "`{}` has the role `{}`: the {} `{}` needs `{}`",
            caller.name,
            caller.role,
            store.kind,
            store.id,
            Role::Admin
        );
        return Err(Problem::new(Fault::Denied, detail));
    }
    let mut new = Vec::with_capacity(kept.len());
    for one in kept {
        let StorableDocument { kind, id, name, mut document, host } = one;
        if kind.holds_secrets() {
            let stored = app.db.document(project, kind, &id, None);
            let stored = app.watch.db(*context, Call("SELECT", "documents"), stored).await;
            // A stored document that cannot be decrypted, because its key is lost, can still be replaced.
            let stored = stored.ok().flatten();
            document = form::taken(kind, document, stored.as_ref().map(|it| it.document.as_str()))?;
        }
        let (project, file) = (project.clone(), file.to_owned());
        new.push(NewDocument { project, kind, id, name, file, document, host });
    }
    Ok(new)
}

/// Stores documents, or only returns what that would do.
async fn store(
    heard: &RequestContext,
    project: &Project,
    (new, expected, is_dry_run): (Vec<NewDocument>, Precondition, bool),
) -> Result<Vec<Change>, Problem> {
    let RequestContext { app, context, .. } = heard;
    let _place = app.writers.acquire(project).await;
    let options = ApplyOptions { at: Some(app.world.now()), expected, is_dry_run };
    let applied = app.db.apply(&new, options);
    let applied = app.watch.db(*context, Call("INSERT", "document_versions"), applied).await?;
    if !is_dry_run {
        events::documents_applied(&new, &applied);
    }
    let changes = new.into_iter().zip(applied).map(|(new, applied)| Change {
        kind: new.kind,
        id: new.id,
        name: new.name,
        version: applied.version,
        changed: applied.changed,
    });
    Ok(changes.collect())
}

/// Parses the precondition of `If-Match` and `If-None-Match`.
fn expected(headers: &HeaderMap) -> Result<Precondition, Problem> {
    let refused = |name: &str, expected: &str| {
        Err(Problem::new(Fault::Invalid, format!("`{name}` cannot be met: expected {expected}")))
    };
    let text =
        |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
    match (text(header::IF_MATCH), text(header::IF_NONE_MATCH)) {
        (None, None) => Ok(Precondition::Anything),
        (None, Some("*")) => Ok(Precondition::Nothing),
        (_, Some(_)) => refused("If-None-Match", "`*`, and no `If-Match` beside it"),
        (Some("*"), None) => Ok(Precondition::Something),
        (Some(tag), None) => {
            // A tag that this server never issued is no error: no version matches it.
            let version = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')?.parse().ok());
            Ok(Precondition::Version(version.unwrap_or_default()))
        }
    }
}

fn etag(version: i32) -> (header::HeaderName, HeaderValue) {
    // Digits in quotes are always a header value.
    let value = HeaderValue::try_from(format!("\"{version}\""));
    (header::ETAG, value.unwrap_or_else(|_| HeaderValue::from_static("\"0\"")))
}

fn missing(kind: DocumentKind, id: &TestId, version: Option<i32>) -> Problem {
    let version = version.map(|version| format!(" in version {version}")).unwrap_or_default();
    Problem::new(Fault::Missing, format!("there is no {kind} `{id}`{version}"))
}

impl From<DocumentSummary> for ListedDocument {
    fn from(listed: DocumentSummary) -> Self {
        let DocumentSummary { id, name, version, file, is_provisioned, created_at } = listed;
        Self { id, name, version, file, is_provisioned, created_at }
    }
}

impl From<StoredVersion> for Version {
    fn from(stored: StoredVersion) -> Self {
        let StoredVersion { version, name, created_at } = stored;
        Self { version, name, created_at }
    }
}

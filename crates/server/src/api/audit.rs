//! The audit log, for the operators of the server: who changed what, and who logged in.

use axum::{Extension, Json, extract::State};
use db::StoredAudit;
use model::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    openapi,
    page::{self, Page, Paging},
};
use crate::{
    http::{app::App, extract::QueryParams, problem::Problem},
    telemetry::{call::Call, traceparent::TraceParent},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A change that a caller requested, or a login.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AuditEntry)]
pub(super) struct AuditEntry {
    /// Its number, which grows.
    n: i64,
    #[schema(schema_with = openapi::moment)]
    at: Timestamp,
    /// The caller's display name; `unknown` if a login failed before the name was known.
    who: String,
    /// The issuer of a person's identity; absent for programs.
    issuer: Option<String>,
    /// The subject: the issuer's unique id of the person.
    subject: Option<String>,
    /// The address of the caller, as a trusted proxy forwards it or as the connection has it.
    address: Option<String>,
    /// The id of the token that was shown.
    token: Option<String>,
    method: String,
    /// The requested operation, with placeholders for ids.
    route: String,
    path: String,
    project: Option<String>,
    /// The response status; absent if the server died before it responded.
    status: Option<i32>,
    /// Why a login failed.
    reason: Option<String>,
}

/// Changes and logins, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "access",
    operation_id = "listAudit",
    params(Paging),
    responses((status = 200, description = "A page of entries.", body = Page<AuditEntry>)),
)]
pub(super) async fn list(
    State(app): State<App>,
    QueryParams(paging): QueryParams<Paging>,
    Extension(context): Extension<TraceParent>,
) -> Result<Json<Page<AuditEntry>>, Problem> {
    let limit = page::limit(paging.limit)?;
    let audits = app.db.audits(page::key(paging.cursor.as_deref())?, limit + 1);
    let audits = app.watch.db(context, Call("SELECT", "audit"), audits).await?;
    let entries = audits.into_iter().map(entry).collect();
    Ok(Json(Page::new(entries, limit, |entry: &AuditEntry| entry.n.to_string())))
}

fn entry(stored: StoredAudit) -> AuditEntry {
    let StoredAudit { n, change, status } = stored;
    let (issuer, subject) = change.person.map(|it| (it.issuer, it.subject)).unzip();
    AuditEntry {
        n,
        at: change.at,
        who: change.who,
        issuer,
        subject,
        address: change.address.map(|address| address.to_string()),
        token: change.token.map(|token| token.to_string()),
        method: change.method,
        route: change.route,
        path: change.path,
        project: change.project,
        status,
        reason: change.reason,
    }
}

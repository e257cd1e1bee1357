//! Sessions of people who logged in: a person lists and ends their own, and an admin those of everyone.

use axum::{Extension, Json, extract::State, http::StatusCode};
use db::{SessionPage, StoredToken};
use model::{Fault, Project, Timestamp, TokenId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    login::SESSION_SECS,
    openapi,
    page::{self, Page},
    tokens::NoQuery,
};
use crate::{
    access::Caller,
    http::{
        app::App,
        extract::{PathId, QueryParams},
        guard::may_all,
        problem::Problem,
    },
    telemetry::{call::Call, traceparent::TraceParent},
};

/// How far the clocks of servers may differ: a session may be this much older than its maximum length.
const SKEW_SECS: u64 = 60 * 60;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(end))
}

/// The query parameters of the list of sessions.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionQuery {
    /// Items of a page: 1 to 500, 50 by default.
    #[serde(default)]
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// The `next` of the page before.
    #[serde(default)]
    cursor: Option<String>,
    /// Those of everyone, which needs an admin for all projects; else the caller's own.
    #[serde(default)]
    all: bool,
}

/// A session of a person who logged in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Session {
    /// The id of the session. It is not the value of the cookie.
    #[schema(schema_with = openapi::run_id)]
    id: TokenId,
    /// What people call the person.
    name: String,
    /// The issuer of the person's identity.
    issuer: Option<String>,
    /// The subject: the issuer's unique id of the person.
    subject: Option<String>,
    /// `viewer`, `editor` or `admin`.
    role: &'static str,
    /// Where that holds; absent for everywhere.
    #[schema(value_type = Option<Vec<String>>)]
    projects: Option<Vec<Project>>,
    #[schema(schema_with = openapi::moment)]
    began_at: Timestamp,
    #[schema(schema_with = openapi::moment)]
    expires_at: Timestamp,
    /// When it was last used, to the minute.
    #[schema(schema_with = openapi::moment_or_null)]
    seen_at: Option<Timestamp>,
    /// The address that it began from.
    address: Option<String>,
    /// Whether it is the one of this request.
    is_current: bool,
}

/// Valid sessions, the newest first: the caller's own, or with `all` those of everyone.
#[utoipa::path(
    get,
    path = "/api/v1/sessions",
    tag = "access",
    operation_id = "listSessions",
    params(SessionQuery),
    responses((status = 200, description = "A page of sessions.", body = Page<Session>)),
)]
pub(super) async fn list(
    State(app): State<App>,
    QueryParams(query): QueryParams<SessionQuery>,
    Extension(context): Extension<TraceParent>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Page<Session>>, Problem> {
    let limit = page::limit(query.limit)?;
    let before = page::key(query.cursor.as_deref())?;
    let now = app.world.now();
    let page = SessionPage { before, since: oldest(now), now, limit: limit + 1 };
    let call = Call("SELECT", "tokens");
    let sessions = match (query.all, &caller.person) {
        (true, _) => {
            may_all(&caller)?;
            app.watch.db(context, call, app.db.sessions(page)).await?
        }
        (false, Some(person)) => {
            app.watch.db(context, call, app.db.sessions_of(person, page)).await?
        }
        // A program has no sessions.
        (false, None) => Vec::new(),
    };
    let sessions = sessions.into_iter().map(|it| session(it, caller.token)).collect();
    Ok(Json(Page::new(sessions, limit, |session: &Session| session.id.to_string())))
}

/// Ends a session: the caller's own, or as an admin for all projects anyone's. Here it ends at once, elsewhere within
/// seconds.
#[utoipa::path(
    delete,
    path = "/api/v1/sessions/{id}",
    tag = "access",
    operation_id = "endSession",
    params(("id" = inline(openapi::RunId), Path, description = "The id of the session.")),
    responses((status = 204, description = "It has ended.")),
)]
pub(super) async fn end(
    State(app): State<App>,
    QueryParams(NoQuery {}): QueryParams<NoQuery>,
    Extension(context): Extension<TraceParent>,
    Extension(caller): Extension<Caller>,
    PathId(id): PathId<TokenId>,
) -> Result<StatusCode, Problem> {
    // The response does not reveal whether another person has such a session.
    let missing = || Problem::new(Fault::Missing, format!("you have no session `{id}`"));
    let owner = match may_all(&caller) {
        Ok(()) => None,
        Err(_) => Some(caller.person.as_ref().ok_or_else(missing)?),
    };
    let ended = app.db.end_session(id, owner, app.world.now());
    let ended = app.watch.db(context, Call("UPDATE", "tokens"), ended).await?;
    app.access.forget(id);
    match (ended, owner) {
        (true, _) => Ok(StatusCode::NO_CONTENT),
        (false, Some(_)) => Err(missing()),
        (false, None) => Err(Problem::new(Fault::Missing, format!("there is no session `{id}`"))),
    }
}

/// Returns an id that is lower than the ids of all sessions that can still be valid.
fn oldest(now: Timestamp) -> TokenId {
    let age = (u64::from(SESSION_SECS) + SKEW_SECS) * 1_000_000_000;
    TokenId::new(Timestamp::from_nanos(now.as_nanos().saturating_sub(age)), [0; 10])
}

fn session(stored: StoredToken, current: Option<TokenId>) -> Session {
    let (issuer, subject) = stored.person.map(|it| (it.issuer, it.subject)).unzip();
    Session {
        id: stored.id,
        name: stored.name,
        issuer,
        subject,
        role: stored.role.as_str(),
        projects: stored.projects,
        began_at: stored.made_at,
        expires_at: stored.expires_at,
        seen_at: stored.seen_at,
        address: stored.address.map(|address| address.to_string()),
        is_current: Some(stored.id) == current,
    }
}

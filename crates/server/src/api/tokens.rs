//! Tokens: create, list, revoke; and the identity of the caller.

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use db::{StoredToken, TokenKind};
use model::{Fault, Project, Role, Timestamp, TokenId};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        ArrayBuilder, RefOr,
        schema::{Schema, SchemaType, Type},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    openapi,
    page::{self, Page, Paging},
};
use crate::{
    access::{
        Caller,
        token::{self, DAYS, DAYS_MAX, NAME_MAX, TokenSpec},
    },
    http::{
        app::App,
        extract::{Document, PathId, QueryParams},
        problem::Problem,
    },
    telemetry::{call::Call, traceparent::TraceParent},
};

/// The maximum number of projects of a token.
const PROJECTS_MAX: usize = 100;
const SECONDS_OF_A_DAY: u64 = 24 * 60 * 60;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(me)).routes(routes!(list, create)).routes(routes!(revoke))
}

/// An empty query.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct NoQuery {}

/// The caller.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Caller)]
pub(super) struct Me {
    name: String,
    /// `ingest`, `viewer`, `editor` or `admin`.
    role: &'static str,
    /// Where that holds; absent for everywhere.
    #[schema(value_type = Option<Vec<String>>)]
    projects: Option<Vec<Project>>,
}

/// What a token is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NewToken {
    /// What people call it: 1 to 128 letters.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]{1,128}$"
    )]
    name: String,
    /// What its bearer may do.
    #[schema(value_type = String, pattern = "^(ingest|viewer|editor|admin)$")]
    role: Role,
    /// The projects in which the role holds; all projects if absent.
    #[serde(default)]
    #[schema(schema_with = projects)]
    projects: Option<Vec<Project>>,
    /// The days until it expires: 1 to 3660, 90 by default.
    #[serde(default, deserialize_with = "days")]
    #[schema(minimum = 1, maximum = 3660)]
    expires_in_days: Option<u16>,
}

/// Reads a number of days. To a JSON Schema, `30.0` is an integer as well.
fn days<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u16>, D::Error> {
    let Some(days) = Option::<f64>::deserialize(from)? else { return Ok(None) };
    let is_whole = days.fract() == 0.0 && (0.0..=f64::from(u16::MAX)).contains(&days);
    let expected = || D::Error::custom(format!("`{days}` is no number of days"));
    is_whole.then_some(Some(days as u16)).ok_or_else(expected)
}

/// The schema of a list of projects.
fn projects() -> RefOr<Schema> {
    let types = SchemaType::from_iter([Type::Array, Type::Null]);
    let array = ArrayBuilder::new().schema_type(types).items(openapi::word());
    array.min_items(Some(1)).max_items(Some(PROJECTS_MAX)).build().into()
}

/// A token, without the token itself.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Token {
    #[schema(schema_with = openapi::run_id)]
    id: TokenId,
    name: String,
    /// `ingest`, `viewer`, `editor` or `admin`.
    role: &'static str,
    /// Where that holds; absent for everywhere.
    #[schema(value_type = Option<Vec<String>>)]
    projects: Option<Vec<Project>>,
    #[schema(schema_with = openapi::moment)]
    made_at: Timestamp,
    made_by: String,
    #[schema(schema_with = openapi::moment)]
    expires_at: Timestamp,
    /// When it was taken back.
    #[schema(value_type = Option<String>)]
    revoked_at: Option<Timestamp>,
}

/// A token that was just made.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CreatedToken {
    #[schema(schema_with = openapi::run_id)]
    id: TokenId,
    /// The token itself. Only this response contains it.
    token: String,
    #[schema(schema_with = openapi::moment)]
    expires_at: Timestamp,
}

/// Who the caller is, and what it may do.
#[utoipa::path(
    get,
    path = "/api/v1/me",
    tag = "access",
    operation_id = "readCaller",
    responses((status = 200, description = "The caller.", body = Me)),
)]
pub(super) async fn me(
    QueryParams(NoQuery {}): QueryParams<NoQuery>,
    Extension(caller): Extension<Caller>,
) -> Json<Me> {
    Json(Me { name: caller.name, role: caller.role.as_str(), projects: caller.projects })
}

/// Tokens, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/tokens",
    tag = "access",
    operation_id = "listTokens",
    params(Paging),
    responses((status = 200, description = "A page of tokens.", body = Page<Token>)),
)]
pub(super) async fn list(
    State(app): State<App>,
    QueryParams(paging): QueryParams<Paging>,
    Extension(context): Extension<TraceParent>,
) -> Result<Json<Page<Token>>, Problem> {
    let limit = page::limit(paging.limit)?;
    let tokens = app.db.tokens(page::key(paging.cursor.as_deref())?, limit + 1);
    let tokens = app.watch.db(context, Call("SELECT", "tokens"), tokens).await?;
    let tokens = tokens.into_iter().map(Token::from).collect();
    Ok(Json(Page::new(tokens, limit, |token: &Token| token.id.to_string())))
}

/// Makes a token, and shows it once.
#[utoipa::path(
    post,
    path = "/api/v1/tokens",
    tag = "access",
    operation_id = "createToken",
    request_body(content = NewToken, content_type = "application/json"),
    responses((status = 201, description = "The token.", body = CreatedToken)),
)]
pub(super) async fn create(
    State(app): State<App>,
    QueryParams(NoQuery {}): QueryParams<NoQuery>,
    Extension(context): Extension<TraceParent>,
    Extension(caller): Extension<Caller>,
    Document(body): Document,
) -> Result<Response, Problem> {
    let wanted = wanted(&body, caller)?;
    let (shown, kept) = token::make(wanted, app.world);
    let created = app.db.create_token(&kept);
    app.watch.db(context, Call("INSERT", "tokens"), created).await?;
    let made =
        CreatedToken { id: kept.id, token: shown.expose().to_owned(), expires_at: kept.expires_at };
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// Takes a token back. Elsewhere it is refused within seconds, here at once.
#[utoipa::path(
    delete,
    path = "/api/v1/tokens/{id}",
    tag = "access",
    operation_id = "revokeToken",
    params(("id" = inline(openapi::RunId), Path, description = "The id of the token, not the token itself.")),
    responses((status = 204, description = "It is good for nothing from now on.")),
)]
pub(super) async fn revoke(
    State(app): State<App>,
    QueryParams(NoQuery {}): QueryParams<NoQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<TokenId>,
) -> Result<StatusCode, Problem> {
    let revoked = app.db.revoke_token(id, app.world.now());
    let revoked = app.watch.db(context, Call("UPDATE", "tokens"), revoked).await?;
    app.access.forget(id);
    match revoked {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::new(Fault::Missing, format!("there is no token `{id}`"))),
    }
}

fn wanted(body: &str, caller: Caller) -> Result<TokenSpec, Problem> {
    let invalid = |detail: String| Problem::new(Fault::Invalid, detail);
    let new: NewToken = serde_json::from_str(body).map_err(|error| invalid(error.to_string()))?;
    let letters = new.name.chars().count();
    if letters == 0 || letters > NAME_MAX || new.name.chars().any(char::is_control) {
        return Err(invalid(format!("`name` is not one: expected 1 to {NAME_MAX} letters")));
    }
    let days = new.expires_in_days.unwrap_or(DAYS);
    if !(1..=DAYS_MAX).contains(&days) {
        return Err(invalid(format!("`expiresInDays` is {days}: expected 1 to {DAYS_MAX}")));
    }
    if new
        .projects
        .as_ref()
        .is_some_and(|projects| projects.is_empty() || projects.len() > PROJECTS_MAX)
    {
        return Err(invalid(
            "`projects` has none or too many: name 1 to 100, or leave it out".to_owned(),
        ));
    }
    Ok(TokenSpec {
        kind: TokenKind::Token,
        name: new.name,
        role: new.role,
        projects: new.projects,
        seconds: u64::from(days) * SECONDS_OF_A_DAY,
        made_by: caller.name,
        person: None,
        address: None,
    })
}

impl From<StoredToken> for Token {
    fn from(token: StoredToken) -> Self {
        let StoredToken { id, name, role, projects, made_at, made_by, expires_at, .. } = token;
        let revoked_at = token.revoked_at;
        let role = role.as_str();
        Self { id, name, role, projects, made_at, made_by, expires_at, revoked_at }
    }
}

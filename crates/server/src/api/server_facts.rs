//! What a client has to know of a server before its caller is known: how to log in, whether there is a demo, and the version.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::tokens::NoQuery;
use crate::{
    config::Mode,
    http::{app::App, extract::QueryParams},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read))
}

/// What anyone may know of a server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerFacts {
    /// The version of the program.
    version: &'static str,
    /// `on` if callers have to authenticate, else `off`.
    access: &'static str,
    login: LoginFacts,
    /// `offered` if editors may start the demo shop of this server, else `off`.
    demo: &'static str,
}

/// How people log in; a token is accepted wherever callers have to authenticate.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LoginFacts {
    /// Whether there is an identity provider, at `/auth/login`.
    oidc: bool,
}

/// What anyone may know of this server: the way to log in, and its version.
#[utoipa::path(
    get,
    path = "/api/v1/server",
    tag = "access",
    operation_id = "readServer",
    responses((status = 200, description = "The facts.", body = ServerFacts)),
)]
pub(super) async fn read(
    State(app): State<App>,
    QueryParams(NoQuery {}): QueryParams<NoQuery>,
) -> Json<ServerFacts> {
    let access = match app.access.mode {
        Mode::Off => "off",
        Mode::On => "on",
    };
    let login = LoginFacts { oidc: app.access.oidc.is_some() };
    let demo = if app.shop.offered().is_ok() { "offered" } else { "off" };
    Json(ServerFacts { version: env!("CARGO_PKG_VERSION"), access, login, demo })
}

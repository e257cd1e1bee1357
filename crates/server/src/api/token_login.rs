//! Login with a token that a person pastes into the page.
//!
//! The cookie holds the token itself, out of reach of scripts: it has the rights of the token, and ends with it. No session is
//! stored. Deliberately absent: a row in the audit log, which has what is changed with the token, under its name.

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use db::TokenKind;
use model::{Fault, Secret};
use serde::Deserialize;

use super::login::{PublicOrigin, SESSION_SECS};
use crate::{
    access::proxies::Origin,
    config::Mode,
    http::{app::App, extract::Document, guard, problem::Problem},
    telemetry::traceparent::TraceParent,
};

/// The body of the request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenLogin {
    token: String,
}

/// Sets the cookie for a valid token.
pub(super) async fn begin(
    State(app): State<App>,
    Extension(context): Extension<TraceParent>,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
    Document(body): Document,
) -> Result<Response, Response> {
    let refused = |problem: Problem| problem.into_response();
    if app.access.mode == Mode::Off {
        let detail = "there is no login: `server.auth.mode` is `off`";
        return Err(refused(Problem::new(Fault::Missing, detail)));
    }
    // Another page must not log a person in as another one.
    if !guard::is_own_page(&headers) {
        let detail = "a login must come from a page of this server";
        return Err(refused(Problem::new(Fault::Denied, detail)));
    }
    // The parser's message could quote the token.
    let login: TokenLogin = serde_json::from_str(&body).map_err(|_| {
        refused(Problem::new(Fault::Invalid, "the body must be `{\"token\": \"…\"}`"))
    })?;
    let token = Secret::new(login.token);
    let here = PublicOrigin::of(&app, origin, &headers).map_err(refused)?;
    let shown = (TokenKind::Token, token.expose());
    guard::verified(&app, &app.db, shown, (Some(context), origin.address)).await?;
    let cookie = here.token(token.expose(), SESSION_SECS).map_err(refused)?;
    let mut response = (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response();
    let over = here.session("", 0).map_err(refused)?;
    response.headers_mut().append(header::SET_COOKIE, over);
    Ok(response)
}

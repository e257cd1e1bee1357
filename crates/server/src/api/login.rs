//! Login and logout of a browser: the redirect to the identity provider, the callback, and the end of the session.
//!
//! Between beginning and end, a signed cookie in the browser holds the state of the login. After it, a cookie holds the session,
//! which is random and needs no signature: it is valid only if the database has its hash. Scripts reach neither cookie. A browser
//! sends a session only with requests of this server's own pages, or when it follows a link to this server.

use axum::{
    Extension, Router,
    extract::{Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use db::TokenKind;
use model::{Fault, Faulty, Secret};
use serde::Deserialize;

use super::{
    login_audit::{BACK, LoginAudit},
    token_login,
};
use crate::{
    access::{
        Caller,
        login_cookie::{LOGIN_SECS, LoginKeys},
        oidc::{Callback, Oidc, OidcError, Person},
        proxies::Origin,
        session::{COOKIE, COOKIE_TLS, TOKEN_COOKIE, TOKEN_COOKIE_TLS, token_cookie, value},
        token::{self, TokenSpec},
    },
    http::{accept, app::App, extract::QueryParams, problem::Problem},
    telemetry::{call::Call, events, traceparent::TraceParent},
};

/// How long a session lasts, in seconds.
pub(super) const SESSION_SECS: u32 = 8 * 60 * 60;
/// The maximum length of the path of a screen.
const SCREEN_BYTES_MAX: usize = 1024;
/// The cookie that holds the state of a login between its beginning and its end.
const LOGIN_COOKIE: &str = "qualitytrace_login";
/// The same cookie with TLS.
const LOGIN_COOKIE_TLS: &str = "__Host-qualitytrace_login";

/// The routes for browsers; they are not operations of the API.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/auth/login", get(begin))
        .route("/auth/session", post(token_login::begin))
        .route(BACK, get(end))
        .route("/auth/logout", post(logout))
}

/// The query of the beginning of a login.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginQuery {
    /// The path of the screen to show after the login, without the path prefix.
    #[serde(default, rename = "return")]
    screen: Option<String>,
}

/// The URL by which the browser reaches this server.
pub(super) struct PublicOrigin {
    is_tls: bool,
    /// The path before all URLs.
    prefix: String,
    back: String,
}

impl PublicOrigin {
    pub(super) fn of(app: &App, origin: Origin, headers: &HeaderMap) -> Result<Self, Problem> {
        let is_tls = app.is_reached_by_tls(origin);
        let prefix = app.web.path_prefix.clone();
        if let Some(url) = &app.public_url {
            let url = url.as_str().trim_end_matches('/');
            return Ok(Self { is_tls, back: format!("{url}{prefix}{BACK}"), prefix });
        }
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let host = host.ok_or_else(|| Problem::new(Fault::Invalid, "there is no `Host` header"))?;
        let scheme = if is_tls { "https" } else { "http" };
        Ok(Self { is_tls, back: format!("{scheme}://{host}{prefix}{BACK}"), prefix })
    }

    /// Returns the name and path of the login cookie. With TLS, no other host can set a cookie of that name.
    fn login(&self) -> (&'static str, String) {
        match self.is_tls {
            true => (LOGIN_COOKIE_TLS, "/".to_owned()),
            false => (LOGIN_COOKIE, format!("{}{BACK}", self.prefix)),
        }
    }

    fn cookie(&self, name: &str, value: &str, rest: &str) -> Result<HeaderValue, Problem> {
        let secure = if self.is_tls { "; Secure" } else { "" };
        let text = format!("{name}={value}; HttpOnly; SameSite=Lax; {rest}{secure}");
        HeaderValue::from_str(&text)
            .map_err(|_| Problem::new(Fault::Internal, "a cookie cannot be written"))
    }

    /// Returns the answer to a login that failed: a person gets the screen for it, which has words for the reason, a program the
    /// problem. What the provider wrote is not in the address, which anyone can make.
    fn failed(
        &self,
        app: &App,
        headers: &HeaderMap,
        error: &OidcError,
    ) -> Result<Response, Problem> {
        if !app.web.is_on || !accept::names(headers, accept::HTML) {
            return Err(error.into());
        }
        let there =
            HeaderValue::from_str(&format!("{}/login?failed={}", self.prefix, error.word()))
                .map_err(|_| Problem::new(Fault::Internal, "the screen cannot be shown"))?;
        Ok((StatusCode::SEE_OTHER, [(header::LOCATION, there)]).into_response())
    }

    pub(super) fn session(&self, value: &str, secs: u32) -> Result<HeaderValue, Problem> {
        let name = if self.is_tls { COOKIE_TLS } else { COOKIE };
        self.cookie(name, value, &format!("Path=/; Max-Age={secs}"))
    }

    pub(super) fn token(&self, value: &str, secs: u32) -> Result<HeaderValue, Problem> {
        let name = if self.is_tls { TOKEN_COOKIE_TLS } else { TOKEN_COOKIE };
        self.cookie(name, value, &format!("Path=/; Max-Age={secs}"))
    }
}

async fn begin(
    State(app): State<App>,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
    QueryParams(LoginQuery { screen }): QueryParams<LoginQuery>,
) -> Result<Response, Problem> {
    let here = PublicOrigin::of(&app, origin, &headers)?;
    let screen = screen.as_deref().unwrap_or("/");
    if !is_screen(screen) {
        let detail = "`return` must be a path on this server, such as `/runs`";
        return Err(Problem::new(Fault::Invalid, detail));
    }
    let began = provider(&app)?.begin(&here.back, screen, app.world).await;
    let (there, pending) = match began {
        Ok(began) => began,
        Err(error) => return here.failed(&app, &headers, &error),
    };
    let (name, path) = here.login();
    let rest = format!("Path={path}; Max-Age={LOGIN_SECS}");
    let signed = login_keys(&app).and_then(|keys| keys.signed(&pending, app.world.now()));
    let signed =
        signed.ok_or_else(|| Problem::new(Fault::Upstream, "not ready: there is no key yet"))?;
    let cookie = here.cookie(name, &signed, &rest)?;
    let there = HeaderValue::from_str(there.as_str())
        .map_err(|_| Problem::new(Fault::Upstream, "the provider's URL cannot be followed"))?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, there), (header::SET_COOKIE, cookie)])
        .into_response())
}

async fn end(
    State(app): State<App>,
    Extension(context): Extension<TraceParent>,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
    Query(returned): Query<Callback>,
) -> Result<Response, Problem> {
    let here = PublicOrigin::of(&app, origin, &headers)?;
    let oidc = provider(&app)?;
    let audit = LoginAudit { app: &app, context, address: origin.address };
    let (person, screen) = match person(&app, oidc, &here, &headers, returned).await {
        Ok(found) => found,
        Err(error) => {
            audit.failed(&error, Problem::from(&error).status()).await;
            return here.failed(&app, &headers, &error);
        }
    };
    let wanted = TokenSpec {
        kind: TokenKind::Session,
        made_by: person.id.issuer.clone(),
        person: Some(person.id),
        address: Some(origin.address),
        name: person.name,
        role: person.role,
        projects: person.projects,
        seconds: SESSION_SECS.into(),
    };
    let (shown, kept): (Secret, _) = token::make(wanted, app.world);
    // No login succeeds without a row in the audit log.
    let n = audit.began(&kept).await?;
    let created = app.db.create_token(&kept);
    app.watch.db(context, Call("INSERT", "tokens"), created).await?;
    audit.answered(n, StatusCode::SEE_OTHER).await;
    events::logged_in();
    let (name, path) = here.login();
    let there = HeaderValue::from_str(&format!("{}{screen}", here.prefix))
        .map_err(|_| Problem::new(Fault::Internal, "the screen cannot be shown"))?;
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, there)]).into_response();
    let over = here.cookie(name, "", &format!("Path={path}; Max-Age=0"))?;
    response.headers_mut().append(header::SET_COOKIE, here.session(shown.expose(), SESSION_SECS)?);
    response.headers_mut().append(header::SET_COOKIE, over);
    response.headers_mut().append(header::SET_COOKIE, here.token("", 0)?);
    Ok(response)
}

/// Whether a text is a path on this server, and for a browser nothing else.
fn is_screen(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let is_path = path.starts_with('/') && !path.starts_with("//");
    is_path && path.len() <= SCREEN_BYTES_MAX && path.bytes().all(is_plain)
}

/// Returns the person who comes back from the provider, if the login began in this browser, and the screen to show.
async fn person(
    app: &App,
    oidc: &Oidc,
    here: &PublicOrigin,
    headers: &HeaderMap,
    returned: Callback,
) -> Result<(Person, String), OidcError> {
    let (name, _) = here.login();
    let cookie = value(headers, name).zip(login_keys(app));
    let pending = cookie.and_then(|(value, keys)| keys.verified(value, app.world.now()));
    let pending = pending.ok_or(OidcError::Foreign)?;
    let person = oidc.end(returned, &pending, &here.back, app.world.now()).await?;
    Ok((person, pending.screen().to_owned()))
}

/// Ends the session; a token that the request sent instead, in a header or in a cookie, stays valid.
async fn logout(
    State(app): State<App>,
    Extension(context): Extension<TraceParent>,
    Extension(caller): Extension<Caller>,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let here = PublicOrigin::of(&app, origin, &headers)?;
    let is_tls = app.is_reached_by_tls(origin);
    let is_token =
        headers.contains_key(header::AUTHORIZATION) || token_cookie(&headers, is_tls).is_some();
    if let Some(id) = caller.token.filter(|_| !is_token) {
        let revoked = app.db.revoke_token(id, app.world.now());
        app.watch.db(context, Call("UPDATE", "tokens"), revoked).await?;
        app.access.forget(id);
    }
    let mut response =
        (StatusCode::NO_CONTENT, [(header::SET_COOKIE, here.session("", 0)?)]).into_response();
    response.headers_mut().append(header::SET_COOKIE, here.token("", 0)?);
    Ok(response)
}

fn login_keys(app: &App) -> Option<&LoginKeys> {
    app.opening.login_keys()
}

fn provider(app: &App) -> Result<&Oidc, Problem> {
    app.access.oidc.as_ref().ok_or_else(|| {
        Problem::new(
            Fault::Missing,
            "people do not log in here: `server.auth.oidc` names no provider",
        )
    })
}

impl From<&OidcError> for Problem {
    fn from(error: &OidcError) -> Self {
        Self::new(error.fault(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::is_screen;

    #[test]
    fn only_a_path_on_this_server_is_a_screen() {
        for path in ["/", "/r/01a1?project=shop&claim=2", "/t/a%20b#x"] {
            assert!(is_screen(path), "{path}");
        }
        let long = format!("/{}", "a".repeat(1024));
        for path in [
            "",
            "r",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a b",
            "/a\r\nb",
            "/ä",
            &long,
        ] {
            assert!(!is_screen(path), "{path}");
        }
    }
}

//! The only module that decides which caller may send which request.
//!
//! With authentication on, each caller sends a token or a session cookie, and [`table`] states what its route requires. A change
//! gets a row in the audit log before it is made. With authentication off, the server serves programs on this machine and no web
//! page but its own: a page in a local browser could reach a loopback port, with its own requests or with a name that it
//! makes resolve to 127.0.0.1. Both show in headers that a page cannot forge.
//!
//! No response lets a page of another origin read it. Deliberately absent: CORS.

use std::{net::IpAddr, time::Duration};

use axum::{
    extract::{MatchedPath, Query, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use db::{Db, DbError, NewAudit, TokenKind};
use model::{ErrorCode, Fault, Project, Role};

use super::{app::App, problem::Problem};
use crate::{
    access::{
        Caller, RateKey, Unknown,
        proxies::Origin,
        session::{cookie, token_cookie},
        table::{self, Need},
        token,
    },
    config::Mode,
    host_name::names_loopback,
    plant::{Plant, is_planted},
    telemetry::{call::Call, traceparent::TraceParent},
};

const TOO_MANY: &str =
    "more requests a second than `server.limits.requestsPerSecond` allows one caller";
const TOO_MANY_OF_PROJECT: &str =
    "more requests a second than `server.limits.projectRequestsPerSecond` allows one project";

/// Security headers for browsers, set on every response that does not set them itself.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Refuses pages of other origins when authentication is off, and sets the security headers.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let refused = match app.access.mode {
        Mode::Off => refusal(request.headers()),
        Mode::On => None,
    };
    let mut response = match refused {
        Some(reason) => {
            Problem::new(Fault::Denied, reason).with_code(ErrorCode::CrossOrigin).into_response()
        }
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

/// Admits authorized requests, on the work runtime.
pub(crate) async fn known(State(app): State<App>, request: Request, next: Next) -> Response {
    let db = app.db.clone();
    admit(&app, &db, request, next).await.unwrap_or_else(|response| response)
}

/// Admits authorized requests to calm routes, on the control runtime.
pub(crate) async fn known_on_control(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let db = app.calm_db.clone();
    admit(&app, &db, request, next).await.unwrap_or_else(|response| response)
}

/// Whether the response of a public route may contain details: always with authentication off, else for a caller that may
/// read the state of the server.
pub(crate) async fn may_know(app: &App, parts: &Parts) -> bool {
    if app.access.mode == Mode::Off {
        return true;
    }
    let origin = origin(parts);
    if shown(&parts.headers, app.is_reached_by_tls(origin)).is_none() {
        return false;
    }
    let caller = caller(app, &app.calm_db, parts, origin).await;
    caller.is_ok_and(|caller| may(&caller, Need::Server(Role::Viewer), &[]).is_ok())
}

/// Returns the origin of a request.
fn origin(parts: &Parts) -> Origin {
    let nowhere = Origin { address: IpAddr::from([0; 4]), is_tls: false };
    parts.extensions.get::<Origin>().copied().unwrap_or(nowhere)
}

async fn admit(app: &App, db: &Db, request: Request, next: Next) -> Result<Response, Response> {
    let (mut parts, body) = request.into_parts();
    let route = parts.extensions.get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let need = table::need(&parts.method, route.as_deref());
    if app.access.mode == Mode::Off {
        parts.extensions.insert(Caller::anyone());
        return Ok(next.run(Request::from_parts(parts, body)).await);
    }
    let need = need.ok_or_else(|| {
        denied("every request is refused: the route is not in the access table").into_response()
    })?;
    let origin = origin(&parts);
    if need == Need::Open {
        app.access
            .callers
            .count(RateKey::peer(origin.address))
            .map_err(|wait| slower(TOO_MANY, wait))?;
        return Ok(next.run(Request::from_parts(parts, body)).await);
    }
    let caller = match caller(app, db, &parts, origin).await {
        Err(refused) if is_planted(Plant::RefusedIsServed) => {
            parts.extensions.insert(Caller::anyone());
            next.run(Request::from_parts(parts, body)).await;
            return Err(refused);
        }
        caller => caller?,
    };
    let projects = projects(&parts.uri).map_err(Problem::into_response)?;
    may(&caller, need, &projects).map_err(Problem::into_response)?;
    let whose = caller.token.map_or(RateKey::peer(origin.address), RateKey::Token);
    app.access.callers.count(whose).map_err(|wait| slower(TOO_MANY, wait))?;
    if matches!(need, Need::Project(_)) {
        for project in &projects {
            let counted = app.access.projects.count(project.clone());
            counted.map_err(|wait| slower(TOO_MANY_OF_PROJECT, wait))?;
        }
    }
    parts.extensions.insert(caller.clone());
    if !table::is_change(&parts.method) || need == Need::Known {
        return Ok(next.run(Request::from_parts(parts, body)).await);
    }
    if is_planted(Plant::AuditForgotten) {
        return Ok(next.run(Request::from_parts(parts, body)).await);
    }
    let project = projects.first().filter(|_| matches!(need, Need::Project(_)));
    let change = NewAudit {
        at: app.world.now(),
        who: caller.name,
        person: caller.person,
        address: Some(origin.address),
        token: caller.token,
        method: parts.method.to_string(),
        route: route.unwrap_or_default(),
        path: token::hide(parts.uri.path().to_owned()),
        project: project.map(Project::to_string),
        reason: None,
    };
    // No change is made without a row in the audit log.
    let context = parts.extensions.get().copied();
    let noted = watched(app, context, Call("INSERT", "audit"), db.audit(&change)).await;
    let n = noted.map_err(|error| Problem::from(error).into_response())?;
    let response = next.run(Request::from_parts(parts, body)).await;
    let answered = db.audit_answered(n, response.status().as_u16());
    if let Err(error) = watched(app, context, Call("UPDATE", "audit"), answered).await {
        tracing::warn!(%error, n, "how a change was answered is missing from the audit log");
    }
    Ok(response)
}

/// Runs a query in a span of the request; probes have no span that could be its parent.
async fn watched<T>(
    app: &App,
    context: Option<TraceParent>,
    call: Call,
    answer: impl Future<Output = Result<T, DbError>>,
) -> Result<T, DbError> {
    match context {
        Some(context) => app.watch.db(context, call, answer).await,
        None => answer.await,
    }
}

/// A credential as a request shows it.
#[derive(Clone, Copy, Debug)]
struct ShownCredential<'a> {
    kind: TokenKind,
    text: &'a str,
    /// Whether a browser adds it by itself, to the requests of any page.
    is_cookie: bool,
}

/// Authenticates the caller, or returns the response that refuses the request.
async fn caller(app: &App, db: &Db, parts: &Parts, origin: Origin) -> Result<Caller, Response> {
    let headers = &parts.headers;
    let shown = shown(headers, app.is_reached_by_tls(origin)).ok_or_else(|| {
        unknown("say who you are: `Authorization: Bearer TOKEN`, with a token that `qualitytrace token create` or an admin made")
    })?;
    let context = parts.extensions.get().copied();
    let caller = verified(app, db, (shown.kind, shown.text), (context, origin.address)).await?;
    if shown.is_cookie && table::is_change(&parts.method) && !is_own_page(headers) {
        let refused = denied("a change by a login must come from a page of this server");
        return Err(refused.into_response());
    }
    Ok(caller)
}

/// Returns the caller of a credential from this address, or the response that refuses it.
pub(crate) async fn verified(
    app: &App,
    db: &Db,
    shown: (TokenKind, &str),
    (context, address): (Option<TraceParent>, IpAddr),
) -> Result<Caller, Response> {
    let caller = match app.access.at_once(shown) {
        Some(known) => known,
        None => {
            let began = app.world.now();
            let asked = app.access.ask(db, shown, address).await;
            let error = match &asked {
                Err(Unknown::Db(error)) => Some(error),
                _ => None,
            };
            if let Some(context) = context.filter(|_| !matches!(asked, Err(Unknown::Guesses(_)))) {
                app.watch.tell(context, Call("SELECT", "tokens"), began, error);
            }
            asked
        }
    };
    caller.map_err(|why| match why {
        Unknown::Nobody => unknown(
            "the token is good for nothing: it has expired, was taken back, or never was one",
        ),
        Unknown::Guesses(wait) => {
            slower("too many tokens from this address that are good for nothing", wait)
        }
        Unknown::Db(error) => Problem::from(error).into_response(),
    })
}

/// Returns the credential of a request.
fn shown(headers: &HeaderMap, is_tls: bool) -> Option<ShownCredential<'_>> {
    let of_cookie = |kind| move |text| ShownCredential { kind, text, is_cookie: true };
    match headers.get(header::AUTHORIZATION) {
        Some(value) => {
            let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
            let (kind, text) = (TokenKind::Token, token.trim());
            let credential = ShownCredential { kind, text, is_cookie: false };
            scheme.eq_ignore_ascii_case("bearer").then_some(credential)
        }
        None => token_cookie(headers, is_tls)
            .map(of_cookie(TokenKind::Token))
            .or_else(|| cookie(headers, is_tls).map(of_cookie(TokenKind::Session))),
    }
}

/// Whether the headers show that a page of this server sent the request. Browsers add cookies to the requests of any page.
pub(crate) fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    let is_same = origin.is_some_and(|(_, authority)| Some(authority) == text(header::HOST));
    let site = text(HeaderName::from_static("sec-fetch-site"));
    is_same && matches!(site, None | Some("same-origin"))
}

/// Returns the projects that a request names.
fn projects(uri: &Uri) -> Result<Vec<Project>, Problem> {
    // The handler refuses an invalid query, with its own message.
    let query = Query::<Vec<(String, String)>>::try_from_uri(uri).map(|Query(pairs)| pairs);
    let named = query.unwrap_or_default().into_iter().filter(|(name, _)| name == "project");
    let projects: Result<Vec<Project>, _> = named.map(|(_, value)| value.parse()).collect();
    let projects = projects
        .map_err(|error: model::InvalidId| Problem::new(Fault::Invalid, error.to_string()))?;
    Ok(if projects.is_empty() { vec![Project::default()] } else { projects })
}

/// Whether a caller may access the objects of all callers, on a route that gives each caller its own.
pub(crate) fn may_all(caller: &Caller) -> Result<(), Problem> {
    may(caller, Need::Server(Role::Admin), &[])
}

fn may(caller: &Caller, need: Need, projects: &[Project]) -> Result<(), Problem> {
    let Caller { name, role, .. } = caller;
    let least = match need {
        Need::Open | Need::Known | Need::Own => return Ok(()),
        Need::Project(least) | Need::Server(least) => least,
    };
    if *role < least {
        return Err(denied(&format!("`{name}` has the role `{role}`: this needs `{least}`")));
    }
    match need {
        Need::Server(_) if caller.projects.is_some() => Err(denied(&format!(
            "`{name}` is good for some projects: this needs a token for all of them"
        ))),
        Need::Project(_) => match projects.iter().find(|project| !caller.may_in(project)) {
            None => Ok(()),
            Some(project) => {
                Err(denied(&format!("`{name}` is not good for the project `{project}`")))
            }
        },
        Need::Open | Need::Known | Need::Own | Need::Server(_) => Ok(()),
    }
}

fn denied(detail: &str) -> Problem {
    Problem::new(Fault::Denied, detail)
}

fn unknown(detail: &str) -> Response {
    let mut response =
        Problem::new(Fault::Denied, detail).with_status(StatusCode::UNAUTHORIZED).into_response();
    let bearer = HeaderValue::from_static("Bearer realm=\"qualitytrace\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
    response
}

fn slower(what: &str, wait: Duration) -> Response {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    Problem::new(Fault::Overloaded, format!("{what}: wait a moment"))
        .with_code(ErrorCode::RateLimited)
        .with_retry(seconds.max(1))
        .into_response()
}

/// Returns why a request is refused when authentication is off. A page of this server may send requests: its `Origin` is the
/// `Host` of the request. A name that another page makes resolve to this machine is no loopback name.
fn refusal(headers: &HeaderMap) -> Option<&'static str> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Uri>().ok());
    if !host.as_ref().and_then(Uri::host).is_some_and(names_loopback) {
        return Some("the `Host` header must name this machine: `localhost` or a loopback address");
    }
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let is_allowed = match headers.contains_key(header::ORIGIN) {
        true => is_own_page(headers),
        false => matches!(site, None | Some(b"none" | b"same-origin")),
    };
    (!is_allowed).then_some(
        "requests of web pages of another origin are refused while `server.auth.mode` is `off`",
    )
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName};

    use super::{is_own_page, refusal, shown};

    type Headers<'a> = &'a [(&'static str, &'a str)];

    fn headers(given: Headers<'_>) -> HeaderMap {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().expect("a header value"))
        };
        given.iter().map(header).collect()
    }

    #[test]
    fn only_programs_and_our_pages_on_this_machine_are_served() {
        let own = |origin| [("host", "localhost:11633"), ("origin", origin)];
        let other =
            ["http://localhost:3000", "http://127.0.0.1:11633", "http://localhost", "null", ""];
        for origin in other {
            assert!(refusal(&headers(&own(origin))).is_some(), "{origin}");
        }
        assert_eq!(refusal(&headers(&own("http://localhost:11633"))), None);
        let cases: [(Headers<'_>, bool); 15] = [
            (&[("host", "127.0.0.1:11633")], true),
            (&[("host", "localhost:11633")], true),
            (&[("host", "[::1]:11633")], true),
            (&[], false),
            (&[("host", "localhost"), ("sec-fetch-site", "none")], true),
            (&[("host", "localhost"), ("sec-fetch-site", "cross-site")], false),
            (&[("host", "evil.example:11633")], false),
            (&[("host", "")], false),
            (&[("host", "localhost"), ("origin", "http://evil.example")], false),
            (&[("host", "localhost"), ("sec-fetch-site", "same-origin")], true),
            (&[("host", "localhost"), ("sec-fetch-site", "same-site")], false),
            (
                &[
                    ("host", "localhost"),
                    ("origin", "http://localhost"),
                    ("sec-fetch-site", "same-origin"),
                ],
                true,
            ),
            (
                &[
                    ("host", "localhost"),
                    ("origin", "http://localhost"),
                    ("sec-fetch-site", "cross-site"),
                ],
                false,
            ),
            // The browser takes the name for the page's own, and it is not this machine's.
            (
                &[
                    ("host", "evil.example"),
                    ("origin", "http://evil.example"),
                    ("sec-fetch-site", "same-origin"),
                ],
                false,
            ),
            (&[("host", "evil.example"), ("sec-fetch-site", "same-origin")], false),
        ];
        for (given, served) in cases {
            assert_eq!(refusal(&headers(given)).is_none(), served, "{given:?}");
        }
    }

    #[test]
    fn a_cookie_changes_something_from_our_pages_only() {
        let cases: [(Headers<'_>, bool); 7] = [
            (&[("host", "qt.example"), ("origin", "https://qt.example")], true),
            (
                &[
                    ("host", "qt.example:8"),
                    ("origin", "http://qt.example:8"),
                    ("sec-fetch-site", "same-origin"),
                ],
                true,
            ),
            (&[("host", "qt.example")], false),
            (&[("host", "qt.example"), ("origin", "null")], false),
            (&[("host", "qt.example"), ("origin", "https://evil.example")], false),
            (&[("host", "qt.example"), ("origin", "https://qt.example.evil")], false),
            (
                &[
                    ("host", "qt.example"),
                    ("origin", "https://qt.example"),
                    ("sec-fetch-site", "same-site"),
                ],
                false,
            ),
        ];
        for (given, is_own) in cases {
            assert_eq!(is_own_page(&headers(given)), is_own, "{given:?}");
        }
    }

    #[test]
    fn what_is_shown_is_found() {
        // The expected results with TLS, and without.
        let cases: [(Headers<'_>, [Option<&str>; 2]); 11] = [
            (&[("authorization", "Bearer a")], [Some("a"); 2]),
            (&[("authorization", "bearer a")], [Some("a"); 2]),
            (&[("authorization", "Basic a"), ("cookie", "qualitytrace_session=s")], [None; 2]),
            (&[("authorization", "Bearer")], [None; 2]),
            (&[("cookie", "a=b; qualitytrace_session=s")], [None, Some("s")]),
            (&[("cookie", "__Host-qualitytrace_session=s;x=y")], [Some("s"), None]),
            (
                &[("cookie", "qualitytrace_session=planted; __Host-qualitytrace_session=s")],
                [Some("s"), Some("planted")],
            ),
            (&[("cookie", "xqualitytrace_session=s")], [None; 2]),
            (&[("cookie", "qualitytrace_session=s; qualitytrace_token=t")], [None, Some("t")]),
            (&[("cookie", "__Host-qualitytrace_token=t")], [Some("t"), None]),
            (&[], [None; 2]),
        ];
        for (given, found) in cases {
            let shown = [true, false]
                .map(|is_tls| shown(&headers(given), is_tls).map(|shown| shown.text.to_owned()));
            assert_eq!(shown.each_ref().map(Option::as_deref), found, "{given:?}");
        }
    }
}

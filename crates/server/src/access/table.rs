//! The access table: what each route requires. A route that is not in it is refused, and a test finds it.

use axum::http::Method;
use model::Role;

/// What a route requires of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: the route is public.
    Open,
    /// Authentication, with any role: the route is about the caller.
    Known,
    /// Authentication, with any role: the route is about the caller's own sessions. Those of others are for an admin of the server,
    /// which the handler checks with `guard`. A change gets a row in the audit log.
    Own,
    /// A role in the project that the request names.
    Project(Role),
    /// A role in all projects: the route is about the server.
    Server(Role),
}

use Need::{Known, Open, Own, Project, Server};
use Role::{Admin, Editor, Ingest, Viewer};

/// Every route, with its method and what it requires.
#[rustfmt::skip]
pub const TABLE: &[(&str, &str, Need)] = &[
    ("GET", "/", Open),
    ("GET", "/assets/{file}", Open),
    ("GET", "/login", Open),
    ("GET", "/runs", Open),
    ("GET", "/r/{run}", Open),
    ("GET", "/r/{run}/trace", Open),
    ("GET", "/suites", Open),
    ("GET", "/t/{test}", Open),
    ("GET", "/start", Open),
    ("GET", "/trace", Open),
    ("GET", "/errors/{code}", Open),
    ("GET", "/livez", Open),
    ("GET", "/readyz", Open),
    ("GET", "/metrics", Server(Viewer)),
    ("GET", "/api/v1/telemetry", Server(Viewer)),
    ("GET", "/api/v1/openapi.json", Open),
    ("GET", "/auth/login", Open),
    ("GET", "/auth/callback", Open),
    ("POST", "/auth/session", Open),
    ("POST", "/auth/logout", Own),
    ("GET", "/api/v1/server", Open),
    ("GET", "/api/v1/me", Known),
    ("GET", "/api/v1/demo", Project(Viewer)),
    ("POST", "/api/v1/demo", Project(Editor)),
    ("DELETE", "/api/v1/demo", Project(Editor)),
    ("GET", "/api/v1/receiver", Project(Viewer)),
    ("PUT", "/api/v1/documents", Project(Editor)),
    ("PUT", "/api/v1/tests", Project(Editor)),
    ("GET", "/api/v1/tests", Project(Viewer)),
    ("GET", "/api/v1/tests/{id}", Project(Viewer)),
    ("PUT", "/api/v1/tests/{id}", Project(Editor)),
    ("DELETE", "/api/v1/tests/{id}", Project(Editor)),
    ("GET", "/api/v1/tests/{id}/versions", Project(Viewer)),
    ("GET", "/api/v1/test-suites", Project(Viewer)),
    ("GET", "/api/v1/test-suites/{id}", Project(Viewer)),
    ("PUT", "/api/v1/test-suites/{id}", Project(Editor)),
    ("DELETE", "/api/v1/test-suites/{id}", Project(Editor)),
    ("GET", "/api/v1/test-suites/{id}/versions", Project(Viewer)),
    ("GET", "/api/v1/variable-sets", Project(Viewer)),
    ("GET", "/api/v1/variable-sets/{id}", Project(Viewer)),
    ("PUT", "/api/v1/variable-sets/{id}", Project(Editor)),
    ("DELETE", "/api/v1/variable-sets/{id}", Project(Editor)),
    ("GET", "/api/v1/variable-sets/{id}/versions", Project(Viewer)),
    ("GET", "/api/v1/trace-stores", Project(Viewer)),
    ("GET", "/api/v1/trace-stores/{id}", Project(Viewer)),
    ("PUT", "/api/v1/trace-stores/{id}", Project(Admin)),
    ("DELETE", "/api/v1/trace-stores/{id}", Project(Admin)),
    ("GET", "/api/v1/trace-stores/{id}/versions", Project(Viewer)),
    ("POST", "/api/v1/trace-stores/{id}/probe", Project(Admin)),
    ("GET", "/api/v1/settle-profiles", Project(Viewer)),
    ("GET", "/api/v1/settle-profiles/{id}", Project(Viewer)),
    ("PUT", "/api/v1/settle-profiles/{id}", Project(Editor)),
    ("DELETE", "/api/v1/settle-profiles/{id}", Project(Editor)),
    ("GET", "/api/v1/settle-profiles/{id}/versions", Project(Viewer)),
    ("GET", "/api/v1/analyzers", Project(Viewer)),
    ("GET", "/api/v1/analyzers/{id}", Project(Viewer)),
    ("PUT", "/api/v1/analyzers/{id}", Project(Editor)),
    ("DELETE", "/api/v1/analyzers/{id}", Project(Editor)),
    ("GET", "/api/v1/analyzers/{id}/versions", Project(Viewer)),
    ("GET", "/api/v1/quality-gates", Project(Viewer)),
    ("GET", "/api/v1/quality-gates/{id}", Project(Viewer)),
    ("PUT", "/api/v1/quality-gates/{id}", Project(Editor)),
    ("DELETE", "/api/v1/quality-gates/{id}", Project(Editor)),
    ("GET", "/api/v1/quality-gates/{id}/versions", Project(Viewer)),
    ("POST", "/api/v1/tests/{test}/runs", Project(Editor)),
    ("GET", "/api/v1/tests/{test}/trend", Project(Viewer)),
    ("GET", "/api/v1/trends", Project(Viewer)),
    ("GET", "/api/v1/runs", Project(Viewer)),
    ("GET", "/api/v1/runs/{run}", Project(Viewer)),
    ("POST", "/api/v1/runs/{run}/stop", Project(Editor)),
    ("GET", "/api/v1/runs/{run}/events", Project(Viewer)),
    ("GET", "/api/v1/events", Project(Viewer)),
    ("GET", "/api/v1/runs/{run}/trace", Project(Viewer)),
    ("GET", "/api/v1/runs/{run}/trace/attribute", Project(Viewer)),
    ("GET", "/api/v1/runs/{run}/trace/columns", Project(Viewer)),
    ("GET", "/api/v1/runs/{run}/trace/select", Project(Viewer)),
    ("GET", "/api/v1/runs/{run}/trace/spans/{span}", Project(Viewer)),
    ("GET", "/api/v1/runs/{run}/report", Project(Viewer)),
    ("POST", "/api/v1/runs/{run}/judgements", Project(Editor)),
    ("POST", "/api/v1/test-suites/{suite}/runs", Project(Editor)),
    ("GET", "/api/v1/suite-runs/{run}", Project(Viewer)),
    ("GET", "/api/v1/suite-runs/{run}/report", Project(Viewer)),
    ("POST", "/api/v1/suite-runs/{run}/stop", Project(Editor)),
    ("GET", "/api/v1/tokens", Server(Admin)),
    ("POST", "/api/v1/tokens", Server(Admin)),
    ("DELETE", "/api/v1/tokens/{id}", Server(Admin)),
    ("GET", "/api/v1/sessions", Own),
    ("DELETE", "/api/v1/sessions/{id}", Own),
    ("GET", "/api/v1/audit", Server(Admin)),
];

/// The roles that may send OTLP, over HTTP and gRPC. A sender of spans influences what runs find, so a role that may only read
/// sends none. The spans of a token reach the runs of its projects.
pub const INGEST: &[Role] = &[Ingest, Editor, Admin];

/// Returns what a request requires; `None` if the route is not in the table. `route` is `None` if no route matched.
pub(crate) fn need(method: &Method, route: Option<&str>) -> Option<Need> {
    // Only an authenticated caller learns that a route does not exist.
    let Some(route) = route else { return Some(Known) };
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let mut here = TABLE.iter().filter(|(_, known, _)| *known == route).peekable();
    here.peek()?;
    let found = here.find(|(known, _, _)| *known == method);
    // The route itself refuses a method that it does not support, but only for an authenticated caller.
    Some(found.map_or(Known, |(_, _, need)| *need))
}

/// Whether a request changes something, so that it gets a row in the audit log.
pub(crate) fn is_change(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

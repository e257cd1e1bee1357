//! The routes of the server, with the layers that every request passes.

use std::{future::ready, time::Duration};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{Method, StatusCode, Uri},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::MethodRouter,
};
use model::{ErrorCode, Fault};
use tokio::task::JoinSet;

use super::{
    app::App,
    guard, observe,
    problem::{self, Problem},
};
use crate::config::Mode;

/// The timeout for the work of a request: a little more than the timeout that the work applies itself.
const WORK_MAX: Duration = Duration::from_secs(35);

/// The handlers of the server, by where they run.
pub(crate) struct Routes {
    /// The API: it runs on the work runtime, which a full telemetry buffer may block.
    pub(crate) api: Router<App>,
    /// Handlers that run on the control runtime, which no work blocks.
    pub(crate) control: Router<App>,
    /// Probes. They arrive every second and show nothing about the server's work, so they are not traced.
    pub(crate) probes: Router<App>,
    /// The handler of paths that no route has.
    pub(crate) unknown: MethodRouter<App>,
}

/// Returns the router of the complete HTTP API and of the page.
pub(crate) fn router(routes: Routes, app: App) -> Router {
    let prefix = app.web.path_prefix.clone();
    let api = routes
        .api
        .fallback_service(routes.unknown.with_state(app.clone()))
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(app.body_bytes_max))
        .layer(middleware::from_fn_with_state(app.clone(), guard::known))
        .layer(middleware::from_fn_with_state(app.clone(), once_open))
        // Every response below gets a span, refusals included.
        .layer(middleware::from_fn_with_state(app.clone(), observe::observe))
        // The end of a span may block, so all of this runs apart from the probes.
        .layer(middleware::from_fn_with_state(app.clone(), on_work));
    let control =
        routes.control.layer(middleware::from_fn_with_state(app.clone(), guard::known_on_control));
    let router = routes
        .probes
        .merge(control)
        .method_not_allowed_fallback(no_such_method)
        .merge(api)
        .layer(middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app);
    below(prefix, router)
}

/// Returns a router that removes the prefix of a path before it selects the route. A path without it stays as it is: a proxy may
/// remove the prefix itself, and probes do not send it.
fn below(prefix: String, router: Router) -> Router {
    if prefix.is_empty() {
        return router;
    }
    let of_pages = prefix.clone();
    Router::new()
        .fallback_service(router)
        .layer(middleware::map_request(move |mut request: Request| {
            if let Some(uri) = without(&prefix, request.uri()) {
                *request.uri_mut() = uri;
            }
            ready(request)
        }))
        .layer(middleware::map_response(move |response: Response| {
            ready(problem::with_prefix(&of_pages, response))
        }))
}

/// Returns the URI without the prefix of its path, if it has that prefix.
fn without(prefix: &str, uri: &Uri) -> Option<Uri> {
    let whole = uri.path_and_query()?.as_str();
    let rest = whole.strip_prefix(prefix)?;
    let path = match rest.chars().next() {
        Some('/') => rest.to_owned(),
        None | Some('?') => format!("/{rest}"),
        Some(_) => return None,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Returns the router of a listener that serves only probes.
pub(crate) fn probes(probes: Router<App>, app: App) -> Router {
    probes
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

/// Handles the request on the work runtime. If the caller disconnects, the request is cancelled.
async fn on_work(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut task = JoinSet::new();
    task.spawn_on(next.run(request), &app.work);
    // This runtime needs its own timeout: while the work runtime is blocked, its timers do not fire either.
    match tokio::time::timeout(WORK_MAX, task.join_next()).await {
        Ok(Some(Ok(response))) => response,
        Ok(_) => {
            Problem::new(Fault::Internal, "internal error: the server could not finish the request")
                .into_response()
        }
        Err(_) => {
            let detail = format!("the request was not done within {} s", WORK_MAX.as_secs());
            Problem::new(Fault::Upstream, detail).into_response()
        }
    }
}

/// Refuses requests at once while the database is not connected, so that callers need not wait for the error.
async fn once_open(State(app): State<App>, request: Request, next: Next) -> Response {
    match app.opening.waits_for() {
        None => next.run(request).await,
        Some(why) => not_ready(&app, &why).into_response(),
    }
}

/// Builds the problem of a server that is not ready. With authentication on, only the server's log has the reason.
pub(crate) fn not_ready(app: &App, why: &str) -> Problem {
    let why = match app.access.mode {
        Mode::Off => why,
        Mode::On => "the server's log states what it waits for",
    };
    Problem::new(Fault::Upstream, format!("not ready: {why}")).with_code(ErrorCode::NotReady)
}

pub(crate) async fn no_such_path(uri: Uri) -> Problem {
    Problem::new(Fault::Missing, format!("there is nothing at `{}`", uri.path()))
}

async fn no_such_method(method: Method, uri: Uri) -> Response {
    let detail = format!("`{}` does not take `{method}`", uri.path());
    Problem::new(Fault::Invalid, detail).with_status(StatusCode::METHOD_NOT_ALLOWED).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::Uri;

    use super::without;

    #[test]
    fn a_prefix_ends_at_a_slash() {
        let cases = [
            ("/qt/api/v1/runs?limit=1", Some("/api/v1/runs?limit=1")),
            ("/qt", Some("/")),
            ("/qt?a=b", Some("/?a=b")),
            ("/qt/", Some("/")),
            ("/qt//evil", Some("//evil")),
            ("/qtx/api", None),
            ("/api/qt/", None),
            ("/", None),
        ];
        for (path, expected) in cases {
            let uri: Uri = path.parse().expect("a path");
            let found = without("/qt", &uri).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{path}");
        }
        let full: Uri = "http://qt.example/qt/r/1".parse().expect("a URL");
        let found = without("/qt", &full).map(|uri| uri.to_string());
        assert_eq!(found.as_deref(), Some("http://qt.example/r/1"));
    }
}

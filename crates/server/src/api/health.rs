//! Health for orchestrators: whether the server lives, whether it is ready; and its metrics.

use std::time::Duration;

use axum::{
    Json, Router,
    extract::State,
    http::{Uri, header, request::Parts},
    response::{IntoResponse, Response},
    routing::get,
};
use model::Fault;

use super::telemetry;
use crate::http::{
    app::App,
    guard,
    problem::Problem,
    router::{no_such_path, not_ready},
};

/// How long readiness waits for the database.
const PING_MAX: Duration = Duration::from_secs(2);

/// The probes.
pub(crate) fn probes() -> Router<App> {
    Router::new().route("/livez", get(alive)).route("/readyz", get(ready))
}

/// The metrics, which a guard protects.
pub(super) fn metrics_route() -> Router<App> {
    Router::new().route("/metrics", get(metrics))
}

/// The liveness probe: fails if a restart would help.
async fn alive(State(app): State<App>) -> Response {
    match app.liveness.stalled_for() {
        None => Json(serde_json::json!({"status": "alive"})).into_response(),
        Some(silent) => {
            let detail = format!("the server has done no work for {} s", silent.as_secs());
            Problem::new(Fault::Upstream, detail).into_response()
        }
    }
}

async fn ready(State(app): State<App>, parts: Parts) -> Response {
    let why = match app.opening.unready_reason() {
        // `DbStartup` logs this reason itself.
        Some(why) => return not_ready(&app, &why).into_response(),
        None => broken(&app).await,
    };
    app.opening.tell(why.as_deref(), &app.watch.telemetry);
    match why {
        None if guard::may_know(&app, &parts).await => {
            let exporters = telemetry::states(&app);
            Json(serde_json::json!({"status": "ready", "telemetry": exporters})).into_response()
        }
        None => Json(serde_json::json!({"status": "ready"})).into_response(),
        Some(why) => not_ready(&app, &why).into_response(),
    }
}

/// Returns the error of a dependency that worked before: the bus or the database.
async fn broken(app: &App) -> Option<String> {
    if let Some(why) = app.bus.broken() {
        return Some(why);
    }
    match tokio::time::timeout(PING_MAX, app.calm_db.ping()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("the database did not answer within {} s", PING_MAX.as_secs())),
    }
}

/// Returns all metrics in the Prometheus text format.
async fn metrics(State(app): State<App>, uri: Uri) -> Response {
    // Collecting takes a lock that may be held for as long as a disk operation takes.
    let text = tokio::task::spawn_blocking(move || app.watch.telemetry.prometheus()).await;
    match text.ok().flatten() {
        Some(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
            .into_response(),
        None => no_such_path(uri).await.into_response(),
    }
}

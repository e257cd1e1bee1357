//! The HTTP API: health, and under `/api/v1` tests and runs.
//!
//! All errors have one format (RFC 9457, see `problem`). `guard` decides which caller may send which request;
//! no handler does.

mod audit;
mod documents;
mod events;
mod form;
mod history;
mod judgements;
mod login;
mod login_audit;
mod openapi;
mod page;
mod reports;
mod runs;
mod sessions;
mod suite_runs;
mod telemetry;
mod tests;
mod tokens;

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{StatusCode, Uri, header, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use bus::{Local, Subject};
use db::Db;
use drivers::shares::Shares;
use model::{Fault, Project, RunId, World};
use runner::Pool;
use tokio::task::JoinSet;
use url::Url;
use utoipa_axum::router::OpenApiRouter;

use crate::http::problem::Problem;
use crate::{
    access::{Access, proxies::Origin},
    config::Mode,
    http::{guard, liveness::Liveness, observe},
    live::followers::Followers,
    startup::DbStartup,
    telemetry::calls::Watch,
};

/// The timeout for the work of a request: a little more than the timeout that the work applies itself.
const WORK_MAX: Duration = Duration::from_secs(35);
/// How long readiness waits for the database.
const PING_MAX: Duration = Duration::from_secs(2);

/// The state that every handler shares.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) db: Db,
    /// A second connection pool to the same database, for probes.
    pub(crate) calm_db: Db,
    /// The runtime for all work that may block.
    pub(crate) work: tokio::runtime::Handle,
    pub(crate) bus: Arc<Local>,
    pub(crate) watch: Watch,
    pub(crate) world: World,
    pub(crate) opening: DbStartup,
    /// Authenticates callers.
    pub(crate) access: Arc<Access>,
    /// Reports whether the server makes progress.
    pub(crate) liveness: Liveness,
    /// Whether this server terminates TLS itself.
    pub(crate) is_tls: bool,
    /// The URL by which browsers reach the server.
    pub(crate) public_url: Option<Url>,
    /// The maximum size of a request body in bytes.
    pub(crate) body_bytes_max: usize,
    /// The followers of active runs.
    pub(crate) followers: Arc<Followers>,
    /// Permits for readers of a trace: each reader may hold tens of megabytes.
    pub(crate) readers: Shares<Project>,
    /// Permits for writers of documents: each writer may make the database compress and log megabytes.
    pub(crate) writers: Shares<Project>,
    /// The thread pool for long computations.
    pub(crate) pool: Pool,
    /// The endpoint to which a Collector sends to reach this server.
    pub(crate) otlp: Arc<str>,
}

impl App {
    /// Whether a browser reaches this server over TLS: directly, by its public URL, or according to a trusted proxy.
    pub(crate) fn is_reached_by_tls(&self, origin: Origin) -> bool {
        let is_tls = self.is_tls || origin.is_tls;
        is_tls || self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }
}

/// The maximum number of traces read at a time.
pub(crate) const TRACE_READS_MAX: usize = 8;

/// The maximum number of document files written at a time; one for each project.
pub(crate) const DOCUMENT_WRITES_MAX: usize = 2;

/// The bus subject that notifies workers of a queued run.
pub(crate) fn runs_waiting() -> Subject {
    Subject("runs.waiting".to_owned())
}

/// The bus subject that notifies workers of a queued suite run.
pub(crate) fn suites_waiting() -> Subject {
    Subject("suites.waiting".to_owned())
}

/// The prefix, before the run's id, of the subject that notifies the owner of a run of a stop request.
pub(crate) const RUN_STOPPED: &str = "run.stopped.";

/// The bus subject that notifies the owner of a run of a stop request.
pub(crate) fn run_stopped(run: RunId) -> Subject {
    Subject(format!("{RUN_STOPPED}{run}"))
}

/// The prefix, before the run's id, of the subject that announces the end of a run, and later events.
const RUN_NEWS: &str = "run.";

/// The bus subject that announces the end of a run, and later events.
pub(crate) fn run_news(run: RunId) -> Subject {
    Subject(format!("{RUN_NEWS}{run}"))
}

/// The prefix, before the run's id, of the subject that notifies the followers of a run of new events.
pub(crate) const RUN_EVENTS: &str = "run.events.";

/// The bus subject that notifies the followers of a run of new events before its end.
pub(crate) fn run_events(run: RunId) -> Subject {
    Subject(format!("{RUN_EVENTS}{run}"))
}

/// Returns the run that has new events, if the subject is about events.
pub(crate) fn told_of(subject: &Subject) -> Option<RunId> {
    let subject = &subject.0;
    subject.strip_prefix(RUN_EVENTS).or_else(|| subject.strip_prefix(RUN_NEWS))?.parse().ok()
}

/// The OpenAPI document, rendered once.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    openapi::text(&openapi::document(routes().merge(calm_routes()).into_openapi()))
});

/// Returns the OpenAPI 3.1 document as JSON.
pub fn openapi() -> &'static str {
    &DOCUMENT
}

/// All operations of the API. Each module adds its own.
fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(tests::routes())
        .merge(documents::routes())
        .merge(runs::routes())
        .merge(events::routes())
        .merge(reports::routes())
        .merge(judgements::routes())
        .merge(suite_runs::routes())
        .merge(history::routes())
        .merge(tokens::routes())
        .merge(sessions::routes())
        .merge(audit::routes())
}

/// The operations that run on the control runtime, which no work blocks.
fn calm_routes() -> OpenApiRouter<App> {
    telemetry::routes()
}

/// The router of the complete HTTP API.
pub(crate) fn router(app: App) -> Router {
    let (api, _document) = routes().split_for_parts();
    let api = api
        .merge(login::routes())
        .route(openapi::PATH, get(|| async { openapi::answer(&DOCUMENT) }))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(app.body_bytes_max))
        .layer(middleware::from_fn_with_state(app.clone(), guard::known))
        .layer(middleware::from_fn_with_state(app.clone(), once_open))
        // Every response below gets a span, refusals included.
        .layer(middleware::from_fn_with_state(app.clone(), observe::observe))
        // The end of a span may block, so all of this runs apart from the probes.
        .layer(middleware::from_fn_with_state(app.clone(), on_work));
    let (calm, _document) = calm_routes().split_for_parts();
    let calm = calm
        .route("/metrics", get(metrics))
        .layer(middleware::from_fn_with_state(app.clone(), guard::known_calmly));
    probe_routes()
        .merge(calm)
        .method_not_allowed_fallback(no_such_method)
        .merge(api)
        .layer(middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

/// The router of a listener that serves only probes.
pub(crate) fn probes(app: App) -> Router {
    probe_routes()
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

/// The routes of probes. They arrive every second and show nothing about the server's work, so they are not traced.
fn probe_routes() -> Router<App> {
    Router::new().route("/livez", get(alive)).route("/readyz", get(ready))
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

/// Handles the request on the work runtime. If the caller disconnects, the request is cancelled.
async fn on_work(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut task = JoinSet::new();
    task.spawn_on(next.run(request), &app.work);
    // This runtime needs its own timeout: while the work runtime is blocked, its timers do not fire either.
    match tokio::time::timeout(WORK_MAX, task.join_next()).await {
        Ok(Some(Ok(response))) => response,
        Ok(_) => Problem::new(Fault::Internal, "the request met a bug here").into_response(),
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
fn not_ready(app: &App, why: &str) -> Problem {
    let why = match app.access.mode {
        Mode::Off => why,
        Mode::On => "the server's log states what it waits for",
    };
    Problem::new(Fault::Upstream, format!("not ready: {why}"))
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

/// Returns the error of a dependency that worked before: the span journal or the database.
async fn broken(app: &App) -> Option<String> {
    if let Some(error) = app.bus.counts().journal_error {
        app.bus.try_journal();
        return Some(format!("the journal of spans cannot be written: {error}"));
    }
    match tokio::time::timeout(PING_MAX, app.calm_db.ping()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("the database did not answer within {} s", PING_MAX.as_secs())),
    }
}

async fn no_such_path(uri: Uri) -> Problem {
    Problem::new(Fault::Missing, format!("there is nothing at `{}`", uri.path()))
}

async fn no_such_method(method: axum::http::Method, uri: Uri) -> Response {
    let detail = format!("`{}` does not take `{method}`", uri.path());
    Problem::new(Fault::Invalid, detail).with_status(StatusCode::METHOD_NOT_ALLOWED).into_response()
}

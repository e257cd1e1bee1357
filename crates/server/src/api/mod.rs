//! The HTTP API: health, and under `/api/v1` tests and runs.
//!
//! All errors have one format (RFC 9457, see `http::problem`). `http::guard` decides which caller may send which request;
//! no handler does.

mod audit;
mod changes;
mod demo;
mod documents;
mod errors;
mod events;
mod form;
mod health;
mod history;
mod judgements;
mod login;
mod login_audit;
mod openapi;
mod page;
mod probe;
mod receiver;
mod reports;
mod run_facts;
mod runs;
mod server_facts;
mod sessions;
mod suite_runs;
mod telemetry;
mod tests;
mod token_login;
mod tokens;
mod trace_detail;
mod traces;
mod trends;

use std::sync::LazyLock;

use axum::{
    Router,
    routing::{any, get},
};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    config::ServerRoles,
    http::{
        app::App,
        router::{Routes, no_such_path},
    },
};

pub(crate) use health::probes;
pub use openapi::API_VERSION;

/// The OpenAPI document, rendered once.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    openapi::text(&openapi::document(operations().merge(telemetry::routes()).into_openapi()))
});

/// Returns the OpenAPI 3.1 document as JSON.
pub fn openapi() -> &'static str {
    &DOCUMENT
}

/// All operations of the API. Each module adds its own.
fn operations() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(tests::routes())
        .merge(documents::routes())
        .merge(probe::routes())
        .merge(runs::routes())
        .merge(traces::routes())
        .merge(trace_detail::routes())
        .merge(events::routes())
        .merge(changes::routes())
        .merge(reports::routes())
        .merge(judgements::routes())
        .merge(suite_runs::routes())
        .merge(history::routes())
        .merge(trends::routes())
        .merge(tokens::routes())
        .merge(sessions::routes())
        .merge(server_facts::routes())
        .merge(demo::routes())
        .merge(receiver::routes())
        .merge(audit::routes())
}

/// Returns all handlers of a process with these roles, without those of the page.
pub(crate) fn routes(roles: ServerRoles) -> Routes {
    let (api, _document) = operations().split_for_parts();
    let api = api
        .merge(login::routes())
        .route(openapi::PATH, get(|| async { openapi::answer(&DOCUMENT) }));
    let api = if roles.api { api } else { Router::new() };
    let (control, _document) = telemetry::routes().split_for_parts();
    Routes {
        api,
        control: control.merge(health::metrics_route()).merge(errors::routes()),
        probes: probes(),
        unknown: any(no_such_path),
    }
}

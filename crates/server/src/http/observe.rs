//! A span and a timeout for every request, and the trace context for the work that it starts.

use std::time::Duration;

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use model::{Fault, SpanId, TraceId};
use telemetry::plan::Level;

use super::{app::App, problem::Problem};
use crate::{
    access::token,
    plant::{Plant, is_planted},
    telemetry::{call::HttpSpan, log_context::within, spans::send_http, traceparent::TraceParent},
};

/// The timeout of a request, its body included.
const REQUEST_MAX: Duration = Duration::from_secs(30);

pub(crate) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let began = app.world.now();
    let header = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    let remote = header.and_then(|value| value.parse::<TraceParent>().ok());
    let context = TraceParent {
        trace_id: remote
            .map_or_else(|| TraceId::from_random(app.world.random()), |remote| remote.trace_id),
        span_id: SpanId::from_random(app.world.random()),
        sampled: remote.is_none_or(|remote| remote.sampled),
        followed: remote.is_some(),
        level: Level::Info,
    };
    let method = request.method().clone();
    let mut path = token::hide(request.uri().path().to_owned());
    if is_planted(Plant::SecretInAttribute) {
        let shown = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        path = format!("{path}?{}", shown.unwrap_or_default().trim_start_matches("Bearer "));
    }
    let route = request.extensions().get::<MatchedPath>().cloned();
    request.extensions_mut().insert(context);
    let response = match tokio::time::timeout(REQUEST_MAX, within(context, next.run(request))).await
    {
        Ok(response) => response,
        Err(_) => {
            let detail = format!("the request was not done within {} s", REQUEST_MAX.as_secs());
            Problem::new(Fault::Upstream, detail).into_response()
        }
    };
    send_http(
        &app.watch.telemetry,
        &HttpSpan {
            context,
            parent: remote.map(|remote| remote.span_id),
            method: method.as_str(),
            route: route.as_ref().map(MatchedPath::as_str),
            path: &path,
            status: response.status().as_u16(),
            fault: response.extensions().get().copied(),
            began,
            ended: app.world.now(),
        },
    );
    response
}

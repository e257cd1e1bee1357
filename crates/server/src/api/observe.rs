//! A span for every request, and the context that what it starts continues.

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};

use super::App;
use crate::{
    own_spans::{HttpSpan, new_span_id, new_trace_id, send_http},
    traceparent::TraceParent,
};

pub(super) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let began = (app.world.now)();
    let header = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    let remote = header.and_then(|value| value.parse::<TraceParent>().ok());
    let context = TraceParent {
        trace_id: remote.map_or_else(|| new_trace_id(app.world.random), |remote| remote.trace_id),
        span_id: new_span_id(app.world.random),
        sampled: remote.is_none_or(|remote| remote.sampled),
    };
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>().cloned();
    request.extensions_mut().insert(context);
    let response = next.run(request).await;
    send_http(
        &app.telemetry,
        &HttpSpan {
            context,
            parent: remote.map(|remote| remote.span_id),
            method: method.as_str(),
            route: route.as_ref().map(MatchedPath::as_str),
            path: &path,
            status: response.status().as_u16(),
            began,
            ended: (app.world.now)(),
        },
    );
    response
}

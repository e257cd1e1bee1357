//! HTTP server and client: a SERVER span for each incoming request, a CLIENT span for each outgoing one.
//!
//! Services address each other by name; the address book resolves a name to an address, so that spans have the same
//! attributes at each start.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use serde_json::{Value, json};
use telemetry::opentelemetry::{Context, KeyValue, trace::SpanKind};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    service::{Service, Staff},
    spans::{Headers, HeadersMut, pass_on, remote},
};

/// The upper bound for a request body.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// The upper bound for concurrent connections to one service; further ones wait.
const CONNECTIONS_MAX: usize = 256;
/// How long a peer may take to send the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(30);
/// The timeout for a call to another service.
const CALL_MAX: Duration = Duration::from_secs(10);
/// How long to wait when the operating system cannot provide a socket.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A request, as the handler of a service receives it.
#[derive(Debug)]
pub(crate) struct Call {
    /// Method and template, such as `GET /orders/{order}`.
    pub(crate) route: &'static str,
    /// The value of the template's parameter.
    pub(crate) parameter: String,
    pub(crate) body: Bytes,
}

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn new(status: StatusCode, body: Value) -> Self {
        Self { status, body }
    }

    /// Returns a response with an error message.
    pub(crate) fn refuse(status: StatusCode, why: &str) -> Self {
        Self { status, body: json!({ "error": why }) }
    }
}

/// Serves until the stop signal, then until all active requests have their response.
pub(crate) async fn serve(listener: TcpListener, staff: Arc<Staff>, mut stop: watch::Receiver<()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        let (stream, place) = tokio::select! {
            _ = stop.changed() => break,
            (accepted, place) = accepted => match accepted {
                Ok((stream, _)) => (stream, place),
                Err(_) => {
                    sleep(ACCEPT_RETRY).await;
                    continue;
                }
            },
        };
        while connections.try_join_next().is_some() {}
        // A response in two small packets would wait for the acknowledgement of the first.
        let _best_effort = stream.set_nodelay(true);
        let staff = Arc::clone(&staff);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_MAX)
            .serve_connection(
                TokioIo::new(stream),
                service_fn(move |request| {
                    let staff = Arc::clone(&staff);
                    async move { Ok::<_, std::convert::Infallible>(answer(&staff, request).await) }
                }),
            );
        let connection = graceful.watch(connection);
        connections.spawn(async move {
            // A client may disconnect at any time; that is no error of the service.
            let _broken = connection.await;
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
    while connections.join_next().await.is_some() {}
}

/// Responds to one request: matches its route, calls the service's handler, and creates a span.
async fn answer(staff: &Staff, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    if head.uri.path() == "/health" {
        // Load balancers poll this all day: no span, as in most shops.
        return response(&Reply::new(StatusCode::OK, json!({ "status": "up" })));
    }
    let found = route(staff.service.routes(), &head.method, head.uri.path());
    let name = found.as_ref().map_or(head.method.as_str(), |(route, _)| route);
    let parent = remote(&Headers(&head.headers));
    let mut span =
        staff.spans.start(&parent, SpanKind::Server, name, server_attributes(&head, name));
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let reply = match (found, body) {
        (None, _) => Reply::refuse(StatusCode::NOT_FOUND, "there is no such page"),
        (_, Err(_)) => Reply::refuse(StatusCode::PAYLOAD_TOO_LARGE, "at most 64 KiB are read"),
        (Some((route, parameter)), Ok(body)) => {
            staff.handle(&mut span, Call { route, parameter, body: body.to_bytes() }).await
        }
    };
    span.note("http.response.status_code", i64::from(reply.status.as_u16()));
    if reply.status.is_server_error() {
        span.fail(reply.status.as_str(), why(&reply));
    }
    response(&reply)
}

/// Returns the attributes of a SERVER span.
fn server_attributes(head: &http::request::Parts, name: &str) -> Vec<KeyValue> {
    let text =
        |header| head.headers.get(header).and_then(|value: &HeaderValue| value.to_str().ok());
    let host = text(header::HOST).unwrap_or("localhost");
    let (address, port) = match host.rsplit_once(':') {
        Some((address, port)) => (address, port.parse().unwrap_or(80)),
        None => (host, 80),
    };
    let mut attributes = vec![
        KeyValue::new("http.request.method", head.method.to_string()),
        KeyValue::new("url.scheme", "http"),
        KeyValue::new("url.path", head.uri.path().to_owned()),
        KeyValue::new("server.address", address.to_owned()),
        KeyValue::new("server.port", i64::from(port)),
        KeyValue::new("network.protocol.version", "1.1"),
    ];
    let route = name.split_once(' ').map(|(_, template)| template.to_owned());
    attributes.extend(route.map(|template| KeyValue::new("http.route", template)));
    let query = head.uri.query().map(|query| KeyValue::new("url.query", query.to_owned()));
    attributes.extend(query);
    let agent = text(header::USER_AGENT).map(ToOwned::to_owned);
    attributes.extend(agent.map(|agent| KeyValue::new("user_agent.original", agent)));
    attributes
}

fn response(reply: &Reply) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{}\n", reply.body))));
    *response.status_mut() = reply.status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Returns the matching route of a request, and the value of its parameter.
fn route(routes: &[&'static str], method: &Method, path: &str) -> Option<(&'static str, String)> {
    routes.iter().find_map(|route| {
        let (verb, template) = route.split_once(' ')?;
        if verb != method.as_str() {
            return None;
        }
        match template.split_once('{') {
            None => (template == path).then(|| (*route, String::new())),
            Some((before, _)) => {
                let parameter = path.strip_prefix(before)?;
                let one = !parameter.is_empty() && !parameter.contains('/');
                one.then(|| (*route, parameter.to_owned()))
            }
        }
    })
}

/// The HTTP client for calls to other services.
#[derive(Debug)]
pub(crate) struct Caller(Client<HttpConnector, Full<Bytes>>);

/// A request to another service.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) to: Service,
    pub(crate) path: &'a str,
    /// The body; a request with a body is a POST, one without a GET.
    pub(crate) body: Option<Value>,
    /// The number of earlier attempts.
    pub(crate) resend: u32,
    /// Whether the request carries the trace context.
    pub(crate) with_context: bool,
}

impl<'a> Question<'a> {
    /// Returns the request for a first attempt, with the trace context.
    pub(crate) fn new(to: Service, path: &'a str, body: Option<Value>) -> Self {
        Self { to, path, body, resend: 0, with_context: true }
    }

    fn method(&self) -> Method {
        if self.body.is_some() { Method::POST } else { Method::GET }
    }
}

impl Caller {
    pub(crate) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(Client::builder(TokioExecutor::new()).build(connector))
    }

    /// Sends a request, and creates a span for it. Without a response it returns 502, or 504 after a timeout.
    pub(crate) async fn ask(&self, staff: &Staff, parent: &Context, it: Question<'_>) -> Reply {
        let (name, method) = (it.to.as_str(), it.method());
        let mut attributes = vec![
            KeyValue::new("http.request.method", method.to_string()),
            KeyValue::new("url.full", format!("http://{name}{}", it.path)),
            KeyValue::new("server.address", name),
            KeyValue::new("server.port", 80),
            KeyValue::new("network.protocol.version", "1.1"),
        ];
        if it.resend > 0 {
            attributes.push(KeyValue::new("http.request.resend_count", i64::from(it.resend)));
        }
        let span = staff.spans.start(parent, SpanKind::Client, method.as_str(), attributes);
        let mut headers = HeaderMap::new();
        if it.with_context {
            pass_on(&span.context, &mut HeadersMut(&mut headers));
        }
        let reply = self.send(staff.book.of(it.to), it, headers).await;
        let status = reply.status;
        span.note("http.response.status_code", i64::from(status.as_u16()));
        if status.is_client_error() || status.is_server_error() {
            span.fail(status.as_str(), why(&reply));
        }
        reply
    }

    async fn send(&self, at: SocketAddr, it: Question<'_>, headers: HeaderMap) -> Reply {
        let method = it.method();
        let body = it.body.map_or_else(Bytes::new, |body| body.to_string().into());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        request.headers_mut().insert(header::HOST, HeaderValue::from_static(it.to.as_str()));
        let Ok(uri) = format!("http://{at}{}", it.path).parse() else {
            return Reply::refuse(StatusCode::BAD_REQUEST, "this is no path");
        };
        *request.uri_mut() = uri;
        let exchange = async {
            let (head, body) = self.0.request(request).await.ok()?.into_parts();
            let body = Limited::new(body, BODY_BYTES_MAX).collect().await.ok()?.to_bytes();
            Some(Reply::new(head.status, serde_json::from_slice(&body).unwrap_or_default()))
        };
        match timeout(CALL_MAX, exchange).await {
            Ok(Some(reply)) => reply,
            Ok(None) => Reply::refuse(StatusCode::BAD_GATEWAY, "the next service is away"),
            Err(_) => Reply::refuse(StatusCode::GATEWAY_TIMEOUT, "the next service is too slow"),
        }
    }
}

/// Returns the error message of a response.
fn why(reply: &Reply) -> String {
    reply.body["error"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::route;

    #[test]
    fn a_route_is_found_by_method_and_template() {
        let routes = &["POST /orders", "GET /orders/{order}", "GET /products"];
        let cases = [
            (Method::POST, "/orders", Some(("POST /orders", ""))),
            (Method::GET, "/orders/o-1", Some(("GET /orders/{order}", "o-1"))),
            (Method::GET, "/orders/", None),
            (Method::GET, "/orders/o-1/lines", None),
            (Method::DELETE, "/products", None),
        ];
        for (method, path, expected) in cases {
            let found = route(routes, &method, path);
            let found = found.as_ref().map(|(route, parameter)| (*route, parameter.as_str()));
            assert_eq!(found, expected, "{method} {path}");
        }
    }
}

//! Hops between services: calls without another side (server or consumer span), and the new traces that started instead.

use std::{net::IpAddr, time::Duration};

use model::{
    SpanId, Trace,
    trace::{Kind, Span, StatusCode, Tree},
};

use super::{
    case::Case,
    foreign::Root,
    words::{self, attribute},
};
use crate::settle::peer::{is_call, is_entry};

/// The maximum time between a call and its effect by the clocks of synchronized machines.
const TOLERANCE: Duration = Duration::from_millis(20);

/// The upper bounds of the calls that are compared with foreign traces, and of the foreign traces compared with our spans.
pub(super) const EDGES_MAX: usize = 64;
const ROOTS_MAX: usize = 16;

const HOSTS: [&str; 3] = ["server.address", "net.peer.name", "net.peer.ip"];
const PORTS: [&str; 2] = ["server.port", "net.peer.port"];
const SERVED_HOSTS: [&str; 2] = ["server.address", "net.host.name"];
const SERVED_PORTS: [&str; 2] = ["server.port", "net.host.port"];
const PATHS: [&str; 3] = ["url.path", "http.target", "http.route"];

/// A hop at which the trace context was lost.
pub(super) struct Hop<'a> {
    /// The last span that has the context.
    pub(super) before: Option<Span<'a>>,
    /// The first span that no longer has it.
    pub(super) after: Span<'a>,
    /// Whether both spans belong to one service.
    pub(super) is_inside: bool,
}

/// Returns the calls and messages of a trace that have no other side, without database calls.
pub(super) fn open_edges(trace: &Trace, trigger: SpanId) -> Vec<Span<'_>> {
    let tree = Tree::of(trace);
    let is_open = |span: &Span<'_>| {
        let mut below = tree.children_at(tree.place(span.ix())).map(|at| tree.order()[at]);
        span.id() != trigger && is_call(*span) && !below.any(|child| is_entry(trace.span(child)))
    };
    trace.spans().filter(is_open).collect()
}

/// Returns the traces that started where these calls were made, each with its call, and removes them from `roots`. A trace
/// counts only if its likeness to the call is at least `likeness_min`.
pub(super) fn lost_at_edges<'a>(
    edges: &[Span<'a>],
    roots: &mut Vec<Root<'a>>,
    likeness_min: u8,
) -> Vec<Hop<'a>> {
    let mut hops = Vec::new();
    for edge in edges.iter().take(EDGES_MAX) {
        let fits = |root: &Root<'_>| {
            let like = likeness(*edge, root.span);
            let is_same = words::service(root.span) == words::service(*edge);
            root.is_within
                && root.is_first()
                && is_other_side(*edge, root.span)
                && like >= likeness_min.max(u8::from(is_same))
        };
        let fitting = roots.iter().enumerate().rev().filter(|(_, root)| fits(root));
        // Of equal candidates this selects the earliest, as `max_by_key` returns the last.
        let best = fitting.max_by_key(|(_, root)| likeness(*edge, root.span));
        if let Some((at, _)) = best {
            let after = roots.remove(at).span;
            hops.push(Hop { before: Some(*edge), after, is_inside: false });
        }
    }
    hops
}

/// Returns traces that started inside a service that has our context, and those of services that the test expects.
pub(super) fn lost_inside<'a>(
    case: &Case<'a>,
    roots: &[Root<'a>],
    expected: &[String],
) -> Vec<Hop<'a>> {
    let is_expected = |root: &Root<'_>| {
        let service = words::service(root.span);
        expected.iter().any(|name| name == service)
    };
    // A call from outside is not work of the span that was active when it arrived.
    let may_belong = |root: &&Root<'a>| {
        root.is_within && root.is_first() && (is_expected(root) || !root.is_entry())
    };
    let mut hops = Vec::new();
    for root in roots.iter().filter(may_belong).take(ROOTS_MAX) {
        let (service, start) = (words::service(root.span), root.span.start());
        let around = case
            .trace
            .spans()
            .filter(|span| span.id() != case.fired.attempt.span_id)
            .filter(|span| span.start() <= start && start <= span.end())
            .filter(|span| is_expected(root) || words::service(*span) == service)
            .max_by_key(|span| (span.start(), span.ix().number()));
        let is_inside = around.is_some_and(|around| words::service(around) == service);
        if is_expected(root) || is_inside {
            hops.push(Hop { before: around, after: root.span, is_inside });
        }
    }
    hops
}

/// Whether a separate trace is the other side of a call: its first span is the receiving side of the called peer, and it
/// started during the call.
///
/// If the call names the service, the arrival times decide, since clocks differ. If only a path or a method matches, the clocks
/// must agree as well, and the address must not contradict it.
pub(super) fn is_answered_elsewhere(edge: Span<'_>, root: &Root<'_>) -> bool {
    let is_kind = matches!(
        (edge.kind(), root.span.kind()),
        (Kind::Client, Kind::Server) | (Kind::Producer, Kind::Consumer)
    );
    is_kind
        && root.is_first()
        && root.has_arrived_since
        && match is_named(edge, root.span) {
            true => is_no_longer(edge, root.span),
            // A message goes to a destination, and its address is that of the broker.
            false => {
                root.is_within
                    && is_other_side(edge, root.span)
                    && (edge.kind() == Kind::Producer || is_unnamed(edge))
                    && likeness(edge, root.span) > 0
            }
        }
}

/// Whether a call names the service of a span, or the address that the service serves.
fn is_named(edge: Span<'_>, root: Span<'_>) -> bool {
    let service = words::service(root);
    if attribute(edge, &["peer.service"]).is_some_and(|peer| peer == service) {
        return true;
    }
    let Some(host) = attribute(edge, &HOSTS) else { return false };
    let label = host.split('.').next().unwrap_or_default();
    let is_service = host == service || (label == service && host.parse::<IpAddr>().is_err());
    let port = |span: Span<'_>, keys: &[&str]| {
        keys.iter().find_map(|key| crate::settle::peer::text(span.attributes(), key))
    };
    let ports = (port(edge, &PORTS), port(root, &SERVED_PORTS));
    let is_address = attribute(root, &SERVED_HOSTS) == Some(host) && ports.0 == ports.1;
    is_service || (is_address && ports.0.is_some())
}

/// Whether the address of a call does not identify the peer: it is an IP address or `localhost`, or is missing.
fn is_unnamed(edge: Span<'_>) -> bool {
    let host = attribute(edge, &HOSTS);
    host.is_none_or(|host| host == "localhost" || host.parse::<IpAddr>().is_ok())
}

/// Whether a call lasted at least as long as its other side. A consumer processes a message after the producer's span.
fn is_no_longer(edge: Span<'_>, root: Span<'_>) -> bool {
    let lasted = |span: Span<'_>| span.end().since(span.start());
    let is_over = edge.status() == StatusCode::Error || edge.kind() == Kind::Producer;
    is_over || lasted(root) <= lasted(edge) + TOLERANCE
}

/// Returns the path of an absolute URL.
pub(super) fn path_of(url: &str) -> &str {
    let behind = url.split_once("://").map_or(url, |(_, behind)| behind);
    let path = behind.find('/').map_or("/", |at| &behind[at..]);
    path.split(['?', '#']).next().unwrap_or("/")
}

/// Returns the path that a server span reports.
pub(super) fn served_path(span: Span<'_>) -> Option<&str> {
    attribute(span, &PATHS).map(path_of)
}

/// Whether a span may be the other side of a call, by its kind and its time.
fn is_other_side(edge: Span<'_>, root: Span<'_>) -> bool {
    let is_later = root.start().plus(TOLERANCE) >= edge.start();
    match (edge.kind(), root.kind()) {
        (Kind::Client, Kind::Server) => is_later && root.start() <= edge.end().plus(TOLERANCE),
        (Kind::Producer, Kind::Consumer) => is_later,
        _ => false,
    }
}

/// Returns how similar a span is to the other side of a call.
fn likeness(edge: Span<'_>, root: Span<'_>) -> u8 {
    let path = attribute(edge, &["url.full", "http.url"]).map(path_of);
    let path = path.or_else(|| served_path(edge));
    let same = |key: &str| {
        let value = attribute(edge, &[key]);
        value.is_some() && value == attribute(root, &[key])
    };
    let is_path = path.is_some() && path == served_path(root);
    let is_named = attribute(edge, &["peer.service"]) == Some(words::service(root))
        || attribute(edge, &["server.address"]) == Some(words::service(root));
    u8::from(is_path)
        + u8::from(is_named)
        + u8::from(same("messaging.destination.name"))
        + u8::from(same("rpc.method"))
}

//! Rules on the relations between the spans of several services.

use std::collections::HashSet;

use model::{
    SpanId, Timestamp,
    trace::{Kind, Span, StatusCode},
};

use super::{
    dns::{host_of_url, without_port},
    finding::{Findings, shown},
    world::{AnalysisContext, AnalyzedSpan, Area, first, is_trigger, service},
};

/// The maximum clock difference that is not reported: synchronized hosts stay well below.
const SKEW_NS_MAX: u64 = 10_000_000;

/// Attributes that name the called service, and attributes that name its host.
const PEER_SERVICES: &[&str] = &["service.peer.name", "peer.service"];
const PEER_HOSTS: &[&str] = &["server.address", "net.peer.name", "http.host"];
const PEER_URLS: &[&str] = &["url.full", "http.url"];

pub(super) fn no_orphans(world: &AnalysisContext<'_>, findings: &mut Findings) {
    let outside = caller_outside(world);
    for span in world.tree.orphans().iter().map(|ix| world.trace.span(*ix)) {
        let parent = span.parent().filter(|parent| Some(*parent) != outside);
        if let Some(parent) = parent {
            findings.add(span, || {
                format!(
                    "names the parent `{parent}`, which is not in the trace: \
                     export the spans of its caller here too, with the same sampling"
                )
            });
        }
    }
}

/// Returns the one absent parent of a trace with a caller outside the system: the trace has no root, and all orphans
/// are serving spans with this parent.
fn caller_outside(world: &AnalysisContext<'_>) -> Option<SpanId> {
    if world.trace.spans().any(|span| span.parent().is_none()) {
        return None;
    }
    let mut orphans = world.tree.orphans().iter().map(|ix| world.trace.span(*ix));
    let outside = world.trace.span(*world.tree.orphans().first()?).parent();
    let is_entered = |span: Span<'_>| is_serving(span) && span.parent() == outside;
    orphans.all(is_entered).then_some(outside)?
}

pub(super) fn unique_span_ids(world: &AnalysisContext<'_>, findings: &mut Findings) {
    for span in world.trace.conflicts().iter().map(|ix| world.trace.span(*ix)) {
        findings.add(span, || {
            "has the id of an earlier span that says something else: \
             draw ids at random, and export a span once, when it has ended"
                .to_owned()
        });
    }
}

pub(super) fn clock_skew(world: &AnalysisContext<'_>, findings: &mut Findings) {
    for AnalyzedSpan { span, .. } in world.subjects() {
        if span.end() < span.start() {
            let by = nanos_between(span.end(), span.start());
            findings.add(*span, || {
                format!(
                    "ends {} before it starts: measure durations by a clock that is not set back",
                    shown_nanos(by)
                )
            });
            continue;
        }
        let Some(parent) = world.parent(*span).filter(|parent| !is_trigger(*parent)) else {
            continue;
        };
        if parent.resource_ix() != span.resource_ix()
            && let Some((what, by)) = skew(parent, *span)
        {
            findings.add(*span, || {
                let (by, parent) = (shown_nanos(by), shown(parent.name()));
                format!("{what} its parent {parent} by {by}: synchronise the clocks of their hosts")
            });
        }
    }
}

/// Returns how a span exceeds its parent in time, if only a clock difference can be the cause.
fn skew(parent: Span<'_>, span: Span<'_>) -> Option<(&'static str, u64)> {
    let early = nanos_between(span.start(), parent.start());
    if early > SKEW_NS_MAX {
        return Some(("starts before", early));
    }
    // The client waits for the server, unless it gave up. If the server span is longer, clocks are not the cause.
    let is_waited_for = parent.kind() == Kind::Client
        && span.kind() == Kind::Server
        && parent.status() != StatusCode::Error
        && span.duration() <= parent.duration();
    let late = nanos_between(parent.end(), span.end());
    (is_waited_for && late > SKEW_NS_MAX).then_some(("ends after", late))
}

/// Returns 0 if `later` is not later.
fn nanos_between(earlier: Timestamp, later: Timestamp) -> u64 {
    later.as_nanos().saturating_sub(earlier.as_nanos())
}

fn shown_nanos(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", nanos / 1_000),
        1_000_000..10_000_000_000 => format!("{}ms", nanos / 1_000_000),
        _ => format!("{}s", nanos / 1_000_000_000),
    }
}

pub(super) fn server_side(world: &AnalysisContext<'_>, findings: &mut Findings) {
    let services: HashSet<String> =
        world.trace.spans().filter_map(service).map(str::to_lowercase).collect();
    let links = world.subjects().iter().filter(|subject| is_serving(subject.span));
    let linked: HashSet<SpanId> =
        links.flat_map(|subject| subject.span.links()).filter_map(|link| link.span_id()).collect();
    let answered = answered(world);
    for AnalyzedSpan { span, areas } in world.subjects() {
        // A failed call may never have arrived, and a database is not a service.
        let is_sent = span.status() != StatusCode::Error && !areas.has(Area::Database);
        let is_call = is_calling(*span) && is_sent;
        let is_answered = answered[world.tree.place(span.ix())] || linked.contains(&span.id());
        if !is_call || is_answered {
            continue;
        }
        if let Some(peer) = peer_among(*span, &services) {
            findings.add(*span, || {
                format!(
                    "calls {}, which has spans in this trace, but none below this call: \
                     hand the trace context on, and continue it there",
                    shown(&peer)
                )
            });
        }
    }
}

/// Returns, by position in the tree order, whether a serving span is below, or another call, which is checked instead.
fn answered(world: &AnalysisContext<'_>) -> Vec<bool> {
    let order = world.tree.order();
    let mut answered = vec![false; order.len()];
    // From the last to the first: the descendants of a span follow it in the tree order.
    for ix in order.iter().rev() {
        let span = world.trace.span(*ix);
        if let Some(parent) = world.tree.parent(*ix) {
            answered[world.tree.place(parent)] |=
                answered[world.tree.place(*ix)] || is_serving(span) || is_calling(span);
        }
    }
    answered
}

fn is_serving(span: Span<'_>) -> bool {
    matches!(span.kind(), Kind::Server | Kind::Consumer)
}

fn is_calling(span: Span<'_>) -> bool {
    matches!(span.kind(), Kind::Client | Kind::Producer)
}

/// Returns the service that a span calls, if it is in `services` and is not the span's own service. The first label of
/// a host counts as the name of a service: `orders` and `orders.shop.svc` both mean the service `orders`.
fn peer_among(span: Span<'_>, services: &HashSet<String>) -> Option<String> {
    let host = || {
        let url = || first(span, PEER_URLS).and_then(host_of_url);
        let host = first(span, PEER_HOSTS).map(without_port).or_else(url)?;
        host.split('.').next()
    };
    let peer = first(span, PEER_SERVICES).or_else(host)?.to_lowercase();
    let is_own = service(span).is_some_and(|own| own.to_lowercase() == peer);
    (!is_own && services.contains(&peer)).then_some(peer)
}

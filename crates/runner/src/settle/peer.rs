//! The peer that a span calls, by its attributes.

use model::trace::{Attributes, Kind, Span, ValueRef};

pub(crate) use super::process::text;

/// Bits of a span's flags: whether the flags state if the parent is remote, and whether it is remote.
const SAYS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// Whether a span calls another process that may send the other side.
pub(crate) fn is_call(span: Span<'_>) -> bool {
    matches!(span.kind(), Kind::Client | Kind::Producer) && !is_database(span.attributes())
}

/// Whether a span is the other side of a call.
pub(crate) fn is_entry(span: Span<'_>) -> bool {
    matches!(span.kind(), Kind::Server | Kind::Consumer)
}

/// Whether the parent of a span may be in another process.
pub(super) fn may_enter(span: Span<'_>) -> bool {
    match span.flags() & (SAYS_REMOTE | IS_REMOTE) {
        SAYS_REMOTE => false,
        0 => matches!(span.kind(), Kind::Server | Kind::Consumer),
        _ => true,
    }
}

/// Returns the peer of a call: `peer.service`, else the address, else the message destination; none if the span has none.
///
/// One broker serves many destinations, so the peer of a message contains both.
pub(crate) fn peer(span: Span<'_>) -> Option<String> {
    let attributes = span.attributes();
    let peer = text(attributes, "peer.service").or_else(|| address(attributes));
    if span.kind() != Kind::Producer {
        return peer.or_else(|| destination(attributes));
    }
    match (peer, destination(attributes)) {
        (Some(peer), Some(destination)) => Some(format!("{peer}/{destination}")),
        (peer, destination) => peer.or(destination),
    }
}

/// Whether the called peer is a database, which sends no spans.
fn is_database(attributes: Attributes<'_>) -> bool {
    ["db.system.name", "db.system"].iter().any(|key| attributes.get(key).is_some())
}

fn destination(attributes: Attributes<'_>) -> Option<String> {
    ["messaging.destination.name", "messaging.destination"]
        .iter()
        .find_map(|key| text(attributes, key))
}

/// Returns host and port, by the current and by the older semantic conventions.
fn address(attributes: Attributes<'_>) -> Option<String> {
    for (host, port) in [
        ("server.address", "server.port"),
        ("net.peer.name", "net.peer.port"),
        ("net.peer.ip", "net.peer.port"),
    ] {
        if let Some(host) = text(attributes, host) {
            return Some(match text(attributes, port) {
                Some(port) => format!("{host}:{port}"),
                None => host,
            });
        }
    }
    ["url.full", "http.url"].iter().find_map(|key| match attributes.get(key)? {
        ValueRef::Str(url) => authority(url),
        _ => None,
    })
}

/// Returns the host and port of a URL, without the user.
pub(crate) fn authority(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    (!host.is_empty()).then(|| host.to_owned())
}

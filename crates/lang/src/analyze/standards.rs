//! Rules on attributes: `required-attributes`, `attribute-naming`, `no-empty-attributes`.
//!
//! [`FORMS`] lists the required attributes of each version of the conventions. A span passes if it has all of one form.

use std::cmp::Reverse;

use model::trace::{Kind, Span, ValueRef};

use super::{
    finding::{Findings, listed, shown},
    world::{AnalysisContext, AnalyzedSpan, Area, Areas},
};

/// The attributes that one version of the conventions requires on a span.
struct Form {
    area: Area,
    /// The side of the call; `None` means both.
    side: Option<Kind>,
    all: &'static [&'static str],
}

/// Current versions first. Ports are not required: the address identifies the peer, and Tracetest requires no port.
#[rustfmt::skip]
const FORMS: &[Form] = &[
    form(Area::Http, Some(Kind::Client), &["http.request.method", "url.full", "server.address"]),
    form(Area::Http, Some(Kind::Client), &["http.method", "http.url", "net.peer.name"]),
    form(Area::Http, Some(Kind::Server), &["http.request.method", "url.path", "url.scheme"]),
    form(Area::Http, Some(Kind::Server), &["http.method", "http.target", "http.scheme", "net.host.name"]),
    form(Area::Database, None, &["db.system.name"]),
    form(Area::Database, None, &["db.system"]),
    form(Area::Rpc, Some(Kind::Client), &["rpc.system.name", "server.address"]),
    form(Area::Rpc, Some(Kind::Server), &["rpc.system.name"]),
    form(Area::Rpc, None, &["rpc.system", "server.address"]),
    form(Area::Rpc, None, &["rpc.system", "net.peer.name"]),
    form(Area::Messaging, None, &["messaging.system", "messaging.operation.name"]),
    form(Area::Messaging, None, &["messaging.system", "messaging.operation.type"]),
    form(Area::Messaging, None, &["messaging.system", "messaging.operation"]),
    form(Area::Faas, Some(Kind::Client), &["faas.invoked_name", "faas.invoked_provider"]),
    form(Area::Faas, Some(Kind::Server), &["faas.trigger"]),
];

const fn form(area: Area, side: Option<Kind>, all: &'static [&'static str]) -> Form {
    Form { area, side, all }
}

/// Prefixes of keys. An externally defined name, such as a header, follows in lower case.
const HEADERS: &[&str] = &[
    "http.request.header.",
    "http.response.header.",
    "rpc.request.metadata.",
    "rpc.response.metadata.",
    "rpc.grpc.request.metadata.",
    "rpc.grpc.response.metadata.",
    "rpc.connect_rpc.request.metadata.",
    "rpc.connect_rpc.response.metadata.",
];

/// Prefixes of keys. An externally defined name, such as a parameter, follows in its original spelling.
const PARAMETERS: &[&str] =
    &["db.query.parameter.", "db.operation.parameter.", "db.elasticsearch.path_parts."];

/// Attributes of old conventions with names that are namespaces in the current ones. A span may have both versions.
const SUPERSEDED: &[&str] =
    &["db.system", "db.operation", "messaging.operation", "messaging.destination", "rpc.system"];

pub(super) fn required_attributes(world: &AnalysisContext<'_>, findings: &mut Findings) {
    for AnalyzedSpan { span, areas } in world.subjects() {
        if let Some((area, missing)) = missing(*span, *areas) {
            findings.add(*span, || {
                let (all, area) = (listed(&missing), area.as_str());
                format!("lacks {all} of the conventions for {area} spans: set what is missing")
            });
        }
    }
}

/// Returns the attributes that the nearest form requires and the span lacks. Returns `None` if the span has all attributes of a
/// form, or if no form applies. A span of several areas (a call of a cloud API is RPC and HTTP) may match a form of any.
fn missing(span: Span<'_>, areas: Areas) -> Option<(Area, Vec<&'static str>)> {
    let forms = FORMS.iter().filter(|form| areas.has(form.area));
    let forms = forms.filter(|form| form.side.is_none_or(|side| side == span.kind()));
    let is_absent = |key: &&&str| span.attributes().get(key).is_none();
    let absent = |form: &Form| form.all.iter().filter(is_absent).copied().collect::<Vec<_>>();
    // Of two forms with equally many absent attributes, the longer one wins: it is the version that the span follows.
    let nearest = forms
        .map(|form| (form, absent(form)))
        .min_by_key(|(form, absent)| (absent.len(), Reverse(form.all.len())));
    let (form, absent) = nearest?;
    (!absent.is_empty()).then_some((form.area, absent))
}

pub(super) fn attribute_naming(world: &AnalysisContext<'_>, findings: &mut Findings) {
    for AnalyzedSpan { span, .. } in world.subjects() {
        let keys: Vec<_> = span.attributes().iter().map(|(key, _)| key).collect();
        let wrong: Vec<_> = keys.iter().copied().filter(|key| !is_well_named(key)).collect();
        if !wrong.is_empty() {
            findings.add(*span, || {
                format!(
                    "names attributes {}: use small letters, digits and `_`, behind a namespace \
                     and a dot, as in `shop.order_id`",
                    listed(&wrong)
                )
            });
        }
        if let Some(clash) = clash(&keys) {
            findings.add(*span, || {
                let clash = shown(clash);
                format!("has an attribute {clash} and others below that name: rename one of them")
            });
        }
    }
}

/// Returns a key that is also the namespace of another key.
fn clash<'a>(keys: &[&'a str]) -> Option<&'a str> {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    let namespaces = keys.iter().filter_map(|key| key.rsplit_once('.')).map(|(before, _)| before);
    let is_clash = |it: &&str| !SUPERSEDED.contains(it) && sorted.binary_search(it).is_ok();
    namespaces.filter(|it| !it.is_empty()).find(is_clash)
}

/// Whether a key is at least two words of lower-case letters, digits and `_`, joined by dots, or has a known prefix.
fn is_well_named(key: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    if key.contains('.') && key.split('.').all(is_word) {
        return true;
    }
    let behind = |prefix: &&str| key.strip_prefix(*prefix).filter(|rest| !rest.is_empty());
    let is_header =
        |header: &str| !header.contains(|c: char| c.is_uppercase() || c.is_whitespace());
    HEADERS.iter().find_map(behind).is_some_and(is_header)
        || PARAMETERS.iter().any(|prefix| behind(prefix).is_some())
}

pub(super) fn no_empty_attributes(world: &AnalysisContext<'_>, findings: &mut Findings) {
    for AnalyzedSpan { span, .. } in world.subjects() {
        let empty = span.attributes().iter().filter(|(_, value)| is_empty(*value));
        let empty: Vec<_> = empty.map(|(key, _)| key).collect();
        if !empty.is_empty() {
            findings.add(*span, || {
                format!("has no value in {}: set one, or leave the attribute out", listed(&empty))
            });
        }
    }
}

fn is_empty(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Empty | ValueRef::Str(""))
}

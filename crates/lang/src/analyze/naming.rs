//! `span-naming`: the conventions derive the name of a span from its attributes.
//!
//! A span may follow any version of the conventions: each function adds all names that some version allows, the current
//! name first. A span of several areas (a search in Elasticsearch is HTTP and database) may be named after any of them.

use model::trace::{Kind, Span, ValueRef};

use super::{
    finding::{Findings, shown},
    world::{AnalysisContext, AnalyzedSpan, Area, Areas, first, text},
};

/// Systems with operations that have no collection: the operation alone is the name.
const KEY_VALUE_SYSTEMS: &[&str] = &["redis", "valkey", "memcached"];

/// The value for a method or an operation that the instrumentation does not know.
const OTHER: &str = "_OTHER";

pub(super) fn span_naming(world: &AnalysisContext<'_>, findings: &mut Findings) {
    for AnalyzedSpan { span, areas } in world.subjects() {
        let names = names(*span, *areas);
        let Some(expected) = names.first() else { continue };
        let is_named = names.iter().any(|name| name == span.name());
        if !is_named && !is_start_of_statement(*span) {
            let area = areas.main().map_or("", Area::as_str);
            findings.add(*span, || {
                let (name, expected) = (shown(span.name()), shown(expected));
                format!(
                    "is named {name}, but by its attributes this {area} span is {expected}: \
                     let the instrumentation name it so"
                )
            });
        }
    }
}

/// Returns all names that some version of the conventions allows for a span. Returns no names if no version defines one.
fn names(span: Span<'_>, areas: Areas) -> Vec<String> {
    let mut names = Vec::new();
    if areas.main() == Some(Area::Faas) {
        return names;
    }
    for area in areas.iter() {
        match area {
            Area::Http => http(span, &mut names),
            Area::Database => database(span, &mut names),
            Area::Rpc => rpc(span, &mut names),
            Area::Messaging => messaging(span, &mut names),
            Area::Faas => names.extend(function(span).map(str::to_owned)),
        }
    }
    names
}

/// Only the client and server spans of a call have a defined name: a middleware span may have `http.route` and any name.
fn http(span: Span<'_>, names: &mut Vec<String>) {
    let method = first(span, &["http.request.method", "http.method"]);
    let method = method.filter(|method| *method != OTHER).unwrap_or("HTTP");
    match span.kind() {
        Kind::Server => names.push(joined(method, text(span, "http.route"))),
        Kind::Client => {
            let template = text(span, "url.template");
            names.extend(template.map(|template| joined(method, Some(template))));
            names.push(method.to_owned());
        }
        _ => {}
    }
}

fn database(span: Span<'_>, names: &mut Vec<String>) {
    names.extend(text(span, "db.query.summary").map(str::to_owned));
    let collection = first(
        span,
        &["db.collection.name", "db.sql.table", "db.mongodb.collection", "db.cassandra.table"],
    );
    let namespace = first(span, &["db.namespace", "db.name"]);
    let targets: Vec<String> = [collection, text(span, "db.stored_procedure.name"), namespace]
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .chain(peer(span))
        .collect();
    let told = first(span, &["db.operation.name", "db.operation"]);
    if let Some(operation) = told.or_else(|| operation_of_statement(span)) {
        if let (Some(namespace), Some(collection)) = (namespace, collection) {
            names.push(format!("{operation} {namespace}.{collection}"));
        }
        names.extend(targets.iter().map(|target| joined(operation, Some(target))));
        let system = first(span, &["db.system.name", "db.system"]).unwrap_or_default();
        if collection.or(namespace).is_none() || KEY_VALUE_SYSTEMS.contains(&system) {
            names.push(operation.to_owned());
        }
    }
    if told.is_none() {
        names.extend(targets);
    }
    if names.is_empty() {
        names.extend(first(span, &["db.system.name", "db.system"]).map(str::to_owned));
    }
}

/// Whether the name of a span is a prefix of the command of a key-value store, which Tracetest allows.
fn is_start_of_statement(span: Span<'_>) -> bool {
    let system = first(span, &["db.system.name", "db.system"]).unwrap_or_default();
    let statement = first(span, &["db.query.text", "db.statement"]).unwrap_or_default();
    let start = statement.get(..span.name().len()).unwrap_or_default();
    KEY_VALUE_SYSTEMS.contains(&system)
        && !start.is_empty()
        && start.eq_ignore_ascii_case(span.name())
}

/// Returns the first word of a statement, if it can be an operation.
fn operation_of_statement(span: Span<'_>) -> Option<&str> {
    let statement = first(span, &["db.query.text", "db.statement"])?;
    let word = statement.split_whitespace().next()?;
    word.bytes().all(|byte| byte.is_ascii_alphabetic()).then_some(word)
}

fn rpc(span: Span<'_>, names: &mut Vec<String>) {
    let method = text(span, "rpc.method").filter(|method| *method != OTHER);
    match (text(span, "rpc.service"), method) {
        (Some(service), Some(method)) => {
            names.push(format!("{service}/{method}"));
            names.push(method.trim_start_matches('/').to_owned());
        }
        (None, Some(method)) => names.push(method.trim_start_matches('/').to_owned()),
        (Some(service), None) => names.push(service.to_owned()),
        (None, None) => {}
    }
    if names.is_empty() {
        names.extend(first(span, &["rpc.system.name", "rpc.system"]).map(str::to_owned));
    }
}

/// The current name starts with the operation, the older name with the destination.
fn messaging(span: Span<'_>, names: &mut Vec<String>) {
    let keys =
        ["messaging.destination.template", "messaging.destination.name", "messaging.destination"];
    let destinations: Vec<_> = keys.iter().filter_map(|key| text(span, key)).collect();
    let keys = ["messaging.operation.name", "messaging.operation.type", "messaging.operation"];
    let mut operations: Vec<_> = keys.iter().filter_map(|key| text(span, key)).collect();
    if operations.is_empty() {
        operations.extend_from_slice(match span.kind() {
            Kind::Producer => &["send", "publish"],
            Kind::Consumer => &["process", "receive"],
            _ => &[],
        });
    }
    for destination in &destinations {
        names.extend(operations.iter().map(|operation| format!("{operation} {destination}")));
    }
    for destination in &destinations {
        names.extend(operations.iter().map(|operation| format!("{destination} {operation}")));
    }
    if destinations.is_empty() {
        let peer = peer(span);
        let whole = |operation: &&str| joined(operation, peer.as_deref());
        names.extend(operations.iter().map(whole));
        names.extend(operations.iter().map(|operation| (*operation).to_owned()));
    }
    if operations.is_empty() {
        names.extend(destinations.iter().map(|destination| (*destination).to_owned()));
    }
}

/// Returns the name of the function that a span runs, from its resource.
fn function(span: Span<'_>) -> Option<&str> {
    match span.resource().attributes().get("faas.name")? {
        ValueRef::Str(name) if !name.is_empty() => Some(name),
        _ => None,
    }
}

/// Returns the peer of the connection, with its port if the span reports one.
fn peer(span: Span<'_>) -> Option<String> {
    let address = text(span, "server.address")?;
    Some(match span.attributes().get("server.port") {
        Some(ValueRef::Int(port)) => format!("{address}:{port}"),
        _ => address.to_owned(),
    })
}

fn joined(first: &str, second: Option<&str>) -> String {
    second.map_or(first.to_owned(), |second| format!("{first} {second}"))
}

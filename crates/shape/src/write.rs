//! Renders a shape as text: a line for each span, event or link, with children indented below.
//!
//! ```text
//! qualitytrace shape 1
//! keep: http.response.status_code, http.route
//!
//! gateway: POST /checkout (server) [http.response.status_code=201, http.route=/checkout]
//!   orders: POST /orders (server, error)
//!     ! exception
//!     → gateway: POST /checkout
//!     orders: reserve ×2..5
//! ```
//!
//! Defaults are omitted: kind internal, status unset, count one.

use std::fmt::Write;

use model::trace::{Kind, StatusCode};

use crate::{Attribute, Count, Event, Link, Node, Shape, Span, What, literal::bare_or_quoted};

/// The first line: the file type and the version of the format.
pub(crate) const HEAD: &str = "qualitytrace shape 1";
/// The notation for a span without a service.
pub(crate) const NO_SERVICE: &str = "-";
/// The notations for the target of a link that is not a span of the trace.
pub(crate) const ELSEWHERE: &str = "another trace";
pub(crate) const ABSENT: &str = "an absent span";
/// The approximate line width of the list of attributes.
const COLUMNS: usize = 100;
/// The characters that a bare name must not contain, since they have a meaning in a line.
const REFUSED: &str = "\"()[]×#";

/// Renders the shape as text.
pub fn write(shape: &Shape) -> String {
    let mut text = format!("{HEAD}\n");
    keep(shape, &mut text);
    for note in &shape.notes {
        let _infallible = writeln!(text, "#{note}");
    }
    text.push('\n');
    nodes(&shape.roots, 0, &mut text);
    text
}

fn keep(shape: &Shape, text: &mut String) {
    let mut line = String::new();
    for key in shape.keep.keys() {
        if !line.is_empty() && line.len() + key.len() > COLUMNS {
            let _infallible = writeln!(text, "keep: {line}");
            line.clear();
        }
        let comma = if line.is_empty() { "" } else { ", " };
        let _infallible = write!(line, "{comma}{key}");
    }
    let rest = if shape.keep.keys().is_empty() { "none" } else { &line };
    let _infallible = writeln!(text, "keep: {rest}");
}

fn nodes(nodes: &[Node], depth: usize, text: &mut String) {
    for node in nodes {
        let indent = "  ".repeat(depth);
        for note in &node.notes {
            let _infallible = writeln!(text, "{indent}#{note}");
        }
        let _infallible = writeln!(text, "{indent}{}", line(node));
        self::nodes(&node.children, depth + 1, text);
    }
}

/// Renders a node without its children.
pub(crate) fn line(node: &Node) -> String {
    let what = what(&node.what);
    if node.count == Count::exactly(1) { what } else { format!("{what} {}", node.count) }
}

fn what(what: &What) -> String {
    match what {
        What::Event(Event { name, attributes }) => {
            format!("! {}{}", self::name(name), self::attributes(attributes))
        }
        What::Link(Link::Elsewhere) => format!("→ {ELSEWHERE}"),
        What::Link(Link::Absent) => format!("→ {ABSENT}"),
        What::Link(Link::Span { service, name }) => {
            format!("→ {}", label(service.as_deref(), name))
        }
        What::Span(span) => {
            let marks = marks(span);
            let marks = if marks.is_empty() { marks } else { format!(" ({marks})") };
            let label = label(span.service.as_deref(), &span.name);
            format!("{label}{marks}{}", self::attributes(&span.attributes))
        }
    }
}

/// Returns the short form of a span: its service and its name.
pub(crate) fn label(service: Option<&str>, name: &str) -> String {
    let service = match service {
        None => NO_SERVICE.to_owned(),
        Some(service) => {
            let is_odd = service == NO_SERVICE
                || service.contains(": ")
                || service.ends_with(':')
                || service.starts_with(['!', '→'])
                || service.starts_with("->");
            // Rejecting its own characters puts it into quotes.
            bare_or_quoted(service, if is_odd { service } else { REFUSED })
        }
    };
    format!("{service}: {}", self::name(name))
}

fn name(name: &str) -> String {
    let last = name.rsplit(' ').next().unwrap_or_default();
    let is_count = last.strip_prefix('x').is_some_and(|count| Count::parse(count).is_some());
    // Rejecting its own characters puts it into quotes.
    bare_or_quoted(name, if is_count { name } else { REFUSED })
}

fn marks(span: &Span) -> String {
    let mut marks = Vec::new();
    match span.kind {
        Kind::Internal => {}
        Kind::Other(number) => marks.push(format!("kind {number}")),
        kind => marks.push(kind.as_str().to_owned()),
    }
    match span.status {
        StatusCode::Unset => {}
        StatusCode::Other(number) => marks.push(format!("status {number}")),
        status => marks.push(status.as_str().to_owned()),
    }
    if span.is_orphan {
        marks.push("orphan".to_owned());
    }
    marks.join(", ")
}

fn attributes(attributes: &[Attribute]) -> String {
    if attributes.is_empty() {
        return String::new();
    }
    let one = |Attribute { key, value }: &Attribute| {
        format!("{}={value}", bare_or_quoted(key, "\"[],=*"))
    };
    let all: Vec<_> = attributes.iter().map(one).collect();
    format!(" [{}]", all.join(", "))
}

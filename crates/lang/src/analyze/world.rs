//! The trace as the rules read it: its spans with their areas of the conventions, and accessors for attributes.
//!
//! Only attributes of the span itself count as its own. Resource attributes describe the process; a rule reads them
//! only explicitly.

use model::{
    Trace,
    trace::{Span, Tree, ValueRef},
};

/// The names of the trigger's own span. It belongs to the test and not to the system, so no rule checks it.
const TRIGGER_NAMES: &[&str] = &["Qualitytrace trigger", "Tracetest trigger"];

/// Prefixes of attributes, and the area of a span that has one.
const AREAS: &[(&str, Area)] = &[
    ("http.", Area::Http),
    ("db.", Area::Database),
    ("rpc.", Area::Rpc),
    ("messaging.", Area::Messaging),
    ("faas.", Area::Faas),
];

/// Names of browser instrumentation spans. They have no area, whatever their attributes are.
const BROWSER_NAMES: &[&str] = &["documentLoad", "documentFetch", "resourceFetch"];

/// An area of the semantic conventions that a span can belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    Http,
    Database,
    Rpc,
    Messaging,
    Faas,
}

/// The set of areas of a span, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Areas(u8);

/// A span that the rules check.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnalyzedSpan<'a> {
    pub(super) span: Span<'a>,
    pub(super) areas: Areas,
}

/// The trace with its tree and the spans to check.
#[derive(Debug)]
pub(super) struct AnalysisContext<'a> {
    pub(super) trace: &'a Trace,
    pub(super) tree: Tree,
    subjects: Vec<AnalyzedSpan<'a>>,
}

impl<'a> AnalysisContext<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let own = trace.spans().filter(|span| !is_trigger(*span));
        let subjects = own.map(|span| AnalyzedSpan { span, areas: Areas::of(span) }).collect();
        Self { trace, tree: Tree::of(trace), subjects }
    }

    /// Returns all spans except the trigger's, in the order of arrival.
    pub(super) fn subjects(&self) -> &[AnalyzedSpan<'a>] {
        &self.subjects
    }

    /// Returns the parent of a span, if both are in the trace.
    pub(super) fn parent(&self, span: Span<'_>) -> Option<Span<'a>> {
        self.tree.parent(span.ix()).map(|parent| self.trace.span(parent))
    }
}

impl Areas {
    fn of(span: Span<'_>) -> Self {
        let mut areas = Self::default();
        if BROWSER_NAMES.contains(&span.name()) || span.attributes().get("event_type").is_some() {
            return areas;
        }
        for (key, _) in span.attributes().iter() {
            if let Some((_, area)) = AREAS.iter().find(|(prefix, _)| key.starts_with(prefix)) {
                areas.0 |= area.bit();
            }
        }
        areas
    }

    /// Returns the first area, which Tracetest calls the type of a span.
    pub(super) fn main(self) -> Option<Area> {
        self.iter().next()
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Area> {
        AREAS.iter().map(|(_, area)| *area).filter(move |area| self.0 & area.bit() != 0)
    }

    pub(super) fn has(self, area: Area) -> bool {
        self.0 & area.bit() != 0
    }
}

impl Area {
    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Returns the name of the area for messages.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Database => "database",
            Self::Rpc => "RPC",
            Self::Messaging => "messaging",
            Self::Faas => "function",
        }
    }
}

/// Whether a span is the trigger's own.
pub(super) fn is_trigger(span: Span<'_>) -> bool {
    TRIGGER_NAMES.contains(&span.name())
}

/// Returns the value of an attribute, if it is a string that is not empty.
pub(super) fn text<'a>(span: Span<'a>, key: &str) -> Option<&'a str> {
    match span.attributes().get(key)? {
        ValueRef::Str(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Returns the value of the first of these attributes that is a string and not empty.
pub(super) fn first<'a>(span: Span<'a>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| text(span, key))
}

/// Returns the name of the service that a span belongs to.
pub(super) fn service<'a>(span: Span<'a>) -> Option<&'a str> {
    match span.resource().attributes().get("service.name")? {
        ValueRef::Str(name) if !name.is_empty() => Some(name),
        _ => None,
    }
}

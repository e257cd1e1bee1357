//! The trace as the rules see it: its spans with what they are about, and how their attributes are read.
//!
//! Only attributes of the span itself count as its own. Those of its resource describe the process; they are read
//! where a rule says so.

use model::{
    Trace,
    trace::{Span, Tree, ValueRef},
};

/// What the trigger's own span is called. It is the test's and not the system's, so no rule is about it.
const TRIGGER_NAMES: &[&str] = &["Qualitytrace trigger", "Tracetest trigger"];

/// Prefixes of attributes, and what a span is about that has one.
const AREAS: &[(&str, Area)] = &[
    ("http.", Area::Http),
    ("db.", Area::Database),
    ("rpc.", Area::Rpc),
    ("messaging.", Area::Messaging),
    ("faas.", Area::Faas),
];

/// Spans of browser instrumentation are about nothing here, whatever their attributes are.
const BROWSER_NAMES: &[&str] = &["documentLoad", "documentFetch", "resourceFetch"];

/// What a span is about, by the conventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    Http,
    Database,
    Rpc,
    Messaging,
    Faas,
}

/// All that a span is about, as one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Areas(u8);

/// A span that rules are about.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnalyzedSpan<'a> {
    pub(super) span: Span<'a>,
    pub(super) areas: Areas,
}

/// The trace, and what is known of it as a whole.
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

    /// All spans but the trigger's, in the order of arrival.
    pub(super) fn subjects(&self) -> &[AnalyzedSpan<'a>] {
        &self.subjects
    }

    /// The parent of a span, if both are in the trace.
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

    /// The first of them: what the predecessor calls the type of a span.
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

    /// The area as a person calls a span of it.
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

/// The text of an attribute, if it has one that is not empty.
pub(super) fn text<'a>(span: Span<'a>, key: &str) -> Option<&'a str> {
    match span.attributes().get(key)? {
        ValueRef::Str(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// The text of the first of these attributes that has one.
pub(super) fn first<'a>(span: Span<'a>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| text(span, key))
}

/// The name of the service that a span belongs to.
pub(super) fn service<'a>(span: Span<'a>) -> Option<&'a str> {
    match span.resource().attributes().get("service.name")? {
        ValueRef::Str(name) if !name.is_empty() => Some(name),
        _ => None,
    }
}

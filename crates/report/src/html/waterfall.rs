//! The spans of a trace as the page renders them: in the order of the tree, truncated and bounded.
//!
//! Deliberately absent: the rendering, which the page does, and spans beyond the bound, except those that decided a
//! verdict.

use std::{borrow::Cow, collections::BTreeMap};

use model::{
    Outcome, SpanId, Trace, Verdict,
    trace::{Attributes, Span, StatusCode, Tree, ValueRef},
};
use serde::Serialize;

use crate::{
    points::{NAME_CHARS_MAX, PROSE_CHARS_MAX, VALUE_CHARS_MAX, checks},
    text::shown,
};

/// The upper bound for rendered spans of a trace.
pub const WATERFALL_SPANS_MAX: usize = 10_000;
/// The upper bound for attributes, for events and for links of a span that are shown.
const DETAILS_MAX: usize = 64;
/// The upper bound for the depth of lists and maps that are shown.
const DEPTH_MAX: usize = 4;
/// The upper bound for values of a list or a map that are shown.
const VALUES_MAX: usize = 20;

/// A function that removes secrets from a text. It is called before a text is truncated.
pub type Hide<'a> = &'a dyn for<'t> Fn(&'t str) -> Cow<'t, str>;

/// A trace as a page renders it: JSON that contains nothing that a browser would parse as markup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waterfall {
    pub(super) json: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaterfallData {
    services: Vec<String>,
    /// The time from the first start to the last end.
    total_ns: u64,
    spans: Vec<SpanRow>,
    left_out: usize,
}

/// A span. The field names are short because there are thousands of spans.
#[derive(Serialize)]
struct SpanRow {
    id: SpanId,
    /// The name of the span.
    n: String,
    /// The index of the service; none if the span has no service.
    s: Option<usize>,
    /// The depth in the tree.
    d: u32,
    /// The start, relative to the first start of the trace, in nanoseconds.
    t: u64,
    /// The duration in nanoseconds; none if the end is before the start.
    l: Option<u64>,
    /// The span kind.
    k: &'static str,
    /// Whether the status is an error.
    e: bool,
    /// The worst verdict of the assertions and claims on this span.
    v: Option<Verdict>,
    /// Attributes, then the other details, each a key and a value.
    a: Vec<(String, String)>,
}

impl Waterfall {
    /// Returns the waterfall of an outcome's trace. Beyond the upper bound it prefers the spans that decided a verdict.
    pub fn of(trace: &Trace, outcome: &Outcome, hide: Hide<'_>) -> Self {
        let tree = Tree::of(trace);
        let verdicts = verdicts(outcome);
        let kept = kept(trace, &tree, &verdicts);
        let began = trace.spans().map(|span| span.start().as_nanos()).min().unwrap_or_default();
        let ended = trace.spans().map(|span| span.end().as_nanos()).max().unwrap_or_default();
        let mut services = Services { hide, names: Vec::new(), known: BTreeMap::new() };
        let mut spans = Vec::with_capacity(kept.len());
        let mut depths: Vec<u32> = vec![0; tree.order().len()];
        for (place, ix) in tree.order().iter().enumerate() {
            if let Some(parent) = tree.parent_at(place) {
                depths[place] = depths[parent] + 1;
            }
            if kept.binary_search(&place).is_ok() {
                let span = trace.span(*ix);
                let verdict = verdicts.get(&span.id()).copied();
                spans.push(row(span, (depths[place], began, verdict), &mut services));
            }
        }
        let drawn = WaterfallData {
            left_out: tree.order().len() - spans.len(),
            services: services.names,
            total_ns: ended.saturating_sub(began),
            spans,
        };
        // All keys are strings and no number is infinite, so that serialization to JSON cannot fail.
        let json = serde_json::to_string(&drawn).unwrap_or_default();
        Self { json: json.replace('<', "\\u003c") }
    }
}

/// Returns the worst verdict of each span.
fn verdicts(outcome: &Outcome) -> BTreeMap<SpanId, Verdict> {
    let mut verdicts: BTreeMap<SpanId, Verdict> = BTreeMap::new();
    for point in checks(outcome) {
        for span in point.spans {
            if let Some(id) = span.span_id {
                let verdict = verdicts.entry(id).or_insert(span.verdict);
                *verdict = Verdict::over([*verdict, span.verdict]);
            }
        }
    }
    verdicts
}

/// Returns the indexes of the rendered spans, in order: those that decided, with their ancestors, then the first others.
fn kept(trace: &Trace, tree: &Tree, verdicts: &BTreeMap<SpanId, Verdict>) -> Vec<usize> {
    let all = tree.order().len();
    if all <= WATERFALL_SPANS_MAX {
        return (0..all).collect();
    }
    let mut is_kept = vec![false; all];
    let mut room = WATERFALL_SPANS_MAX;
    for (place, ix) in tree.order().iter().enumerate() {
        let mut next = verdicts.contains_key(&trace.span(*ix).id()).then_some(place);
        while let Some(place) = next.filter(|place| room > 0 && !is_kept[*place]) {
            is_kept[place] = true;
            room -= 1;
            next = tree.parent_at(place);
        }
    }
    for place in is_kept.iter_mut().filter(|place| !**place).take(room) {
        *place = true;
    }
    (0..all).filter(|place| is_kept[*place]).collect()
}

/// The services in the order of their first span.
struct Services<'a> {
    hide: Hide<'a>,
    names: Vec<String>,
    known: BTreeMap<String, usize>,
}

impl Services<'_> {
    fn index(&mut self, name: &str) -> usize {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        self.names.push(shown(&(self.hide)(name), NAME_CHARS_MAX));
        self.known.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }
}

fn row(
    span: Span<'_>,
    (depth, began, verdict): (u32, u64, Option<Verdict>),
    services: &mut Services<'_>,
) -> SpanRow {
    let service = match span.resource().attributes().get("service.name") {
        Some(ValueRef::Str(name)) => Some(services.index(name)),
        _ => None,
    };
    let hide = services.hide;
    let (start, end) = (span.start().as_nanos(), span.end().as_nanos());
    SpanRow {
        id: span.id(),
        n: shown(&hide(span.name()), VALUE_CHARS_MAX),
        s: service,
        d: depth,
        t: start.saturating_sub(began),
        l: end.checked_sub(start),
        k: span.kind().as_str(),
        e: span.status() == StatusCode::Error,
        v: verdict,
        a: details(span, hide),
    }
}

/// Returns all other details of a span.
fn details(span: Span<'_>, hide: Hide<'_>) -> Vec<(String, String)> {
    let mut details = Vec::new();
    if !span.status_message().is_empty() {
        details.push(("status".to_owned(), shown(&hide(span.status_message()), PROSE_CHARS_MAX)));
    }
    let pairs = |of, prefix, details: &mut _| pairs(of, (prefix, hide), details);
    pairs(span.attributes(), "", &mut details);
    for event in span.events().take(DETAILS_MAX) {
        details.push(("event".to_owned(), shown(&hide(event.name()), NAME_CHARS_MAX)));
        pairs(event.attributes(), "  ", &mut details);
    }
    for link in span.links().take(DETAILS_MAX) {
        let trace = link.trace_id().map(|id| id.to_string()).unwrap_or_default();
        let to = link.span_id().map(|id| id.to_string()).unwrap_or_default();
        details.push(("link".to_owned(), format!("{trace} {to}")));
    }
    pairs(span.resource().attributes(), "resource.", &mut details);
    details
}

fn pairs(
    attributes: Attributes<'_>,
    (prefix, hide): (&str, Hide<'_>),
    details: &mut Vec<(String, String)>,
) {
    for (key, value) in attributes.iter().take(DETAILS_MAX) {
        let key = format!("{prefix}{}", shown(&hide(key), NAME_CHARS_MAX));
        let mut text = String::new();
        write(value, DEPTH_MAX, hide, &mut text);
        details.push((key, shown(&text, VALUE_CHARS_MAX)));
    }
}

/// Writes a value for a human reader.
fn write(value: ValueRef<'_>, depth: usize, hide: Hide<'_>, text: &mut String) {
    let mut put = |value: &str| text.extend(hide(value).chars().take(VALUE_CHARS_MAX + 1));
    match value {
        ValueRef::Empty => {}
        ValueRef::Bool(value) => put(&value.to_string()),
        ValueRef::Int(value) => put(&value.to_string()),
        ValueRef::Double(value) => put(&value.to_string()),
        ValueRef::Str(value) => put(value),
        ValueRef::Bytes(bytes) => text.push_str(&format!("{} bytes", bytes.len())),
        ValueRef::Array(_) | ValueRef::Map(_) if depth == 0 => text.push('…'),
        ValueRef::Array(values) => {
            text.push('[');
            for (at, value) in values.iter().take(VALUES_MAX).enumerate() {
                text.push_str(if at > 0 { ", " } else { "" });
                write(value, depth - 1, hide, text);
            }
            text.push_str(if values.len() > VALUES_MAX { ", …]" } else { "]" });
        }
        ValueRef::Map(pairs) => {
            text.push('{');
            for (at, (key, value)) in pairs.iter().take(VALUES_MAX).enumerate() {
                text.push_str(if at > 0 { ", " } else { "" });
                text.push_str(&format!("{}: ", hide(key)));
                write(value, depth - 1, hide, text);
            }
            text.push_str(if pairs.len() > VALUES_MAX { ", …}" } else { "}" });
        }
    }
}

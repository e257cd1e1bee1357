//! The spans of a trace as the page renders them: in the order of the tree, truncated and bounded.
//!
//! Deliberately absent: the rendering, which the page does, and spans beyond the bound, except those that decided a
//! verdict.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use model::{
    Outcome, SpanId, Trace, Verdict,
    trace::{ResourceIx, Span, StatusCode, Tree, ValueRef},
};
use serde::Serialize;

use super::details::{EventRow, VALUE_CHARS_MAX, events, links, pairs};
use crate::{
    points::{NAME_CHARS_MAX, PROSE_CHARS_MAX, checks},
    text::shown,
};

/// The upper bound for rendered spans of a trace.
pub const WATERFALL_SPANS_MAX: usize = 10_000;
/// The upper bound for a span name, in characters.
const SPAN_NAME_CHARS_MAX: usize = 240;

/// A function that removes secrets from a text. It is called before a text is truncated.
pub type Hide<'a> = &'a dyn for<'t> Fn(&'t str) -> Cow<'t, str>;

/// A trace as a page renders it: JSON that contains nothing that a browser would parse as markup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waterfall {
    pub(super) json: String,
    /// The number of rendered spans.
    pub(super) spans: usize,
    /// The number of spans beyond the upper bound.
    pub(super) left_out: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaterfallData {
    services: Vec<String>,
    /// The attributes of each resource.
    resources: Vec<Vec<(String, String)>>,
    /// The time from the first start to the last end.
    total_ns: u64,
    spans: Vec<SpanRow>,
    left_out: usize,
    /// The number of characters after which a value is cut.
    value_chars: usize,
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
    /// The status message.
    #[serde(skip_serializing_if = "String::is_empty")]
    m: String,
    /// The attributes, each a key and a value.
    a: Vec<(String, String)>,
    /// The events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    w: Vec<EventRow>,
    /// The linked spans.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    x: Vec<String>,
    /// The index of the resource.
    r: usize,
    /// The number of events and links that are not shown.
    #[serde(skip_serializing_if = "is_zero")]
    o: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Waterfall {
    /// Returns the waterfall of an outcome's trace. Beyond the upper bound it prefers the spans that decided a verdict.
    pub fn of(trace: &Trace, outcome: &Outcome, hide: Hide<'_>) -> Self {
        let tree = Tree::of(trace);
        let verdicts = verdicts(outcome);
        let kept = kept(trace, &tree, &verdicts);
        let began = trace.spans().map(|span| span.start().as_nanos()).min().unwrap_or_default();
        let ended = trace.spans().map(|span| span.end().as_nanos()).max().unwrap_or_default();
        let mut producers = Producers::new(hide);
        let mut spans = Vec::with_capacity(kept.len());
        let mut depths: Vec<u32> = vec![0; tree.order().len()];
        for (place, ix) in tree.order().iter().enumerate() {
            if let Some(parent) = tree.parent_at(place) {
                depths[place] = depths[parent] + 1;
            }
            if kept.binary_search(&place).is_ok() {
                let span = trace.span(*ix);
                let verdict = verdicts.get(&span.id()).copied();
                spans.push(row(span, (depths[place], began, verdict), &mut producers));
            }
        }
        let (drawn_spans, left_out) = (spans.len(), tree.order().len() - spans.len());
        let drawn = WaterfallData {
            left_out,
            services: producers.services,
            resources: producers.resources,
            total_ns: ended.saturating_sub(began),
            spans,
            value_chars: VALUE_CHARS_MAX,
        };
        // All keys are strings and no number is infinite, so that serialization to JSON cannot fail.
        let json = serde_json::to_string(&drawn).unwrap_or_default();
        Self { json: json.replace('<', "\\u003c"), spans: drawn_spans, left_out }
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

/// The services and the resources, in the order of their first span.
struct Producers<'a> {
    hide: Hide<'a>,
    services: Vec<String>,
    known_services: BTreeMap<String, usize>,
    resources: Vec<Vec<(String, String)>>,
    known_resources: HashMap<ResourceIx, usize>,
}

impl<'a> Producers<'a> {
    fn new(hide: Hide<'a>) -> Self {
        Self {
            hide,
            services: Vec::new(),
            known_services: BTreeMap::new(),
            resources: Vec::new(),
            known_resources: HashMap::new(),
        }
    }

    fn service(&mut self, name: &str) -> usize {
        if let Some(known) = self.known_services.get(name) {
            return *known;
        }
        self.services.push(shown(&(self.hide)(name), NAME_CHARS_MAX));
        self.known_services.insert(name.to_owned(), self.services.len() - 1);
        self.services.len() - 1
    }

    fn resource(&mut self, span: Span<'_>) -> usize {
        let (resources, hide) = (&mut self.resources, self.hide);
        *self.known_resources.entry(span.resource_ix()).or_insert_with(|| {
            resources.push(pairs(span.resource().attributes(), hide));
            resources.len() - 1
        })
    }
}

fn row(
    span: Span<'_>,
    (depth, began, verdict): (u32, u64, Option<Verdict>),
    producers: &mut Producers<'_>,
) -> SpanRow {
    let service = match span.resource().attributes().get("service.name") {
        Some(ValueRef::Str(name)) => Some(producers.service(name)),
        _ => None,
    };
    let hide = producers.hide;
    let (start, end) = (span.start().as_nanos(), span.end().as_nanos());
    let ((events, more_events), (links, more_links)) = (events(span, began, hide), links(span));
    SpanRow {
        id: span.id(),
        n: shown(&hide(span.name()), SPAN_NAME_CHARS_MAX),
        s: service,
        d: depth,
        t: start.saturating_sub(began),
        l: end.checked_sub(start),
        k: span.kind().as_str(),
        e: span.status() == StatusCode::Error,
        v: verdict,
        m: shown(&hide(span.status_message()), PROSE_CHARS_MAX),
        a: pairs(span.attributes(), hide),
        w: events,
        x: links,
        r: producers.resource(span),
        o: more_events + more_links,
    }
}

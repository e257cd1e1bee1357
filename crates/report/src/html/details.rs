//! The details of a span as the page shows them: attributes, events and links, truncated and bounded.
//!
//! Deliberately absent: their layout, which the page does.

use model::trace::{Attributes, Event, Span, ValueRef};
use serde::Serialize;

use super::Hide;
use crate::{points::NAME_CHARS_MAX, text::shown, totals::counted};

/// The upper bound for a value, in characters.
pub(super) const VALUE_CHARS_MAX: usize = 1_000;
/// The upper bound for attributes, for events and for links of a span that are shown.
const DETAILS_MAX: usize = 64;
/// The upper bound for the depth of lists and maps that are shown.
const DEPTH_MAX: usize = 4;
/// The upper bound for values of a list or a map that are shown.
const VALUES_MAX: usize = 20;

/// An event of a span.
#[derive(Serialize)]
pub(super) struct EventRow {
    /// The name of the event.
    n: String,
    /// The time, relative to the first start of the trace, in nanoseconds.
    t: i128,
    /// The attributes, each a key and a value.
    a: Vec<(String, String)>,
}

/// Returns the events of a span and the number of those beyond the upper bound. `began` is the first start of the trace.
pub(super) fn events(span: Span<'_>, began: u64, hide: Hide<'_>) -> (Vec<EventRow>, usize) {
    let row = |event: Event<'_>| EventRow {
        n: shown(&hide(event.name()), NAME_CHARS_MAX),
        t: i128::from(event.at().as_nanos()) - i128::from(began),
        a: pairs(event.attributes(), hide),
    };
    let rows: Vec<_> = span.events().take(DETAILS_MAX).map(row).collect();
    let more = span.events().count() - rows.len();
    (rows, more)
}

/// Returns the linked spans, each with its trace, and the number of those beyond the upper bound.
pub(super) fn links(span: Span<'_>) -> (Vec<String>, usize) {
    let rows: Vec<_> = span
        .links()
        .take(DETAILS_MAX)
        .map(|link| {
            let trace = link.trace_id().map(|id| id.to_string()).unwrap_or_default();
            let to = link.span_id().map(|id| id.to_string()).unwrap_or_default();
            format!("{trace} {to}")
        })
        .collect();
    let more = span.links().count() - rows.len();
    (rows, more)
}

/// Returns attributes, each a key and a value; a last line counts those beyond the upper bound.
pub(super) fn pairs(attributes: Attributes<'_>, hide: Hide<'_>) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for (key, value) in attributes.iter().take(DETAILS_MAX) {
        let mut text = String::new();
        write(value, DEPTH_MAX, hide, &mut text);
        pairs.push((shown(&hide(key), NAME_CHARS_MAX), shown(&text, VALUE_CHARS_MAX)));
    }
    let more = attributes.iter().count() - pairs.len();
    if more > 0 {
        let more = counted(more as u64, "more attribute");
        pairs.push(("…".to_owned(), format!("{more} not shown")));
    }
    pairs
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

//! Formats spans, services and times. Names come from untrusted senders, so they are truncated.

use std::time::Duration;

use model::trace::{Resource, Span, ValueRef};

use super::case::NAMED_MAX;

/// The upper bound of characters of a reported name.
const NAME_CHARS_MAX: usize = 80;

/// Formats a name in backticks.
pub(super) fn quoted(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("`{}…`", &name[..end]),
        None => format!("`{name}`"),
    }
}

/// Formats a span by its name and its service.
pub(super) fn span(span: Span<'_>) -> String {
    format!("{} of {}", quoted(span.name()), quoted(service(span)))
}

/// Returns the service of a span, by its resource.
pub(super) fn service(span: Span<'_>) -> &str {
    text(span.resource(), "service.name").unwrap_or("unknown_service")
}

/// Returns a text attribute of a resource.
pub(super) fn text<'a>(resource: Resource<'a>, key: &str) -> Option<&'a str> {
    match resource.attributes().get(key)? {
        ValueRef::Str(text) => Some(text),
        _ => None,
    }
}

/// Returns a text attribute of a span, under the first of these keys that the span has.
pub(super) fn attribute<'a>(span: Span<'a>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| match span.attributes().get(key)? {
        ValueRef::Str(text) => Some(text),
        _ => None,
    })
}

/// Formats distinct names: lists the first ones and counts the others.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut each: Vec<&str> = Vec::new();
    for name in names {
        if !each.contains(&name) {
            each.push(name);
        }
    }
    let mut told: Vec<String> = each.iter().take(NAMED_MAX).map(|name| quoted(name)).collect();
    if let Some(more) = each.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        told.push(format!("{more} more"));
    }
    match told.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

/// Formats a count; `one` is the singular noun, which takes an `s` in the plural.
pub(super) fn counted(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    }
}

/// Formats a duration for people.
pub(super) fn duration(duration: Duration) -> String {
    let text = match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    };
    text.replace(".0 s", " s")
}

//! How spans, services and times are named. Names come from strangers, so they are kept short.

use std::time::Duration;

use model::trace::{Resource, Span, ValueRef};

use super::NAMED_MAX;

/// Characters of a name that are told.
const NAME_CHARS_MAX: usize = 80;

/// Something by its name, in backticks.
pub(super) fn quoted(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("`{}…`", &name[..end]),
        None => format!("`{name}`"),
    }
}

/// A span by its name and its service.
pub(super) fn span(span: Span<'_>) -> String {
    format!("{} of {}", quoted(span.name()), quoted(service(span)))
}

/// The service that a span says to be of.
pub(super) fn service(span: Span<'_>) -> &str {
    text(span.resource(), "service.name").unwrap_or("unknown_service")
}

/// A text of a resource.
pub(super) fn text<'a>(resource: Resource<'a>, key: &str) -> Option<&'a str> {
    match resource.attributes().get(key)? {
        ValueRef::Str(text) => Some(text),
        _ => None,
    }
}

/// A text of a span, under the first of these keys that it has.
pub(super) fn attribute<'a>(span: Span<'a>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| match span.attributes().get(key)? {
        ValueRef::Str(text) => Some(text),
        _ => None,
    })
}

/// Names, each once, the first ones told and the others counted.
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

/// A number of things; `one` is the word for one of them, which takes an `s`.
pub(super) fn counted(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    }
}

/// A time as people say it.
pub(super) fn duration(duration: Duration) -> String {
    let text = match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    };
    text.replace(".0 s", " s")
}

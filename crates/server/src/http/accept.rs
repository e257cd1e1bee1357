//! What the sender of a request accepts.

use axum::http::{HeaderMap, header};

/// What browsers name when a person opens a page, and programs do not.
pub(crate) const HTML: &str = "text/html";

/// Whether the sender accepts this media type by its name.
pub(crate) fn names(headers: &HeaderMap, media: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).into_iter();
    let mut ranges =
        values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    ranges.any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(media));
        is_named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

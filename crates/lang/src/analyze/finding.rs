//! The findings of a rule, limited in number and size.
//!
//! A hostile trace can break a rule a million times with names of a megabyte. The stored findings stay small.

use model::{Finding, trace::Span};

/// The maximum number of findings stored for one rule. Further findings are only counted.
const FINDINGS_MAX: usize = 20;
/// The maximum number of characters of a span name in a finding.
const NAME_CHARS_MAX: usize = 200;
/// The maximum number of characters of a text of the trace that a message shows.
const SHOWN_CHARS_MAX: usize = 80;
/// The maximum number of names that one message lists.
const LISTED_MAX: usize = 5;

/// The findings of one rule.
#[derive(Debug, Default)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    more: u64,
}

impl Findings {
    /// Adds a finding on `span`. Builds the message only if the finding is stored.
    pub(super) fn add(&mut self, span: Span<'_>, message: impl FnOnce() -> String) {
        if self.kept.len() >= FINDINGS_MAX {
            self.more = self.more.saturating_add(1);
            return;
        }
        let name = clipped(span.name(), NAME_CHARS_MAX);
        self.kept.push(Finding { span_id: Some(span.id()), name, message: message() });
    }

    pub(super) fn into_parts(self) -> (Vec<Finding>, u64) {
        (self.kept, self.more)
    }
}

/// Formats a text of the trace for a message: in backticks, truncated if it is long.
pub(super) fn shown(text: &str) -> String {
    format!("`{}`", clipped(text, SHOWN_CHARS_MAX))
}

/// Formats several texts, separated by commas.
pub(super) fn listed(texts: &[&str]) -> String {
    let first: Vec<_> = texts.iter().take(LISTED_MAX).map(|text| shown(text)).collect();
    match texts.len().saturating_sub(LISTED_MAX) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn clipped(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

//! What a rule found, as far as it is kept.
//!
//! A hostile trace breaks a rule a million times with names of a megabyte; what is told of it stays small.

use model::{Finding, trace::Span};

/// Findings that are kept for one rule; the others are counted.
const FINDINGS_MAX: usize = 20;
/// Characters of a span's name that are told.
const NAME_CHARS_MAX: usize = 200;
/// Characters of a piece of the trace that a message shows.
const SHOWN_CHARS_MAX: usize = 80;
/// Names that one message lists.
const LISTED_MAX: usize = 5;

/// The findings of one rule.
#[derive(Debug, Default)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    more: u64,
}

impl Findings {
    /// Adds one on `span`. The message is only made where it is kept.
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

/// A text of the trace as a message shows it: in backticks, cut where it is long.
pub(super) fn shown(text: &str) -> String {
    format!("`{}`", clipped(text, SHOWN_CHARS_MAX))
}

/// Several such texts.
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

//! Diagnostics: a problem in a text, its location, and how to fix it.

use std::cell::{Cell, RefCell};

use crate::{DIAGNOSTICS_MAX, Span, Text};

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// A message to the user about a text. Created by [`Diagnostic::error`] and its siblings.
#[derive(Clone, Debug)]
#[must_use]
pub struct Diagnostic {
    pub severity: Severity,
    /// Lowercase, without a final period.
    pub message: String,
    pub text: Text,
    /// `None`: the diagnostic applies to the entire text.
    pub span: Option<Span>,
    /// The label under the location; may be empty.
    pub label: String,
    /// Further locations in the same text, each with its label.
    pub also: Vec<(Span, String)>,
    pub help: Option<String>,
    /// Lines to copy, below the help.
    pub lines: Vec<String>,
    /// The number of omitted diagnostics, if this is the note that reports them.
    left_out: usize,
}

/// Collects the diagnostics of one text, so that a reader can continue after an error.
///
/// Stores at most [`DIAGNOSTICS_MAX`] of them, and prefers errors. Shared by reference while a document is read, hence
/// the interior mutability.
#[derive(Debug)]
pub struct Diagnostics {
    text: Text,
    list: RefCell<Vec<Diagnostic>>,
    left_out: Cell<usize>,
}

impl Diagnostic {
    pub fn new(
        severity: Severity,
        text: &Text,
        span: impl Into<Option<Span>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            message: message.into(),
            text: text.clone(),
            span: span.into(),
            label: String::new(),
            also: Vec::new(),
            help: None,
            lines: Vec::new(),
            left_out: 0,
        }
    }

    pub fn error(text: &Text, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, text, span, message)
    }

    pub fn warning(text: &Text, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, text, span, message)
    }

    pub fn note(text: &Text, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, text, span, message)
    }

    /// Whether it prevents the use of the document.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a further location in the same text.
    pub fn also(mut self, span: Span, label: impl Into<String>) -> Self {
        self.also.push((span, label.into()));
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds help with lines to copy below it.
    pub fn help_with<'a>(
        self,
        help: impl Into<String>,
        lines: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let lines = lines.into_iter().map(str::to_owned).collect();
        Self { lines, ..self.help(help) }
    }

    /// Adds "did you mean" if there is a suggestion.
    pub fn suggest(self, suggestion: Option<&str>) -> Self {
        match suggestion {
            Some(word) => self.help(format!("did you mean `{word}`?")),
            None => self,
        }
    }
}

impl Diagnostics {
    pub fn new(text: &Text) -> Self {
        Self { text: text.clone(), list: RefCell::default(), left_out: Cell::new(0) }
    }

    pub fn text(&self) -> &Text {
        &self.text
    }

    /// Creates an error for this text; the caller completes and pushes it.
    pub fn error(&self, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(&self.text, span, message)
    }

    /// Creates a warning for this text; the caller completes and pushes it.
    pub fn warning(&self, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::warning(&self.text, span, message)
    }

    /// Creates a note for this text; the caller completes and pushes it.
    pub fn note(&self, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::note(&self.text, span, message)
    }

    /// Stores the diagnostic if there is room. In a full list, an error replaces the last diagnostic that is not an
    /// error.
    pub fn push(&self, diagnostic: Diagnostic) {
        if diagnostic.left_out > 0 {
            // The note of an earlier read: its count is added to the note that this list will create.
            self.left_out.set(self.left_out.get() + diagnostic.left_out);
            return;
        }
        let mut list = self.list.borrow_mut();
        if list.len() >= DIAGNOSTICS_MAX {
            self.left_out.set(self.left_out.get() + 1);
            let lesser = list.iter().rposition(|kept| !kept.is_error());
            let Some(lesser) = lesser.filter(|_| diagnostic.is_error()) else { return };
            let _less = list.remove(lesser);
        }
        list.push(diagnostic);
    }

    pub fn extend(&self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// Returns whether an error was pushed. If so, at least one of the stored diagnostics is an error.
    pub fn has_errors(&self) -> bool {
        self.list.borrow().iter().any(Diagnostic::is_error)
    }

    /// Returns whether further diagnostics are only counted, except for errors.
    pub fn is_full(&self) -> bool {
        self.list.borrow().len() >= DIAGNOSTICS_MAX
    }

    /// Returns the stored diagnostics. If some were omitted, a last note states how many.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        let mut list = self.list.into_inner();
        let left_out = self.left_out.get();
        if left_out > 0 {
            let message = format!("{left_out} more are not shown");
            list.push(Diagnostic { left_out, ..Diagnostic::note(&self.text, None, message) });
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_diagnostics_are_counted_and_not_kept() {
        let found = Diagnostics::new(&Text::new("t", ""));
        for _ in 0..DIAGNOSTICS_MAX + 3 {
            found.push(found.warning(None, "again"));
        }
        assert!(found.is_full() && !found.has_errors());
        let list = found.into_vec();
        assert_eq!(list.len(), DIAGNOSTICS_MAX + 1);
        assert_eq!(list[DIAGNOSTICS_MAX].message, "3 more are not shown");
    }

    #[test]
    fn an_error_behind_too_many_warnings_is_kept() {
        let found = Diagnostics::new(&Text::new("t", ""));
        let warn = |number: usize| found.push(found.warning(None, format!("warning {number}")));
        (0..=DIAGNOSTICS_MAX).for_each(warn);
        assert!(!found.has_errors());
        found.push(found.error(None, "first"));
        found.push(found.error(None, "second"));
        assert!(found.has_errors());
        let list = found.into_vec();
        assert_eq!(list.len(), DIAGNOSTICS_MAX + 1);
        let last: Vec<_> = list.iter().map(|kept| kept.message.as_str()).skip(253).collect();
        assert_eq!(last, ["warning 253", "first", "second", "3 more are not shown"]);
    }

    #[test]
    fn what_an_earlier_reading_left_out_is_counted_once() {
        let text = Text::new("t", "");
        let (first, second) = (Diagnostics::new(&text), Diagnostics::new(&text));
        (0..DIAGNOSTICS_MAX + 7).for_each(|_| first.push(first.error(None, "again")));
        second.extend(first.into_vec());
        second.push(second.error(None, "one more"));
        let list = second.into_vec();
        assert_eq!(list.len(), DIAGNOSTICS_MAX + 1);
        assert_eq!(list[DIAGNOSTICS_MAX].message, "8 more are not shown");
    }
}

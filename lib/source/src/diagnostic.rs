//! Diagnostics: what is wrong, where, and what to do about it.

use std::cell::{Cell, RefCell};

use crate::{DIAGNOSTICS_MAX, Span, Text};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// One thing to tell the user about a text. Made by [`Diagnostic::error`] and its siblings.
#[derive(Clone, Debug)]
#[must_use]
pub struct Diagnostic {
    pub severity: Severity,
    /// Lowercase, without a final period.
    pub message: String,
    pub text: Text,
    /// `None`: it is about the text as a whole.
    pub span: Option<Span>,
    /// What stands under the place; may be empty.
    pub label: String,
    /// Further places of the same text, each with its label.
    pub also: Vec<(Span, String)>,
    pub help: Option<String>,
    /// Lines to be copied, below the help.
    pub lines: Vec<String>,
    /// How many others it stands for, if it is the note that some are missing.
    left_out: usize,
}

/// Collects the diagnostics of one text, so that a reader can go on after a mistake.
///
/// It keeps [`DIAGNOSTICS_MAX`] of them, errors rather than others. It is shared while a document is read; hence the inner mutability.
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

    /// Whether it keeps the document from being used.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Points at a further place of the same text.
    pub fn also(mut self, span: Span, label: impl Into<String>) -> Self {
        self.also.push((span, label.into()));
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds help with lines to be copied below it.
    pub fn help_with<'a>(
        self,
        help: impl Into<String>,
        lines: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let lines = lines.into_iter().map(str::to_owned).collect();
        Self { lines, ..self.help(help) }
    }

    /// Adds "did you mean" if there is something to suggest.
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

    /// An error of this text, to be completed and pushed.
    pub fn error(&self, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(&self.text, span, message)
    }

    /// A warning of this text, to be completed and pushed.
    pub fn warning(&self, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::warning(&self.text, span, message)
    }

    /// A note of this text, to be completed and pushed.
    pub fn note(&self, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::note(&self.text, span, message)
    }

    /// Keeps it if there is room; for an error, the last one that is none makes room.
    pub fn push(&self, diagnostic: Diagnostic) {
        if diagnostic.left_out > 0 {
            // The note of an earlier reading: its number goes into the one that is made here.
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

    /// Whether an error was pushed. Of the kept ones then at least one is an error.
    pub fn has_errors(&self) -> bool {
        self.list.borrow().iter().any(Diagnostic::is_error)
    }

    /// Whether what is pushed from now on is only counted, unless it is an error.
    pub fn is_full(&self) -> bool {
        self.list.borrow().len() >= DIAGNOSTICS_MAX
    }

    /// All that was pushed; if there was too much, a last note says how much is missing.
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

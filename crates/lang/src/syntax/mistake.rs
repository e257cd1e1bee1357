//! A diagnostic inside one string of a document, at a range of its decoded bytes.
//!
//! Parsers know only the string. The owner of the scalar adds its location in the file.

use std::ops::Range;

use source::{Diagnostic, Scalar, Severity, Span, Style, Text};

/// An error or warning at a range of a string, with a help text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) range: Range<usize>,
    severity: Severity,
    message: String,
    label: String,
    help: Option<String>,
    /// Whether the string ended too early.
    is_cut: bool,
}

impl Mistake {
    pub(crate) fn error(range: Range<usize>, message: impl Into<String>) -> Self {
        let message = message.into();
        let (severity, label) = (Severity::Error, String::new());
        Self { range, severity, message, label, help: None, is_cut: false }
    }

    pub(crate) fn warning(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(range, message) }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn suggest(self, word: Option<&str>) -> Self {
        match word {
            Some(word) => self.help(format!("did you mean `{word}`?")),
            None => self,
        }
    }

    /// Marks that the string ended too early.
    pub(crate) fn cut(mut self) -> Self {
        self.is_cut = true;
        self
    }

    /// Whether it is an error and not a warning.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Returns the diagnostic with its location in the file.
    pub(crate) fn in_scalar(self, text: &Text, scalar: &Scalar) -> Diagnostic {
        let span = scalar.span_of(self.range.clone());
        match cut_by(text, scalar).filter(|_| self.is_cut) {
            Some(help) => self.help(help).at(text, span),
            None => self.at(text, span),
        }
    }

    /// Returns the diagnostic for a text that consists only of the string.
    pub(crate) fn in_text(self, text: &Text) -> Diagnostic {
        let span = self.range.clone().into();
        self.at(text, span)
    }

    fn at(self, text: &Text, span: Span) -> Diagnostic {
        let span = text.first_line(span);
        let diagnostic = Diagnostic::new(self.severity, text, span, self.message).label(self.label);
        match self.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

/// Returns the reason why YAML may have ended a plain scalar too early, and what to do.
fn cut_by(text: &Text, scalar: &Scalar) -> Option<&'static str> {
    let rest = text.content().get(scalar.span.end..).unwrap_or_default();
    match rest.trim_start_matches([' ', '\t']).chars().next() {
        _ if scalar.style != Style::Plain => None,
        Some('#') => Some("YAML takes ` #` for the start of a comment: put all of it in quotes"),
        Some(',') => Some("YAML ends a value of this list at `,`: put all of it in quotes"),
        _ => None,
    }
}

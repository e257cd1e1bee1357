//! A mistake inside one string of a document, at a range of its decoded bytes.
//!
//! Parsers know the string alone. Where it stands in the file is added by whoever holds its scalar.

use std::ops::Range;

use source::{Diagnostic, Scalar, Severity, Span, Style, Text};

/// What is wrong with a part of a string, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) range: Range<usize>,
    severity: Severity,
    message: String,
    label: String,
    help: Option<String>,
    /// The string ended too early.
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

    /// Tells that the string ended too early.
    pub(crate) fn cut(mut self) -> Self {
        self.is_cut = true;
        self
    }

    /// Whether it is more than a warning.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The mistake at its place in the file.
    pub(crate) fn in_scalar(self, text: &Text, scalar: &Scalar) -> Diagnostic {
        let span = scalar.span_of(self.range.clone());
        match cut_by(text, scalar).filter(|_| self.is_cut) {
            Some(help) => self.help(help).at(text, span),
            None => self.at(text, span),
        }
    }

    /// The mistake in a text that is nothing but the string.
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

/// Why YAML may have ended a scalar without quotes too early, and what to do.
fn cut_by(text: &Text, scalar: &Scalar) -> Option<&'static str> {
    let rest = text.content().get(scalar.span.end..).unwrap_or_default();
    match rest.trim_start_matches([' ', '\t']).chars().next() {
        _ if scalar.style != Style::Plain => None,
        Some('#') => Some("YAML takes ` #` for the start of a comment: put all of it in quotes"),
        Some(',') => Some("YAML ends a value of this list at `,`: put all of it in quotes"),
        _ => None,
    }
}

//! A mistake inside one string of a document, at a range of its decoded bytes.
//!
//! Parsers know the string alone. Where it stands in the file is added by whoever holds its scalar.

use std::ops::Range;

use source::{Diagnostic, Scalar, Severity, Text};

/// What is wrong with a part of a string, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) range: Range<usize>,
    severity: Severity,
    message: String,
    label: String,
    help: Option<String>,
}

impl Mistake {
    pub(crate) fn error(range: Range<usize>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { range, severity: Severity::Error, message, label: String::new(), help: None }
    }

    pub(crate) fn warning(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(range, message) }
    }

    /// Something of Tracetest's, or of the plan for this language, that has no meaning here so far.
    pub(crate) fn unsupported(range: Range<usize>, what: &str) -> Self {
        Self::error(range, format!("{what} not supported yet"))
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

    /// The mistake at its place in the file.
    pub(crate) fn in_scalar(self, text: &Text, scalar: &Scalar) -> Diagnostic {
        let span = text.first_line(scalar.span_of(self.range));
        let diagnostic = Diagnostic::new(self.severity, text, span, self.message).label(self.label);
        match self.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

//! The two streams that people and pipelines read.

use std::io::{self, Write};

use model::Outcome;
use source::{Colour, Diagnostic};

use crate::args::Report;

/// Where results and progress go.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) colour: Colour,
}

impl Terminal {
    /// A line of results.
    pub(crate) fn out(&self, text: &str) {
        // Whoever closed the pipe does not want to hear more.
        let _closed = writeln!(io::stdout().lock(), "{}", text.trim_end());
    }

    /// A line of progress, or a mistake.
    pub(crate) fn err(&self, text: &str) {
        let _closed = writeln!(io::stderr().lock(), "{}", text.trim_end());
    }

    /// Mistakes in a document, as pictures.
    pub(crate) fn diagnostics(&self, diagnostics: &[Diagnostic]) {
        if !diagnostics.is_empty() {
            self.err(&source::draw(diagnostics, self.colour));
        }
    }

    /// What a run ended with.
    pub(crate) fn outcome(&self, outcome: &Outcome, report: Report) {
        self.out(&match report {
            Report::Pretty => report::pretty(outcome, self.colour),
            Report::Json => report::json(outcome),
        });
    }
}

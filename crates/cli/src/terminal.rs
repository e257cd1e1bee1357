//! The two streams that people and pipelines read.

use std::io::{self, Write};

use model::Faulty;
use source::{Colour, Diagnostic};

use crate::exit::Exit;

/// Where results and progress go. Whoever closes a pipe does not want to hear more, so that is no error.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) colour: Colour,
}

impl Terminal {
    /// A line of results. What strangers wrote into it cannot steer the terminal.
    pub(crate) fn result(&self, line: &str) {
        let _closed = writeln!(io::stdout().lock(), "{}", report::harmless(line));
    }

    /// A line of progress, or a mistake; nothing for nothing. What strangers wrote cannot steer the terminal.
    pub(crate) fn line(&self, line: &str) {
        if line.is_empty() {
            return;
        }
        let _closed = writeln!(io::stderr().lock(), "{}", report::harmless(line));
    }

    /// Tells why the command cannot go on, and how it then ends.
    pub(crate) fn refuse(&self, error: &impl Faulty) -> Exit {
        self.line(&format!("error: {error}"));
        error.fault().into()
    }

    /// Mistakes in a document, as pictures.
    pub(crate) fn diagnostics(&self, diagnostics: &[Diagnostic]) {
        if !diagnostics.is_empty() {
            let drawn = source::draw(diagnostics, self.colour);
            let _closed = writeln!(io::stderr().lock(), "{}", drawn.trim_end());
        }
    }

    /// A text of results that is harmless already, its lines ended.
    pub(crate) fn report(&self, text: &str) {
        let _closed = write!(io::stdout().lock(), "{text}");
    }
}

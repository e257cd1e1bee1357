//! The output streams that people and pipelines read.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, PoisonError},
};

use indicatif::MultiProgress;
use lang::Secrets;
use model::Faulty;
use source::{Colour, Diagnostic};

use crate::exit::Exit;

/// The output for results and progress. A closed pipe is no error, since its reader wants no more.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    pub(crate) colour: Colour,
    /// The columns of stdout; none where lines have no end.
    pub(crate) width: Option<usize>,
    /// Live lines below the other output; none without an interactive terminal.
    bars: Option<MultiProgress>,
    /// The secrets, which are never written.
    secrets: Arc<Mutex<Secrets>>,
}

/// Whether a person watches the progress on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interactivity {
    Yes,
    No,
}

impl Terminal {
    pub(crate) fn new(colour: Colour, width: Option<usize>, watched: Interactivity) -> Self {
        let bars = (watched == Interactivity::Yes).then(MultiProgress::new);
        Self { colour, width, bars, secrets: Arc::default() }
    }

    /// Hides these secrets from now on: on lines and in reports.
    pub(crate) fn keep_secret(&self, secrets: &Secrets) {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).extend(secrets);
    }

    /// Returns the secrets.
    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the live lines, on an interactive terminal.
    pub(crate) fn bars(&self) -> Option<&MultiProgress> {
        self.bars.as_ref()
    }

    /// Writes a line of results. Escapes untrusted text, so that it cannot control the terminal.
    pub(crate) fn result(&self, line: &str) {
        self.above(|| write(&mut io::stdout().lock(), &self.harmless(line)));
    }

    /// Writes a line of progress, or an error; nothing for an empty line. Escapes untrusted text.
    pub(crate) fn line(&self, line: &str) {
        if line.is_empty() {
            return;
        }
        self.above(|| write(&mut io::stderr().lock(), &self.harmless(line)));
    }

    /// Prints why the command cannot continue, and returns its exit.
    pub(crate) fn refuse(&self, error: &impl Faulty) -> Exit {
        self.line(&format!("error: {error}"));
        error.fault().into()
    }

    /// Renders diagnostics of a document.
    pub(crate) fn diagnostics(&self, diagnostics: &[Diagnostic]) {
        if !diagnostics.is_empty() {
            let drawn = source::draw(diagnostics, self.colour);
            self.above(|| write(&mut io::stderr().lock(), drawn.trim_end()));
        }
    }

    /// Writes a text of results that is escaped already and ends with a line break.
    pub(crate) fn report(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.above(|| {
            let _closed = write!(io::stdout().lock(), "{text}");
        });
    }

    /// Whether stdout is a terminal.
    pub(crate) fn is_shown(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Writes a result that is no text.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        let _closed = io::stdout().lock().write_all(bytes);
    }

    /// Hides secrets in a text, and escapes everything that would control the terminal.
    pub(crate) fn harmless(&self, text: &str) -> String {
        report::harmless(&self.secrets().hide(text))
    }

    fn above(&self, write: impl FnOnce()) {
        match &self.bars {
            Some(bars) => bars.suspend(write),
            None => write(),
        }
    }
}

/// Writes a text and its line break in one call: if both streams go to one log, a line of the other must not come between.
fn write(stream: &mut impl Write, text: &str) {
    let _closed = stream.write_all(format!("{text}\n").as_bytes());
}

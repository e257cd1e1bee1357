//! The two streams that people and pipelines read.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use indicatif::MultiProgress;
use lang::Secrets;
use model::Faulty;
use source::{Colour, Diagnostic};

use crate::exit::Exit;

/// Where results and progress go. Whoever closes a pipe does not want to hear more, so that is no error.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    pub(crate) colour: Colour,
    /// Lines that change while others are written above them; none where nobody watches.
    bars: Option<MultiProgress>,
    /// What is written nowhere.
    secrets: Arc<Mutex<Secrets>>,
}

/// Whether somebody watches the progress as it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interactivity {
    Yes,
    No,
}

impl Terminal {
    pub(crate) fn new(colour: Colour, watched: Interactivity) -> Self {
        let bars = (watched == Interactivity::Yes).then(MultiProgress::new);
        Self { colour, bars, secrets: Arc::default() }
    }

    /// Shows these nowhere, from now on: not on a line, and not in a report.
    pub(crate) fn keep_secret(&self, secrets: &Secrets) {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).extend(secrets);
    }

    /// What is shown nowhere.
    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lines that change, where somebody watches.
    pub(crate) fn bars(&self) -> Option<&MultiProgress> {
        self.bars.as_ref()
    }

    /// A line of results. What strangers wrote into it cannot steer the terminal.
    pub(crate) fn result(&self, line: &str) {
        self.above(|| write(&mut io::stdout().lock(), &self.harmless(line)));
    }

    /// A line of progress, or a mistake; nothing for nothing. What strangers wrote cannot steer the terminal.
    pub(crate) fn line(&self, line: &str) {
        if line.is_empty() {
            return;
        }
        self.above(|| write(&mut io::stderr().lock(), &self.harmless(line)));
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
            self.above(|| write(&mut io::stderr().lock(), drawn.trim_end()));
        }
    }

    /// A text of results that is harmless already, its lines ended.
    pub(crate) fn report(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.above(|| {
            let _closed = write!(io::stdout().lock(), "{text}");
        });
    }

    /// A text that tells no secret and does not steer the terminal.
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

/// Writes a text and the end of its line at once: where both streams go to one log, the other's line must not come between.
fn write(stream: &mut impl Write, text: &str) {
    let _closed = stream.write_all(format!("{text}\n").as_bytes());
}

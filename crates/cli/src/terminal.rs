//! The output streams that people and pipelines read.

use std::{
    collections::BTreeSet,
    fmt,
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use indicatif::MultiProgress;
use lang::Secrets;
use model::{ErrorCode, Faulty};
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
    /// The form of a message on stderr, where it is a line of a log.
    log_form: Arc<OnceLock<LogForm>>,
}

/// Returns a message as a line of a log.
pub(crate) type LogForm = fn(&str) -> String;

/// Whether a person watches the progress on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interactivity {
    Yes,
    No,
}

impl Terminal {
    pub(crate) fn new(colour: Colour, width: Option<usize>, watched: Interactivity) -> Self {
        let bars = (watched == Interactivity::Yes).then(MultiProgress::new);
        Self { colour, width, bars, secrets: Arc::default(), log_form: Arc::default() }
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
        self.message(&self.harmless(line));
    }

    /// Writes messages in this form from now on.
    pub(crate) fn log_as(&self, form: LogForm) {
        // The first form stays: a server reads its own once.
        let _is_set = self.log_form.set(form);
    }

    /// Writes a message that is escaped already.
    fn message(&self, text: &str) {
        let line = self.log_form.get().map(|form| form(text));
        let line = line.as_deref().unwrap_or(text);
        self.above(|| write(&mut io::stderr().lock(), line));
    }

    /// Prints why the command cannot continue, and returns its exit.
    pub(crate) fn refuse(&self, error: &impl Faulty) -> Exit {
        self.error(error.code(), error);
        error.fault().into()
    }

    /// Prints why one of several, by its name, cannot continue, and returns its exit.
    pub(crate) fn refuse_for(&self, name: &str, error: &impl Faulty) -> Exit {
        self.error(error.code(), format_args!("{name}: {error}"));
        error.fault().into()
    }

    /// Prints that signals would not be noticed, and returns the exit.
    pub(crate) fn without_signals(&self, error: &io::Error) -> Exit {
        let message = format_args!("signal handlers cannot be installed: {error}");
        self.error(ErrorCode::Internal, message);
        Exit::Inconclusive
    }

    /// Prints that the command was typed in a form that it does not have, in the words of clap.
    pub(crate) fn usage(&self, error: &clap::Error) {
        let text = format!("{} [{}]", error.to_string().trim_end(), ErrorCode::Usage);
        self.above(|| write(&mut io::stderr().lock(), &text));
    }

    /// Prints an error, and its name last.
    pub(crate) fn error(&self, code: ErrorCode, message: impl fmt::Display) {
        let message = message.to_string();
        // Behind a snippet, the name has a line of its own.
        let gap = if message.contains('\n') { '\n' } else { ' ' };
        self.line(&format!("error: {message}{gap}[{code}]"));
    }

    /// Renders diagnostics of documents.
    pub(crate) fn diagnostics(&self, diagnostics: &[Diagnostic]) {
        self.diagnostics_of(ErrorCode::InvalidDocument, diagnostics);
    }

    /// Renders diagnostics of files whose errors have this name.
    pub(crate) fn diagnostics_of(&self, code: ErrorCode, diagnostics: &[Diagnostic]) {
        if diagnostics.is_empty() {
            return;
        }
        let is_log = self.log_form.get().is_some();
        let drawn = source::draw(diagnostics, if is_log { Colour::Never } else { self.colour });
        self.message(drawn.trim_end());
        let errors: Vec<_> = diagnostics.iter().filter(|it| it.is_error()).collect();
        let files: BTreeSet<_> = errors.iter().map(|it| it.text.name()).collect();
        let count = match errors.len() {
            1 => "1 error".to_owned(),
            many => format!("{many} errors"),
        };
        match files.len() {
            0 => {}
            1 => self.error(code, format_args!("{count} in `{}`", errors[0].text.name())),
            many => self.error(code, format_args!("{count} in {many} files")),
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

//! The progress of tests: a live line for each on a terminal, plain lines elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lang::Secrets;
use model::What;

use crate::terminal::Terminal;

/// The redraw interval of a live line.
const TICK: Duration = Duration::from_millis(120);

/// The amount of progress output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressLevel {
    /// No output.
    Quiet,
    /// One line for each running test.
    Tests,
    /// Each step of a test.
    Steps,
}

/// The progress line of one test, until it is dropped.
#[derive(Debug)]
pub(crate) struct Line {
    name: String,
    bar: Option<ProgressBar>,
    terminal: Terminal,
    telling: ProgressLevel,
}

impl Line {
    /// Starts the progress line of a test.
    pub(crate) fn begin(name: &str, terminal: &Terminal, telling: ProgressLevel) -> Self {
        Self::of(name, "running", terminal, telling)
    }

    /// Starts the progress line of a long operation.
    pub(crate) fn of(name: &str, doing: &str, terminal: &Terminal, telling: ProgressLevel) -> Self {
        let bars = terminal.bars().filter(|_| telling != ProgressLevel::Quiet);
        let bar = bars.map(|bars| {
            let bar = bars.add(ProgressBar::new_spinner());
            if let Ok(style) =
                ProgressStyle::with_template("{spinner} {prefix}  {wide_msg} {elapsed}")
            {
                bar.set_style(style);
            }
            bar.set_prefix(terminal.harmless(name));
            bar.set_message(terminal.harmless(doing));
            bar.enable_steady_tick(TICK);
            bar
        });
        if bar.is_none() && telling != ProgressLevel::Quiet {
            terminal.line(&format!("{name}: {doing}"));
        }
        Self { name: name.to_owned(), bar, terminal: terminal.clone(), telling }
    }

    /// Returns the line of a test with a reported verdict, which shows nothing.
    pub(crate) fn silent(name: &str, terminal: &Terminal) -> Self {
        let (name, terminal) = (name.to_owned(), terminal.clone());
        Self { name, bar: None, terminal, telling: ProgressLevel::Quiet }
    }

    /// Hides these secrets, in the progress of the test and elsewhere.
    pub(crate) fn keep_secret(&self, secrets: &Secrets) {
        self.terminal.keep_secret(secrets);
    }

    /// Shows the current step.
    pub(crate) fn say(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(self.terminal.harmless(what));
        }
        if self.telling == ProgressLevel::Steps {
            self.terminal.line(&format!("{}: {what}", self.name));
        }
    }
}

/// Returns the progress text of an event; none for an event that is of no interest while waiting.
pub(crate) fn words(what: &What) -> Option<String> {
    Some(match what {
        What::Attempted(attempt) => format!("fired, trace {}", attempt.trace_id),
        What::Answered { status } => format!("answered {status}, waiting for the trace"),
        What::Exited { code } => format!("ended with {code}, waiting for the trace"),
        What::NotFired => "waiting for the trace".to_owned(),
        // The report has the full message, without secrets.
        What::NotAnswered { .. } => "no answer".to_owned(),
        What::Accepted
        | What::Taken { .. }
        | What::Settled(_)
        | What::Provisional { .. }
        | What::Judged { .. }
        | What::Overtaken(_) => return None,
    })
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

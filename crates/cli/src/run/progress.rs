//! What is told while tests run: a line for each on a terminal, plain lines elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lang::Secrets;
use model::What;

use crate::terminal::Terminal;

/// How often a line on a terminal is drawn anew.
const TICK: Duration = Duration::from_millis(120);

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressLevel {
    /// Nothing.
    Quiet,
    /// That a test runs.
    Tests,
    /// Each of its steps.
    Steps,
}

/// Tells of one test, until it is dropped.
#[derive(Debug)]
pub(crate) struct Line {
    name: String,
    bar: Option<ProgressBar>,
    terminal: Terminal,
    telling: ProgressLevel,
}

impl Line {
    /// Begins to tell of a test.
    pub(crate) fn begin(name: &str, terminal: &Terminal, telling: ProgressLevel) -> Self {
        Self::of(name, "running", terminal, telling)
    }

    /// Begins to tell of what takes its time.
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

    /// A line of a test whose verdict is told already.
    pub(crate) fn silent(name: &str, terminal: &Terminal) -> Self {
        let (name, terminal) = (name.to_owned(), terminal.clone());
        Self { name, bar: None, terminal, telling: ProgressLevel::Quiet }
    }

    /// Has nobody see these, in what is told of the test and elsewhere.
    pub(crate) fn keep_secret(&self, secrets: &Secrets) {
        self.terminal.keep_secret(secrets);
    }

    /// Tells what happens now.
    pub(crate) fn say(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(self.terminal.harmless(what));
        }
        if self.telling == ProgressLevel::Steps {
            self.terminal.line(&format!("{}: {what}", self.name));
        }
    }
}

/// What is told of an event, by whoever runs the test; nothing where it says nothing to whoever waits.
pub(crate) fn words(what: &What) -> Option<String> {
    Some(match what {
        What::Attempted(attempt) => format!("fired, trace {}", attempt.trace_id),
        What::Answered { status } => format!("answered {status}, waiting for the trace"),
        What::Exited { code } => format!("ended with {code}, waiting for the trace"),
        What::NotFired => "waiting for the trace".to_owned(),
        // What is told of it in full is in the report, without secrets.
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

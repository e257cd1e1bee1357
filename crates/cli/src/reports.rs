//! Where outcomes are written: to stdout as they come, to files at the end.
//!
//! Deliberately absent: what a report looks like, which is `report`'s.

use std::{fs, path::PathBuf, str::FromStr};

use model::Outcome;
use report::Format;
use source::did_you_mean;

use crate::{args, exit::Exit, terminal::Terminal};

/// A format and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    format: Format,
    /// None is stdout.
    file: Option<PathBuf>,
}

/// The reports of one command.
#[derive(Debug)]
pub(crate) struct Reports<'a> {
    targets: Vec<Target>,
    outcomes: Vec<Outcome>,
    /// One outcome alone is told in full; among several those that passed are a line.
    is_alone: bool,
    terminal: &'a Terminal,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = match text.split_once('=') {
            Some((format, file)) => (format, Some(file)),
            None => (text, None),
        };
        let names = || Format::ALL.iter().map(|format| format.as_str());
        let Some(format) = Format::parse(format) else {
            let known: Vec<_> = names().collect();
            let meant = did_you_mean(format, names());
            let meant = meant.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
            return Err(format!("formats are {}{meant}", known.join(", ")));
        };
        match file {
            Some("") => Err("expected a file behind `=`, or `-` for stdout".to_owned()),
            None | Some("-") => Ok(Self { format, file: None }),
            Some(file) => Ok(Self { format, file: Some(file.into()) }),
        }
    }
}

impl<'a> Reports<'a> {
    /// The reports that were asked for; a person at a terminal gets one in any case.
    pub(crate) fn new(asked: &args::Reports, terminal: &'a Terminal) -> Result<Self, Exit> {
        let mut targets = asked.targets.clone();
        if targets.is_empty() {
            targets.push(Target { format: Format::Pretty, file: None });
        }
        let on_stdout = targets.iter().filter(|target| target.file.is_none()).count();
        if on_stdout > 1 {
            terminal.line("error: two reports cannot both go to stdout: give one of them a file, `--report junit=out.xml`");
            return Err(Exit::Refused);
        }
        let mut files: Vec<_> = targets.iter().filter_map(|target| target.file.as_ref()).collect();
        files.sort_unstable();
        if let Some(twice) = files.windows(2).find(|pair| pair[0] == pair[1]) {
            let file = twice[0].display();
            terminal.line(&format!("error: two reports cannot both go to `{file}`"));
            return Err(Exit::Refused);
        }
        Ok(Self { targets, outcomes: Vec::new(), is_alone: false, terminal })
    }

    /// Says how many outcomes will come.
    pub(crate) fn expect(&mut self, count: usize) {
        self.is_alone = count == 1;
    }

    /// Takes an outcome. What can be told of it alone is told at once.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        for target in self.targets.iter().filter(|target| target.file.is_none()) {
            if !self.is_alone {
                self.terminal.report(&report::part(target.format, &outcome, self.terminal.colour));
            }
        }
        self.outcomes.push(outcome);
    }

    /// Writes what needs all outcomes, and the files.
    pub(crate) fn finish(self) -> Result<(), Exit> {
        let mut written = Ok(());
        // Where every test was refused there is nothing to report; why was told already.
        let targets = self.targets.iter().filter(|_| !self.outcomes.is_empty());
        for target in targets {
            match &target.file {
                None => {
                    let write = if self.is_alone { report::render } else { report::rest };
                    let text = write(target.format, &self.outcomes, self.terminal.colour);
                    self.terminal.report(&text);
                }
                Some(file) => {
                    let text = report::render(target.format, &self.outcomes, source::Colour::Never);
                    if let Err(error) = fs::write(file, text) {
                        let file = file.display();
                        self.terminal.line(&format!(
                            "error: the report cannot be written to `{file}`: {error}"
                        ));
                        written = Err(Exit::Refused);
                    }
                }
            }
        }
        written
    }
}

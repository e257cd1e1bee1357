//! Writes outcomes: to stdout as they arrive, to files at the end.
//!
//! Deliberately absent: the formats of a report, which belong to `report`.

use std::fs;

use model::{ErrorCode, Outcome, Trace};
use report::{FOR_TERMINAL, ReportInput, Waterfall};
use source::Colour;

use crate::{
    args::{self, Target},
    exit::Exit,
    terminal::Terminal,
};

/// The reports of one command.
#[derive(Debug)]
pub(crate) struct Reports<'a> {
    targets: Vec<Target>,
    told: Vec<ReportedOutcome>,
    /// Whether there is only one outcome, which is written in full; among several, each that passed is one line.
    is_alone: bool,
    terminal: &'a Terminal,
}

/// An outcome, and the data to write it again.
#[derive(Debug)]
struct ReportedOutcome {
    /// Its index in the order of the documents.
    place: usize,
    outcome: Outcome,
    /// Its trace, if a report shows traces.
    waterfall: Option<Waterfall>,
    kind: Kind,
    /// Whether it was changed after it was reported.
    is_amended: bool,
}

/// The origin of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A judgement, or the reason why there is none.
    Result,
    /// A test that was refused, which a person has seen as an error.
    Refusal,
}

impl<'a> Reports<'a> {
    /// Returns the requested reports; adds one on stdout for a person if all of them go to files.
    pub(crate) fn new(asked: &args::ReportArgs, terminal: &'a Terminal) -> Result<Self, Exit> {
        let mut targets = asked.targets.clone();
        if targets.iter().all(|target| target.file.is_some()) {
            targets.push(Target { format: FOR_TERMINAL, file: None });
        }
        let on_stdout = targets.iter().filter(|target| target.file.is_none()).count();
        if on_stdout > 1 {
            terminal.error(ErrorCode::ReportsCollide, "two reports cannot both go to stdout: give one of them a file, `--report junit=out.xml`");
            return Err(Exit::Refused);
        }
        let mut files: Vec<_> = targets.iter().filter_map(|target| target.file.as_ref()).collect();
        files.sort_unstable();
        if let Some(twice) = files.windows(2).find(|pair| pair[0] == pair[1]) {
            let file = twice[0].display();
            terminal.error(
                ErrorCode::ReportsCollide,
                format_args!("two reports cannot both go to `{file}`"),
            );
            return Err(Exit::Refused);
        }
        Ok(Self { targets, told: Vec::new(), is_alone: false, terminal })
    }

    /// Whether one of them shows traces.
    pub(crate) fn show_traces(&self) -> bool {
        self.targets.iter().any(|target| target.format.shows_traces)
    }

    /// Sets the number of outcomes to expect.
    pub(crate) fn expect(&mut self, count: usize) {
        self.is_alone = count == 1;
    }

    /// Adds the next outcome, and its trace.
    pub(crate) fn add(&mut self, outcome: Outcome, trace: Option<&Trace>) {
        self.add_at(self.told.len(), outcome, trace);
    }

    /// Adds an outcome; `place` is the index of its test among all. Writes its part to stdout at once, if the format allows it.
    pub(crate) fn add_at(&mut self, place: usize, outcome: Outcome, trace: Option<&Trace>) {
        self.take(
            ReportedOutcome {
                place,
                outcome,
                waterfall: None,
                kind: Kind::Result,
                is_amended: false,
            },
            trace,
        );
    }

    /// Adds a test that was refused, with the reason. A pipeline needs an error in its report; a person has seen one already.
    pub(crate) fn refuse_at(&mut self, place: usize, name: &str, why: String) {
        let outcome = Outcome::open(name.to_owned(), why);
        self.take(
            ReportedOutcome {
                place,
                outcome,
                waterfall: None,
                kind: Kind::Refusal,
                is_amended: false,
            },
            None,
        );
    }

    fn take(&mut self, mut told: ReportedOutcome, trace: Option<&Trace>) {
        let secrets = self.terminal.secrets();
        secrets.hide_all(told.outcome.texts_mut());
        let outcome = &told.outcome;
        for target in self.targets.iter().filter(|target| target.file.is_none()) {
            let colour = self.terminal.colour;
            if target.format.is_for_people && told.kind == Kind::Refusal {
                continue;
            }
            if !self.is_alone {
                self.terminal.report(&report::part(target.format, outcome, colour));
            } else if target.format.is_for_people {
                self.terminal.report(&alone(target, outcome, colour));
            }
        }
        let trace = trace.filter(|_| self.show_traces());
        told.waterfall =
            trace.map(|trace| Waterfall::of(trace, outcome, &|text| secrets.hide(text)));
        self.told.push(told);
    }

    /// Replaces a provisional outcome by the final one. Writes it to stdout again if its verdict was superseded.
    pub(crate) fn replace(&mut self, place: usize, outcome: Outcome, trace: Option<&Trace>) {
        let (secrets, colour) = (self.terminal.secrets(), self.terminal.colour);
        let Some(told) = self.told.iter_mut().find(|told| told.place == place) else { return };
        told.outcome = outcome;
        secrets.hide_all(told.outcome.texts_mut());
        if let Some(trace) = trace.filter(|_| told.waterfall.is_some()) {
            told.waterfall = Some(Waterfall::of(trace, &told.outcome, &|text| secrets.hide(text)));
        }
        if told.outcome.superseded.is_some() {
            Self::tell_again(&self.targets, &told.outcome, (self.terminal, colour));
        }
    }

    /// Changes a reported outcome. Returns whether there is one.
    pub(crate) fn amend(&mut self, place: usize, change: impl FnOnce(&mut Outcome)) -> bool {
        let colour = self.terminal.colour;
        let is_result =
            |told: &&mut ReportedOutcome| told.place == place && told.kind == Kind::Result;
        let Some(told) = self.told.iter_mut().find(is_result) else { return false };
        change(&mut told.outcome);
        told.is_amended = true;
        self.terminal.secrets().hide_all(told.outcome.texts_mut());
        Self::tell_again(&self.targets, &told.outcome, (self.terminal, colour));
        true
    }

    /// Writes a test with a changed verdict again, for a person.
    fn tell_again(targets: &[Target], outcome: &Outcome, (to, colour): (&Terminal, Colour)) {
        let on_stdout = targets.iter().filter(|target| target.file.is_none());
        for target in on_stdout.filter(|target| target.format.is_for_people) {
            to.report(&alone(target, outcome, colour));
        }
    }

    /// Writes the parts that need all outcomes, and the files: in the order of the documents.
    ///
    /// Files are written even if there is nothing to report, so that a file of an earlier command is not mistaken for ours.
    pub(crate) fn finish(mut self) -> Result<(), Exit> {
        let is_empty = self.told.is_empty();
        let has_results = self.told.iter().any(|told| told.kind == Kind::Result);
        self.told.sort_by_key(|told| told.place);
        let is_other =
            |told: &&ReportedOutcome| told.outcome.superseded.is_some() || told.is_amended;
        let others: Vec<_> =
            self.told.iter().filter(is_other).map(|told| told.outcome.clone()).collect();
        let told = self.told.into_iter().map(|told| (told.outcome, told.waterfall));
        let (outcomes, waterfalls): (Vec<_>, Vec<_>) = told.unzip();
        let input = |colour| ReportInput { outcomes: &outcomes, waterfalls: &waterfalls, colour };
        let mut written = Ok(());
        for target in &self.targets {
            match &target.file {
                None if is_empty => {}
                // It was written when it arrived.
                None if target.format.is_for_people && (self.is_alone || !has_results) => {}
                None => {
                    let colour = self.terminal.colour;
                    let text = match self.is_alone {
                        true => report::render(target.format, &input(colour)),
                        false => {
                            // A stream contains their earlier version, so it repeats them; a person has already seen the change.
                            let again = others.iter().filter(|_| !target.format.is_for_people);
                            let again = again.map(|it| report::part(target.format, it, colour));
                            again.chain([report::rest(target.format, &input(colour))]).collect()
                        }
                    };
                    self.terminal.report(&text);
                }
                Some(file) => {
                    let text = report::render(target.format, &input(Colour::Never));
                    if let Err(error) = fs::write(file, text) {
                        let file = file.display();
                        self.terminal.error(
                            ErrorCode::FileUnwritable,
                            format_args!("the report cannot be written to `{file}`: {error}"),
                        );
                        written = Err(Exit::Refused);
                    }
                }
            }
        }
        written
    }
}

/// Writes the complete report of one outcome.
fn alone(target: &Target, outcome: &Outcome, colour: Colour) -> String {
    let outcomes = std::slice::from_ref(outcome);
    report::render(target.format, &ReportInput { outcomes, waterfalls: &[], colour })
}

//! Counting what came of the runs.

use std::collections::BTreeMap;

use model::{Unsettled, Verdict};

use super::{Run, excuse::Why, system::CLASSES};
use crate::table::{Goal, Row};

/// Wrong runs that are told of while others go on.
const TOLD_MAX: u64 = 20;
/// Of the runs where nothing was withheld or lost, in percent.
const INCONCLUSIVE_MAX: f64 = 1.0;

/// What came of many runs.
#[derive(Debug, Default)]
pub struct Tally {
    classes: [Counts; CLASSES.len()],
    excused: BTreeMap<Why, u64>,
    /// What kept clean runs from a verdict: how many, and the seed of one.
    unsettled: BTreeMap<String, (u64, u64)>,
    told: u64,
    pub(super) nanos: u64,
    /// Played in real time, where a busy machine may keep a run from its verdict.
    pub(super) is_real: bool,
}

#[derive(Debug, Default)]
struct Counts {
    runs: u64,
    wrong_passes: u64,
    wrong_fails: u64,
    clean: u64,
    clean_inconclusive: u64,
    inconclusive: u64,
    clean_overtaken: u64,
    overtaken: u64,
    missed: u64,
    hasty: u64,
}

impl Tally {
    pub(super) fn add(&mut self, run: &Run<'_, '_>) {
        let counts = &mut self.classes[run.case.script.system.class];
        let ruling = &run.ruling;
        counts.runs += 1;
        let one = |is: bool| u64::from(is);
        let has = |verdict| ruling.wrong.iter().any(|(wrong, _)| *wrong == verdict);
        counts.wrong_passes += one(has(Verdict::Passed));
        counts.wrong_fails += one(!ruling.wrong.is_empty() && !has(Verdict::Passed));
        let is_open = ruling.verdict == Verdict::Inconclusive;
        counts.inconclusive += one(is_open);
        counts.clean += one(ruling.is_clean);
        counts.clean_inconclusive += one(ruling.is_clean && is_open);
        counts.overtaken += one(ruling.is_overtaken);
        counts.clean_overtaken += one(ruling.is_overtaken && ruling.is_clean);
        counts.missed += one(ruling.missed.is_some());
        counts.hasty += one(ruling.is_hasty.is_some());
        if let Some(why) = ruling.excused {
            *self.excused.entry(why).or_default() += 1;
        }
        if ruling.is_clean && is_open {
            let (count, seed) = self.unsettled.entry(unsettled(run)).or_default();
            (*count, *seed) = (*count + 1, run.seed);
        }
        let words: Vec<_> =
            ruling.wrong.iter().map(|(_, words)| words.as_str()).chain(ruling.missed).collect();
        if !words.is_empty() {
            self.told += 1;
            if self.told <= TOLD_MAX {
                say(&format!("seed {}: {}", run.seed, words.join("; ")));
            }
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        for (mine, its) in self.classes.iter_mut().zip(other.classes) {
            mine.join(&its);
        }
        for (why, count) in other.excused {
            *self.excused.entry(why).or_default() += count;
        }
        for (what, (more, seed)) in other.unsettled {
            let (count, example) = self.unsettled.entry(what).or_default();
            (*count, *example) = (*count + more, seed);
        }
    }

    /// Whether no run was wrong.
    pub fn is_right(&self) -> bool {
        let all = self.all();
        all.wrong_passes + all.wrong_fails + all.missed == 0
    }

    fn all(&self) -> Counts {
        let mut all = Counts::default();
        self.classes.iter().for_each(|counts| all.join(counts));
        all
    }

    /// The figures.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (name, counts) in CLASSES.iter().zip(&self.classes) {
            counts.write(&format!("batch delay {name}: "), None, &mut rows);
        }
        let all = self.all();
        let inconclusive = (!self.is_real).then_some(Goal::AtMost(INCONCLUSIVE_MAX));
        all.write("", inconclusive, &mut rows);
        for (why, count) in &self.excused {
            let name = format!("  right by what was there: {why:?}").to_lowercase();
            rows.push(row(&name, percent(*count, all.runs), "%", None));
        }
        for (what, (count, seed)) in &self.unsettled {
            let name = format!("  inconclusive, nothing withheld: {what} (seed {seed})");
            rows.push(row(&name, percent(*count, all.clean), "%", None));
        }
        let seconds = self.nanos as f64 / 1e9;
        rows.push(row("runs per second", all.runs as f64 / seconds, "runs/s", None));
        rows
    }
}

impl Counts {
    fn join(&mut self, other: &Self) {
        self.runs += other.runs;
        self.wrong_passes += other.wrong_passes;
        self.wrong_fails += other.wrong_fails;
        self.clean += other.clean;
        self.clean_inconclusive += other.clean_inconclusive;
        self.inconclusive += other.inconclusive;
        self.clean_overtaken += other.clean_overtaken;
        self.overtaken += other.overtaken;
        self.missed += other.missed;
        self.hasty += other.hasty;
    }

    fn write(&self, of: &str, inconclusive: Option<Goal>, rows: &mut Vec<Row>) {
        let mut add = |name: &str, value: f64, unit, goal| {
            rows.push(row(&format!("{of}{name}"), value, unit, goal));
        };
        let none = Some(Goal::AtMost(0.0));
        add("runs", self.runs as f64, "runs", None);
        add("wrong passes", self.wrong_passes as f64, "runs", none);
        add("wrong fails", self.wrong_fails as f64, "runs", none);
        add("overtaken and not marked", self.missed as f64, "runs", none);
        let clean = percent(self.clean_inconclusive, self.clean);
        add("inconclusive where nothing was withheld or lost", clean, "%", inconclusive);
        add("inconclusive", percent(self.inconclusive, self.runs), "%", None);
        let clean = percent(self.clean_overtaken, self.clean);
        add("overtaken where nothing was withheld or lost", clean, "%", None);
        add("overtaken", percent(self.overtaken, self.runs), "%", None);
        let hasty = percent(self.hasty, self.runs);
        add("taken as whole too early, right or not", hasty, "%", None);
    }
}

fn unsettled(run: &Run<'_, '_>) -> String {
    let settlement = run.case.ended.finished.outcome.settlement.as_ref();
    let words = settlement.map(|settlement| settlement.unsettled.iter().map(word).collect());
    words
        .filter(|words: &Vec<&str>| !words.is_empty())
        .map_or("whole".to_owned(), |it| it.join(", "))
}

fn word(unsettled: &Unsettled) -> &'static str {
    match unsettled {
        Unsettled::NoTelemetry => "no telemetry",
        Unsettled::NotAnswered => "not answered",
        Unsettled::ParentsAbsent(_) => "parents absent",
        Unsettled::EdgesOpen(_) => "edges open",
        Unsettled::ExpectedAbsent(_) => "expected absent",
        Unsettled::NotQuiet => "not quiet",
        Unsettled::NotWaited => "not waited",
        Unsettled::TooLarge => "too large",
        Unsettled::SpansLost => "spans lost",
        Unsettled::Partial => "partial",
    }
}

fn percent(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { 100.0 * part as f64 / of as f64 }
}

fn row(name: &str, value: f64, unit: &'static str, goal: Option<Goal>) -> Row {
    Row { name: name.to_owned(), value, unit, goal }
}

/// A finding, at once: the table comes last.
#[expect(clippy::print_stderr, reason = "what is found is told before the table")]
pub(super) fn say(line: &str) {
    eprintln!("{line}");
}

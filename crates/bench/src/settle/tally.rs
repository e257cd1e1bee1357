//! Counts the results of the runs.

use std::collections::BTreeMap;

use model::{Settlement, Verdict};

use super::{
    Run,
    crowd::Crowds,
    excuse::Why,
    lateness::Lateness,
    referee::{SettleRule, Withheld},
    system::{CLASSES, MS, SECOND},
};
use crate::table::{Goal, Row};

/// Wrong runs that are reported while others continue.
const TOLD_MAX: u64 = 20;
/// The upper bound of inconclusive runs among those without withheld or lost data, in percent.
const INCONCLUSIVE_MAX: f64 = 1.0;

/// The classes of lateness, by the longest gap before the work.
const LATENESS: [(u64, &str); 6] = [
    (100 * MS, "up to 100 ms"),
    (SECOND, "up to 1 s"),
    (2 * SECOND, "up to 2 s"),
    (5 * SECOND, "up to 5 s"),
    (10 * SECOND, "up to 10 s"),
    (u64::MAX, "later"),
];

type Is = fn(&Withheld) -> bool;

/// The kinds of withheld data.
const WITHHELD: [(Is, &str); 8] = [
    (|it| it.lost_context, "a context was lost"),
    (|it| it.unsent, "a service sent nothing, or not all"),
    (|it| it.dropped, "attributes or events were dropped"),
    (|it| it.given_up, "a client gave up"),
    (|it| it.elsewhere, "another server took spans"),
    (|it| it.refused, "spans were refused"),
    (|it| it.outside, "something outside is silent, a service that did nothing is named"),
    (|it| it.lost, "spans were lost on the way"),
];

/// The results of many runs.
#[derive(Debug, Default)]
pub struct SettleTally {
    classes: [SettleCounts; CLASSES.len()],
    /// Wrong statements by the broken rule, and whether the exit code is wrong too: their number, and the seed of one.
    broken: BTreeMap<(SettleRule, bool), (u64, u64)>,
    excused: BTreeMap<Why, u64>,
    /// Runs with a verdict that depends on late work, by its lateness; the last entry is for work that never arrives.
    late: [Share; LATENESS.len() + 1],
    withheld: [Share; WITHHELD.len()],
    /// Runs without withheld data while other clients called the same system.
    noisy: Share,
    pub(super) crowds: Crowds,
    /// The reasons why clean runs have no verdict: their number, and the seed of one.
    unsettled: BTreeMap<String, (u64, u64)>,
    told: u64,
    pub(super) nanos: u64,
    /// Played in real time, where a busy machine may prevent a run's verdict.
    pub(super) is_real: bool,
}

#[derive(Debug, Default)]
struct SettleCounts {
    runs: u64,
    wrong_passes: u64,
    wrong_fails: u64,
    clean: u64,
    clean_inconclusive: u64,
    inconclusive: u64,
    clean_overtaken: u64,
    overtaken: u64,
    superseded: u64,
    missed: u64,
    hasty: u64,
}

/// The exit codes of some runs.
#[derive(Debug, Default)]
struct Share {
    runs: u64,
    wrong: u64,
    inconclusive: u64,
}

impl SettleTally {
    pub(super) fn add(&mut self, run: &Run<'_, '_>) {
        let ruling = &run.ruling;
        let is_clean = ruling.withheld.is_nothing();
        self.classes[run.case.script.system.class].add(run);
        for (_, rule, _) in &ruling.wrong {
            let is_exit = ruling.is_exit_wrong();
            let (count, seed) = self.broken.entry((*rule, is_exit)).or_default();
            (*count, *seed) = (*count + 1, run.seed);
        }
        if let Some(why) = ruling.excused {
            *self.excused.entry(why).or_default() += 1;
        }
        let late = match ruling.lateness {
            Lateness::None => None,
            Lateness::After(gap) => LATENESS.iter().position(|(most, _)| gap <= *most),
            Lateness::Never => Some(LATENESS.len()),
        };
        late.into_iter().for_each(|late| self.late[late].add(run));
        for (share, (is_so, _)) in self.withheld.iter_mut().zip(WITHHELD) {
            if is_so(&ruling.withheld) {
                share.add(run);
            }
        }
        if is_clean && !run.case.script.noise.is_silent() {
            self.noisy.add(run);
        }
        if is_clean && ruling.verdict == Verdict::Inconclusive {
            let (count, seed) = self.unsettled.entry(unsettled(run)).or_default();
            (*count, *seed) = (*count + 1, run.seed);
        }
        self.tell(run);
    }

    /// Reports a wrong run, at once.
    fn tell(&mut self, run: &Run<'_, '_>) {
        let wrong = run.ruling.held().map(|(_, rule, words)| format!("({rule:?}) {words}"));
        let words: Vec<_> = wrong.chain(run.ruling.missed.map(str::to_owned)).collect();
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
        join(&mut self.broken, other.broken);
        join(&mut self.unsettled, other.unsettled);
        for (mine, its) in self.late.iter_mut().zip(other.late) {
            mine.join(&its);
        }
        for (mine, its) in self.withheld.iter_mut().zip(other.withheld) {
            mine.join(&its);
        }
        self.noisy.join(&other.noisy);
        self.crowds.join(&other.crowds);
    }

    /// Whether no run was wrong that had to be right, and none was disturbed by another.
    pub fn is_right(&self) -> bool {
        let all = self.all();
        all.wrong_passes + all.wrong_fails + all.missed + self.crowds.disturbed == 0
    }

    /// Whether few enough runs without withheld data were inconclusive. With a few runs of each system this is meaningless: the
    /// engine cannot know what it has not learned yet.
    pub(super) fn is_conclusive(&self) -> bool {
        let all = self.all();
        percent(all.clean_inconclusive, all.clean) <= INCONCLUSIVE_MAX
    }

    fn all(&self) -> SettleCounts {
        let mut all = SettleCounts::default();
        self.classes.iter().for_each(|counts| all.join(counts));
        all
    }

    /// Returns the figures.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (name, counts) in CLASSES.iter().zip(&self.classes) {
            counts.write(&format!("batch delay {name}: "), None, &mut rows);
        }
        let all = self.all();
        let inconclusive = (!self.is_real).then_some(Goal::AtMost(INCONCLUSIVE_MAX));
        all.write("", inconclusive, &mut rows);
        self.noisy.write("others call the system, nothing withheld", inconclusive, &mut rows);
        let Crowds { others, disturbed, example } = &self.crowds;
        rows.push(row("eight at a time, one lost a context: others", *others as f64, "runs", None));
        let example = example.map_or(String::new(), |number| format!(" (system {number})"));
        let name = format!("eight at a time: disturbed by it{example}");
        rows.push(row(&name, *disturbed as f64, "runs", Some(Goal::AtMost(0.0))));
        for (rule, words) in SettleRule::ALL {
            for (is_exit, exit) in [(true, "wrong exit code"), (false, "wrong, exit code right")] {
                let (count, seed) = self.broken.get(&(rule, is_exit)).copied().unwrap_or_default();
                let seed = if count > 0 { format!(" (seed {seed})") } else { String::new() };
                let goal = rule.is_held(is_exit).then_some(Goal::AtMost(0.0));
                let name = format!("  {exit}: {words}{seed}");
                rows.push(row(&name, count as f64, "statements", goal));
            }
        }
        let never = [(0, "that never comes")];
        for (share, (_, name)) in self.late.iter().zip(LATENESS.iter().chain(&never)) {
            share.write(&format!("depends on work {name}"), None, &mut rows);
        }
        for (share, (_, name)) in self.withheld.iter().zip(&WITHHELD) {
            share.write(name, None, &mut rows);
        }
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

impl SettleCounts {
    fn add(&mut self, run: &Run<'_, '_>) {
        let ruling = &run.ruling;
        let one = |is: bool| u64::from(is);
        let has = |verdict| ruling.held().any(|(wrong, ..)| *wrong == verdict);
        let is_open = ruling.verdict == Verdict::Inconclusive;
        let is_clean = ruling.withheld.is_nothing();
        self.runs += 1;
        self.wrong_passes += one(has(Verdict::Passed));
        self.wrong_fails += one(ruling.held().next().is_some() && !has(Verdict::Passed));
        self.inconclusive += one(is_open);
        self.clean += one(is_clean);
        self.clean_inconclusive += one(is_clean && is_open);
        self.overtaken += one(ruling.is_overtaken);
        self.clean_overtaken += one(ruling.is_overtaken && is_clean);
        self.superseded += one(ruling.is_superseded);
        self.missed += one(ruling.missed.is_some());
        self.hasty += one(ruling.is_hasty.is_some());
    }

    fn join(&mut self, other: &Self) {
        self.runs += other.runs;
        self.wrong_passes += other.wrong_passes;
        self.wrong_fails += other.wrong_fails;
        self.clean += other.clean;
        self.clean_inconclusive += other.clean_inconclusive;
        self.inconclusive += other.inconclusive;
        self.clean_overtaken += other.clean_overtaken;
        self.overtaken += other.overtaken;
        self.superseded += other.superseded;
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
        add("superseded or overtaken, and not marked", self.missed as f64, "runs", none);
        let clean = percent(self.clean_inconclusive, self.clean);
        add("inconclusive where nothing was withheld or lost", clean, "%", inconclusive);
        add("inconclusive", percent(self.inconclusive, self.runs), "%", None);
        add("superseded", percent(self.superseded, self.runs), "%", None);
        let clean = percent(self.clean_overtaken, self.clean);
        add("overtaken where nothing was withheld or lost", clean, "%", None);
        add("overtaken", percent(self.overtaken, self.runs), "%", None);
        let hasty = percent(self.hasty, self.runs);
        add("taken as complete too early, right or not", hasty, "%", None);
    }
}

impl Share {
    fn add(&mut self, run: &Run<'_, '_>) {
        self.runs += 1;
        self.wrong += u64::from(run.ruling.is_exit_wrong());
        self.inconclusive += u64::from(run.ruling.verdict == Verdict::Inconclusive);
    }

    fn join(&mut self, other: &Self) {
        self.runs += other.runs;
        self.wrong += other.wrong;
        self.inconclusive += other.inconclusive;
    }

    fn write(&self, of: &str, inconclusive: Option<Goal>, rows: &mut Vec<Row>) {
        rows.push(row(&format!("{of}: runs"), self.runs as f64, "runs", None));
        let wrong = percent(self.wrong, self.runs);
        rows.push(row(&format!("{of}: wrong exit codes"), wrong, "%", None));
        let open = percent(self.inconclusive, self.runs);
        rows.push(row(&format!("{of}: inconclusive"), open, "%", inconclusive));
    }
}

fn join<K: Ord>(mine: &mut BTreeMap<K, (u64, u64)>, its: BTreeMap<K, (u64, u64)>) {
    for (what, (more, seed)) in its {
        let (count, example) = mine.entry(what).or_default();
        (*count, *example) = (*count + more, seed);
    }
}

fn unsettled(run: &Run<'_, '_>) -> String {
    let settlement = run.case.ended.outcome.settlement.as_ref();
    settlement.map_or("complete".to_owned(), Settlement::reason)
}

pub(super) fn percent(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { 100.0 * part as f64 / of as f64 }
}

pub(super) fn row(name: &str, value: f64, unit: &'static str, goal: Option<Goal>) -> Row {
    Row { name: name.to_owned(), value, unit, goal }
}

/// Prints a finding at once: the table comes last.
#[expect(clippy::print_stderr, reason = "what is found is told before the table")]
pub(super) fn say(line: &str) {
    eprintln!("{line}");
}

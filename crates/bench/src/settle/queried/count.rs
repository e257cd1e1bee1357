//! Counts the results of queried runs.

use std::collections::BTreeMap;

use model::{Settlement, Verdict};

use super::{store::Trouble, world::QueriedRun};
use crate::{
    settle::tally::{percent, row, say},
    table::{Goal, Row},
};

/// Wrong runs that are reported while others continue.
const TOLD_MAX: u64 = 20;
/// The upper bound of inconclusive runs where the store answers completely within its lag, in percent.
const INCONCLUSIVE_MAX: f64 = 1.0;

/// How far beyond the lag a span was hidden, as a multiple of the lag.
const BEYOND: [(f64, &str); 4] = [
    (1.5, "up to 1.5 times the lag"),
    (3.0, "up to 3 times the lag"),
    (10.0, "up to 10 times the lag"),
    (f64::INFINITY, "for longer"),
];

/// The results of many runs.
#[derive(Debug, Default)]
pub struct QueriedTally {
    runs: u64,
    within: u64,
    wrong: u64,
    clean: u64,
    clean_inconclusive: u64,
    inconclusive: u64,
    /// Inconclusive runs of which no reason names a cause.
    unexplained: u64,
    /// Runs that a refusal did not end.
    unrefused: u64,
    beyond: [BeyondCounts; BEYOND.len()],
    queries: u64,
    /// Why clean runs have no verdict: their number, and the seed of one.
    unsettled: BTreeMap<String, (u64, u64)>,
    told: u64,
}

#[derive(Debug, Default)]
struct BeyondCounts {
    runs: u64,
    wrong: u64,
    unmarked: u64,
}

impl QueriedTally {
    pub(super) fn add(&mut self, seed: u64, run: &QueriedRun) {
        let verdict = run.outcome.verdict;
        let is_wrong = match verdict {
            Verdict::Passed => !run.truth,
            Verdict::Failed => run.truth,
            Verdict::Inconclusive => false,
        };
        let is_open = verdict == Verdict::Inconclusive;
        self.runs += 1;
        self.queries += run.queries;
        self.inconclusive += u64::from(is_open);
        self.unexplained += u64::from(is_open && !is_explained(run));
        self.unrefused +=
            u64::from(run.trouble == Trouble::Refusal && !(is_open && run.queries == 1));
        let is_within = run.hidden <= run.lag();
        if !is_within {
            let ratio = run.hidden as f64 / run.lag().max(1) as f64;
            let class = BEYOND.iter().position(|(most, _)| ratio <= *most);
            let counts = &mut self.beyond[class.unwrap_or(BEYOND.len() - 1)];
            counts.runs += 1;
            counts.wrong += u64::from(is_wrong);
            counts.unmarked += u64::from(is_wrong && !run.is_marked);
            return;
        }
        self.within += 1;
        if is_wrong {
            self.wrong += 1;
            self.told += 1;
            if self.told <= TOLD_MAX {
                say(&format!("seed {seed}: {} and truly {}; {run:?}", verdict.as_str(), run.truth));
            }
        }
        if run.trouble == Trouble::None {
            self.clean += 1;
            self.clean_inconclusive += u64::from(is_open);
            if is_open {
                let reason = run.outcome.settlement.as_ref().map(Settlement::reason);
                let (count, example) =
                    self.unsettled.entry(reason.unwrap_or_default()).or_default();
                (*count, *example) = (*count + 1, seed);
            }
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        self.runs += other.runs;
        self.within += other.within;
        self.wrong += other.wrong;
        self.clean += other.clean;
        self.clean_inconclusive += other.clean_inconclusive;
        self.inconclusive += other.inconclusive;
        self.unexplained += other.unexplained;
        self.unrefused += other.unrefused;
        self.queries += other.queries;
        for (mine, its) in self.beyond.iter_mut().zip(other.beyond) {
            mine.runs += its.runs;
            mine.wrong += its.wrong;
            mine.unmarked += its.unmarked;
        }
        for (reason, (more, seed)) in other.unsettled {
            let (count, example) = self.unsettled.entry(reason).or_default();
            (*count, *example) = (*count + more, seed);
        }
    }

    /// Whether no run was wrong that had to be right, and every other one has its reason.
    pub fn is_right(&self) -> bool {
        self.wrong + self.unexplained + self.unrefused == 0
    }

    /// Whether few enough runs were inconclusive where the store answered completely within its lag.
    pub(in crate::settle) fn is_conclusive(&self) -> bool {
        percent(self.clean_inconclusive, self.clean) <= INCONCLUSIVE_MAX
    }

    /// Returns the figures.
    pub fn rows(&self) -> Vec<Row> {
        let none = Some(Goal::AtMost(0.0));
        let mut rows = vec![
            row("runs", self.runs as f64, "runs", None),
            row("hidden within the lag: runs", self.within as f64, "runs", None),
            row("hidden within the lag: wrong verdicts", self.wrong as f64, "runs", none),
            row(
                "hidden within the lag, every answer complete: inconclusive",
                percent(self.clean_inconclusive, self.clean),
                "%",
                Some(Goal::AtMost(INCONCLUSIVE_MAX)),
            ),
            row("inconclusive", percent(self.inconclusive, self.runs), "%", None),
            row("inconclusive without a cause", self.unexplained as f64, "runs", none),
            row("refused, and not ended by it", self.unrefused as f64, "runs", none),
            row("queries a run", self.queries as f64 / self.runs.max(1) as f64, "queries", None),
        ];
        for ((_, name), counts) in BEYOND.iter().zip(&self.beyond) {
            rows.push(row(&format!("hidden {name}: runs"), counts.runs as f64, "runs", None));
            let wrong = percent(counts.wrong, counts.runs);
            rows.push(row(&format!("hidden {name}: wrong verdicts"), wrong, "%", None));
            let unmarked = counts.unmarked as f64;
            rows.push(row(&format!("hidden {name}: wrong and not marked"), unmarked, "runs", None));
        }
        for (reason, (count, seed)) in &self.unsettled {
            let name = format!("  inconclusive, every answer complete: {reason} (seed {seed})");
            rows.push(row(&name, percent(*count, self.clean), "%", None));
        }
        rows
    }
}

/// Whether a run without a verdict has a reason, and the store is one where its answers were bad to the end.
fn is_explained(run: &QueriedRun) -> bool {
    let has_reason = run.outcome.settlement.as_ref().is_some_and(|it| !it.unsettled.is_empty());
    let is_bad = matches!(run.trouble, Trouble::Lasting | Trouble::Refusal);
    has_reason && (run.names_store() || !is_bad)
}

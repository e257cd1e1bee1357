//! The schedule: tests may start at any time, the steps of a suite when the steps that they need have passed.
//!
//! Pure bookkeeping: it receives ended cases and returns the next ones. Deliberately absent: the concurrency.

use std::collections::{BTreeSet, VecDeque};

use lang::{Step, StepOutput, Vars};
use model::Verdict;
use runner::suite::{Next, needed, next};

use crate::{
    args::Shard,
    discovery::{Item, Suite, Test},
};

/// One run of one test.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The name in reports.
    pub(crate) name: String,
    pub(crate) test: Test,
    /// The index of its item.
    pub(crate) item: usize,
    /// The indexes of the suite run and of the step in it.
    step: Option<(usize, usize)>,
}

/// One run of a suite.
#[derive(Debug)]
struct SuiteRun {
    steps: Vec<Step>,
    /// The index of the case of the first step.
    first: usize,
    begun: Vec<bool>,
    ended: Vec<Option<Verdict>>,
    outputs: Vec<Vec<StepOutput>>,
}

/// All cases to be run.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    cases: Vec<Case>,
    suites: Vec<SuiteRun>,
    /// Cases that may start, in the order of the documents.
    ready: BTreeSet<usize>,
    /// Cases that will not start, each with the reason, not yet returned.
    skipped: VecDeque<(usize, String)>,
}

impl Schedule {
    /// Schedules every item `times` times.
    pub(crate) fn new(items: &[Item], times: u32) -> Self {
        let mut schedule = Self::default();
        for (at, item) in items.iter().enumerate() {
            for time in 1..=times {
                let nth = if times > 1 { format!(" ({time}/{times})") } else { String::new() };
                match item {
                    Item::Test(test) => {
                        let name = format!("{}{nth}", test.plan.name);
                        schedule.ready.insert(schedule.cases.len());
                        schedule.cases.push(Case {
                            name,
                            test: test.clone(),
                            item: at,
                            step: None,
                        });
                    }
                    Item::Suite(suite) => schedule.add_suite(suite, at, &nth),
                }
            }
        }
        for suite in 0..schedule.suites.len() {
            schedule.go_on(suite);
        }
        schedule
    }

    fn add_suite(&mut self, suite: &Suite, item: usize, nth: &str) {
        let (first, count) = (self.cases.len(), suite.steps.len());
        for (at, (step, test)) in suite.steps.iter().zip(&suite.tests).enumerate() {
            let name = format!("{}{nth} / {}", suite.name, step.name);
            let step = Some((self.suites.len(), at));
            self.cases.push(Case { name, test: test.clone(), item, step });
        }
        self.suites.push(SuiteRun {
            steps: suite.steps.clone(),
            first,
            begun: vec![false; count],
            ended: vec![None; count],
            outputs: vec![Vec::new(); count],
        });
    }

    pub(crate) fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Returns the next case that may start now.
    pub(crate) fn start(&mut self) -> Option<usize> {
        self.ready.pop_first()
    }

    /// Returns a case that will not be run because a step that it needs did not pass, with the reason.
    pub(crate) fn skipped(&mut self) -> Option<(usize, String)> {
        self.skipped.pop_front()
    }

    /// Whether the case needs others and may use their outputs.
    pub(crate) fn has_needs(&self, case: usize) -> bool {
        let Some((suite, step)) = self.cases[case].step else { return false };
        !self.suites[suite].steps[step].needs.is_empty()
    }

    /// Whether other cases may use the outputs of the case.
    pub(crate) fn is_step(&self, case: usize) -> bool {
        self.cases[case].step.is_some()
    }

    /// Records the verdict of a case.
    pub(crate) fn end(&mut self, case: usize, verdict: Verdict, outputs: Vec<StepOutput>) {
        let Some((suite, step)) = self.cases[case].step else { return };
        self.suites[suite].ended[step] = Some(verdict);
        self.suites[suite].outputs[step] = outputs;
        self.go_on(suite);
    }

    /// Returns the variables of a case: the global ones, overridden by the outputs of the steps that it needs; a later step wins.
    pub(crate) fn vars(&self, case: usize, all: &Vars) -> Vars {
        let mut vars = all.clone();
        let Some((suite, step)) = self.cases[case].step else { return vars };
        let suite = &self.suites[suite];
        for before in needed(&suite.steps, step) {
            for StepOutput { name, value, is_secret } in &suite.outputs[before] {
                vars.variables.insert(name.clone(), value.clone());
                if *is_secret {
                    vars.secrets.insert(name.clone());
                } else {
                    vars.secrets.remove(name);
                }
            }
        }
        vars
    }

    /// Returns the cases that need this one, directly or not.
    pub(crate) fn dependents(&self, case: usize) -> Vec<usize> {
        let Some((suite, step)) = self.cases[case].step else { return Vec::new() };
        let suite = &self.suites[suite];
        let steps = 0..suite.steps.len();
        let dependents = steps.filter(|other| needed(&suite.steps, *other).contains(&step));
        dependents.map(|other| suite.first + other).collect()
    }

    /// Updates the cases that may start now, and those that never will.
    fn go_on(&mut self, suite: usize) {
        let run = &mut self.suites[suite];
        let Next { ready, skipped } = next(&run.steps, &run.ended);
        for step in ready {
            if !std::mem::replace(&mut run.begun[step], true) {
                self.ready.insert(run.first + step);
            }
        }
        for &step in &skipped {
            let needs = &run.steps[step].needs;
            // A step that was run explains more than one that was skipped as well.
            let did_not_pass =
                |need: &&usize| run.ended[**need].is_some_and(|it| it != Verdict::Passed);
            let is_skipped = |need: &&usize| skipped.contains(need);
            let need = needs.iter().find(did_not_pass).or_else(|| needs.iter().find(is_skipped));
            let need = need.map_or("", |need| &run.steps[*need].name);
            let why = format!("it needs the step `{need}`, which did not pass");
            run.ended[step] = Some(Verdict::Inconclusive);
            self.skipped.push_back((run.first + step, why));
        }
    }
}

/// Returns the items of a shard: each item belongs to exactly one shard.
pub(crate) fn shard(items: Vec<Item>, shard: Shard) -> Vec<Item> {
    let (part, of) = (shard.part as usize - 1, shard.of as usize);
    items.into_iter().enumerate().filter(|(at, _)| at % of == part).map(|(_, item)| item).collect()
}

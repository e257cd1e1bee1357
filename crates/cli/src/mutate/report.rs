//! The results of the mutants, as plain data.

use lang::Plan;
use model::{Place, TraceId};
use shape::Mutant;

/// The results of all traces and tests.
pub(super) struct MutationReport {
    pub(super) traces: Vec<MutatedTrace>,
    pub(super) tests: Vec<TestTotal>,
}

/// A trace and its mutants.
pub(super) struct MutatedTrace {
    pub(super) name: String,
    pub(super) file: String,
    pub(super) trace_id: TraceId,
    pub(super) spans: usize,
    /// The number of spans that are equal to an earlier one, and not mutated themselves.
    pub(super) alike: usize,
    /// The ids of mutants that are not in the sample.
    pub(super) left_out: Vec<String>,
    pub(super) mutants: Vec<MutantResult>,
}

/// The result of one mutant.
pub(super) struct MutantResult {
    pub(super) mutant: Mutant,
    /// The ids of the tests that failed on it; empty for a survivor.
    pub(super) killed_by: Vec<String>,
    pub(super) noticed: MutantCoverage,
    /// For a survivor: a claim that would have killed it.
    pub(super) proposal: Option<String>,
    /// The reason why this survivor is accepted.
    pub(super) accepted: Option<String>,
}

/// The specs and claims that should have detected a survivor.
#[derive(Default)]
pub(super) struct MutantCoverage {
    /// Those that cover the span itself.
    pub(super) at_it: Vec<Aware>,
    /// If there are none: those that cover its parent or its children.
    pub(super) beside_it: Vec<Aware>,
}

/// A spec or a claim of a test.
pub(super) struct Aware {
    pub(super) test: String,
    pub(super) what: String,
    pub(super) place: Place,
}

/// The totals of a test.
pub(super) struct TestTotal {
    pub(super) id: String,
    pub(super) name: String,
    /// The number of recorded traces on which it passes.
    pub(super) traces: usize,
    pub(super) killed: usize,
    /// The number of these that no other test killed.
    pub(super) alone: usize,
}

impl MutationReport {
    pub(super) fn new(tests: Vec<TestTotal>) -> Self {
        Self { traces: Vec::new(), tests }
    }

    fn mutants(&self) -> impl Iterator<Item = &MutantResult> {
        self.traces.iter().flat_map(|trace| &trace.mutants)
    }

    pub(super) fn survivors(&self) -> impl Iterator<Item = &MutantResult> {
        self.mutants().filter(|mutated| mutated.survived())
    }

    pub(super) fn total(&self) -> usize {
        self.mutants().count()
    }

    pub(super) fn killed(&self) -> usize {
        self.total() - self.survivors().count()
    }

    /// Returns the score in percent, with one decimal, never rounded up; 100 if there are no mutants.
    pub(super) fn score(&self) -> f64 {
        match self.total() {
            0 => 100.0,
            total => (self.killed() * 1000 / total) as f64 / 10.0,
        }
    }
}

impl MutantResult {
    pub(super) fn survived(&self) -> bool {
        self.killed_by.is_empty()
    }
}

impl TestTotal {
    pub(super) fn of(plan: &Plan) -> Self {
        Self { id: plan.id.to_string(), name: plan.name.clone(), traces: 0, killed: 0, alone: 0 }
    }
}

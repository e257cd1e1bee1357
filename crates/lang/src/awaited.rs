//! Decides what a run waits for before it may judge: the expectations of the test, and whether more spans can still matter.

use std::collections::HashSet;

use model::{
    DecisionBasis, Judgement, Trace, Verdict,
    trace::{Resource, ValueRef},
};

use crate::{
    budget,
    eval::{
        decided::{DecidedBy, decides_assertion, decides_claim},
        select::select,
        world::EvalContext,
    },
    plan::{Expect, ResolvedPlan},
};

impl ResolvedPlan {
    /// Returns the expectations (`settle.expect`) of the test that the trace does not meet yet, as written. An expectation that
    /// exceeds the budget of a judgement counts as not met.
    pub fn expected_missing(&self, trace: &Trace) -> Vec<String> {
        if self.expect.is_empty() {
            return Vec::new();
        }
        budget::judgement(|| self.missing_in(trace)).0
    }

    fn missing_in(&self, trace: &Trace) -> Vec<String> {
        let services: HashSet<&str> = trace.resources().filter_map(service).collect();
        let mut world = EvalContext::new(trace, None, None);
        let selectors = self.expect.iter().filter_map(|expect| match expect {
            Expect::Service(_) => None,
            Expect::Span(selector) => Some(&selector.meaning),
        });
        let selectors: Vec<_> = selectors.collect();
        world.prepare(&[], &selectors);
        let mut missing = Vec::new();
        for expect in &self.expect {
            let is_there = match expect {
                Expect::Service(name) => services.contains(name.as_str()),
                Expect::Span(selector) => {
                    let is_any = || !select(&selector.meaning, &world.scene()).is_empty();
                    budget::statement(is_any) == (true, None)
                }
            };
            if !is_there {
                missing.push(expect.source().to_owned());
            }
        }
        missing
    }

    /// Whether the present spans may decide all statements of the test, so that a run need not wait for the complete trace.
    ///
    /// Outputs need the complete trace: an output may take its value from a later span. So do gates: a later span may break a
    /// rule.
    pub fn may_end_early(&self) -> bool {
        let can_decide = |decided: DecidedBy| match decided {
            DecidedBy::Response => true,
            DecidedBy::Spans { passing, failing } => passing || failing,
        };
        let mut assertions = self.specs.iter().flat_map(|spec| {
            let of = &spec.selector.meaning;
            spec.assertions.iter().map(move |assertion| decides_assertion(&assertion.meaning, of))
        });
        let mut claims = self.claims.iter().map(|claim| decides_claim(&claim.claim.meaning));
        let says_something = !self.specs.is_empty() || !self.claims.is_empty();
        says_something
            && self.outputs.is_empty()
            && self.gates.is_open()
            && assertions.all(can_decide)
            && claims.all(can_decide)
    }

    /// Whether no further span can change the verdict: present spans break a statement, or present spans prove all of them. An
    /// inconclusive verdict concludes nothing from absence.
    pub fn is_final(&self, judgement: &Judgement) -> bool {
        let assertions = judgement.specs.iter().flat_map(|spec| &spec.assertions);
        let assertions = assertions.map(|assertion| (assertion.verdict, assertion.decided));
        let claims = judgement.claims.iter().map(|claim| (claim.verdict, claim.decided));
        let mut all = assertions.chain(claims);
        match judgement.verdict {
            Verdict::Inconclusive => true,
            Verdict::Failed => {
                all.any(|it| it.0 == Verdict::Failed && it.1 != DecisionBasis::Absence)
            }
            Verdict::Passed => {
                self.outputs.is_empty() && all.all(|(_, decided)| decided != DecisionBasis::Absence)
            }
        }
    }

    /// Whether this judgement has a verdict for every statement of the test.
    pub fn is_decided(&self, judgement: &Judgement) -> bool {
        let assertions = judgement.specs.iter().flat_map(|spec| &spec.assertions);
        let verdicts = assertions.map(|assertion| assertion.verdict);
        let mut all = verdicts.chain(judgement.claims.iter().map(|claim| claim.verdict));
        all.all(|verdict| verdict != Verdict::Inconclusive)
    }
}

fn service(resource: Resource<'_>) -> Option<&str> {
    match resource.attributes().get("service.name") {
        Some(ValueRef::Str(name)) => Some(name),
        _ => None,
    }
}

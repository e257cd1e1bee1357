//! Re-judges a stored run by another version of its test.
//!
//! It fires nothing and waits for nothing: response, trace and settlement come from the database, so that absence is decided as
//! it was in the run. Deliberately absent: their storage, and a change of the run's own verdict.

use lang::{Evidence, Plan, ResolveError, ResolvedPlan, Vars};
use model::{Answer, Outcome, RunId, Settlement, SpanId, Trace, UnsettledReason};

use crate::{reasons::reasons, seed::seed};

/// The stored results of a run, and the test that judges it now.
#[derive(Debug)]
pub struct RejudgeInput<'a> {
    /// The run. Random and time functions return the values that they returned in the run.
    pub run_id: RunId,
    /// The compiled test.
    pub plan: &'a Plan,
    /// Values for its variables.
    pub vars: &'a Vars,
    /// The stored outcome of the run.
    pub recorded: &'a Outcome,
    /// The trace that the run was judged by; none if it collected none.
    pub trace: Option<&'a Trace>,
    /// The trigger's span, as the attempt was recorded.
    pub trigger: Option<SpanId>,
}

/// Marks the run inconclusive if this test expects spans that did not arrive, as the run itself would have done.
fn expect(resolved: &ResolvedPlan, trace: &Trace, settlement: &mut Settlement) {
    let missing = resolved.expected_missing(trace);
    let is_known = |it: &UnsettledReason| matches!(it, UnsettledReason::ExpectedAbsent(_));
    if !missing.is_empty() && !settlement.unsettled.iter().any(is_known) {
        settlement.unsettled.push(UnsettledReason::ExpectedAbsent(missing));
    }
}

/// Re-judges a run. The outcome has no steps: the caller knows the time.
pub fn rejudge(again: &RejudgeInput<'_>) -> Result<Outcome, ResolveError> {
    let RejudgeInput { run_id, plan, vars, recorded, trace, trigger } = *again;
    let resolved = lang::resolve(plan, vars, &seed(run_id))?;
    let is_traced = !plan.skip_trace_collection();
    let mut settlement = recorded.settlement.clone().filter(|_| is_traced);
    if let (Some(settlement), Some(trace)) = (&mut settlement, trace) {
        expect(&resolved, trace, settlement);
        for silent in &mut settlement.unanswered {
            silent.declared |= plan.absent().contains(&silent.peer);
        }
    }
    let settlement = settlement.as_ref();
    let answer = recorded.answer.as_ref();
    let evidence = Evidence {
        trace: trace.filter(|_| is_traced),
        trigger: trigger.filter(|_| !matches!(answer, None | Some(Answer::NotFired))),
        answer,
        settlement,
    };
    let judgement = lang::judge(&resolved, &evidence);
    let reasons = match answer {
        Some(answer) => reasons(&resolved, answer, settlement, &recorded.diagnoses),
        None => recorded.reasons.clone(),
    };
    let mut outcome = Outcome {
        run_id: Some(run_id),
        test: plan.name.clone(),
        verdict: judgement.verdict,
        reasons,
        settlement: settlement.cloned(),
        overtaken: None,
        judgement,
        analysis: lang::analysis(&resolved, &evidence),
        steps: Vec::new(),
        ..recorded.clone()
    };
    resolved.secrets().hide_all(outcome.texts_mut());
    Ok(outcome)
}

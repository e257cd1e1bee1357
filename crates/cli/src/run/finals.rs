//! From provisional verdicts to final ones: updates the reports, the exit code, and the cases that depended on a superseded
//! verdict.

use std::collections::{BTreeMap, BTreeSet};

use model::{ErrorCode, Outcome, Verdict};
use runner::FinalRun;

use super::{
    round::{Round, RoundResult},
    schedule::Schedule,
    traces,
    watches::{Final, Try},
};
use crate::{exit::Exit, reports::Reports};

/// Superseded verdicts and changed outputs, by their case.
#[derive(Debug, Default)]
struct ReplacedVerdicts {
    /// Cases with a superseded verdict, each with its provisional verdict, by which dependent cases were started or skipped.
    replaced: BTreeMap<usize, Verdict>,
    /// Cases with changed outputs, each with the names of these outputs.
    outputs: BTreeMap<usize, Vec<String>>,
    /// Cases that were retried because of a verdict that was superseded.
    retried: BTreeSet<usize>,
}

/// Replaces the provisional outcomes by the final ones.
pub(super) fn apply(
    round: &Round<'_>,
    schedule: &Schedule,
    ended: &mut RoundResult,
    finals: Vec<(Try, Final)>,
    reports: &mut Reports<'_>,
) {
    let mut changes = ReplacedVerdicts::default();
    for (of, Final { concluded, changed_outputs }) in finals {
        round.session.learn(&concluded.seen);
        let is_superseded = concluded.outcome.superseded.is_some();
        if of.is_repeated {
            changes.retried.extend(is_superseded.then_some(of.case));
            continue;
        }
        if let (Some(folder), Some(trace)) = (&round.args.output.traces, &concluded.trace)
            && let Err(why) = traces::keep(folder, &of.plan.id, trace)
        {
            round
                .terminal
                .error(ErrorCode::FileUnwritable, format_args!("the trace cannot be kept: {why}"));
            ended.exits.push(Exit::Refused);
        }
        if !changed_outputs.is_empty() {
            changes.outputs.insert(of.case, changed_outputs);
        }
        let FinalRun { mut outcome, trace, .. } = concluded;
        outcome.test.clone_from(&schedule.cases()[of.case].name);
        if let Some(superseded) = &outcome.superseded {
            changes.replaced.insert(of.case, superseded.verdict);
            round.terminal.line(&format!(
                "{}: {}",
                outcome.test,
                report::superseded(superseded, outcome.verdict)
            ));
        }
        ended.cases.insert(of.case, outcome.verdict.into());
        reports.replace(of.case, outcome, trace.as_deref());
    }
    changes.doubt(schedule, ended, reports);
}

/// Makes cases with only a provisional verdict inconclusive: the command was interrupted before the verdict was final.
pub(super) fn interrupt(
    cases: &BTreeSet<usize>,
    ended: &mut RoundResult,
    reports: &mut Reports<'_>,
) {
    let why = "the command was interrupted before the verdict was final: run it again";
    for case in cases {
        leave_open(*case, why, ended, reports);
    }
}

impl ReplacedVerdicts {
    /// Makes all cases inconclusive that depended on a superseded verdict.
    fn doubt(&self, schedule: &Schedule, ended: &mut RoundResult, reports: &mut Reports<'_>) {
        for case in &self.retried {
            let why = "it was tried again because of a verdict that spans replaced later, so that nobody knows whether the \
                       last try was needed: raise `settle.flush`, or name in `settle.expect` what comes late";
            leave_open(*case, why, ended, reports);
        }
        for (case, names) in &self.outputs {
            let why = format!(
                "it was started with {} of `{}` before spans changed that: name in `settle.expect` what comes late there",
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
                schedule.cases()[*case].name
            );
            for dependent in schedule.dependents(*case) {
                leave_open(dependent, &why, ended, reports);
            }
        }
        for (case, before) in &self.replaced {
            let name = &schedule.cases()[*case].name;
            let why = format!(
                "it was started or left out because `{name}` had {}, which spans replaced later: name in `settle.expect` \
                 what comes late there",
                before.as_str()
            );
            for dependent in schedule.dependents(*case) {
                leave_open(dependent, &why, ended, reports);
            }
            if ended.stopped_by == Some(*case) && ended.cases.get(case) == Some(&Exit::Passed) {
                let why = format!(
                    "it was not run because `{name}` had {}, which spans replaced later: run it again",
                    before.as_str()
                );
                ended.exits.push(Exit::Inconclusive);
                for left in std::mem::take(&mut ended.left) {
                    let name = schedule.cases()[left].name.clone();
                    reports.add_at(left, Outcome::open(name, why.clone()), None);
                    ended.cases.insert(left, Exit::Inconclusive);
                }
            }
        }
    }
}

/// Makes a reported case inconclusive: it is known neither as passed nor as failed.
fn leave_open(case: usize, why: &str, ended: &mut RoundResult, reports: &mut Reports<'_>) {
    let open = |outcome: &mut Outcome| {
        outcome.verdict = Verdict::Inconclusive;
        outcome.provisional = false;
        outcome.reasons.push(why.to_owned());
    };
    if reports.amend(case, open) {
        ended.cases.insert(case, Exit::Inconclusive);
    }
}

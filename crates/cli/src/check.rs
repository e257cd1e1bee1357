//! `check`: tests against a recorded trace, with no server and no network.

use lang::{Evidence, Plan, Seed, Vars};
use model::{Outcome, Settlement, Step, StepTime, Trace, Unsettled, World};
use source::Diagnostic;

use crate::{
    args, documents, exit::Exit, recording, reports::Reports, terminal::Terminal, variables,
};

/// Judges the trace by every test that is meant.
pub(crate) fn check(
    args: &args::Check,
    environment: Vec<(String, String)>,
    world: &World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let mut reports = Reports::new(&args.reports, terminal)?;
    let plans = plans(&args.tests, terminal)?;
    let Some(file) = &args.trace else {
        terminal.result(&format!("{} right, nothing judged: no `--trace`", tests(plans.len())));
        return Ok(Exit::Passed);
    };
    let vars = variables::read(&args.variables, environment, terminal)?;
    let trace = recording::read(file, args.trace_id, terminal)?;
    let seed =
        Seed { now: world.now(), random: args.variables.seed.unwrap_or_else(|| world.random()) };
    let settlement = settlement(&trace, args.partial);
    reports.expect(plans.len());
    let mut exits = Vec::new();
    for plan in &plans {
        match judge(plan, &vars, &seed, (&trace, &settlement), world) {
            Ok(outcome) => {
                exits.push(outcome.verdict.into());
                reports.add(outcome);
            }
            Err(error) => exits.push(terminal.refuse(&error)),
        }
    }
    reports.finish()?;
    Ok(Exit::over(exits))
}

/// The plans of the tests that are meant. A mistake in any file ends it: what is wrong cannot be said to be left out.
fn plans(asked: &args::Tests, terminal: &Terminal) -> Result<Vec<Plan>, Exit> {
    let mut plans = Vec::new();
    let mut is_refused = false;
    for file in documents::files(&asked.paths, terminal)? {
        let Ok(text) = documents::read(&file, terminal) else {
            is_refused = true;
            continue;
        };
        let (planned, diagnostics) = lang::plans_if_any(&text);
        plans.extend(planned.into_iter().map(|planned| planned.plan));
        terminal.diagnostics(&diagnostics);
        is_refused |= diagnostics.iter().any(Diagnostic::is_error);
    }
    if is_refused {
        return Err(Exit::Refused);
    }
    let all = plans.len();
    plans.retain(|plan| is_meant(plan, asked));
    if plans.is_empty() {
        let why = match all {
            0 => "there is no document of type `Test` in what was named".to_owned(),
            all => format!("none of {} has this id, name or tag", tests(all)),
        };
        terminal.line(&format!("error: no test selected: {why}"));
        return Err(Exit::Refused);
    }
    Ok(plans)
}

fn is_meant(plan: &Plan, asked: &args::Tests) -> bool {
    let is_named = |name: &String| *name == plan.name || *name == plan.id.to_string();
    (asked.tests.is_empty() || asked.tests.iter().any(is_named))
        && (asked.tags.is_empty() || asked.tags.iter().any(|tag| plan.tags.contains(tag)))
}

fn settlement(trace: &Trace, is_partial: bool) -> Settlement {
    Settlement {
        unsettled: if is_partial { vec![Unsettled::Partial] } else { Vec::new() },
        spans: trace.len() as u64,
        waited_ns: 0,
        silent_ns: None,
        quiet_ns: 0,
    }
}

fn judge(
    plan: &Plan,
    vars: &Vars,
    seed: &Seed,
    (trace, settlement): (&Trace, &Settlement),
    world: &World,
) -> Result<Outcome, lang::ResolveError> {
    let began = world.now();
    let resolved = lang::resolve(plan, vars, seed)?;
    let evidence =
        Evidence { trace: Some(trace), trigger: None, answer: None, settlement: Some(settlement) };
    let judgement = lang::judge(&resolved, &evidence);
    Ok(Outcome {
        run_id: None,
        test: plan.name.clone(),
        verdict: judgement.verdict,
        reasons: Vec::new(),
        trace_id: Some(trace.id()),
        answer: None,
        settlement: Some(settlement.clone()),
        judgement,
        analysis: None,
        steps: vec![StepTime { step: Step::Judge, began, ended: world.now() }],
    })
}

fn tests(count: usize) -> String {
    match count {
        1 => "1 test".to_owned(),
        count => format!("{count} tests"),
    }
}

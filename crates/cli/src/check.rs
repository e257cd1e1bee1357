//! `check`: tests against a recorded trace, with no server and no network.

use lang::{Evidence, Plan, Seed, Vars};
use model::{Outcome, Settlement, Step, StepTime, Trace, Unsettled, World};

use crate::{args, chosen, exit::Exit, recording, reports::Reports, terminal::Terminal, variables};

/// Judges the trace by every test that is meant.
pub(crate) fn check(
    args: &args::Check,
    environment: Vec<(String, String)>,
    world: &World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let mut reports = Reports::new(&args.reports, terminal)?;
    let plans = chosen::plans(&args.tests, terminal)?;
    let Some(file) = &args.trace else {
        terminal
            .result(&format!("{} right, nothing judged: no `--trace`", chosen::tests(plans.len())));
        return Ok(Exit::Passed);
    };
    let vars = variables::read(&args.variables, environment, terminal)?;
    let trace = recording::read(file, args.trace_id, terminal)?;
    let seed = Seed { now: world.now(), random: args.seed.unwrap_or_else(|| world.random()) };
    let settlement = settlement(&trace, args.partial);
    reports.expect(plans.len());
    let mut exits = Vec::new();
    for plan in &plans {
        match judge(plan, &vars, &seed, (&trace, &settlement), world) {
            Ok(outcome) => {
                exits.push(outcome.verdict.into());
                reports.add(outcome, Some(&trace));
            }
            Err(error) => exits.push(terminal.refuse(&error)),
        }
    }
    reports.finish()?;
    Ok(Exit::over(exits))
}

fn settlement(trace: &Trace, is_partial: bool) -> Settlement {
    Settlement {
        unsettled: if is_partial { vec![Unsettled::Partial] } else { Vec::new() },
        spans: trace.len() as u64,
        ..Settlement::default()
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
        diagnoses: Vec::new(),
        overtaken: None,
        earlier: Vec::new(),
        judgement,
        analysis: None,
        steps: vec![StepTime { step: Step::Judge, began, ended: world.now() }],
    })
}

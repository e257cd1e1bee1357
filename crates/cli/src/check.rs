//! `check`: judges a recorded trace by tests, without a server and a network.

use lang::{Evidence, Plan, Seed, Vars};
use model::{Outcome, Settlement, Step, StepTime, Trace, UnsettledReason, World, trace::Span};

use crate::{
    args,
    discovery::{self, CheckedDocuments},
    exit::Exit,
    recording,
    reports::Reports,
    stored,
    terminal::Terminal,
    variables,
};

/// Judges the trace by every selected test.
pub(crate) fn check(
    args: &args::Check,
    environment: Vec<(String, String)>,
    world: &World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let mut reports = Reports::new(&args.reports, terminal)?;
    let Some(file) = &args.trace else { return only_read(args, terminal) };
    let checked = discovery::checked(&args.tests, terminal)?;
    let plans = checked.with_gates(&args.tests.filter, terminal)?;
    let stores = stored::sources(&args.stores, &checked.read.beside, terminal)?;
    let vars = variables::read(&args.variables, environment, terminal)?;
    let (trace, logs) = recording::read_with_logs(file, args.trace_id, terminal)?;
    if !args.partial {
        note_parts(&trace, terminal);
    }
    let seed = Seed { now: world.now(), random: args.seed.unwrap_or_else(|| world.random()) };
    let settlement = Settlement { logs, stores, ..settlement(&trace, args.partial) };
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

/// Validates the documents only. Files without a test are valid, unless tests were selected by name or tag.
fn only_read(args: &args::Check, terminal: &Terminal) -> Result<Exit, Exit> {
    let filter = &args.tests.filter;
    let checked = discovery::checked(&args.tests, terminal)?;
    stored::warn(&checked, &args.stores, terminal)?;
    let CheckedDocuments { read, tests } = checked;
    let right = match (tests.len(), read.documents) {
        (0, 0) => return Err(discovery::none_selected(&read, filter, terminal)),
        (0, _) if !filter.is_empty() => {
            return Err(discovery::none_selected(&read, filter, terminal));
        }
        (0, 1) => "1 document".to_owned(),
        (0, documents) => format!("{documents} documents"),
        (tests, _) => discovery::tests(tests),
    };
    terminal.result(&format!("{right} right, nothing judged: no `--trace`"));
    if !args.reports.targets.is_empty() {
        terminal.line("note: no report is written: nothing is judged without `--trace`");
    }
    Ok(Exit::Passed)
}

/// Prints a note if a file that is judged as the complete trace refers to spans that are not in it.
fn note_parts(trace: &Trace, terminal: &Terminal) {
    let is_missing = |span: &Span<'_>| span.parent().is_some_and(|id| trace.find(id).is_none());
    let missing = trace.spans().filter(is_missing).count();
    if missing > 0 {
        let spans =
            if missing == 1 { "1 span names".to_owned() } else { format!("{missing} spans name") };
        terminal.line(&format!(
            "note: {spans} a parent that is not in the file, which is taken as the whole trace; `--partial` judges it as a part, \
             so that nothing passes because a span is missing"
        ));
    }
}

fn settlement(trace: &Trace, is_partial: bool) -> Settlement {
    Settlement {
        unsettled: if is_partial { vec![UnsettledReason::Partial] } else { Vec::new() },
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
        request: None,
        answer: None,
        settlement: Some(settlement.clone()),
        diagnoses: Vec::new(),
        provisional: false,
        superseded: None,
        overtaken: None,
        earlier: Vec::new(),
        judgement,
        analysis: lang::analysis(&resolved, &evidence),
        steps: vec![StepTime { step: Step::Judge, began, ended: world.now() }],
    })
}

//! `lint`: checks a recorded trace against the analyzer's rules.

use lang::{Document, Rules};
use model::{Analysis, ErrorCode, Judgement, Level, Outcome, Step, StepTime, Verdict, World};

use crate::{
    args::{self, Gate},
    documents,
    exit::Exit,
    recording,
    reports::Reports,
    terminal::Terminal,
};

/// Analyses the trace.
pub(crate) fn lint(args: &args::Lint, world: &World, terminal: &Terminal) -> Result<Exit, Exit> {
    let mut reports = Reports::new(&args.reports, terminal)?;
    reports.expect(1);
    let rules = rules(args, terminal)?;
    let trace = recording::read(&args.recording.trace, args.recording.trace_id, terminal)?;
    let began = world.now();
    let analysis = lang::analyze(&trace, &rules);
    let verdict = if is_open(&analysis, args.gate) { Verdict::Passed } else { Verdict::Failed };
    let reasons = match verdict {
        Verdict::Passed | Verdict::Inconclusive => Vec::new(),
        Verdict::Failed => vec![why_closed(args.gate)],
    };
    let outcome = Outcome {
        run_id: None,
        test: format!("rules on trace {}", trace.id()),
        verdict,
        reasons,
        trace_id: Some(trace.id()),
        request: None,
        answer: None,
        settlement: None,
        diagnoses: Vec::new(),
        provisional: false,
        superseded: None,
        overtaken: None,
        earlier: Vec::new(),
        judgement: Judgement::bare(verdict),
        analysis: Some(analysis),
        steps: vec![StepTime { step: Step::Judge, began, ended: world.now() }],
    };
    reports.add(outcome, Some(&trace));
    reports.finish()?;
    Ok(verdict.into())
}

fn rules(args: &args::Lint, terminal: &Terminal) -> Result<Rules, Exit> {
    let Some(file) = &args.rules else { return Ok(Rules::default()) };
    for document in documents::documents(file, terminal)? {
        if let Document::Analyzer(analyzer) = document {
            return Ok(analyzer.rules);
        }
    }
    terminal.error(
        ErrorCode::DocumentMissing,
        format_args!("`{}` has no document of type `Analyzer`", file.display()),
    );
    Err(Exit::Refused)
}

fn why_closed(gate: Gate) -> String {
    match gate {
        Gate::Rules => "a rule of level `error` is broken: mend the trace, change the rule's level in an `Analyzer` \
                        document (`--rules`), or choose another gate (`--gate score`, `--gate none`)",
        Gate::Score | Gate::None => "the score is below `minimumScore`",
    }
    .to_owned()
}

fn is_open(analysis: &Analysis, gate: Gate) -> bool {
    let mut rules = analysis.plugins.iter().flat_map(|plugin| &plugin.rules);
    match gate {
        Gate::Rules => rules.all(|rule| rule.level != Level::Error || rule.holds()),
        Gate::Score => analysis.score >= analysis.minimum_score,
        Gate::None => true,
    }
}

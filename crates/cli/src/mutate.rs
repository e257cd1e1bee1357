//! `mutate`: checks whether tests detect faults. It mutates each recorded trace in one way at a time and re-judges it, offline.
//!
//! A mutant is killed if a test that passes on the recorded trace fails on the mutant. Inconclusive does not count as
//! killed: a pipeline may be configured to accept it. Deliberately absent: running a test again.

mod propose;
mod report;
mod survivors;
mod tell;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use lang::{Coverage, Evidence, Plan, ResolvedPlan, Seed};
use model::{
    ErrorCode, Settlement, Trace, Verdict, World,
    trace::{SpanIx, TraceFull},
};
use shape::{Mutant, Parts};

use crate::{args, discovery, exit::Exit, recording, terminal::Terminal, variables};
use report::{Aware, MutantCoverage, MutantResult, MutatedTrace, MutationReport, TestTotal};
use survivors::Survivors;

/// The upper bound for the traces of one command.
const TRACES_MAX: usize = 1_000;

/// A test that is resolved and ready to judge.
struct ResolvedTest {
    plan: Arc<Plan>,
    resolved: ResolvedPlan,
}

/// A recorded trace, and its test.
struct RecordedTrace {
    file: PathBuf,
    /// The id of the test that the trace was recorded for, if the file name contains it; else the file name.
    name: String,
    trace: Trace,
}

/// Mutates the traces and reports the mutants that no test killed.
pub(crate) fn mutate(
    args: &args::Mutate,
    environment: Vec<(String, String)>,
    world: &World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let plans = discovery::plans(&args.tests, terminal)?;
    let vars = variables::read(&args.variables, environment, terminal)?;
    let seed = Seed { now: world.now(), random: args.seed.unwrap_or_else(|| world.random()) };
    let mut tests = Vec::with_capacity(plans.len());
    for plan in plans {
        let resolved = lang::resolve(&plan, &vars, &seed);
        let resolved = resolved.map_err(|error| terminal.refuse(&error))?;
        tests.push(ResolvedTest { plan, resolved });
    }
    let survivors = match &args.survivors {
        Some(file) => Some(Survivors::read(file, terminal)?),
        None => None,
    };
    let recordings = recordings(&args.traces, &tests, terminal)?;
    let mut found =
        MutationReport::new(tests.iter().map(|test| TestTotal::of(&test.plan)).collect());
    for recording in &recordings {
        let aware = aware(recording, &tests, terminal)?;
        let judged = judge_all(recording, &tests, &aware, args, &mut found.tests);
        found.traces.push(judged.map_err(|full| terminal.refuse(&full))?);
    }
    let complaints = match &survivors {
        Some(survivors) => survivors.apply(&mut found, terminal)?,
        None => Vec::new(),
    };
    tell::tell(&found, args, terminal);
    Ok(exit(&found, args, &complaints, terminal))
}

fn exit(
    found: &MutationReport,
    args: &args::Mutate,
    complaints: &[String],
    terminal: &Terminal,
) -> Exit {
    complaints.iter().for_each(|complaint| terminal.line(complaint));
    let mut exit = Exit::Passed;
    let unexplained = found.survivors().filter(|mutant| mutant.accepted.is_none()).count();
    if args.survivors.is_some() && unexplained > 0 {
        terminal.error(ErrorCode::MutantsSurvived, format_args!(
            "{unexplained} survived without a reason: write a test that notices, or name them in the file of `--survivors`"
        ));
        exit = Exit::Failed;
    }
    // The comparison is exact: 90 % of 1000 are 900, and 899 are below it.
    let is_below = |least: u8| found.killed() * 100 < usize::from(least) * found.total();
    if let Some(least) = args.min_score.filter(|least| is_below(*least)) {
        terminal.error(
            ErrorCode::MutantsSurvived,
            format_args!("the score is below the least one, {least} %"),
        );
        exit = Exit::Failed;
    }
    exit
}

/// Returns all traces of the paths, in order.
fn recordings(
    paths: &[PathBuf],
    tests: &[ResolvedTest],
    terminal: &Terminal,
) -> Result<Vec<RecordedTrace>, Exit> {
    let mut files = Vec::new();
    for path in paths {
        let folder = match path.is_dir() {
            true => below(path),
            false => Ok(vec![path.clone()]),
        };
        files.extend(folder.map_err(|error| {
            terminal.error(
                ErrorCode::FileUnreadable,
                format_args!("cannot read the folder `{}`: {error}", path.display()),
            );
            Exit::Refused
        })?);
    }
    let wrong = match files.len() {
        0 => Some("no trace is there: `qualitytrace run … --traces FOLDER` writes some".to_owned()),
        count if count > TRACES_MAX => Some(format!("there are more than {TRACES_MAX} traces")),
        _ => None,
    };
    if let Some(wrong) = wrong {
        terminal.error(ErrorCode::TraceInvalid, wrong);
        return Err(Exit::Refused);
    }
    let mut recordings = Vec::with_capacity(files.len());
    for file in files {
        let trace = recording::read(&file, None, terminal)?;
        let stem = file.file_stem().map(|it| it.to_string_lossy().into_owned());
        let name = stem.unwrap_or_else(|| file.display().to_string());
        // The file name that `run --traces` writes.
        let of_test = name.strip_suffix(&format!("-{}", trace.id()));
        let test = tests.iter().find(|test| Some(test.plan.id.as_str()) == of_test);
        let name = test.map_or(name.clone(), |test| test.plan.id.to_string());
        recordings.push(RecordedTrace { file, name, trace });
    }
    Ok(recordings)
}

/// Returns the files of a folder that may contain a trace, sorted.
fn below(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_trace =
            path.extension().is_some_and(|it| it == "pb" || it == "json" || it == "jsonl");
        if is_trace && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the indexes of the tests that pass on the recorded trace, each with its coverage.
fn aware(
    recording: &RecordedTrace,
    tests: &[ResolvedTest],
    terminal: &Terminal,
) -> Result<Vec<(usize, Vec<Coverage>)>, Exit> {
    let RecordedTrace { file, name, trace } = recording;
    let file = file.display();
    let mut aware = Vec::new();
    for (number, test) in tests.iter().enumerate() {
        let verdict = judge(&test.resolved, trace);
        if verdict == Verdict::Passed {
            aware.push((number, lang::coverage(&test.resolved, trace)));
        } else if test.plan.id.as_str() == name {
            terminal.error(
                ErrorCode::BaselineNotPassed,
                format_args!(
                    "`{}` is {} on its own trace `{file}`, so that its mutants would tell nothing",
                    test.plan.name,
                    verdict.as_str()
                ),
            );
            return Err(Exit::Refused);
        }
    }
    if aware.is_empty() {
        terminal.error(ErrorCode::BaselineNotPassed, format_args!(
            "no test passes on the trace `{file}` as it is, so that its mutants would tell nothing"
        ));
        return Err(Exit::Refused);
    }
    Ok(aware)
}

fn judge_all(
    recording: &RecordedTrace,
    tests: &[ResolvedTest],
    aware: &[(usize, Vec<Coverage>)],
    args: &args::Mutate,
    totals: &mut [TestTotal],
) -> Result<MutatedTrace, TraceFull> {
    let trace = &recording.trace;
    let attributes = args.attributes.clone().unwrap_or_default();
    let mutants = shape::mutants(trace, &attributes, args.max_mutants, lang::trigger(trace));
    let parts = Parts::of(trace);
    let mut judged = Vec::with_capacity(mutants.list.len());
    aware.iter().for_each(|(number, _)| totals[*number].traces += 1);
    for mutant in mutants.list {
        let mutated = mutant.apply(&parts)?;
        let mut killed_by = Vec::new();
        for (number, _) in aware {
            if judge(&tests[*number].resolved, &mutated) == Verdict::Failed {
                killed_by.push(*number);
            }
        }
        for number in &killed_by {
            totals[*number].killed += 1;
            totals[*number].alone += usize::from(killed_by.len() == 1);
        }
        let survived = killed_by.is_empty();
        let noticed = if survived {
            noticed(&mutant, &parts, tests, aware)
        } else {
            MutantCoverage::default()
        };
        let proposal = survived.then(|| propose::propose(&mutant, trace, &mutated)).flatten();
        let killed_by = killed_by.iter().map(|it| tests[*it].plan.id.to_string()).collect();
        judged.push(MutantResult { mutant, killed_by, noticed, proposal, accepted: None });
    }
    Ok(MutatedTrace {
        name: recording.name.clone(),
        file: recording.file.display().to_string(),
        trace_id: trace.id(),
        spans: trace.len(),
        alike: mutants.alike,
        left_out: mutants.left_out,
        mutants: judged,
    })
}

/// Judges exactly as `check` does: the trace is complete, and no trigger was fired.
fn judge(resolved: &ResolvedPlan, trace: &Trace) -> Verdict {
    let settlement = Settlement { spans: trace.len() as u64, ..Settlement::default() };
    let evidence =
        Evidence { trace: Some(trace), trigger: None, answer: None, settlement: Some(&settlement) };
    lang::judge(resolved, &evidence).verdict
}

/// Returns the specs and claims that cover the mutated span, or else its neighbours.
fn noticed(
    mutant: &Mutant,
    parts: &Parts,
    tests: &[ResolvedTest],
    aware: &[(usize, Vec<Coverage>)],
) -> MutantCoverage {
    let around = parts.neighbours(mutant.span);
    let who = |spans: &[SpanIx]| {
        let all =
            aware.iter().flat_map(|(number, looked)| looked.iter().map(move |it| (number, it)));
        let look = |(_, it): &(&usize, &Coverage)| spans.iter().any(|span| it.spans.contains(span));
        let named = |(number, it): (&usize, &Coverage)| Aware {
            test: tests[*number].plan.name.clone(),
            what: it.what.clone(),
            place: it.place.clone(),
        };
        all.filter(look).map(named).collect::<Vec<_>>()
    };
    let at_it = who(&around[..1]);
    let beside_it = if at_it.is_empty() { who(&around[1..]) } else { Vec::new() };
    MutantCoverage { at_it, beside_it }
}

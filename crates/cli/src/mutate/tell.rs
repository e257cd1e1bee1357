//! Renders the results of the mutants, as text and as JSON.

use model::Place;
use serde_json::{Value, json};

use super::report::{Aware, MutantResult, MutatedTrace, MutationReport};
use crate::{
    args::{self, TextFormat},
    terminal::Terminal,
};

/// The version of the output of `--format json`. It increases when a field is removed or changes its meaning.
const SCHEMA_VERSION: u32 = 1;
/// The upper bound for survivors of a trace in the text output.
const SHOWN_MAX: usize = 50;
/// The upper bound for specs and claims that are listed as those that should have detected a survivor.
const AWARE_MAX: usize = 2;

pub(super) fn tell(found: &MutationReport, args: &args::Mutate, terminal: &Terminal) {
    if args.format == TextFormat::Json {
        return terminal.result(&json(found, args).to_string());
    }
    for trace in &found.traces {
        tell_trace(trace, terminal);
    }
    let width = found.tests.iter().map(|test| test.name.chars().count()).max().unwrap_or(0);
    for test in &found.tests {
        let (name, killed) = (&test.name, test.killed);
        let alone = match test.alone {
            0 if test.traces == 0 => ": it passes on none of the traces as they are".to_owned(),
            0 if killed > 0 => ", none of them alone".to_owned(),
            0 => String::new(),
            alone => format!(", {alone} of them alone"),
        };
        terminal.result(&format!("  {name:<width$}  kills {killed}{alone}"));
    }
    let survivors = found.survivors().count();
    let accepted = found.survivors().filter(|mutated| mutated.accepted.is_some()).count();
    let (score, killed, total) = (found.score(), found.killed(), found.total());
    let accepted = match accepted {
        0 => String::new(),
        accepted => format!(", {accepted} of them accepted"),
    };
    terminal.result(&format!(
        "score {score:.1} %: {killed} of {total} mutants killed, {survivors} survived{accepted}"
    ));
}

fn tell_trace(trace: &MutatedTrace, terminal: &Terminal) {
    let MutatedTrace { name, trace_id, spans, alike, left_out, mutants, .. } = trace;
    let survivors: Vec<_> = mutants.iter().filter(|mutated| mutated.survived()).collect();
    let killed = mutants.len() - survivors.len();
    let sample = match left_out.len() {
        0 => String::new(),
        more => format!("an even sample of {} mutants, ", mutants.len() + more),
    };
    let alike = match alike {
        0 => String::new(),
        alike => format!(", {alike} of them like another"),
    };
    terminal.result(&format!(
        "{name}: trace {trace_id} with {spans} spans{alike}: {sample}{killed} of {} mutants killed",
        mutants.len()
    ));
    let (accepted, open): (Vec<_>, Vec<_>) =
        survivors.into_iter().partition(|mutated| mutated.accepted.is_some());
    for mutated in open.iter().take(SHOWN_MAX) {
        terminal.result(&survivor(mutated).join("\n"));
    }
    if open.len() > SHOWN_MAX {
        terminal
            .result(&format!("  and {} more; `--format json` lists them", open.len() - SHOWN_MAX));
    }
    for mutated in accepted {
        let reason = mutated.accepted.as_deref().unwrap_or_default();
        terminal.result(&format!("  accepted: {} ({reason})", mutated.mutant.id));
    }
    terminal.result("");
}

fn survivor(mutated: &MutantResult) -> Vec<String> {
    let mutant = &mutated.mutant;
    let mut lines = vec![format!("  survived: {}", mutant.id), format!("      {}", mutant.says)];
    let noticed = &mutated.noticed;
    let who = match (noticed.at_it.as_slice(), noticed.beside_it.as_slice()) {
        ([], []) => "no spec and no claim looks at this span, or at a span next to it".to_owned(),
        ([], beside) => format!("no spec looks at it; next to it looks {}", named(beside)),
        (at_it, _) => format!("should have been noticed by {}", named(at_it)),
    };
    lines.push(format!("      {who}"));
    lines.extend(mutated.proposal.iter().map(|claim| format!("      this claim would: {claim}")));
    lines
}

fn named(aware: &[Aware]) -> String {
    let one = |Aware { test, what, place: Place { file, line, .. } }: &Aware| {
        format!("`{test}`: `{what}` ({file}:{line})")
    };
    let shown: Vec<_> = aware.iter().take(AWARE_MAX).map(one).collect();
    match aware.len().saturating_sub(AWARE_MAX) {
        0 => shown.join(" and "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn json(found: &MutationReport, args: &args::Mutate) -> Value {
    let tests = found.tests.iter().map(|test| {
        json!({"id": test.id, "name": test.name, "traces": test.traces, "killed": test.killed, "alone": test.alone})
    });
    let traces = found.traces.iter().map(|trace| {
        json!({
            "name": trace.name,
            "file": trace.file,
            "traceId": trace.trace_id.to_string(),
            "spans": trace.spans,
            "alike": trace.alike,
            "leftOut": trace.left_out.len(),
            "mutants": trace.mutants.iter().map(mutant).collect::<Vec<_>>(),
        })
    });
    json!({
        "schemaVersion": SCHEMA_VERSION,
        "score": found.score(),
        "killed": found.killed(),
        "total": found.total(),
        "minScore": args.min_score,
        "tests": tests.collect::<Vec<_>>(),
        "traces": traces.collect::<Vec<_>>(),
    })
}

fn mutant(mutated: &MutantResult) -> Value {
    let aware = |all: &[Aware]| -> Vec<Value> {
        let one = |Aware { test, what, place }: &Aware| json!({"test": test, "what": what, "place": {"file": place.file, "line": place.line, "column": place.column}});
        all.iter().map(one).collect()
    };
    json!({
        "id": mutated.mutant.id,
        "operator": mutated.mutant.operator.word(),
        "says": mutated.mutant.says,
        "survived": mutated.survived(),
        "killedBy": mutated.killed_by,
        "lookedAtBy": aware(&mutated.noticed.at_it),
        "lookedBesideBy": aware(&mutated.noticed.beside_it),
        "proposal": mutated.proposal,
        "accepted": mutated.accepted,
    })
}

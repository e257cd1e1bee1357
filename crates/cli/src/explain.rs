//! `explain`: shows how a selector narrows a trace, and the spans that decide an assertion or claim.

use std::path::Path;

use lang::{
    DecidedBy, ExplainedStatement, Explanation, SelectorExplanation, SelectorStep, SpanSample,
};
use source::{Diagnostic, Text};

use crate::{args, documents, exit::Exit, recording, terminal::Terminal};

/// Explains a selector, or all specs and claims of the tests of a file.
pub(crate) fn explain(args: &args::Explain, terminal: &Terminal) -> Result<Exit, Exit> {
    let trace = recording::read(&args.recording.trace, args.recording.trace_id, terminal)?;
    let path = Path::new(&args.what);
    if path.is_file() {
        for plan in documents::compile(&documents::read(path, terminal)?, terminal)? {
            terminal.result(&test(&lang::explain_plan(&plan, &trace)));
        }
        return Ok(Exit::Passed);
    }
    let text = Text::new("selector", args.what.clone());
    let (explained, diagnostics) = lang::explain_selector(&text, &trace);
    terminal.diagnostics(&diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Exit::Refused);
    }
    if let Some(narrowing) = explained {
        terminal.result(&lines(&narrowing, 0).join("\n"));
    }
    Ok(Exit::Passed)
}

fn test(explained: &Explanation) -> String {
    let mut lines = vec![explained.test.clone()];
    for spec in &explained.specs {
        lines.push(String::new());
        lines.extend(spec.name.as_ref().map(|name| format!("  {name}")));
        lines.extend(self::lines(&spec.narrowing, 2));
        lines.extend(spec.assertions.iter().flat_map(statement));
    }
    if !explained.claims.is_empty() {
        lines.push(String::new());
        lines.push("  claims about the whole trace".to_owned());
    }
    lines.extend(explained.claims.iter().flat_map(statement));
    lines.join("\n")
}

fn statement(explained: &ExplainedStatement) -> [String; 2] {
    let name = explained.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
    [format!("    {name}{}", explained.statement), format!("      {}", words(explained.decided_by))]
}

fn lines(narrowing: &SelectorExplanation, indent: usize) -> Vec<String> {
    let margin = " ".repeat(indent);
    let selector = match narrowing.selector.as_str() {
        "" => "every span",
        selector => selector,
    };
    let mut lines = vec![format!("{margin}{selector}")];
    for (at, part) in narrowing.parts.iter().enumerate() {
        if at > 0 {
            lines.push(format!("{margin}  and"));
        }
        let width = part.iter().map(|step| step.step.chars().count()).max().unwrap_or(0);
        lines.extend(part.iter().flat_map(|step| steps(step, width, &margin)));
    }
    let all = narrowing.spans;
    lines.push(format!("{margin}  selected of {all}: {}", seen(&narrowing.selected)));
    lines
}

fn steps(step: &SelectorStep, width: usize, margin: &str) -> Vec<String> {
    let matching = step.matching;
    let shown = &step.step;
    let reached = match step.way {
        "" => seen(&step.reached),
        way => format!("{matching} alone, {way} those: {}", seen(&step.reached)),
    };
    let mut lines = vec![format!("{margin}  {shown:<width$}  {reached}")];
    lines.extend(
        step.picked
            .as_ref()
            .map(|(position, picked)| format!("{margin}  {position:<width$}  {}", seen(picked))),
    );
    lines
}

fn seen(seen: &SpanSample) -> String {
    let one_line = |name: &str| name.replace(['\n', '\r'], " ");
    let names: Vec<_> =
        seen.first.iter().map(|(_, name)| format!("`{}`", one_line(name))).collect();
    let more = if seen.count > names.len() { ", …" } else { "" };
    match seen.count {
        0 => "0".to_owned(),
        count => format!("{count} ({}{more})", names.join(", ")),
    }
}

fn words(decides: DecidedBy) -> &'static str {
    match decides {
        DecidedBy::Response => "decided by the trigger's answer alone",
        DecidedBy::Spans { passing: true, failing: true } => "decided by spans that are there",
        DecidedBy::Spans { passing: true, failing: false } => {
            "passes as soon as the spans are there; fails in a complete trace only"
        }
        DecidedBy::Spans { passing: false, failing: true } => {
            "fails as soon as the spans are there; passes in a complete trace only"
        }
        DecidedBy::Spans { passing: false, failing: false } => "decided in a complete trace only",
    }
}

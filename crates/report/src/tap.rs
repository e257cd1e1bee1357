//! Outcomes in the Test Anything Protocol, version 14.
//!
//! A test is a test point, and its assertions and claims are the points of a subtest before it. Everything that did not
//! pass is `not ok`, with the evidence as a YAML block. An inconclusive one is `not ok` too, with a comment that states
//! it: the directives of the protocol for an open result, `TODO` and `SKIP`, count as success. The comment has a line of its
//! own since the description of a subtest's point must be the name of the subtest, and readers parse a comment as description.
//!
//! Deliberately absent: the plan at the end, which would allow to write points incrementally.

use model::{Outcome, Verdict};

use crate::{
    format::{Format, TEXT},
    points::{NAME_CHARS_MAX, PATH_CHARS_MAX, PROSE_CHARS_MAX, Point, points},
    text::shown,
    why::whys,
};

/// The Test Anything Protocol, for its harnesses.
pub(crate) const TAP: Format = Format::new("tap", TEXT, |input| tap(input.outcomes));

/// The indentation of a subtest.
const SUBTEST: &str = "    ";

/// Writes all outcomes as one stream.
fn tap(outcomes: &[Outcome]) -> String {
    let mut text = format!("TAP version 14\n1..{}", outcomes.len());
    text.push_str(if outcomes.is_empty() { " # no tests\n" } else { "\n" });
    for (at, outcome) in outcomes.iter().enumerate() {
        let name = description(&shown(&outcome.test, NAME_CHARS_MAX));
        text.push_str(&format!("# Subtest: {name}\n"));
        let points = points(outcome);
        text.push_str(&format!("{SUBTEST}1..{}\n", points.len()));
        for (at, point) in points.iter().enumerate() {
            let line = Line { number: at + 1, verdict: point.verdict, indent: SUBTEST };
            line.write(&mut text, &description(&point.title()), &diagnostics(point));
        }
        let line = Line { number: at + 1, verdict: outcome.verdict, indent: "" };
        line.write(&mut text, &name, &run(outcome));
    }
    text
}

/// The fields of a point beside its texts.
struct Line {
    number: usize,
    verdict: Verdict,
    indent: &'static str,
}

impl Line {
    fn write(&self, text: &mut String, description: &str, diagnostics: &[String]) {
        let Self { number, verdict, indent } = self;
        let status = if *verdict == Verdict::Passed { "ok" } else { "not ok" };
        text.push_str(&format!("{indent}{status} {number} - {description}\n"));
        if *verdict == Verdict::Inconclusive {
            text.push_str(&format!("{indent}# inconclusive: the evidence shows neither\n"));
        }
        if *verdict == Verdict::Passed || diagnostics.is_empty() {
            return;
        }
        text.push_str(&format!("{indent}  ---\n"));
        for line in diagnostics {
            text.push_str(&format!("{indent}  {line}\n"));
        }
        text.push_str(&format!("{indent}  ...\n"));
    }
}

/// Returns the YAML lines of a point.
fn diagnostics(point: &Point<'_>) -> Vec<String> {
    let mut yaml = vec![
        format!("message: {}", quoted(&point.message())),
        format!("verdict: {}", point.verdict.as_str()),
    ];
    if let Some(place) = point.place {
        yaml.push("at:".to_owned());
        yaml.push(format!("  file: {}", quoted(&shown(&place.file, PATH_CHARS_MAX))));
        yaml.push(format!("  line: {}", place.line));
        yaml.push(format!("  column: {}", place.column));
    }
    let found = point.found();
    if !found.is_empty() {
        yaml.push("found:".to_owned());
        yaml.extend(found.iter().map(|line| format!("  - {}", quoted(line))));
    }
    yaml
}

/// Returns the YAML lines of a test.
fn run(outcome: &Outcome) -> Vec<String> {
    let mut yaml = vec![format!("verdict: {}", outcome.verdict.as_str())];
    yaml.extend(outcome.run_id.map(|id| format!("run: {}", quoted(&id.to_string()))));
    yaml.extend(outcome.trace_id.map(|id| format!("trace: {}", quoted(&id.to_string()))));
    let whys = whys(outcome);
    if !whys.is_empty() {
        yaml.push("reasons:".to_owned());
        let reasons = whys.iter().map(|why| shown(why, PROSE_CHARS_MAX));
        yaml.extend(reasons.map(|reason| format!("  - {}", quoted(&reason))));
    }
    yaml
}

/// Escapes a description, so that it starts no directive.
fn description(text: &str) -> String {
    match text.trim().replace('\\', r"\\").replace('#', r"\#") {
        none if none.is_empty() => "(no name)".to_owned(),
        description => description,
    }
}

/// Quotes a visible text as a YAML scalar: a JSON string is a YAML scalar.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
